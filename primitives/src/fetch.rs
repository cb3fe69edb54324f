//! One request to the network, and its answer as a reply
//!
//! # Invariants
//! - A name is not resolved before an [`Authorized`] for it exists, and every
//!   address that a board is let connect to leaves its compartments in the label.
//!
//! # Not here
//! Connecting (the board), which addresses are covered (the boundary).

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::sync::atomic::{AtomicU64, Ordering};

use synapse_abi::registry::Primitive;
use synapse_boundary::headers::headers;
use synapse_boundary::secret::blanks;
use synapse_boundary::sentence::Call;
use synapse_boundary::url::Host;
use synapse_boundary::{Authorized, Facts, Secrecy};
use synapse_reply::Fault;
use synapse_reply::limits;

use crate::execute::{escape, value};
use crate::platform::{Fetch, Fetched, Platform};

/// The compartments of the addresses that a call was let connect to, or of what its
/// connector was told before.
#[derive(Debug, Default)]
pub(crate) struct Reached(AtomicU64);

impl Reached {
    pub(crate) fn secrecy(&self) -> Secrecy {
        Secrecy::from_bits(self.0.load(Ordering::Relaxed))
    }

    pub(crate) fn add(&self, secrecy: Secrecy) {
        self.0.fetch_or(secrecy.bits(), Ordering::Relaxed);
    }

    fn admits(&self, call: &Authorized<'_>, address: IpAddr) -> bool {
        let own = call.reaches(address);
        self.add(own.unwrap_or_default());
        own.is_some()
    }
}

/// Sends what a call says, `content` with a POST: a line of JSON about the answer,
/// then its body.
pub(crate) async fn fetch<P: Platform>(
    call: &Authorized<'_>,
    content: Option<&[u8]>,
    platform: &P,
    facts: &impl Facts,
    reached: &Reached,
) -> Result<Vec<u8>, Fault> {
    // A value that holds a fault has no bytes to send.
    for number in call.call().held() {
        value(facts, number)?;
    }
    let headers = headers(call.call().span(1), facts).map_err(|_| Fault::Changed)?;
    let secrets = blanks(call.call()).map_err(|_| Fault::Changed)?;
    let fetched = platform
        .fetch(Fetch {
            url: call.url().ok_or(Fault::NotFound)?,
            headers: &headers,
            secrets: &secrets,
            content,
            most: most(call.call()),
            admits: &|address| reached.admits(call, address),
        })
        .await?;
    let mut reply = about(&fetched).into_bytes();
    reply.extend_from_slice(&fetched.body);
    Ok(reply)
}

/// Bytes that a call's reply may have.
#[must_use]
pub fn most(call: &Call<'_>) -> usize {
    match call.primitive() {
        Primitive::NetHttpGet
        | Primitive::NetHttpPost
        | Primitive::ToolUse
        | Primitive::ToolCommit
            if call.hold() =>
        {
            limits::FETCH
        }
        _ => limits::REPLY,
    }
}

/// The first line of a reply.
fn about(fetched: &Fetched) -> String {
    let mut headers: BTreeMap<String, Vec<&[u8]>> = BTreeMap::new();
    for (name, value) in &fetched.headers {
        headers.entry(name.to_ascii_lowercase()).or_default().push(value);
    }
    let mut json = format!("{{\"status\":{},\"headers\":{{", fetched.status);
    for (place, (name, values)) in headers.iter().enumerate() {
        json.push_str(if place == 0 { "\"" } else { ",\"" });
        escape(&mut json, name);
        for (place, value) in values.iter().enumerate() {
            json.push_str(if place == 0 { "\":[\"" } else { ",\"" });
            escape(&mut json, &String::from_utf8_lossy(value));
            json.push('"');
        }
        json.push(']');
    }
    json.push_str("}}\n");
    json
}

/// An address as the host of a place.
#[must_use]
pub const fn host_of(address: IpAddr) -> Host<'static> {
    match address {
        IpAddr::V4(address) => Host::V4(address),
        IpAddr::V6(address) => Host::V6(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_names_each_header_once_in_order() {
        let header = |name: &str, value: &[u8]| (name.into(), value.into());
        let fetched = Fetched {
            status: 301,
            headers: [
                header("Set-Cookie", b"a"),
                header("Location", b"/b\"\xff"),
                header("set-cookie", b"c"),
            ]
            .into(),
            body: Vec::new(),
        };
        let line = "{\"status\":301,\"headers\":{\"location\":[\"/b\\\"\u{fffd}\"],\"set-cookie\":[\"a\",\"c\"]}}\n";
        assert_eq!(about(&fetched), line);
        let none = Fetched { status: 204, headers: Vec::new(), body: Vec::new() };
        assert_eq!(about(&none), "{\"status\":204,\"headers\":{}}\n");
    }
}
