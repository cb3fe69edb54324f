//! The image of the bare machine: building it, starting it, testing it
//!
//! The ordinary compiler builds it for the ordinary target: nothing of the
//! standard library is linked, and the flags here make the code one that runs
//! where no system is below it.
//!
//! # Not here
//! How it is laid out in memory (`firmware/layout.ld`). Starting a machine
//! (`synapse-machine`).

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::cache::target_dir;
use crate::demo::build_guest;
use crate::setup;
use crate::step::{Failure, cargo, done, root, shown, synapse};

/// Builds the image, and boots or tests it if asked to.
pub(crate) fn run(boot: bool, check: bool) -> Result<(), Failure> {
    let image = build()?;
    println!("{}", image.display());
    if boot {
        start(&image)?;
    }
    if check {
        test()?;
    }
    Ok(())
}

/// Boots whole images and looks at what they say.
pub(crate) fn test() -> Result<(), Failure> {
    setup::machine()?;
    let image = build()?;
    let librarian = librarian()?;
    let mut lints = cargo("clippy --locked --profile ci --package synapse-firmware --lib")?;
    done(lints.args(["--features", "image", "--", "-D", "warnings"]))?;
    let mut tests = cargo("test --locked --profile ci --package synapse-machine")?;
    done(
        tests
            .args(["--", "--ignored"])
            .env("SYNAPSE_FIRMWARE", image)
            .env("SYNAPSE_LIBRARIAN", librarian),
    )
}

/// Builds the image and says where it stands.
fn build() -> Result<PathBuf, Failure> {
    let mut build = cargo("build --locked --profile firmware --package synapse-firmware")?;
    // With the target named, the flags do not reach build scripts.
    build.args(["--features", "image", "--target", TARGET]).env("RUSTFLAGS", FLAGS);
    done(&mut build)?;
    let image = target_dir()?.join(TARGET).join("firmware/synapse-firmware");
    let size = fs::metadata(&image).map_err(|why| format!("{}: {why}", image.display()))?.len();
    if size > LIMIT {
        return Err(format!(
            "the image has {size} bytes, and at most {LIMIT} are allowed\n\
             see what has grown, or say why it must in docs/decisions.md"
        ));
    }
    Ok(image)
}

fn librarian() -> Result<PathBuf, Failure> {
    setup::run(&[setup::GUEST])?;
    build_guest(&synapse()?, &root().join("packages/librarian"))
}

fn start(image: &PathBuf) -> Result<(), Failure> {
    setup::machine()?;
    let mut machine = Command::new("qemu-system-x86_64");
    machine.args(MACHINE.split(' ')).arg("-kernel").arg(image);
    match machine.status() {
        Ok(status) if status.code() == Some(SUCCESS) => Ok(()),
        Ok(status) => Err(format!("the image ended badly ({status})\nits reason is above")),
        Err(why) => Err(format!("`{}` did not start: {why}", shown(&machine))),
    }
}

const TARGET: &str = "x86_64-unknown-linux-gnu";
/// No red zone, because a fault would write over it.
const FLAGS: &str = "-C relocation-model=static -C no-redzone=yes -C target-cpu=x86-64";
/// Bytes of the largest image.
const LIMIT: u64 = 2 << 20;
const MACHINE: &str = "-M q35 -m 64 -nodefaults -no-reboot -display none -serial mon:stdio \
                       -device isa-debug-exit,iobase=0xf4,iosize=4";
/// What QEMU ends with when the image ended as it was asked to.
const SUCCESS: i32 = 33;
