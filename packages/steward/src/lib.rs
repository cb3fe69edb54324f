//! Steward: one child for each folder, with less authority, and one report.
//!
//! No model: the line names folders, and after `into` the report; after `; delete`
//! files that are to go. Each child gets one folder to list and read, and leave to
//! delete those files of it that the line named, once. What it reports is held and
//! put into the report as it is: the steward has read none of it, so that nothing in
//! a folder can lead it anywhere, and no child can be led into another's folder.
//!
//! # Reading order
//! `turn`, `steward`, then `look`, what a child does.
//!
//! # Not here
//! Deciding what a child may do: that is the door's.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod look;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use synapse_guest::agents::{self, Agent};
use synapse_guest::calls::{self, Mode};
use synapse_guest::serde_json::json;
use synapse_guest::{Content, Error, Held, Message, Turn, warrant};

synapse_guest::agent!(turn);

/// What a turn answers when its input cannot be read.
const BAD_INPUT: u32 = 1;
/// What a child is called: the very same package.
const CHILD: &str = "steward";
/// Milliseconds that a child may take.
const PATIENCE: u64 = 60_000;

/// Has the folders of the task line looked at; as a child, looks at one.
///
/// # Errors
/// The input is no turn, or the console is not granted.
pub fn turn(input: &[u8]) -> Result<Vec<u8>, u32> {
    let turn = Turn::parse(input).map_err(|_| BAD_INPUT)?;
    match turn.errand() {
        Some(Message::Clear { text, .. }) => Ok(look::report(text).into_bytes()),
        Some(Message::Held { .. }) => Err(BAD_INPUT),
        None => steward(turn.task()).map(|()| Vec::new()).map_err(Error::number),
    }
}

fn steward(line: &str) -> Result<(), Error> {
    let Some(Plan { folders, report, doomed }) = plan(line) else {
        return say("nothing was done; say which folders, and where the report goes:\n  \
             report on /data/a and /data/b into /data/report.md; delete /data/a/old.md");
    };
    // Leave first. It is needed if the journal cannot take what stands there.
    let leave = warrant::fs_write(report).mint();
    // All of them look at once.
    let children = folders.iter().map(|folder| (folder, child(folder, &doomed)));
    let children: Vec<_> = children.collect();
    calls::fs_write(report, "# Report\n", Mode::Replace)?;
    let mut silent = 0_u64;
    for (folder, child) in children {
        let heading = format!("\n## {folder}\n\n");
        let reported = child.and_then(|child| {
            let told = collect(child, report, &heading);
            child.end().and(told)
        });
        if let Err(why) = reported {
            silent = silent.saturating_add(1);
            let none = format!("{heading}no report: {why}\n");
            calls::fs_write(report, none.as_str(), Mode::Append)?;
        }
    }
    let mut told = format!("wrote {report}: {} folders", folders.len());
    if silent > 0 {
        told.push_str(&format!(", {silent} without a report"));
    }
    for path in doomed.iter().filter(|path| !folders.iter().any(|it| is_inside(path, it))) {
        told.push_str(&format!("; {path} stays: it is in none of them"));
    }
    if let Err(why) = leave {
        told.push_str(&format!("; without leave to replace it: {why}"));
    }
    say(&told)
}

/// What the line asks for.
#[derive(Debug, PartialEq, Eq)]
struct Plan<'a> {
    folders: Vec<&'a str>,
    report: &'a str,
    doomed: Vec<&'a str>,
}

fn plan(line: &str) -> Option<Plan<'_>> {
    let (line, doomed) = line.split_once("; delete ").unwrap_or((line, ""));
    let (named, report) = line.rsplit_once(" into ")?;
    let folders: Vec<&str> = paths(named).collect();
    let report = paths(report).next()?;
    (!folders.is_empty()).then(|| Plan { folders, report, doomed: paths(doomed).collect() })
}

fn paths(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split_whitespace().map(|word| word.trim_end_matches(['.', ',', ';', '/']));
    words.filter(|word| word.starts_with('/'))
}

fn is_inside(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// A child for a folder, with leave to delete what is doomed there.
fn child(folder: &str, doomed: &[&str]) -> Result<Agent, Error> {
    let doomed = doomed.iter().filter(|path| is_inside(path, folder));
    let doomed: Vec<&str> = doomed.copied().collect();
    let path = |path: &str, rights: &[&str]| json!({"path": path, "rights": rights});
    let mut primitives = Vec::from(["fs_list", "fs_read"]);
    let mut paths = Vec::from([path(&format!("{folder}/**"), &["list", "read"])]);
    if !doomed.is_empty() {
        primitives.push("fs_delete");
        paths.extend(doomed.iter().map(|doomed| path(doomed, &["delete"])));
    }
    let grant = json!({
        "primitives": primitives,
        "paths": paths,
        "budget": {"calls": 500, "seconds": 60},
    });
    // What the line gives no leave for, the child will not get past the door.
    let warrants = doomed.iter().map(|path| warrant::fs_delete(*path));
    let warrants: Vec<_> = warrants.filter(|warrant| warrant.mint().is_ok()).collect();
    let task = look::task(folder, &doomed);
    if warrants.is_empty() {
        return agents::spawn(CHILD, task.as_str(), &grant);
    }
    agents::spawn_with(CHILD, task.as_str(), &grant, &warrants)
}

/// Puts what a child reports into the report, unseen.
fn collect(child: Agent, report: &str, heading: &str) -> Result<(), Error> {
    let told: Held = child.waiting(PATIENCE).hold().submit()?.held()?;
    calls::fs_write(report, &[heading.into(), told.into()], Mode::Append)
}

fn say(line: &str) -> Result<(), Error> {
    let mut text = String::from(line);
    text.push('\n');
    calls::console_write(Content::Text(&text))
}

#[cfg(test)]
mod tests;
