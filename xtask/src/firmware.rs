//! The image of the bare machine: building it, starting it, testing it
//!
//! The ordinary compiler builds it for the ordinary target: nothing of the
//! standard library is linked, and the flags here make the code one that runs
//! where no system is below it.
//!
//! # Not here
//! How it is laid out in memory (`firmware/layout.ld`). Starting a machine
//! (`synapse firmware run`).

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::target_dir;
use crate::demo::build_guest;
use crate::setup;
use crate::step::{Failure, cargo, done, root, synapse};

/// Builds the image, and boots or tests it if asked to.
pub(crate) fn run(boot: bool, check: bool, bless: bool) -> Result<(), Failure> {
    let image = build()?;
    println!("{}", image.display());
    if boot {
        start(&image)?;
    }
    if check || bless {
        return match test(bless)? {
            Tested::All => Ok(()),
            Tested::ButLoader(why) => Err(why),
        };
    }
    Ok(())
}

/// Links the image with the names of what stands at its addresses, beside the other one.
pub(crate) fn name() -> Result<(), Failure> {
    println!("{}", aside(&linked("image", &["-Cstrip=none"])?, "named")?.display());
    Ok(())
}

/// What was tested.
pub(crate) enum Tested {
    All,
    /// All but what needs a boot loader, and why that is not there.
    ButLoader(Failure),
}

/// Boots whole images and looks at what they say.
pub(crate) fn test(bless: bool) -> Result<Tested, Failure> {
    setup::machine()?;
    let loader = setup::loader();
    let replaying = build_for_replay()?;
    let image = build()?;
    let librarian = agent("librarian")?;
    // By its own profile: the database takes the image's features only where a panic aborts.
    let mut lints = cargo("clippy --locked --profile firmware --package synapse-firmware --lib")?;
    done(lints.args(["--features", "image,replay", "--", "-D", "warnings"]))?;
    let mut tests = cargo("test --locked --profile ci --package synapse-machine")?;
    tests.args(["--", "--ignored"]);
    tests.env("SYNAPSE_FIRMWARE", image).env("SYNAPSE_LIBRARIAN", librarian);
    tests.env("SYNAPSE_REPLAY", replaying);
    if bless {
        tests.env("SYNAPSE_BLESS", "1");
    }
    if loader.is_err() {
        tests.args(["--skip", "loader::"]);
    }
    done(&mut tests)?;
    Ok(loader.map_or_else(Tested::ButLoader, |()| Tested::All))
}

/// Links an image with these features and flags, and says where it stands.
fn linked(features: &str, last: &[&str]) -> Result<PathBuf, Failure> {
    let mut build = cargo("rustc --locked --profile firmware --package synapse-firmware")?;
    // With the target named, the flags do not reach build scripts.
    build.args(["--bin", "synapse-firmware", "--features", features, "--target", TARGET, "--"]);
    build.args(last);
    done(build.env("CARGO_ENCODED_RUSTFLAGS", flags()))?;
    Ok(target_dir()?.join(TARGET).join("firmware/synapse-firmware"))
}

/// Builds the image that replays, beside the other one.
fn build_for_replay() -> Result<PathBuf, Failure> {
    aside(&linked("image,replay", &[])?, "replaying")
}

fn aside(image: &Path, name: &str) -> Result<PathBuf, Failure> {
    let own = target_dir()?.join(TARGET).join(name);
    fs::copy(image, &own).map_err(|why| format!("{}: {why}", own.display()))?;
    Ok(own)
}

/// Builds the image and says where it stands.
fn build() -> Result<PathBuf, Failure> {
    let image = linked("image", &[])?;
    let size = fs::metadata(&image).map_err(|why| format!("{}: {why}", image.display()))?.len();
    if size > LIMIT {
        return Err(format!(
            "the image has {size} bytes, and at most {LIMIT} are allowed\n\
             see what has grown, or say why it must in docs/decisions.md"
        ));
    }
    Ok(image)
}

/// The compiler's flags, as Cargo takes them whatever they hold.
fn flags() -> String {
    let remap = |path: PathBuf| format!("--remap-path-prefix={}=crates", path.display());
    let flags = FLAGS.iter().map(ToString::to_string).chain(sources().into_iter().map(remap));
    flags.collect::<Vec<_>>().join("\u{1f}")
}

/// Where Cargo unpacks others' crates: their places would stand in each message of theirs.
fn sources() -> Vec<PathBuf> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    let folders = home.and_then(|home| fs::read_dir(home.join("registry/src")).ok());
    folders.into_iter().flatten().filter_map(|folder| Some(folder.ok()?.path())).collect()
}

fn agent(name: &str) -> Result<PathBuf, Failure> {
    setup::run(&[setup::GUEST])?;
    build_guest(&synapse()?, &root().join("packages").join(name))
}

/// A machine with our agents and the librarian's sample notes, in this terminal.
fn start(image: &Path) -> Result<(), Failure> {
    setup::machine()?;
    let packages = root().join("packages");
    let mut notes = packages.join("librarian/sample").into_os_string();
    notes.push("=/data");
    let mut machine = Command::new(synapse()?);
    machine.args(["firmware", "run"]);
    for name in ["librarian", "tidy"] {
        let mut given = agent(name)?.into_os_string();
        given.push("=");
        given.push(packages.join(name).join("grant.toml"));
        machine.arg(given);
    }
    machine.arg("--image").arg(image).arg("--dir").arg(notes);
    for line in LINES {
        machine.args(["--line", line]);
    }
    done(&mut machine)
}

const TARGET: &str = "x86_64-unknown-linux-gnu";
/// No red zone, because a fault would write over it. The image is to be small: what code
/// has in common is outlined, also in long functions, and small functions are inlined
/// where that leaves less than a call of them.
const FLAGS: [&str; 7] = [
    "-Crelocation-model=static",
    "-Cno-redzone=yes",
    "-Ctarget-cpu=x86-64",
    "-Cllvm-args=-enable-machine-outliner",
    "-Cllvm-args=-tail-merge-threshold=1000",
    "-Cllvm-args=-inline-threshold=10",
    // Signatures are verified once an installation: the vectors' code is only size here.
    "--cfg=curve25519_dalek_backend=\"serial\"",
];
/// Bytes of the largest image.
const LIMIT: u64 = 2_000_000;
/// What is typed first; then the console is the human's.
const LINES: [&str; 2] = ["help", "run librarian Write an index and move duplicates aside."];
