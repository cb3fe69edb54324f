//! A package that is an image of a registry, pulled part by part
//!
//! # Invariants
//! - Each part is held against its digest, and the parts against the one spelling of a
//!   package.
//!
//! # Not here
//! What an image of a package holds (`synapse_kernel::package`). Who asks (`registry`).

use synapse_kernel::package::{Descriptor, IMAGE, PACKAGE_MAX, parts as parts_of};
use synapse_secrets::vault::Vault;

use super::super::{Digest, Package, PackageError};
use super::address::Image;
use super::download::{self, Meter, Wanted};
use super::partial::{Downloads, Partial};
use super::registry::{Registry, Work};
use super::{Progress, other};
use crate::net::Client;

/// Pulls a package.
pub(super) async fn pull(
    image: &Image,
    client: &Client,
    downloads: &Downloads,
    vault: &Vault,
    tell: &mut dyn FnMut(Progress),
) -> Result<Package, PackageError> {
    let mut registry = Registry::new(image, Work::Pull, client, vault)?;
    let pin = image.pin.map(|pin| pin.to_string());
    let name = pin.as_deref().or(image.tag.as_deref()).unwrap_or_default();
    let found = registry.manifest(name, IMAGE).await?;
    let found = found.ok_or_else(|| {
        PackageError::new(
            &registry.failed(),
            &format!("the registry has no `{name}` of it"),
            "check the name and the tag, and whether anybody may pull it",
        )
    })?;
    let digest = Digest::of(&found);
    if let Some(pin) = image.pin.filter(|pin| *pin != digest) {
        return Err(other(&pin, &digest));
    }
    let signature = registry.signature(&digest).await?;
    let mut parts = parts_of(&found)?;
    if let Some(signature) = &signature {
        parts.extend(parts_of(signature)?);
    }
    let of = parts.iter().map(|part| part.size).fold(0, u64::saturating_add);
    if of > PACKAGE_MAX as u64 {
        return Err(PackageError::new(
            &registry.failed(),
            "its parts have more than 120 MiB",
            "ask its publisher for a smaller one",
        ));
    }
    let (mut kept, mut blobs) = (Vec::<Partial>::new(), Vec::<(String, Vec<u8>)>::new());
    let mut meter = Meter { before: 0, of: Some(of), tell };
    for part in &parts {
        if blobs.iter().all(|(digest, _)| *digest != part.digest) {
            let (bytes, partial) = blob(&registry, part, downloads, &mut meter).await?;
            blobs.push((part.digest.clone(), bytes));
            kept.push(partial);
        }
        meter.before += part.size;
    }
    let found_blob = |part: &Descriptor| {
        let mut found = blobs.iter().filter(|(digest, _)| *digest == part.digest);
        found.next().map(|(_, bytes)| &**bytes)
    };
    let package = Package::assemble(&found, signature.as_deref(), &found_blob);
    // They have their digests: fetched once more, they would be the same.
    kept.into_iter().for_each(Partial::forget);
    package
}

async fn blob(
    registry: &Registry<'_>,
    part: &Descriptor,
    downloads: &Downloads,
    meter: &mut Meter<'_>,
) -> Result<(Vec<u8>, Partial), PackageError> {
    let url = format!("{}/blobs/{}", registry.base, part.digest);
    let digest = Digest::parse(&part.digest).ok_or_else(|| {
        PackageError::new(&registry.web.failed(&url), "it is no digest", "ask its publisher")
    })?;
    let mut partial = downloads.partial(&digest.digits())?;
    let wanted = Wanted {
        url: &url,
        headers: registry.headers(),
        size: Some(part.size),
        most: PACKAGE_MAX as u64,
    };
    let bytes = download::download(&registry.web, &wanted, &mut partial, meter).await?;
    if Digest::of(&bytes) == digest {
        return Ok((bytes, partial));
    }
    partial.forget();
    Err(other(&digest, &Digest::of(&bytes)))
}
