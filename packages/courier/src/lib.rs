//! Courier: what has changed on the pages that its task line names, kept and posted.
//!
//! No model. Leave to post comes from the line, before anything is read. Then the
//! pages are fetched, each held, so that what one says leads to no other; then they
//! are read, compared with what was kept, and the digest is written and posted. A
//! page can say what it wants: where the courier goes was settled before.
//!
//! # Reading order
//! `plan` (the line), `turn` and `carry`, `digest` (what changed).
//!
//! # Not here
//! Deciding where anything may go: that is the door's, and the grant's.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod digest;
mod plan;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use synapse_guest::abi::code::Refusal;
use synapse_guest::abi::registry::Primitive;
use synapse_guest::calls::{self, Mode};
use synapse_guest::net::{self, Answer};
use synapse_guest::reply::Fault;
use synapse_guest::{Argument, Content, Error, Held, Sentence, Turn, files, warrant};

use crate::digest::{Digest, date};
use crate::plan::{Plan, SAYS, parse};

synapse_guest::agent!(turn);

/// What a turn answers when its input cannot be read.
const BAD_INPUT: u32 = 1;

/// Does what the task line asks, and says on the console what came of it.
///
/// # Errors
/// The input is no turn, or the console is not granted.
pub fn turn(input: &[u8]) -> Result<Vec<u8>, u32> {
    let turn = Turn::parse(input).map_err(|_| BAD_INPUT)?;
    let said = match parse(turn.task()) {
        Some(plan) => carry(&plan).unwrap_or_else(|why| format!("could not go on: {why}\n")),
        None => format!("nothing was done; say it like this:\n  {SAYS}\n"),
    };
    calls::console_write(said.as_str()).map_err(Error::number)?;
    Ok(Vec::new())
}

fn carry(plan: &Plan<'_>) -> Result<String, Error> {
    // Leave first, while nothing was read.
    let leave = plan.post.map(|url| warrant::net_http_post(url).mint());
    let today = date(calls::clock_read()?);
    let held: Vec<_> = plan.pages.iter().map(|url| (*url, fetch(url))).collect();
    let pages: Vec<_> = held.iter().map(|(url, held)| (*url, *held, page(*held))).collect();
    let mut digest = Digest::new(&today);
    for (url, held, page) in pages {
        let kept = format!("{}/pages/{}", plan.folder, digest::name(url));
        match page {
            Ok(answer) if answer.status == 200 => {
                digest.page(url, before(&kept)?.as_deref(), &answer.body);
                keep(&kept, held)?;
            }
            Ok(answer) => digest.failed(url, &format!("status {}", answer.status)),
            Err(why) => digest.failed(url, &format!("{why}")),
        }
    }
    let into = format!("{}/digest-{today}.md", plan.folder);
    files::write_all(&into, &digest.text(), Mode::Replace)?;
    let mut said = format!("wrote {into}: {}\n", digest.told());
    if let Some(url) = plan.post {
        match leave.unwrap_or(Ok(())).and_then(|()| post(url, &digest)) {
            Ok(status) => said.push_str(&format!("posted it to {url}: status {status}\n")),
            Err(why) => said.push_str(&format!("could not post it to {url}: {why}\n")),
        }
    }
    Ok(said)
}

/// Fetches a page, unseen.
fn fetch(url: &str) -> Result<Held, Error> {
    let sentence = Sentence::new(Primitive::NetHttpGet)
        .set("url", Argument::Text(url))
        .set("headers", Argument::Raw("{}"));
    sentence.hold().submit()?.held()
}

/// Reads a page.
fn page(held: Result<Held, Error>) -> Result<Answer, Error> {
    let held = held?;
    let mut reply = Vec::new();
    loop {
        let offset = u64::try_from(reply.len()).unwrap_or(u64::MAX);
        let part = calls::value_read(held, offset, PART)?;
        let last = u64::try_from(part.len()).is_ok_and(|length| length < PART);
        reply.extend_from_slice(&part);
        if last {
            return Answer::parse(reply);
        }
    }
}

/// What a page said the last time; nothing, the first time.
fn before(kept: &str) -> Result<Option<Vec<u8>>, Error> {
    match files::read_all(kept) {
        Ok(reply) => Ok(Answer::parse(reply).ok().map(|answer| answer.body)),
        Err(Error::Fault(Fault::NotFound)) => Ok(None),
        Err(why) => Err(why),
    }
}

/// Keeps a page as it came.
fn keep(kept: &str, held: Result<Held, Error>) -> Result<(), Error> {
    calls::fs_write(kept, held?, Mode::Replace)
}

/// Posts the digest. What a page says may hold a link that nobody typed, which does
/// not pass: then it goes without what the pages say.
fn post(url: &str, digest: &Digest) -> Result<u16, Error> {
    let headers = [("content-type", "text/markdown; charset=utf-8")];
    let sent = |text: &str| net::post(url, &headers, Content::Text(text));
    let answer = match sent(&digest.text()) {
        Err(Error::Refused(Refusal::Link)) => sent(&digest.bare()),
        answer => answer,
    };
    answer.map(|answer| answer.status)
}

/// Bytes that are read of a page at once.
const PART: u64 = 256 << 10;
