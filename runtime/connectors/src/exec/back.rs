//! What a line changed, brought back through the platform's own operations
//!
//! # Invariants
//! - Links, devices, protected names and what the grant does not cover are left, and told.
//! - What somebody else changed meanwhile is theirs.
//! - Nothing is begun that the journal has no room for.
//!
//! # Not here
//! Making one change (`synapse_primitives::tree`).

use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use synapse_primitives::platform::{Kind, WHOLE_BYTES};
use synapse_primitives::rest::Names;
use synapse_primitives::tree::{Becomes, Change, PART, Reach, Tree, Unmade};
use synapse_reply::Fault;

use super::copy::{Copy, Differs};
use super::{Unfit, git};

/// Changes of one call.
const CHANGES: usize = 20_000;

/// What is told of either kind.
const TOLD: usize = 100;

/// What became of a line's changes.
#[derive(Debug, Default)]
pub(super) struct Back {
    /// What was changed, by the guest's path.
    pub(super) changed: Vec<String>,
    /// What was not, and why.
    pub(super) left: Vec<Left>,
}

/// A change that was not made.
#[derive(Debug, Serialize)]
pub(super) struct Left {
    path: String,
    why: String,
}

/// A change that is to be made.
struct Plan {
    path: String,
    /// Bytes that the journal is to take.
    displaced: u64,
    what: What,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Removed,
    Made,
    Replaced,
}

impl Back {
    fn leave(&mut self, path: &str, why: impl Into<String>) {
        if self.left.len() < TOLD {
            self.left.push(Left { path: path.to_owned(), why: why.into() });
        } else if let Some(last) = self.left.last_mut() {
            *last = Left { path: "…".to_owned(), why: "and more".to_owned() };
        }
    }

    fn change(&mut self, path: &str) {
        if self.changed.len() < TOLD {
            self.changed.push(path.to_owned());
        } else if let Some(last) = self.changed.last_mut() {
            "…".clone_into(last);
        }
    }
}

/// Brings back what a line changed in its copy.
pub(super) async fn bring(
    copy: &Copy,
    tree: &dyn Tree,
    root: &str,
    told: &Names,
    reach: Reach,
) -> Result<Back, Unfit> {
    let (mut back, mut plans, mut emptied) = (Back::default(), Vec::new(), Vec::new());
    let different = copy.differs()?;
    for path in &different.nameless {
        let path = path.as_os_str().as_bytes().escape_ascii();
        back.leave(&format!("{root}/{path}"), "its name is no text");
    }
    let differs = different.named;
    if differs.len() > CHANGES {
        return Err(Unfit::Told(format!(
            "the line changed more than {CHANGES} files, and none of it was brought back"
        )));
    }
    for differs in differs {
        let path = format!("{root}/{}", differs.path);
        if differs.now.is_none()
            && differs.before.as_ref().map(|it| it.kind) == Some(Kind::Directory)
        {
            emptied.push(path);
            continue;
        }
        match plan(copy, tree, &path, &differs).await {
            Ok(plan) => plans.extend(plan),
            Err(why) => back.leave(&path, why),
        }
    }
    let needed = plans.iter().fold(0_u64, |all, plan| all.saturating_add(plan.displaced));
    if needed > tree.room() {
        return Err(Unfit::Told(format!(
            "what the line changed displaces {needed} bytes, the journal has room for {}, and none \
             of it was brought back",
            tree.room()
        )));
    }
    // What refers to an object of a repository comes after it.
    let object = |path: &str| path.contains(&format!("/{}/objects/", git::FOLDER));
    plans.sort_by_key(|plan| (plan.what != What::Removed, !object(&plan.path)));
    for plan in plans {
        let inner = plan.path.strip_prefix(root).unwrap_or_default().trim_start_matches('/');
        let bytes = match plan.what {
            What::Removed => Ok((Vec::new(), false)),
            What::Made | What::Replaced => content(copy, inner),
        };
        let becomes = match (&bytes, plan.what) {
            (Err(why), _) => {
                back.leave(&plan.path, why.clone());
                continue;
            }
            (Ok(_), What::Removed) => Becomes::Removed,
            (Ok((bytes, false)), What::Made) => Becomes::Made(bytes),
            (Ok((bytes, true)), What::Made) => Becomes::MadeProgram(bytes),
            // What may be done with it stays as it was.
            (Ok((bytes, _)), What::Replaced) => Becomes::Replaced(bytes),
        };
        let change = Change { root, path: &plan.path, becomes, carries: told, reach };
        match tree.change(change).await {
            Ok(()) => back.change(&plan.path),
            Err(why) => back.leave(&plan.path, unmade(why)),
        }
    }
    // The deepest first; one that holds something that was not copied stays.
    for path in emptied.iter().rev() {
        if tree.list(path).await.is_ok_and(|entries| entries.is_empty()) {
            let becomes = Becomes::Removed;
            let change = Change { root, path, becomes, carries: told, reach };
            match tree.change(change).await {
                Ok(()) => back.change(path),
                Err(why) => back.leave(path, unmade(why)),
            }
        }
    }
    Ok(back)
}

/// What is to be done about one difference, if anything.
async fn plan(
    copy: &Copy,
    tree: &dyn Tree,
    path: &str,
    differs: &Differs,
) -> Result<Option<Plan>, String> {
    let before = differs.before.as_ref();
    let what = match (differs.now, before.map(|known| known.kind)) {
        (Some(Kind::Directory), None) => return Ok(None),
        (Some(Kind::File), None) => What::Made,
        (Some(Kind::File), Some(Kind::File)) => What::Replaced,
        (None, Some(Kind::File)) => What::Removed,
        (Some(Kind::Link), _) | (_, Some(Kind::Link)) => {
            return Err("a link, which no line may make or change".to_owned());
        }
        (Some(Kind::Other), _) => return Err("a device, pipe or socket".to_owned()),
        _ => return Err("a file where a directory was, or the other way round".to_owned()),
    };
    if let (What::Made | What::Replaced, Some(known)) = (what, before)
        && Sha256::digest(content(copy, &differs.path)?.0)[..] == known.digest
    {
        return Ok(None);
    }
    let displaced = match before {
        // What stands in the folder is the repository's own.
        Some(_) if git::is_ours(&differs.path) => return Err(PROTECTED.to_owned()),
        None => 0,
        Some(known) => {
            if digest(tree, path).await != Ok(known.digest) {
                return Err("somebody else changed it meanwhile, and theirs stays".to_owned());
            }
            known.size
        }
    };
    Ok(Some(Plan { path: path.to_owned(), displaced, what }))
}

/// What stands in the copy now, and whether its owner may run it.
fn content(copy: &Copy, path: &str) -> Result<(Vec<u8>, bool), String> {
    let mut bytes = Vec::new();
    let read = copy.file(path).and_then(|file| {
        let is_program = file.metadata()?.permissions().mode() & 0o100 != 0;
        file.take(WHOLE_BYTES + 1).read_to_end(&mut bytes).map(|_| is_program)
    });
    match read {
        Ok(_) if bytes.len() as u64 > WHOLE_BYTES => {
            Err(format!("it has more than {} MiB", WHOLE_BYTES >> 20))
        }
        Ok(is_program) => Ok((bytes, is_program)),
        Err(why) => Err(format!("it cannot be read: {why}")),
    }
}

/// Of what stands in the folder now.
async fn digest(tree: &dyn Tree, path: &str) -> Result<[u8; 32], Fault> {
    let (mut digest, mut offset) = (Sha256::new(), 0);
    loop {
        let part = tree.read(path, offset).await?;
        digest.update(&part);
        if (part.len() as u64) < PART {
            return Ok(digest.finalize().into());
        }
        offset = offset.saturating_add(part.len() as u64);
    }
}

const PROTECTED: &str = "its name is protected";

fn unmade(why: Unmade) -> String {
    match why {
        Unmade::OutOfScope => "the grant does not cover it".to_owned(),
        Unmade::Protected => PROTECTED.to_owned(),
        Unmade::Fault(fault) => format!("{} ({})", fault.name(), fault.number()),
    }
}
