//! Every check, in the order in which it fails soonest
//!
//! # Invariants
//! Nothing is skipped quietly: the last line lists it, and with `CI=true` a
//! skip fails.
//!
//! # Not here
//! Advisories and yanked versions, which need a database from the network (`advisories`).

use std::env;
use std::fs;
use std::time::Instant;

use crate::alike;
use crate::cache;
use crate::demo;
use crate::deny;
use crate::firmware::{self, Tested};
use crate::instructions::{self, Counted};
use crate::registry;
use crate::servers;
use crate::setup;
use crate::step::{Failure, cargo, done, prepare, root, synapse};
use crate::tcb;
use crate::toolchain::{Choice, Toolchain};
use crate::tutorial;

/// Runs the steps, and stops at the first that fails.
pub(crate) fn run() -> Result<(), Failure> {
    cache::prune()?;
    let start = Instant::now();
    let (mut skipped, mut unserved) = (Vec::new(), Vec::new());
    for (name, step) in STEPS {
        println!("--- {name}");
        let begin = Instant::now();
        match step() {
            Ok(Outcome::Done) => println!("--- {name}: {:.1} s", begin.elapsed().as_secs_f32()),
            Ok(Outcome::Skipped(why)) => {
                println!("--- {name}: skipped, {why}");
                skipped.push(format!("{name} ({why})"));
            }
            Ok(Outcome::Unserved(why)) => {
                println!("--- {name}: NOT RUN, {why}");
                unserved.push(format!("{name} ({why})"));
            }
            Err(why) => return Err(format!("the step `{name}` failed\n{why}")),
        }
    }
    let seconds = start.elapsed().as_secs();
    if !unserved.is_empty() {
        println!("not run, since what others serve was not to be had: {}", unserved.join(", "));
    }
    conclude(&skipped, env::var("CI").is_ok_and(|ci| ci == "true"), seconds)
        .map(|line| println!("{line}"))
}

enum Outcome {
    Done,
    Skipped(String),
    /// A registry did not give what it has: no fault of what is checked.
    Unserved(String),
}

fn conclude(skipped: &[String], strict: bool, seconds: u64) -> Result<String, Failure> {
    if skipped.is_empty() {
        return Ok(format!("all checks passed in {seconds} s; skipped: nothing"));
    }
    let list = skipped.join(", ");
    if strict {
        return Err(format!("a skip fails when CI=true; skipped: {list}"));
    }
    Ok(format!("the other checks passed in {seconds} s; skipped: {list}"))
}

fn format() -> Result<Outcome, Failure> {
    done(&mut cargo("fmt --all --check")?).map(|()| Outcome::Done)
}

fn dependencies() -> Result<Outcome, Failure> {
    deny::run().map(|()| Outcome::Done)
}

fn deciding() -> Result<Outcome, Failure> {
    tcb::run(false).map(|()| Outcome::Done)
}

fn lints() -> Result<Outcome, Failure> {
    done(&mut cargo("clippy --locked --profile ci --workspace --all-targets -- -D warnings")?)
        .map(|()| Outcome::Done)
}

fn docs() -> Result<Outcome, Failure> {
    let mut doc =
        cargo("doc --locked --profile ci --workspace --no-deps --document-private-items")?;
    done(doc.env("RUSTDOCFLAGS", "-D warnings")).map(|()| Outcome::Done)
}

fn tests() -> Result<Outcome, Failure> {
    done(&mut cargo("test --locked --profile ci --workspace")?).map(|()| Outcome::Done)
}

fn toolchain() -> Result<Outcome, Failure> {
    setup::run(&[setup::GUEST]).map(|()| Outcome::Done)
}

/// The core compiles where no standard library exists.
///
/// WebAssembly would not do: its target has one, and a stray `std` compiles.
fn no_std() -> Result<Outcome, Failure> {
    if let Err(why) = setup::run(&[setup::BARE]) {
        return Ok(Outcome::Skipped(why.replace('\n', "; ")));
    }
    let toolchain = match Toolchain::find(Choice::Any, setup::BARE) {
        Ok(toolchain) => toolchain,
        Err(lacks) => return Ok(Outcome::Skipped(lacks.join(", "))),
    };
    let mut check = toolchain.build("check");
    prepare(&mut check)?;
    let target_dir = cache::target_dir()?.join("bare").join(toolchain.name);
    check.args(["--locked", "--lib", "--target-dir"]).arg(target_dir);
    for package in CORE {
        check.args(["--package", package]);
    }
    done(&mut check).map(|()| Outcome::Done)
}

fn guests() -> Result<Outcome, Failure> {
    let synapse = synapse()?;
    let packages = root().join("packages");
    let unread =
        |why| format!("`{}` could not be read: {why}\ncheck who owns it", packages.display());
    for entry in fs::read_dir(&packages).map_err(unread)? {
        let package = entry.map_err(unread)?.path();
        if package.join("Cargo.toml").is_file() {
            demo::build_guest(&synapse, &package)?;
        }
    }
    Ok(Outcome::Done)
}

fn newcomer() -> Result<Outcome, Failure> {
    tutorial::run().map(|()| Outcome::Done)
}

fn demonstration() -> Result<Outcome, Failure> {
    demo::run().map(|()| Outcome::Done)
}

fn engines() -> Result<Outcome, Failure> {
    alike::run().map(|()| Outcome::Done)
}

fn costs() -> Result<Outcome, Failure> {
    Ok(match instructions::run(false)? {
        Counted::Same => Outcome::Done,
        Counted::Not(why) => Outcome::Skipped(why.replace('\n', "; ")),
    })
}

/// Whole images, booted.
fn images() -> Result<Outcome, Failure> {
    if let Err(why) = setup::machine() {
        return Ok(Outcome::Skipped(why.replace('\n', "; ")));
    }
    Ok(match firmware::test(false)? {
        Tested::All => Outcome::Done,
        Tested::ButLoader(why) => Outcome::Skipped(why.replace('\n', "; ")),
    })
}

/// Servers that others publish, behind the door.
fn published() -> Result<Outcome, Failure> {
    let folder = match servers::install() {
        Ok(folder) => folder,
        Err(why) => return Ok(Outcome::Unserved(why.replace('\n', "; "))),
    };
    servers::test(&folder).map(|()| Outcome::Done)
}

/// A registry that others make, with our packages.
fn registries() -> Result<Outcome, Failure> {
    match registry::install() {
        Ok(()) => registry::test().map(|()| Outcome::Done),
        Err(why) => Ok(Outcome::Unserved(why.replace('\n', "; "))),
    }
}

type Step = fn() -> Result<Outcome, Failure>;

const STEPS: &[(&str, Step)] = &[
    ("format", format),
    ("dependencies", dependencies),
    ("what decides", deciding),
    ("lints", lints),
    ("docs", docs),
    ("toolchain", toolchain),
    ("tests", tests),
    ("servers", published),
    ("registry", registries),
    ("instructions", costs),
    ("no_std", no_std),
    ("guests", guests),
    ("tutorial", newcomer),
    ("demo", demonstration),
    ("engines", engines),
    ("firmware", images),
];

/// What a board without an operating system is made of.
const CORE: &[&str] = &[
    "synapse-abi", "synapse-automaton", "synapse-boundary", "synapse-interpreter",
    "synapse-kernel", "synapse-primitives", "synapse-reply",
];

#[cfg(test)]
mod tests {
    use super::conclude;

    #[test]
    fn skip_is_listed_and_fails_where_it_must() {
        let skipped = ["no_std (no compiler)".to_owned()];
        assert!(conclude(&[], true, 1).unwrap().ends_with("skipped: nothing"));
        assert!(conclude(&skipped, false, 1).unwrap().ends_with("skipped: no_std (no compiler)"));
        assert!(conclude(&skipped, true, 1).unwrap_err().contains("no_std (no compiler)"));
    }
}
