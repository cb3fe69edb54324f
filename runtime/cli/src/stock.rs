//! Packages that are named, not pointed at: those that come with Synapse
//!
//! # Not here
//! Making them (`cargo xtask packages`). What may be installed (`synapse_host::package`).

use std::env;
use std::path::{Path, PathBuf};
use synapse_host::package::{Source, is_name};

/// The file of a package of this name, where nothing here has the name; else the
/// source as it is.
pub(crate) fn found(source: Source) -> Source {
    let file = bare(&source).and_then(|name| {
        let files = folders().into_iter().map(|dir| dir.join(name).with_extension("synapse"));
        files.into_iter().find(|file| file.is_file())
    });
    file.map_or(source, Source::Path)
}

/// What to say of a name that nothing has; `None` for another source.
pub(crate) fn missing(source: &Source) -> Option<String> {
    let name = bare(source)?;
    let folders: Vec<_> =
        folders().iter().map(|dir| format!("`{}`", crate::package::shown(dir))).collect();
    Some(format!(
        "`{name}` is no file and no folder here, and no package of that name is in {}\nname a \
         package's file or folder, or put there what comes with Synapse: `cargo xtask packages`",
        folders.join(" or ")
    ))
}

/// A source that is nothing but a name, which nothing here has.
pub(crate) fn bare(source: &Source) -> Option<&str> {
    let Source::Path(path) = source else { return None };
    path.to_str().filter(|name| is_name(name) && !path.exists())
}

/// Where packages that come with Synapse are: the user's, then those beside the program.
fn folders() -> Vec<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let own = absolute("XDG_DATA_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/share")));
    let program = env::current_exe().ok();
    let beside = program.as_deref().and_then(Path::parent).and_then(Path::parent);
    let shares = own.into_iter().chain(beside.map(|dir| dir.join("share")));
    shares.map(|share| share.join("synapse/packages")).collect()
}
