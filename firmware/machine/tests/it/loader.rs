//! The door of Multiboot2, by the boot loader that most machines have.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use synapse_machine::{Model, Plan};

use crate::{ask, bundle, plan, power_off, up};

/// No menu, and what it has to say of errors is said where a test hears it.
const MENU: &str = "serial --unit=0\nterminal_output serial\nset timeout=0\n\
    menuentry synapse {\nmultiboot2 /boot/synapse\nmodule2 /boot/bundle\n}\n";

#[test]
#[ignore = "boots QEMU: cargo xtask firmware --test"]
fn grub_starts_an_image_from_a_disc_with_its_bundle() {
    let dir = tempfile::tempdir().unwrap();
    let bundle = bundle(&[("files/data/a.md", b"from a disc")]);
    let disc = Some(disc(dir.path(), &plan().image, &bundle));
    let mut machine = up(&Plan { model: Model::Pc, memory: 32, disc, ..plan() });
    assert!(ask(&mut machine, "cat /data/a.md").contains("from a disc"));
    power_off(machine);
}

/// Makes a disc that GRUB starts from, with what it is to start.
fn disc(dir: &Path, image: &Path, bundle: &[u8]) -> PathBuf {
    let (files, disc) = (dir.join("files"), dir.join("disc"));
    fs::create_dir_all(files.join("boot/grub")).unwrap();
    fs::write(files.join("boot/grub/grub.cfg"), MENU).unwrap();
    fs::write(files.join("boot/bundle"), bundle).unwrap();
    fs::copy(image, files.join("boot/synapse")).unwrap();
    let made = Command::new("grub-mkrescue").arg("-o").arg(&disc).arg(&files).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    disc
}
