//! Folders below a reserved one cannot be handed to an agent.

use std::fs::{self, File};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use synapse_primitives::disk::{Disk, DiskError, Identity, Mount, Screen};
use synapse_primitives::mounts::Access;
use synapse_primitives::platform::Asker;
use synapse_primitives::{Fault, Platform};

struct Dark;
impl Screen for Dark {
    fn show(&self, _: &[u8]) -> Result<(), Fault> {
        Err(Fault::Closed)
    }
    fn ask(&self, _: &[u8], _: Asker) -> Result<Vec<u8>, Fault> {
        Err(Fault::Closed)
    }
}

#[test]
fn a_folder_inside_synapses_own_is_not_mounted() {
    let stage = tempfile::tempdir().unwrap();
    let run = stage.path().join("synapse/runs/earlier");
    fs::create_dir_all(&run).unwrap();
    fs::write(run.join("log"), "records").unwrap();
    let reserved = File::open(stage.path().join("synapse")).unwrap();
    let mount = Mount {
        root: "/data".into(),
        host: run.to_str().unwrap().into(),
        dir: Dir::open_ambient_dir(stage.path().join("synapse/runs"), ambient_authority()).unwrap(),
        access: Access::ReadWrite,
    };
    let disk = Disk::new(vec![mount], &[Identity::of(&reserved).unwrap()], None, Box::new(Dark));
    let read = disk.as_ref().map(|disk| {
        let mut read = core::pin::pin!(disk.read("/data/earlier/log", 0, 9));
        let mut context = core::task::Context::from_waker(core::task::Waker::noop());
        match read.as_mut().poll(&mut context) {
            core::task::Poll::Ready(read) => read,
            core::task::Poll::Pending => unreachable!(),
        }
    });
    assert!(matches!(disk, Err(DiskError::OwnDirectory { .. })), "{read:?}");
}
