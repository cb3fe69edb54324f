//! Giving free the copies of folders that connectors' programs were run in.
//!
//! A copy is made anew from its folder before each use; what goes with an old one is what
//! builds kept beside it, unless something of a line's stands nowhere else.
//!
//! # Invariants
//! - A copy that a run has is not touched, and keeps whoever comes out until it is gone.
//!
//! # Not here
//! Where copies stand, and how one goes (`synapse-connectors`).

use std::io;
use std::path::Path;

use synapse_connectors::approval;
use synapse_connectors::exec::Old;

use super::{Item, Order, Stays, What};

/// Looks at each copy in the state folder, and removes what nobody used since then or
/// nobody can use any more. `tools` are the settings of all connectors.
///
/// # Errors
/// The folder of copies cannot be listed; without one there are none.
pub fn collect_copies(
    state: &Path,
    tools: &Path,
    order: Order,
    mut tell: impl FnMut(&Item),
) -> io::Result<()> {
    let base = state.join("copies");
    for name in Old::names(&base)? {
        let mut item = Item { what: What::Copy(None), name, bytes: 0, stays: None };
        match Old::take(&base, &item.name) {
            Ok(None) => item.stays = Some(Stays::Live),
            Err(why) => item.stays = Some(Stays::Host(why)),
            Ok(Some(old)) => {
                if old.used > order.before && is_usable(&old, tools) {
                    continue;
                }
                item.bytes = old.bytes();
                item.what = What::Copy(old.folder.clone());
                item.stays = old.holds.filter(|_| !order.broken).map(Stays::Holds);
                if item.stays.is_none() && !order.look {
                    item.stays = old.remove().err().map(Stays::Host);
                }
            }
        }
        tell(&item);
    }
    Ok(())
}

/// Whether its folder is there and its connector, as far as that can be told.
fn is_usable(old: &Old, tools: &Path) -> bool {
    let connector = |server: &str| approval::Folder::of(tools, server).manifest_path().exists();
    let given_up = old.server.is_none();
    given_up || (old.server.as_deref().is_some_and(connector) && is_there(old.folder.as_deref()))
}

fn is_there(folder: Option<&Path>) -> bool {
    folder.is_none_or(Path::is_dir)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;
    use std::fs::{self, File};
    use std::time::SystemTime;

    use synapse_connectors::exec::Holds;

    /// A state folder with a copy of a folder that is there, of a connector that is.
    struct World(tempfile::TempDir);

    const COPY: &str = "cargo-0123456789abcdef";

    impl World {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            for folder in ["mine", "tools/cargo"] {
                fs::create_dir_all(root.path().join(folder)).unwrap();
            }
            fs::write(root.path().join("tools/cargo/manifest.toml"), "").unwrap();
            let world = Self(root);
            world.copy();
            world
        }

        fn copy(&self) {
            let copy = self.at("copies").join(COPY);
            fs::create_dir_all(copy.join("cache")).unwrap();
            fs::write(copy.join("cache/built"), [7; 5000]).unwrap();
            fs::write(copy.join("folder"), self.at("mine").as_os_str().as_encoded_bytes()).unwrap();
            self.lock().set_modified(SystemTime::now() - Duration::from_hours(48)).unwrap();
        }

        fn at(&self, name: &str) -> std::path::PathBuf {
            self.0.path().join(name)
        }

        fn lock(&self) -> File {
            File::create(self.at("copies").join(COPY).join("lock")).unwrap()
        }

        fn collect(&self, order: Order) -> Option<Item> {
            let mut found = None;
            let tell = |item: &Item| {
                let stays = item.stays.as_ref().map(|stays| match stays {
                    Stays::Live => Stays::Live,
                    Stays::Holds(holds) => Stays::Holds(*holds),
                    other => panic!("{other:?}"),
                });
                let (what, name) = (item.what.clone(), item.name.clone());
                found = Some(Item { what, name, bytes: item.bytes, stays });
            };
            collect_copies(self.0.path(), &self.at("tools"), order, tell).unwrap();
            found
        }

        fn stands(&self) -> bool {
            self.at("copies").join(COPY).exists()
        }
    }

    fn order(hours: u64) -> Order {
        let before = SystemTime::now() - Duration::from_hours(hours);
        Order { before, broken: false, look: false }
    }

    #[test]
    fn a_copy_goes_when_nobody_used_it_for_long_and_no_folder_with_it() {
        let world = World::new();
        assert!(world.collect(order(72)).is_none() && world.stands(), "it is young");
        let look = Order { look: true, ..order(24) };
        let looked = world.collect(look).unwrap();
        assert!(looked.stays.is_none() && looked.bytes >= 5000 && world.stands());
        let gone = world.collect(order(24)).unwrap();
        assert!(matches!(&gone.what, What::Copy(Some(folder)) if *folder == world.at("mine")));
        assert_eq!(
            (gone.name.as_str(), gone.bytes, gone.stays.is_none()),
            (COPY, looked.bytes, true)
        );
        assert!(!world.stands() && world.at("mine").exists());
        assert_eq!(fs::read_dir(world.at("copies")).unwrap().count(), 0);
    }

    #[test]
    fn a_copy_that_nobody_can_use_goes_at_once() {
        for lost in ["mine", "tools/cargo"] {
            let world = World::new();
            fs::remove_dir_all(world.at(lost)).unwrap();
            assert!(world.collect(order(72)).unwrap().stays.is_none(), "{lost}");
            assert!(!world.stands(), "{lost}");
        }
    }

    #[test]
    fn a_copy_that_is_in_use_or_holds_what_stands_nowhere_else_stays() {
        let world = World::new();
        let lock = world.lock();
        lock.try_lock().unwrap();
        let all = Order { broken: true, ..order(0) };
        assert!(matches!(world.collect(all).unwrap().stays, Some(Stays::Live)));
        drop(lock);
        for (mark, holds) in [("busy", Holds::Line), ("unkept", Holds::Changes)] {
            fs::write(world.at("copies").join(COPY).join(mark), "").unwrap();
            let stays = world.collect(order(0)).unwrap().stays;
            assert!(matches!(stays, Some(Stays::Holds(found)) if found == holds), "{mark}");
            assert!(world.stands(), "{mark}");
            assert!(world.collect(all).unwrap().stays.is_none() && !world.stands(), "{mark}");
            world.copy();
        }
    }
}
