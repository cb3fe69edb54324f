//! What is installed: kept whole, within its room, on the disk.

use synapse_primitives::Fault;
use synapse_store::{Database, Kept};

use crate::disk::Disk;
use crate::{ROOMS, in_memory, shelf};

fn kept(byte: u8, bytes: usize) -> Kept {
    Kept { lock: vec![byte; 9], file: vec![byte; bytes] }
}

#[test]
fn what_is_installed_stays_until_it_is_removed_and_its_publishers_key_after_that() {
    let shelf = in_memory();
    assert_eq!(shelf.package("reader"), Ok(None));
    shelf.install("reader", kept(1, 100), ("acme", Some("key"))).unwrap();
    shelf.install("writer", kept(2, 100), ("other", None)).unwrap();
    assert_eq!(shelf.package("reader"), Ok(Some(kept(1, 100))));
    assert_eq!(shelf.packages().unwrap(), ["reader", "writer"]);
    shelf.relock("reader", b"less").unwrap();
    assert_eq!(shelf.package("reader").unwrap().unwrap().lock, b"less");
    assert_eq!(shelf.uninstall("reader"), Ok(true));
    assert_eq!(shelf.uninstall("reader"), Ok(false));
    assert_eq!(shelf.packages().unwrap(), ["writer"]);
    assert_eq!(shelf.publisher("acme").unwrap().as_deref(), Some("key"));
    assert_eq!(shelf.publishers().unwrap(), ["acme"]);
    shelf.install("reader", kept(3, 1), ("acme", None)).unwrap();
    assert_eq!(shelf.publisher("acme"), Ok(None));
}

#[test]
fn packages_take_room_from_files_and_give_it_back() {
    let most = usize::try_from(ROOMS.files).unwrap();
    let shelf = in_memory();
    let refused = shelf.install("large", kept(1, most + 1), ("acme", Some("key")));
    assert_eq!(refused, Err(Fault::NoSpace));
    assert_eq!((shelf.package("large"), shelf.publisher("acme")), (Ok(None), Ok(None)));
    for _ in 0..3 {
        shelf.install("half", kept(2, most / 2), ("acme", None)).unwrap();
        assert_eq!(
            shelf.install("other", kept(2, most / 2 + 1), ("acme", None)),
            Err(Fault::NoSpace)
        );
        assert_eq!(shelf.uninstall("half"), Ok(true));
    }
}

#[test]
fn what_is_installed_is_there_when_the_store_is_opened_again() {
    let disk = Disk::new(32 << 20);
    let open = || shelf(Box::new(Database::open(Box::new(disk.clone()), 1 << 20).unwrap()));
    let most = usize::try_from(ROOMS.files).unwrap();
    open().install("half", kept(2, most / 2), ("acme", Some("key"))).unwrap();
    let again = open();
    assert_eq!(again.package("half"), Ok(Some(kept(2, most / 2))));
    assert_eq!(again.publisher("acme").unwrap().as_deref(), Some("key"));
    let refused = again.install("other", kept(2, most / 2 + 1), ("acme", None));
    assert_eq!(refused, Err(Fault::NoSpace), "its room is known");
}
