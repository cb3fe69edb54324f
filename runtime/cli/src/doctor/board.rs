//! What building guests and booting the firmware need
//!
//! # Not here
//! Installing it (`cargo xtask setup`).

use std::fs::OpenOptions;
use std::process::Command;

use synapse_secrets::keyring::Keyring;

use super::{Check, Need};
use crate::build::{INSTALL_TARGET, TARGET, toolchain};

/// A compiler for guests.
pub(super) fn compiler() -> Check {
    let found = toolchain::Toolchain::find(toolchain::Choice::Any, TARGET);
    Check {
        name: "compiler",
        found: found.map(|found| found.to_string()).map_err(|lacks| lacks.join(", ")),
        need: Need::More,
        why: "`synapse build` compiles guests with it",
        todo: INSTALL_TARGET,
    }
}

/// QEMU.
pub(super) fn emulator() -> Check {
    let version = Command::new(QEMU).arg("--version").output();
    let found = match version {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout);
            Ok(text.lines().next().unwrap_or(QEMU).to_owned())
        }
        Ok(output) => Err(format!("`{QEMU}` does not run ({})", output.status)),
        Err(why) => Err(format!("`{QEMU}` did not start: {why}")),
    };
    Check {
        name: "qemu",
        found,
        need: Need::More,
        why: "the firmware boots in it",
        todo: "install QEMU for x86 (on Debian: apt-get install qemu-system-x86)",
    }
}

/// Whether the machine lends its processor to an emulator.
pub(super) fn kvm() -> Check {
    let opened = OpenOptions::new().read(true).write(true).open("/dev/kvm");
    Check {
        name: "kvm",
        found: opened
            .map(|_| "/dev/kvm can be opened".to_owned())
            .map_err(|why| format!("/dev/kvm cannot be opened: {why}")),
        need: Need::More,
        why: "the firmware boots without it too, several times slower",
        todo: "nothing is needed; to have it, turn on virtualisation and join the group kvm",
    }
}

/// Who could have the key of secrets.
pub(super) fn keyring() -> Check {
    let found = Keyring::of_session().map(|_| "this session has one".to_owned());
    Check {
        name: "keyring",
        found: found.ok_or_else(|| "there is no session bus, or no `secret-tool`".to_owned()),
        need: Need::More,
        why: "without one the key of `synapse secret` is a file beside the secrets, and whoever can \
              read the state folder can read them",
        todo: "nothing is needed; to have one, use a desktop's session, and install secret-tool \
               (on Debian: apt-get install libsecret-tools)",
    }
}

const QEMU: &str = "qemu-system-x86_64";
