//! `synapse secret`: what agents may use and never see
//!
//! # Invariants
//! - A value comes from the terminal, where it is not shown, or from standard input,
//!   never from the command line; nothing prints one.
//!
//! # Not here
//! Keeping it (`synapse_secrets`). Who may use it (a grant's `secrets`).

use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::ExitCode;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use serde_json::json;
use synapse_host::log;
use synapse_secrets::secret::{LONGEST, Secret, Value};
use synapse_secrets::vault::{Keeper, Vault, leave_no_dump};
use zeroize::Zeroizing;

use crate::output;

/// Keeps secrets that agents may use and never see.
///
/// An agent writes `{secret:NAME}` for a header's value or a query's; the value takes its
/// place after all gates, and only on its way to a place that was named here. The entry
/// of its grant has to name the secret too. What comes back is masked.
#[derive(clap::Args)]
pub(crate) struct Keep {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    Set(Set),
    List(List),
    Remove(Remove),
}

/// Keeps a secret, or takes another value for it.
///
/// The value is asked for at the terminal and not shown, or is read from standard input,
/// less one line end: one line of 8 to 4096 printable ASCII characters. What runs go on
/// keep the value that they began with.
///
/// Exit codes: 0 it is kept; 1 it is not; 2 the command line is wrong.
#[derive(clap::Args)]
struct Set {
    /// What it is called: letters, digits, `_` and `-`.
    name: String,

    /// Where it may go: `https://api.example.com`, with `:PORT` unless it is 443,
    /// `tool:SERVER` for a connector, or `oci://HOST` for a registry of packages, which is
    /// told it as USER:PASSWORD; may be given more than once. Where the secret is there
    /// already, it may be left out, and its places stay.
    #[arg(long = "for", value_name = "PLACE")]
    places: Vec<String>,
}

/// Shows the names of the secrets, where each may go, and who has their key.
///
/// Exit codes: 0 shown; 1 they cannot be read; 2 the command line is wrong.
#[derive(clap::Args)]
struct List {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Forgets a secret.
///
/// Exit codes: 0 it is gone; 1 there is none, or it cannot be removed; 2 the command line
/// is wrong.
#[derive(clap::Args)]
struct Remove {
    /// What it is called.
    name: String,
}

impl Keep {
    /// Does what it says.
    pub(crate) fn run(self) -> Result<ExitCode, String> {
        let vault = vault()?;
        match self.what {
            What::Set(set) => set.run(&vault),
            What::List(list) => list.run(&vault),
            What::Remove(remove) => remove.run(&vault),
        }
        .map(|()| ExitCode::SUCCESS)
    }
}

impl Set {
    fn run(self, vault: &Vault) -> Result<(), String> {
        let Self { name, mut places } = self;
        leave_no_dump().map_err(|why| {
            format!("the system cannot be kept from writing out this memory: {why}\ntry again")
        })?;
        if places.is_empty() {
            let kept = vault.read().map_err(|why| said(&why))?;
            let known = kept.iter().filter(|secret| secret.name == name);
            places = known.flat_map(|it| &it.destinations).map(ToString::to_string).collect();
        }
        // Whoever misspelled a place is not asked for the value first.
        let sample = Value::parse(b"for its name and places").map_err(|why| said(&why))?;
        let mut secret = Secret::new(&name, sample, &places).map_err(|why| said(&why))?;
        secret.value = Value::parse(&asked(&name)?).map_err(|why| said(&why))?;
        for place in secret.destinations.iter().filter(|place| place.is_clear_text()) {
            tell!("warning: on its way to {place} anybody can read it; use https if you can");
        }
        vault
            .change(|kept| {
                kept.retain(|known| known.name != name);
                kept.push(secret);
            })
            .map_err(|why| said(&why))?;
        tell!("`{name}` is kept, for {}", places.join(", "));
        tell!("{}", keeper(vault)?);
        Ok(())
    }
}

impl List {
    fn run(self, vault: &Vault) -> Result<(), String> {
        let kept = vault.read().map_err(|why| said(&why))?;
        let places = |secret: &Secret| -> Vec<String> {
            secret.destinations.iter().map(ToString::to_string).collect()
        };
        let told = if self.json {
            let secrets: Vec<_> = kept
                .iter()
                .map(|secret| json!({"name": secret.name, "for": places(secret)}))
                .collect();
            let key = match vault.keeper().map_err(|why| said(&why))? {
                None => None,
                Some(Keeper::File) => Some("file"),
                Some(Keeper::Keyring(_)) => Some("keyring"),
            };
            output::json(&json!({"secrets": secrets, "key": key}))
        } else if kept.is_empty() {
            tell!("no secret is kept; `synapse secret set NAME --for PLACE` keeps one");
            return Ok(());
        } else {
            let widest = kept.iter().map(|secret| secret.name.len()).max().unwrap_or_default();
            let line = |secret: &Secret| {
                format!("{:<widest$}  {}", secret.name, places(secret).join(", "))
            };
            tell!("{}", keeper(vault)?);
            kept.iter().map(line).collect::<Vec<_>>().join("\n")
        };
        output::say(&told).or_else(|why| output::told(&why).map_or(Ok(()), Err))
    }
}

impl Remove {
    fn run(self, vault: &Vault) -> Result<(), String> {
        let Self { name } = self;
        let known = vault.read().map_err(|why| said(&why))?;
        if !known.iter().any(|secret| secret.name == name) {
            return Err("no secret has this name\n`synapse secret list` shows them".to_owned());
        }
        vault.change(|kept| kept.retain(|known| known.name != name)).map_err(|why| said(&why))?;
        tell!("`{name}` is gone; where it is used it is worth changing too");
        Ok(())
    }
}

fn vault() -> Result<Vault, String> {
    let state =
        log::state_dir().map_err(|why| format!("no place for secrets can be found: {why}"))?;
    Ok(Vault::of(&state))
}

/// Who has the key, and what that is good for.
fn keeper(vault: &Vault) -> Result<String, String> {
    Ok(match vault.keeper().map_err(|why| said(&why))? {
        Some(Keeper::Keyring(_)) => {
            "the key of the secrets is with this session's keyring, which is locked when you are \
             not there"
        }
        Some(Keeper::File) | None => {
            "the key of the secrets is in a file beside them, since this session has no keyring: \
             whoever can read the state folder can read them"
        }
    }
    .to_owned())
}

/// A message in the form of a command's.
fn said(why: &impl core::fmt::Display) -> String {
    why.to_string().replace("; ", "\n")
}

/// The value, from where it may come from.
fn asked(name: &str) -> Result<Zeroizing<Vec<u8>>, String> {
    let failed = |why: io::Error| format!("the value cannot be read: {why}\ngive it again");
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        return line(stdin.as_fd()).map_err(failed);
    }
    let typed = Silent::begin(stdin.as_fd()).and_then(|silent| {
        tell_part!("value of `{name}`, which is not shown: ");
        silent.line()
    });
    tell!("");
    let typed = typed.map_err(failed)?;
    typed.ok_or_else(|| "nothing was kept: it was ended with Ctrl-C\ngive it again".to_owned())
}

/// Room for the longest value and what shows that one is longer. It never grows, so
/// that no copy is left.
fn room() -> Zeroizing<Vec<u8>> {
    Zeroizing::new(Vec::with_capacity(LONGEST + 3))
}

/// All that comes, less one line end. The library's own buffer would keep a copy.
fn line(input: BorrowedFd<'_>) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut bytes = room();
    let mut piece = Zeroizing::new([0; 512]);
    loop {
        let length = rustix::io::read(input, &mut *piece)?;
        let left = LONGEST + 3 - bytes.len();
        bytes.extend_from_slice(piece.get(..length.min(left)).unwrap_or_default());
        if length == 0 || left == 0 {
            break;
        }
    }
    for end in [b'\n', b'\r'] {
        if bytes.last() == Some(&end) {
            bytes.pop();
        }
    }
    Ok(bytes)
}

/// A terminal that shows nothing of what is typed. What is left of it when this ends is
/// thrown away.
struct Silent<'a> {
    terminal: BorrowedFd<'a>,
    before: Termios,
}

impl<'a> Silent<'a> {
    fn begin(terminal: BorrowedFd<'a>) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut silent = before.clone();
        // Also no signals: they would end this program and leave the terminal silent.
        silent.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        tcsetattr(terminal, OptionalActions::Flush, &silent)?;
        Ok(Self { terminal, before })
    }

    /// One line; nothing after Ctrl-C.
    fn line(self) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
        let mut bytes = room();
        let mut one = [0];
        while rustix::io::read(self.terminal, &mut one)? == 1 {
            match one {
                // The end of the input, Ctrl-C, Ctrl-U, and both that take one back.
                [b'\r' | b'\n' | 4] => break,
                [3] => return Ok(None),
                [21] => bytes.clear(),
                [8 | 127] => drop(bytes.pop()),
                [byte] if bytes.len() <= LONGEST => bytes.push(byte),
                [_] => {}
            }
        }
        Ok(Some(bytes))
    }
}

impl Drop for Silent<'_> {
    fn drop(&mut self) {
        let _ = tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
    }
}
