//! Packages from elsewhere, and to there: a file of the web, an image of a registry.
//!
//! The client is the one that agents' calls have, with no more in it than fetching takes.
//! What has come is kept until the package is whole, so that what breaks off goes on.
//!
//! # Invariants
//! - A package that is fetched is the same as its file: nothing more is believed of
//!   where it came from than of a file that somebody sent.
//! - What another server is asked on the word of a first one is asked over TLS, at an
//!   address that is globally reachable, and without what the first one gave.
//! - No more is kept than a package may have, and no more of a part than was said.
//!
//! # Reading order
//! `address` (what a person writes), `pull` and `push`, `registry` with `challenge` and
//! `password` (who asks), `web` (one request and where it may lead), `download` and
//! `partial` (a long answer).
//!
//! # Not here
//! Whether a package is sound (`layout`), and whether it may be installed (`trust`).

mod address;
mod challenge;
mod download;
mod partial;
mod password;
mod pull;
mod push;
mod registry;
#[cfg(test)]
mod tests;
mod web;

use core::sync::atomic::AtomicBool;
use std::path::Path;
use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};

use synapse_kernel::package::PACKAGE_MAX;
use synapse_secrets::vault::Vault;

use super::{Digest, Package, PackageError};
use crate::net::Client;

pub use address::{Image, Source};
use download::{Meter, Wanted};
use partial::Downloads;
use web::Web;

/// How far a download is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that are there.
    pub done: u64,
    /// Bytes in all, if that is known.
    pub of: Option<u64>,
}

/// Opens the package at its source, and tells how far that is. What is not there whole
/// is kept in the state folder.
///
/// # Errors
/// There is none, it is none, or it is not the one that was pinned.
pub fn open(
    source: &Source,
    state: &Path,
    tell: &mut dyn FnMut(Progress),
) -> Result<Package, PackageError> {
    if let Source::Path(path) = source {
        return super::source::open(path);
    }
    fetch(source, &client()?, state, tell)
}

/// Pushes a package to a registry, under its digest and the image's tag, and tells how far
/// that is. The state folder has the secret that the registry may want to see.
///
/// # Errors
/// The registry did not take it; no tag names what is not there whole.
pub fn push(
    package: &Package,
    image: &Image,
    state: &Path,
    tell: &mut dyn FnMut(Progress),
) -> Result<(), PackageError> {
    send(package, image, &client()?, state, tell)
}

fn client() -> Result<Client, PackageError> {
    let client = Client::new(Arc::<AtomicBool>::default());
    client.map_err(|why| {
        PackageError::new("no network can be had", &why.to_string(), "this is a bug")
    })
}

fn runtime() -> Result<Runtime, PackageError> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|why| super::failed_with("no network can be had", &why))
}

fn fetch(
    source: &Source,
    client: &Client,
    state: &Path,
    tell: &mut dyn FnMut(Progress),
) -> Result<Package, PackageError> {
    let (downloads, vault) = (Downloads::open(state)?, Vault::of(state));
    runtime()?.block_on(async {
        match source {
            Source::Path(path) => super::source::open(path),
            Source::Web { url, pin } => file(url, *pin, client, &downloads, tell).await,
            Source::Registry(image) => pull::pull(image, client, &downloads, &vault, tell).await,
        }
    })
}

fn send(
    package: &Package,
    image: &Image,
    client: &Client,
    state: &Path,
    tell: &mut dyn FnMut(Progress),
) -> Result<(), PackageError> {
    runtime()?.block_on(push::push(package, image, client, &Vault::of(state), tell))
}

/// The package whose file is at this URL.
async fn file(
    url: &str,
    pin: Option<Digest>,
    client: &Client,
    downloads: &Downloads,
    tell: &mut dyn FnMut(Progress),
) -> Result<Package, PackageError> {
    let web = Web::new(client, url, "fetched")?;
    let mut partial = downloads.partial(&Digest::of(url.as_bytes()).digits())?;
    let wanted = Wanted { url, headers: Vec::new(), size: None, most: PACKAGE_MAX as u64 };
    let mut meter = Meter { before: 0, of: None, tell };
    let bytes = download::download(&web, &wanted, &mut partial, &mut meter).await?;
    // Whatever it is, to go on with it makes no other of it.
    partial.forget();
    let package = Package::read(&bytes)?;
    match pin {
        Some(pin) if pin != package.digest() => Err(other(&pin, &package.digest())),
        _ => Ok(package),
    }
}

/// Something else is there than what was pinned.
fn other(pin: &Digest, found: &Digest) -> PackageError {
    PackageError::new(
        "the package there is not the one that you named",
        &format!("you named {pin}, and what was sent is {found}"),
        "do not install it; ask whoever gave you the digest which one they meant",
    )
}
