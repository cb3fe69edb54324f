//! Makes guests buildable here, the firmware bootable, costs countable, packages served
//!
//! Rustup is asked first, with a time limit, because behind some proxies its
//! download never ends; then Debian's packages, where they may be installed.
//! `wasm32-unknown-unknown` is for guests, `x86_64-unknown-none` for the proof
//! that the core needs no operating system.
//!
//! # Not here
//! Finding what is installed (`toolchain`).

use core::time::Duration;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use crate::step::{Failure, done, shown, there};
use crate::toolchain::{Choice, Toolchain};

/// What guests are compiled for.
pub(crate) const GUEST: &str = "wasm32-unknown-unknown";
/// A target that has no standard library at all.
pub(crate) const BARE: &str = "x86_64-unknown-none";

/// Makes this machine compile for the targets, or says which line to run.
pub(crate) fn run(targets: &[&'static str]) -> Result<(), Failure> {
    for install in [rustup as fn(&[&str]) -> _, |_| debian(APT_INSTALL)] {
        let missing = missing(targets);
        if missing.is_empty() {
            break;
        }
        if let Err(why) = install(&missing) {
            eprintln!("{why}");
        }
    }
    let missing = missing(targets);
    if !missing.is_empty() {
        return Err(format!(
            "nothing here compiles for {}, and it could not be installed\n\
             run: {RUSTUP} {}\n  or, on Debian as root: {APT_UPDATE} && {APT_INSTALL}",
            missing.join(" and "),
            missing.join(" ")
        ));
    }
    for target in targets {
        if let Ok(toolchain) = Toolchain::find(Choice::Any, target) {
            println!("{target}: {toolchain}");
        }
    }
    Ok(())
}

/// Makes this machine run others, or says which line to run.
pub(crate) fn machine() -> Result<(), Failure> {
    program("qemu-system-x86_64", APT_QEMU)
}

/// Makes this machine serve packages, or says which line to run.
pub(crate) fn registry() -> Result<(), Failure> {
    ["docker-registry", "skopeo"].iter().try_for_each(|name| program(name, APT_REGISTRY))
}

/// Makes this machine write discs that a boot loader starts from, or says which line to run.
pub(crate) fn loader() -> Result<(), Failure> {
    ["grub-mkrescue", "xorriso", "mformat"].iter().try_for_each(|name| program(name, APT_GRUB))
}

/// Makes this machine count instructions, or says which line to run.
pub(crate) fn counter() -> Result<(), Failure> {
    program("valgrind", APT_VALGRIND)
}

fn program(name: &str, install: &str) -> Result<(), Failure> {
    if there(Command::new(name)) {
        return Ok(());
    }
    if let Err(why) = debian(install) {
        eprintln!("{why}");
    }
    if there(Command::new(name)) {
        return Ok(());
    }
    Err(format!("`{name}` is missing, and it could not be installed\nrun: {install}"))
}

fn missing(targets: &[&'static str]) -> Vec<&'static str> {
    let mut missing = targets.to_vec();
    missing.retain(|target| Toolchain::find(Choice::Any, target).is_err());
    missing
}

fn rustup(targets: &[&str]) -> Result<(), Failure> {
    within(words(RUSTUP).args(targets), Duration::from_secs(20))
}

fn debian(install: &str) -> Result<(), Failure> {
    let user = Command::new("id").arg("-u").output();
    if !user.is_ok_and(|user| user.stdout == b"0\n") {
        return Err("Debian's packages are left alone: only root may install them".to_owned());
    }
    for line in [APT_UPDATE, install] {
        done(words(line).env("DEBIAN_FRONTEND", "noninteractive"))?;
    }
    Ok(())
}

/// Runs a command to a good end, or ends it when its time is over.
fn within(command: &mut Command, limit: Duration) -> Result<(), Failure> {
    let line = shown(command);
    let failed = |why: &str| format!("`{line}` {why}");
    let start = Instant::now();
    let mut child = match command.stdin(Stdio::null()).spawn() {
        Ok(child) => child,
        Err(why) => return Err(failed(&format!("did not start: {why}"))),
    };
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(failed(&format!("failed ({status})"))),
            Ok(None) if start.elapsed() < limit => thread::sleep(Duration::from_millis(50)),
            Ok(None) | Err(_) => {
                // Either may fail because it has just ended by itself.
                drop(child.kill());
                drop(child.wait());
                return Err(failed(&format!("did not end within {} s", limit.as_secs())));
            }
        }
    }
}

fn words(line: &str) -> Command {
    let mut words = line.split(' ');
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}

const RUSTUP: &str = "rustup target add";
const APT_UPDATE: &str = "apt-get update";
const APT_INSTALL: &str =
    "apt-get install -y --no-install-recommends rustc-web cargo-web rust-web-src lld-19";
const APT_QEMU: &str = "apt-get install -y --no-install-recommends qemu-system-x86";
const APT_REGISTRY: &str = "apt-get install -y --no-install-recommends docker-registry skopeo";
const APT_GRUB: &str =
    "apt-get install -y --no-install-recommends grub-pc-bin grub-common xorriso mtools";
const APT_VALGRIND: &str = "apt-get install -y --no-install-recommends valgrind";

#[cfg(test)]
mod tests {
    use super::{within, words};
    use core::time::Duration;
    use std::time::Instant;

    #[test]
    fn command_that_hangs_is_ended() {
        let start = Instant::now();
        let told = within(&mut words("sleep 60"), Duration::from_secs(1)).unwrap_err();
        assert_eq!(told, "`sleep 60` did not end within 1 s");
        assert!(start.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn end_of_a_command_is_told() {
        let limit = Duration::from_secs(30);
        assert_eq!(within(&mut words("true"), limit), Ok(()));
        let told = within(&mut words("false"), limit).unwrap_err();
        assert_eq!(told, "`false` failed (exit status: 1)");
    }
}
