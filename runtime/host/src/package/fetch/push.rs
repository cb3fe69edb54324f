//! A package pushed to a registry, part by part.
//!
//! # Invariants
//! - What is pushed goes to the server that was named, and to no other.
//! - The tag comes last: it never names what is not there whole.
//!
//! # Not here
//! What an image of a package holds (`synapse_kernel::package`). Who asks (`registry`).

use serde_json::{Value, json};

use synapse_kernel::package::{IMAGE, INDEX, SIGNATURE};
use synapse_secrets::vault::Vault;

use super::super::{Digest, Package, PackageError};
use super::Progress;
use super::address::Image;
use super::download::Meter;
use super::registry::{Registry, Work};
use super::web::{Document, Request};
use crate::net::{Client, Method};

/// Bytes of a blob that go in one request: few enough for a slow line to send within the
/// time of one, and many enough that most blobs are one.
const PIECE: usize = 4 << 20;

/// Pushes a package.
pub(super) async fn push(
    package: &Package,
    image: &Image,
    client: &Client,
    vault: &Vault,
    tell: &mut dyn FnMut(Progress),
) -> Result<(), PackageError> {
    let digest = package.digest();
    if let Some(pin) = image.pin.filter(|pin| *pin != digest) {
        return Err(PackageError::new(
            "nothing was pushed",
            &format!("you named {pin}, and this package is {digest}"),
            "push the one that you mean, or leave the digest away",
        ));
    }
    let mut registry = Registry::new(image, Work::Push, client, vault)?;
    let images = package.images();
    let [own, signed @ ..] = &*images else { return Ok(()) };
    let signature = signed.first().map(|signed| &signed.manifest);
    let is_listed = match (registry.signature(&digest).await?, signature) {
        (Some(found), Some(signature)) if found != *signature => {
            return Err(signed_by_other(&registry));
        }
        (found, _) => found.is_some(),
    };
    let blobs = || images.iter().flat_map(|image| &image.blobs);
    let of = blobs().map(|blob| blob.len() as u64).sum();
    let mut meter = Meter { before: 0, of: Some(of), tell };
    for blob in blobs() {
        upload(&mut registry, blob, &mut meter).await?;
        meter.before += blob.len() as u64;
    }
    put(&mut registry, &digest.to_string(), IMAGE, &own.manifest).await?;
    if let Some(signature) = signature.filter(|_| !is_listed) {
        refer(&mut registry, &digest, signature).await?;
    }
    if let Some(tag) = &image.tag {
        put(&mut registry, tag, IMAGE, &own.manifest).await?;
    }
    Ok(())
}

/// A package has one signature.
fn signed_by_other(registry: &Registry<'_>) -> PackageError {
    PackageError::new(
        &registry.failed(),
        "it is there with another signature, and a package has one",
        "push a new version; or have the other signature removed there",
    )
}

/// Puts a signature's manifest there, so that it is found from the image's.
async fn refer(
    registry: &mut Registry<'_>,
    image: &Digest,
    signature: &[u8],
) -> Result<(), PackageError> {
    let digest = Digest::of(signature).to_string();
    let answer = put(registry, &digest, IMAGE, signature).await?;
    if answer.header("oci-subject").is_some() {
        return Ok(());
    }
    // A registry that does not know of referrers has them under a tag.
    let tag = format!("sha256-{}", image.digits());
    let mut index = match registry.manifest(&tag, INDEX).await? {
        None => json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": []}),
        Some(found) => serde_json::from_slice(&found).unwrap_or_default(),
    };
    let listed = index
        .get_mut("manifests")
        .and_then(Value::as_array_mut)
        .ok_or_else(|| registry.strange("its list of what refers to the package is no list"))?;
    // Another push may have been quicker.
    if listed.iter().any(|entry| entry.get("digest").and_then(Value::as_str) == Some(&digest)) {
        return Ok(());
    }
    listed.push(json!({
        "mediaType": IMAGE, "digest": digest, "size": signature.len(), "artifactType": SIGNATURE,
    }));
    put(registry, &tag, INDEX, index.to_string().as_bytes()).await.map(drop)
}

/// Puts a manifest or an index there, under this name.
async fn put(
    registry: &mut Registry<'_>,
    name: &str,
    kind: &str,
    bytes: &[u8],
) -> Result<Document, PackageError> {
    let url = format!("{}/manifests/{name}", registry.base);
    let headers = [("content-type".to_owned(), kind.to_owned())];
    asked(registry, Method::PUT, &url, &headers, bytes, 201).await
}

/// Puts a blob there, unless it is.
async fn upload(
    registry: &mut Registry<'_>,
    blob: &[u8],
    meter: &mut Meter<'_>,
) -> Result<(), PackageError> {
    let digest = Digest::of(blob);
    let url = format!("{}/blobs/{digest}", registry.base);
    let head = Request { method: Method::HEAD, url: &url, headers: &[], content: None };
    match registry.ask(&head).await?.status() {
        // It may have it elsewhere.
        200..400 => return Ok(()),
        404 => {}
        status => return Err(registry.refused(&url, status)),
    }
    let url = format!("{}/blobs/uploads/", registry.base);
    let mut answer = asked(registry, Method::POST, &url, &[], &[], 202).await?;
    let mut at = place(registry, &url, &answer)?;
    let wanted = answer.header("oci-chunk-min-length").and_then(|least| least.parse().ok());
    let (piece, mut sent) = (PIECE.max(wanted.unwrap_or_default()), 0);
    for bytes in blob.chunks(piece) {
        let range = format!("{sent}-{}", sent + bytes.len() - 1);
        let headers = [("content-type", "application/octet-stream"), ("content-range", &range)];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        answer = asked(registry, Method::PATCH, &at, &headers, bytes, 202).await?;
        at = place(registry, &at, &answer)?;
        sent += bytes.len();
        (meter.tell)(Progress { done: meter.before + sent as u64, of: meter.of });
    }
    let last = format!("{at}{}digest={digest}", if at.contains('?') { '&' } else { '?' });
    asked(registry, Method::PUT, &last, &[], &[], 201).await.map(drop)
}

/// Asks what changes something there, and holds the answer against what it should be.
async fn asked(
    registry: &mut Registry<'_>,
    method: Method,
    url: &str,
    headers: &[(String, String)],
    content: &[u8],
    expected: u16,
) -> Result<Document, PackageError> {
    let answer = registry.ask(&Request { method, url, headers, content: Some(content) }).await?;
    if answer.status() == expected {
        Ok(answer)
    } else {
        Err(registry.refused(url, answer.status()))
    }
}

/// Where an upload goes on.
fn place(registry: &Registry<'_>, at: &str, answer: &Document) -> Result<String, PackageError> {
    let to = answer.header("location").map(|to| registry.web.resolved(at, to));
    let to = to.ok_or_else(|| registry.strange("it does not say where an upload goes on"))?;
    if !registry.web.is_home(&to) {
        return Err(registry.strange("it wants what is pushed to go to another server"));
    }
    Ok(to)
}
