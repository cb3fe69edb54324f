//! The image of the bare machine: building it, and starting it
//!
//! The ordinary compiler builds it for the ordinary target: nothing of the
//! standard library is linked, and the flags here make the code one that runs
//! where no system is below it.
//!
//! # Not here
//! How it is laid out in memory (`firmware/layout.ld`).

use std::path::PathBuf;
use std::process::Command;

use crate::cache::target_dir;
use crate::step::{Failure, cargo, done, shown};

/// Builds the image and says where it stands.
pub(crate) fn build() -> Result<PathBuf, Failure> {
    let mut build = cargo("build --locked --profile firmware --package synapse-firmware")?;
    // With the target named, the flags do not reach build scripts.
    build.args(["--features", "image", "--target", TARGET]).env("RUSTFLAGS", FLAGS);
    done(&mut build)?;
    Ok(target_dir()?.join(TARGET).join("firmware/synapse-firmware"))
}

/// Builds the image, and boots it in this terminal if asked to.
pub(crate) fn run(boot: bool) -> Result<(), Failure> {
    let image = build()?;
    println!("{}", image.display());
    if !boot {
        return Ok(());
    }
    let mut machine = Command::new("qemu-system-x86_64");
    machine.args(MACHINE.split(' ')).arg("-kernel").arg(image);
    match machine.status() {
        Ok(status) if status.code() == Some(SUCCESS) => Ok(()),
        Ok(status) => Err(format!("the image ended badly ({status})\nits reason is above")),
        Err(why) => Err(format!(
            "`{}` did not start: {why}\ninstall QEMU: apt-get install qemu-system-x86",
            shown(&machine)
        )),
    }
}

const TARGET: &str = "x86_64-unknown-linux-gnu";
/// No red zone, because a fault would write over it.
const FLAGS: &str = "-C relocation-model=static -C no-redzone=yes -C target-cpu=x86-64";
const MACHINE: &str = "-M q35 -m 64 -nodefaults -no-reboot -display none -serial mon:stdio \
                       -device isa-debug-exit,iobase=0xf4,iosize=4";
/// What QEMU ends with when the image ended as it was asked to.
const SUCCESS: i32 = 33;
