//! Leave first: a step asks for its warrant, and only then is there an act.
//!
//! All steps are prepared before the first is done, while nothing from outside
//! has been read. What must be looked at to know a target, a listing, is held:
//! the kernel has seen it and the task has not, so the mark stays where it was.
//!
//! # Not here
//! What the acts do (`act`).

use alloc::boxed::Box;
use alloc::format;

use synapse_guest::abi::limits::USES;
use synapse_guest::reply::limits::LIST;
use synapse_guest::{Error, Selector, hold, warrant};

use crate::act;
use crate::plan::Step;

/// What is left to do of a step that has leave.
pub(crate) type Act<'a> = Box<dyn FnOnce() -> Result<(), Error> + 'a>;

/// Asks for what a step needs.
///
/// # Errors
/// The kernel's; the step is then to be left undone.
pub(crate) fn prepare(step: &Step) -> Result<Act<'_>, Error> {
    Ok(match step {
        Step::Delete(path) => {
            warrant::fs_delete(path).mint()?;
            Box::new(|| act::delete(path))
        }
        Step::DeleteFiles(folder) => {
            let files = format!("{folder}/*");
            warrant::fs_delete(&files).uses(USES.into()).mint()?;
            Box::new(|| act::delete_files(folder))
        }
        Step::DeleteLargest(folder) => {
            let listing = hold::fs_list(folder, "", LIST)?;
            // "file" is a word of the phrase: the human's line names it.
            let largest = Selector::take(listing, "path").equal("kind", "file").max("size");
            warrant::fs_delete(&largest).mint()?;
            Box::new(move || act::delete_largest(folder, &largest))
        }
        // A move to a free name displaces nothing: its record undoes it.
        Step::Archive { from, into } => Box::new(|| act::archive(from, into)),
        Step::ArchiveOld { folder, days, into } => {
            Box::new(|| act::archive_old(folder, *days, into))
        }
        Step::Summarise { from, into } => {
            // It is needed if the journal cannot take what stands there.
            warrant::fs_write(into).mint()?;
            Box::new(|| act::summarise(from, into))
        }
    })
}
