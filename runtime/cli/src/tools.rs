//! `synapse tools`: connectors, from the first look at a server to its approval
//!
//! # Not here
//! Starting servers and keeping approvals (`synapse_connectors`).

use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use synapse_connectors::approval::{Folder, Unapproved};
use synapse_connectors::confine::enter;
use synapse_connectors::exec::template;
use synapse_connectors::import;
use synapse_connectors::list::List;
use synapse_connectors::ready::{READY, Ready};
use synapse_host::console::PATIENCE;
use synapse_host::render::{self, Stream, Terminal};
use synapse_host::tools::{agreed, inspect, offers, settings};
use synapse_kernel::manifest::{Manifest, Start, schema};

use crate::output;

/// Adds connectors, which are MCP servers, and says what their verbs do.
#[derive(clap::Args)]
pub(crate) struct Tools {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    Add(Add),
    Check(One),
    Approve(Approve),
    Show(Show),
    Diff(Diff),
    List(All),
    Import(Import),
    Schema(Schema),
}

/// Adds a connector: starts its server behind its walls, or asks the one at a URL, and
/// writes a first manifest.
///
/// In that manifest every verb is the strictest, but for a well-known server that is
/// added with `--ready`. Edit it, then use `synapse tools approve`.
/// A program has no network, no folder but the system's, and no variable until the
/// manifest gives it some. What a server at a URL hears may go anywhere. With `--template`
/// there is no server: the manifest has lines that ship, each a program and its arguments,
/// which run in a sealed copy of a granted folder.
///
/// Exit codes: 0 added, 1 failed, 2 the command line is wrong.
#[derive(clap::Args)]
struct Add {
    /// What grants and calls are to name it by.
    server: String,
    /// Take what is known of a well-known server for its manifest.
    #[arg(long, value_name = "NAME", value_parser = READY.each_ref().map(|ready| ready.name))]
    ready: Option<String>,
    /// A folder or file that the server needs to begin, besides the system's.
    #[arg(long, conflicts_with = "url")]
    read: Vec<String>,
    /// A folder or file that the server may change.
    #[arg(long, conflicts_with_all = ["url", "template"])]
    write: Vec<String>,
    /// In place of a server, the lines that ship for `cargo`, `git`, `npm` or `pytest`.
    #[arg(long, conflicts_with_all = ["command", "url", "ready"])]
    template: Option<String>,
    /// Where it is, if it speaks HTTP: `https://…`, or `http://` and an address of this machine.
    #[arg(required_unless_present_any = ["command", "template"])]
    url: Option<String>,
    /// Its program by an absolute path, and its arguments.
    #[arg(last = true, conflicts_with = "url")]
    command: Vec<String>,
}

/// Checks a connector: its manifest, and its server against what was approved.
///
/// Exit codes: 0 it may be called, 1 it may not, 2 the command line is wrong.
#[derive(clap::Args)]
struct One {
    /// Its name.
    server: String,
}

/// Approves a connector as it is: its manifest and what its server offers are shown to
/// the end, and a typed yes is for exactly these.
///
/// Exit codes: 0 approved, 1 not agreed to or failed, 2 the command line is wrong.
#[derive(clap::Args)]
struct Approve {
    /// Its name.
    server: String,
}

/// Shows what a connector's verbs do, by its manifest.
///
/// Exit codes: 0 shown, 1 failed, 2 the command line is wrong.
#[derive(clap::Args)]
struct Show {
    /// Its name.
    server: String,
}

/// Shows what a connector has otherwise than when it was approved.
///
/// Exit codes: 0 nothing; 1 there are differences, or it failed; 2 the command line is wrong.
#[derive(clap::Args)]
struct Diff {
    /// Its name.
    server: String,
}

/// Lists the connectors.
///
/// Exit codes: 0 listed, also if there is none; 1 failed; 2 the command line is wrong.
#[derive(clap::Args)]
struct All {
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

/// Lists the servers that another client's configuration file names, as commands that add them.
///
/// Exit codes: 0 listed, 1 failed, 2 the command line is wrong.
#[derive(clap::Args)]
struct Import {
    /// The file.
    file: PathBuf,
}

/// Prints the JSON Schema of a manifest.
///
/// Exit codes: 0 printed, 1 failed, 2 the command line is wrong.
#[derive(clap::Args)]
struct Schema;

/// Becomes a server's program, behind its walls.
#[derive(clap::Args)]
pub(crate) struct Confine {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

impl Confine {
    /// Comes back only where a wall could not be raised, or a line was run.
    pub(crate) fn run(self) -> ExitCode {
        ExitCode::from(enter(self.arguments.into_iter()))
    }
}

impl Tools {
    /// Does what it says.
    pub(crate) fn run(self) -> Result<ExitCode, String> {
        match self.what {
            What::Add(add) => add.run(),
            What::Check(one) => one.run(),
            What::Approve(approve) => approve.run(),
            What::Show(show) => show.run(),
            What::Diff(diff) => diff.run(),
            What::List(all) => all.run(),
            What::Import(import) => import.run(),
            What::Schema(Schema) => say(&schema()),
        }
    }
}

impl Add {
    fn run(self) -> Result<ExitCode, String> {
        let Self { server, ready, read, write, template, url, command } = self;
        if let Some(template) = template {
            return fill(&template, &server, &read);
        }
        let ready = ready.as_deref().and_then(Ready::find);
        let start = Start { command, read, write, url: url.unwrap_or_default(), ..start() };
        let start = match ready {
            Some(ready) if start.url.is_empty() => ready.start(start),
            _ => start,
        };
        let text = List::default().manifest(&server, &start);
        // Its name and its command are held against the manifest's rules first.
        Manifest::check(&text).map_err(|all| told(&all))?;
        let folder = folder(&server)?;
        let list = inspect(&start).map_err(|why| why.replace("; ", "\n"))?;
        if let Some(ready) = ready
            && let Some(verb) = ready.lacking(&list).next()
        {
            return Err(format!(
                "the server has no tool `{verb}`, which `--ready {}` knows of\nit may be another \
                 server or another version: leave `--ready` out",
                ready.name
            ));
        }
        let manifest = match ready {
            Some(ready) => ready.manifest(&server, &start),
            None => list.manifest(&server, &start),
        };
        add(&folder, &manifest)?;
        tell!(
            "{} tools; edit {}, then use `synapse tools approve {server}`",
            list.tools.len(),
            shown(&folder.manifest_path().to_string_lossy())
        );
        Ok(ExitCode::SUCCESS)
    }
}

/// Adds a connector of lines that ship.
fn fill(template: &str, server: &str, read: &[String]) -> Result<ExitCode, String> {
    let folder = folder(server)?;
    let text = template::fill(template, server, read).map_err(|why| why.replace("; ", "\n"))?;
    let manifest = Manifest::check(&text).map_err(|all| told(&all))?;
    add(&folder, &text)?;
    tell!(
        "{} lines; read {}, then use `synapse tools approve {server}`",
        manifest.verbs.len(),
        shown(&folder.manifest_path().to_string_lossy())
    );
    Ok(ExitCode::SUCCESS)
}

fn add(folder: &Folder, manifest: &str) -> Result<(), String> {
    folder.add(manifest).map_err(|why| {
        let path = shown(&folder.manifest_path().to_string_lossy());
        format!("cannot write {path}: {why}\nremove that file first, if it is not wanted")
    })
}

impl One {
    fn run(self) -> Result<ExitCode, String> {
        let folder = folder(&self.server)?;
        let approved = folder.approved().map_err(|why| unapproved(&why))?;
        for notice in approved.manifest.warnings() {
            tell!("warning: {}", shown(&notice.to_string()));
        }
        let list = offers(&approved.manifest)?;
        if list.digest() != approved.list {
            return Err(format!(
                "it does not offer what was approved\nsee `synapse tools diff {0}`, then \
                 `synapse tools approve {0}`",
                self.server
            ));
        }
        say(&format!("{}: {} verbs may be called", self.server, approved.manifest.verbs.len()))
    }
}

impl Approve {
    fn run(self) -> Result<ExitCode, String> {
        let folder = folder(&self.server)?;
        let (text, manifest) = folder.manifest().map_err(|why| unapproved(&why))?;
        if manifest.server != self.server {
            return Err(format!(
                "the manifest is of `{}`\nits `server` is the name of its folder: correct one",
                manifest.server
            ));
        }
        if is_armed(&folder, &manifest) {
            let page = format!(
                "The manifest of {}, whose server is to be given your secrets before it says what \
                 it offers:\n\n{text}\n",
                self.server
            );
            if !agreed(&page, Terminal::new(Stream::Output), PATIENCE)? {
                return Err("the server was given nothing: nobody typed yes".into());
            }
        }
        let list = offers(&manifest)?;
        for verb in &manifest.verbs {
            if !list.tools.iter().any(|tool| tool.name == verb.tool) {
                return Err(format!(
                    "verb `{}`: the server has no tool `{}`\ncorrect its `tool`, or remove it",
                    verb.name,
                    shown(&verb.tool)
                ));
            }
        }
        let mut page = format!("The manifest of {}:\n\n{text}\n", self.server);
        if let Some((before, known)) = folder.before() {
            page += "Since it was approved before:\n";
            for line in differences(&before, &text).into_iter().chain(list.differences(&known)) {
                page += &format!("{line}\n");
            }
        } else {
            page += if manifest.start.lines {
                "What it runs, and what each program is now:\n"
            } else {
                "What the server says of itself, which decides nothing:\n"
            };
            for tool in &list.tools {
                page += &format!("{}: {}\n", tool.name, tool.description);
            }
        }
        if !agreed(&page, Terminal::new(Stream::Output), PATIENCE)? {
            return Err("nothing is approved: nobody typed yes".into());
        }
        folder.approve(&text, &manifest, &list).map_err(|why| {
            format!("the approval cannot be kept: {why}\ncheck the folder's permissions")
        })?;
        tell!("{} is approved, until its manifest or its list changes", self.server);
        Ok(ExitCode::SUCCESS)
    }
}

impl Show {
    fn run(self) -> Result<ExitCode, String> {
        let (_, manifest) = folder(&self.server)?.manifest().map_err(|why| unapproved(&why))?;
        let mut lines = vec![format!("{}: {}", manifest.server, manifest.description)];
        for verb in &manifest.verbs {
            lines.push(format!("  {}  {}", verb.name, verb.about));
            let free = if verb.free { ", free" } else { "" };
            lines.push(format!("    effect {:?}{free}", verb.effect).to_lowercase());
            if !verb.line.is_empty() {
                let words: Vec<String> = verb.line.iter().map(|it| word(it)).collect();
                lines.push(format!("    runs {}", words.join(" ")));
            }
            for argument in &verb.arguments {
                lines.push(format!("    {}: {:?} {}", argument.name, argument.role, argument.ty));
            }
        }
        let lines: Vec<String> = lines.iter().map(|line| shown(line)).collect();
        say(&lines.join("\n"))
    }
}

impl Diff {
    fn run(self) -> Result<ExitCode, String> {
        let folder = folder(&self.server)?;
        let (text, manifest) = folder.manifest().map_err(|why| unapproved(&why))?;
        let (before, known) = folder.before().ok_or_else(|| unapproved(&Unapproved::Never))?;
        let mut lines = differences(&before, &text);
        if is_armed(&folder, &manifest) {
            tell!(
                "the server is not asked what it offers: it would be given your secrets by a \
                 manifest that nobody approved"
            );
        } else {
            lines.extend(offers(&manifest)?.differences(&known));
        }
        let lines: Vec<String> = lines.iter().map(|line| shown(line)).collect();
        if lines.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        say(&lines.join("\n")).map(|_| ExitCode::FAILURE)
    }
}

impl All {
    fn run(self) -> Result<ExitCode, String> {
        let settings = settings().map_err(|why| why.to_string())?;
        let folders = Folder::all(&settings).map_err(|why| {
            format!("{} cannot be read: {why}", shown(&settings.to_string_lossy()))
        })?;
        for folder in folders {
            let state = match folder.approved() {
                Ok(approved) => format!("approved, {} verbs", approved.manifest.verbs.len()),
                Err(why) => why.to_string(),
            };
            let line = if self.json {
                output::json(&json!({
                    "server": folder.server(), "approved": folder.approved().is_ok(), "state": state,
                }))
            } else {
                format!("{}  {}", shown(folder.server()), shown(&state))
            };
            say(&line)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Import {
    fn run(self) -> Result<ExitCode, String> {
        let name = shown(&self.file.to_string_lossy());
        let text = fs::read_to_string(&self.file)
            .map_err(|why| format!("{name} cannot be read: {why}\ncheck the path"))?;
        let servers = import::parse(&text).map_err(|why| {
            format!("{name} names no servers: {why}\nit is JSON with an object `mcpServers`")
        })?;
        for server in servers {
            let command: Vec<String> = server.start.command.iter().map(|it| word(it)).collect();
            let name = server.name.to_lowercase().replace([' ', '/', '.'], "-");
            let how = match &*server.start.url {
                "" => format!("-- {}", command.join(" ")),
                url => word(url),
            };
            let line = format!("synapse tools add {} {how}", word(&name));
            say(&shown(&line))?;
            if !server.start.environment.is_empty() {
                let names = server.start.environment.join(", ");
                say(&shown(&format!("# give it in its manifest: environment {names}")))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Whether its server would be given secrets that nobody agreed to give it.
fn is_armed(folder: &Folder, manifest: &Manifest) -> bool {
    !manifest.start.secrets.is_empty() && folder.approved().is_err()
}

fn folder(server: &str) -> Result<Folder, String> {
    let letter =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    if server.is_empty() || !server.bytes().all(letter) {
        return Err(format!(
            "{} is no connector's name\nuse `a` to `z`, `0` to `9`, `_` and `-`",
            shown(server)
        ));
    }
    let settings = settings().map_err(|why| why.to_string())?;
    Ok(Folder::of(&settings, server))
}

/// What a server is given before its manifest says more.
fn start() -> Start {
    Start { memory: 1 << 30, seconds: 60, reply: 4 << 20, ..Start::default() }
}

/// Lines of the one that the other has not.
fn differences(before: &str, now: &str) -> Vec<String> {
    let lacks = |text: &str, line: &&str| !text.lines().any(|other| other == *line);
    let gone = before.lines().filter(|line| lacks(now, line)).map(|line| format!("- {line}"));
    let new = now.lines().filter(|line| lacks(before, line)).map(|line| format!("+ {line}"));
    gone.chain(new).collect()
}

/// A word as a shell takes it.
fn word(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:=@,+".contains(&byte);
    if !text.is_empty() && text.bytes().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn unapproved(why: &Unapproved) -> String {
    match why {
        Unapproved::Mistakes(all) => told(all),
        other => shown(&other.to_string()).replace("; ", "\n"),
    }
}

fn told(mistakes: &[synapse_kernel::grant::Notice]) -> String {
    let lines: Vec<String> = mistakes.iter().map(|notice| shown(&notice.to_string())).collect();
    lines.join("\n")
}

fn shown(text: &str) -> String {
    render::line(text.as_bytes(), 400)
}

fn say(text: &str) -> Result<ExitCode, String> {
    match output::say(text).err().and_then(|why| output::told(&why)) {
        Some(why) => Err(why),
        None => Ok(ExitCode::SUCCESS),
    }
}
