//! A folder that somebody works in, as a second run meets it.

use std::fs;
use synapse_host::locks::{self, Folder, Purpose};

use crate::err;
use crate::run::{lister_package, run_on};

#[test]
fn a_folder_in_use_is_refused_with_the_name_of_who_uses_it() {
    let root = tempfile::tempdir().unwrap();
    lister_package(root.path());
    let inner = root.path().join("notes/inner");
    fs::create_dir_all(&inner).unwrap();
    let state = root.path().join("state/synapse");
    let folders = vec![Folder::find(&inner, true).unwrap()];
    let held = locks::take(&state, "20260101-000000-12345678", Purpose::Run, folders).unwrap();
    let refused = run_on(root.path(), "lister", "notes", "wasmi");
    assert_eq!(refused.status.code(), Some(1));
    let told = err(&refused);
    let process = format!("(process {}, since 20", std::process::id());
    for part in ["run 20260101-000000-12345678 works in", "notes/inner", &process, " UTC"] {
        assert!(told.contains(part), "{told}");
    }
    assert_eq!(fs::read_dir(state.join("runs")).unwrap().count(), 0, "nothing is left of it");
    drop(held);
    assert!(run_on(root.path(), "lister", "notes", "wasmi").status.success());
}
