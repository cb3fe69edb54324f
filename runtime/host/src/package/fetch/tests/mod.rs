//! Servers that are honest, and servers that are not.
//!
//! What differs from a real fetch is the machine below: it answers for names, and each
//! address is this machine's loopback, where connections are counted.

mod access;
mod push;
mod registry;
mod server;
mod web;

use std::path::Path;

use super::super::tests::{MANIFEST, package, secret};
use super::super::{Package, PackageError};
use super::{Progress, Source, fetch};
use crate::net::Client;

/// A package, signed.
fn signed(root: &Path) -> Package {
    let mut made = package(MANIFEST);
    secret(root, "key").sign(&mut made);
    made
}

/// What comes of fetching, and how far it was each time.
fn fetched(
    source: &str,
    client: &Client,
    state: &Path,
) -> (Result<Package, PackageError>, Vec<Progress>) {
    let source = Source::parse(source.as_ref()).unwrap();
    let mut told = Vec::new();
    let made = fetch(&source, client, state, &mut |progress| told.push(progress));
    (made, told)
}

/// Why nothing came.
fn why(source: &str, client: &Client, state: &Path) -> String {
    fetched(source, client, state).0.unwrap_err().to_string()
}

/// The files that are kept of downloads.
fn kept(state: &Path) -> Vec<String> {
    super::super::store::listed(&state.join("packages/.downloads")).unwrap()
}
