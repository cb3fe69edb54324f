//! `install` and what is done with what is installed
//!
//! The same question as on the host, on the console: what a package is, and what an
//! answer means, is the kernel's.
//!
//! # Invariants
//! - What was typed before a prompt was shown is no answer to it.
//! - While a question stands no agent is at work, so every line on the screen is the
//!   image's.
//!
//! # Not here
//! What a person is shown, and what comes of the answers (`synapse_kernel::package`). Where
//! it is kept (`synapse_store`). Running (`agents`).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use synapse_kernel::admit::admit;
use synapse_kernel::package::{
    Consent, Digest, Installed, Key, Package, Pin, Terminal, Vouched, ask, follows, look_alikes,
    vouched,
};
use synapse_kernel::render;
use synapse_primitives::Fault;
use synapse_store::{Kept, Shelf};

use crate::board::COLUMNS;
use crate::console::{Console, Typed};
use crate::desk::LEAST;
use crate::packages::Bundle;
use crate::{clock, cpu, println, serial};

/// Installs a package that came along, if the person at the console agrees.
pub(crate) fn install(
    shelf: &Shelf,
    bundle: &Bundle,
    room: usize,
    console: &mut Console,
    words: &str,
) -> Result<(), String> {
    let Asked { name, pin, backwards } = Asked::read(words)?;
    let file = bundle.package(name, room)?;
    let package = Package::read(file).map_err(told)?;
    let fits = admit(package.component()).map_err(|why| why.to_string())?.boards().firmware;
    fits.map_err(|why| format!("{name}: {why}"))?;
    let (own, version) = (package.manifest.name.clone(), package.manifest.version);
    let before = installed(shelf, &own)?;
    let vouched = vouched(&package, pinned(shelf, &package.manifest.publisher)?, pin);
    let vouched = vouched.map_err(told)?;
    if !follows(&package, before.as_ref(), backwards).map_err(told)? {
        println!("{own} {version} is installed already");
        return Ok(());
    }
    let known = |names: Result<Vec<String>, _>| names.map_err(|_| unreadable());
    let warnings = look_alikes(&package, &known(shelf.packages())?, &known(shelf.publishers())?);
    let mut question = Consent::new(&package, before.as_ref(), vouched, &warnings);
    if before.is_some() && question.is_quiet() {
        let key = match vouched {
            Vouched::First(key) => format!("; from now on its publisher is known by {key}"),
            Vouched::Nobody | Vouched::Known(_) | Vouched::Renewed(_) => String::new(),
        };
        println!("it asks for no more than you agreed to{key}");
    } else if !ask(&mut question, (COLUMNS, ROWS), &mut Screen { console })? {
        println!("{own} {version} is not installed; nothing was changed");
        return Ok(());
    }
    let grant = question.grant().map_err(told)?;
    let (digest, publisher) = (package.digest(), package.manifest.publisher.clone());
    let new = Installed::new(package, grant, vouched, name, clock::now_ms());
    let kept = Kept { lock: new.lock(&Digest::of(file)), file: file.to_vec() };
    let key = vouched.key().map(|key| key.to_string());
    shelf
        .install(&own, kept, (&publisher, key.as_deref()))
        .map_err(|fault| unchanged(&own, fault))?;
    println!(
        "installed {own} {version}, {digest}\nsee what it may do: show {own}\n\
         run it:             run {own} TASK"
    );
    Ok(())
}

/// An installed package.
pub(crate) fn installed(shelf: &Shelf, name: &str) -> Result<Option<Installed>, String> {
    let kept = shelf.package(name).map_err(|_| unreadable())?;
    kept.map(|kept| Installed::read(name, &kept.lock, &kept.file).map_err(told)).transpose()
}

/// Prints a line about each installed package, and about each that came along.
pub(crate) fn list(shelf: &Shelf, bundle: &Bundle) -> Result<(), String> {
    for name in shelf.packages().map_err(|_| unreadable())? {
        match installed(shelf, &name) {
            Ok(Some(installed)) => println!("{}", installed.line()),
            Ok(None) => {}
            Err(why) => println!("{why}"),
        }
    }
    for name in bundle.packages() {
        println!("to be installed: {}", render::line(name, 40));
    }
    Ok(())
}

/// Prints what was agreed to.
pub(crate) fn show(shelf: &Shelf, name: &str) -> Result<(), String> {
    let installed = find(shelf, name)?;
    for line in Consent::given(&installed).screen(COLUMNS) {
        println!("{line}");
    }
    println!("\nfrom: {}", render::line(&installed.source, 200));
    println!("grant: {}", installed.approval().grant);
    Ok(())
}

/// Takes parts back of what was agreed to, and says of which package.
pub(crate) fn revoke<'w>(shelf: &Shelf, words: &'w str) -> Result<&'w str, String> {
    let (name, parts) = words.split_once(' ').unwrap_or((words, ""));
    let parts: Vec<&str> = parts.split_whitespace().collect();
    if parts.is_empty() {
        return Err("say what of a package, and which parts of what it was given".to_string());
    }
    let less = find(shelf, name)?.without(&parts, clock::now_ms()).map_err(told)?;
    let lock = less.lock(&Digest::of(&less.package.write()));
    shelf.relock(name, &lock).map_err(|fault| unchanged(name, fault))?;
    println!("taken back from `{name}`");
    Ok(name)
}

/// Removes an installed package.
pub(crate) fn remove(shelf: &Shelf, name: &str) -> Result<(), String> {
    if !shelf.uninstall(name).map_err(|fault| unchanged(name, fault))? {
        return Err(missing(name));
    }
    println!("removed `{name}`");
    Ok(())
}

/// What was typed behind `install`.
struct Asked<'w> {
    name: &'w str,
    pin: Pin,
    backwards: bool,
}

impl<'w> Asked<'w> {
    fn read(words: &'w str) -> Result<Self, String> {
        let mut words = words.split_whitespace();
        let name = words
            .next()
            .ok_or_else(|| "say which package; `list` names those that came along".to_string())?;
        let mut asked = Self { name, pin: Pin::Keep, backwards: false };
        while let Some(word) = words.next() {
            match word {
                "--allow-downgrade" => asked.backwards = true,
                "--new-key" => asked.pin = pin(words.next().unwrap_or_default())?,
                _ => return Err(format!("`{}` is no option of it", render::line(word, 40))),
            }
        }
        Ok(asked)
    }
}

fn pin(text: &str) -> Result<Pin, String> {
    if text == "none" {
        return Ok(Pin::Nobody);
    }
    let key = Key::parse(text).map(Pin::New);
    key.ok_or_else(|| "it is ed25519: and 64 hex digits, or none".to_string())
}

fn pinned(shelf: &Shelf, publisher: &str) -> Result<Option<Key>, String> {
    let key = shelf.publisher(publisher).map_err(|_| unreadable())?;
    key.map(|key| Key::parse(&key).ok_or_else(unreadable)).transpose()
}

fn find(shelf: &Shelf, name: &str) -> Result<Installed, String> {
    installed(shelf, name)?.ok_or_else(|| missing(name))
}

fn missing(name: &str) -> String {
    let name = render::line(name, 40);
    format!("no package `{name}` is installed; `list` has those that are")
}

fn unchanged(name: &str, fault: Fault) -> String {
    format!("`{}` stays as it was: {}", render::line(name, 40), fault.name())
}

fn unreadable() -> String {
    "what is installed cannot be read; the disk failed or is damaged".to_string()
}

fn told(why: impl ToString) -> String {
    why.to_string()
}

/// The console, for a question.
struct Screen<'c> {
    console: &'c mut Console,
}

impl Terminal for Screen<'_> {
    fn show(&mut self, text: &str) -> Result<(), String> {
        serial::show(text);
        Ok(())
    }

    fn answer(&mut self, prompt: &str) -> Result<Option<String>, String> {
        let until = clock::passed().saturating_add(LEAST);
        while clock::passed() < until {
            self.console.forget();
            cpu::pause();
        }
        serial::show(prompt);
        loop {
            match self.console.poll() {
                // The rest of a paste is thrown away before the next prompt.
                Some(Typed::Line(line)) => return Ok(Some(line)),
                Some(Typed::Interrupt) => return Ok(None),
                None => cpu::pause(),
            }
        }
    }
}

/// Of a screen that is not known.
const ROWS: usize = 24;
