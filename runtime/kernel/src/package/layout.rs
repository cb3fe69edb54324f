//! A package as one file: an OCI image layout in a tar, with one spelling.
//!
//! The manifest is the image's configuration and each file a layer, so that any registry
//! can carry it. Whatever a package's bytes may vary in is fixed here, and a file is taken
//! only if what was read from it, written again, is that file: no byte is unaccounted for.
//!
//! # Invariants
//! - The digest that is signed and approved is that of the image's manifest, which has the
//!   digests of everything else: it covers each byte but the signature's own.
//! - Same content, same bytes.
//! - Nothing of a package is ever unpacked.
//!
//! # Not here
//! The tar itself (`tar`). Whether a person approved it (`store`).

use alloc::borrow::Cow;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;

use super::digest::Digest;
use super::manifest::{MANIFEST_MAX, Manifest};
use super::oci::{self, Descriptor, EMPTY, IMAGE, Image, Listed};
use super::signature::{Key, Signature};
use super::{PackageError, tar};
use crate::admit::{COMPONENT_MAX, admit};

/// Bytes of a package.
pub const PACKAGE_MAX: usize = COMPONENT_MAX + (20 << 20);

/// Files of a package besides its manifest.
const FILES_MAX: usize = 64;

/// Bytes of a file that is not the component.
const FILE_MAX: usize = 1 << 20;

/// Bytes of the text for the agent.
const SOUL_MAX: usize = 64 << 10;

/// A package, read whole and found sound.
#[derive(Clone, Debug)]
pub struct Package {
    /// What it says of itself.
    pub manifest: Manifest,
    text: String,
    files: BTreeMap<String, Vec<u8>>,
    pub(super) signature: Option<Signature>,
}

/// What a registry holds of an image.
#[derive(Debug)]
pub struct Parts<'p> {
    /// Its manifest.
    pub manifest: Vec<u8>,
    /// The blobs that the manifest lists.
    pub blobs: Vec<Cow<'p, [u8]>>,
}

impl Package {
    /// Makes one of a manifest and files, by their names.
    ///
    /// # Errors
    /// The manifest is none, or the files are not what a package has.
    pub fn new(text: String, files: BTreeMap<String, Vec<u8>>) -> Result<Self, PackageError> {
        let manifest = Manifest::parse(&text)?;
        let package = Self { manifest, text, files, signature: None };
        package.check()?;
        Ok(package)
    }

    /// Reads a package's file.
    ///
    /// # Errors
    /// It is not byte for byte what [`write()`](Self::write) makes, or its content is not
    /// what a package has.
    pub fn read(bytes: &[u8]) -> Result<Self, PackageError> {
        if bytes.len() > PACKAGE_MAX {
            return Err(broken("it has more than 120 MiB"));
        }
        let found: BTreeMap<&str, &[u8]> = tar::read(bytes)?.into_iter().collect();
        if found.len() > FILES_MAX + 8 {
            return Err(broken("it holds too many files"));
        }
        for (name, content) in &found {
            if let Some(digits) = name.strip_prefix(BLOBS)
                && Digest::of(content).digits() != digits
            {
                return Err(broken("it holds other bytes than their digest says"));
            }
        }
        let blob = |of: &Descriptor| {
            let name = of.digest.strip_prefix("sha256:").map(|digits| format!("{BLOBS}{digits}"));
            let content = name.and_then(|name| found.get(&*name).copied());
            content.ok_or_else(|| broken("something that it lists is not in it"))
        };
        let index = found.get("index.json").copied().unwrap_or_default();
        let index = short(index).and_then(oci::read_index).ok_or_else(strange)?;
        let [own, signatures @ ..] = &*index else {
            return Err(broken("its index is empty"));
        };
        let signature = match signatures {
            [signature] => Some(blob(signature)?),
            _ => None,
        };
        let package = Self::assemble(blob(own)?, signature, &|part| blob(part).ok())?;
        if package.write() != bytes {
            return Err(unaccounted());
        }
        Ok(package)
    }

    /// Puts one together of its image's manifest, its signature's and the blobs in them.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn assemble<'b>(
        image: &[u8],
        signature: Option<&[u8]>,
        blob: &dyn Fn(&Descriptor) -> Option<&'b [u8]>,
    ) -> Result<Self, PackageError> {
        let blob = |part: &Descriptor| {
            blob(part).ok_or_else(|| broken("something that it lists is not in it"))
        };
        let own = listed(image)?;
        let text = String::from_utf8(blob(&own.config)?.to_vec())
            .map_err(|_| broken("its manifest.toml is no text"))?;
        let mut files = BTreeMap::new();
        for layer in &own.layers {
            let name = layer.title.as_ref().ok_or_else(|| broken("a file has no name"))?;
            if files.insert(name.clone(), blob(layer)?.to_vec()).is_some() {
                return Err(broken("two of its files have one name"));
            }
        }
        let mut package = Self::new(text, files)?;
        if let Some(signature) = signature {
            let Listed { layers, .. } = listed(signature)?;
            let [layer] = &*layers else { return Err(broken("its signature is none")) };
            let signature = Signature::from_bytes(blob(layer)?);
            package.signature = Some(signature.ok_or_else(|| broken("its signature is none"))?);
        }
        let signed = package.signed_image().map(|(image, _)| image);
        if package.image().0 != image || signed.as_deref() != signature {
            return Err(unaccounted());
        }
        Ok(package)
    }

    /// Its file.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let images = self.images();
        let mut blobs = BTreeMap::new();
        let mut manifests = Vec::new();
        for (Parts { manifest, blobs: listed }, kind) in images.iter().zip([PACKAGE, SIGNATURE]) {
            for bytes in listed.iter().map(|bytes| &**bytes).chain([&**manifest]) {
                blobs.insert(format!("{BLOBS}{}", Digest::of(bytes).digits()), bytes);
            }
            let own = Descriptor::of(IMAGE, manifest);
            manifests.push(Descriptor { artifact_type: Some(kind), ..own });
        }
        let index = oci::index(&manifests);
        let rest = [("index.json", &*index), ("oci-layout", LAYOUT)];
        tar::write(blobs.iter().map(|(name, bytes)| (&**name, *bytes)).chain(rest))
    }

    /// Its image and, if it bears one, that of its signature.
    #[must_use]
    pub fn images(&self) -> Vec<Parts<'_>> {
        let mut blobs = vec![Cow::Borrowed(self.text.as_bytes())];
        blobs.extend(self.files.values().map(|content| Cow::Borrowed(&**content)));
        let mut images = vec![Parts { manifest: self.image().0, blobs }];
        if let Some((manifest, bytes)) = self.signed_image() {
            let blobs = vec![Cow::Borrowed(&b"{}"[..]), Cow::Owned(bytes)];
            images.push(Parts { manifest, blobs });
        }
        images
    }

    /// The digest that its signature, an approval and a person mean.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(&self.image().0)
    }

    /// The agent.
    #[must_use]
    pub fn component(&self) -> &[u8] {
        self.files.get(&self.component_name()).map_or(&[], Vec::as_slice)
    }

    /// Its text for its agent.
    #[must_use]
    pub fn soul(&self) -> Option<&str> {
        self.files.get(SOUL).and_then(|bytes| str::from_utf8(bytes).ok())
    }

    /// Its manifest, as it was written.
    #[must_use]
    pub fn manifest_text(&self) -> &str {
        &self.text
    }

    /// The names of its files and their sizes.
    pub fn files(&self) -> impl Iterator<Item = (&str, usize)> {
        self.files.iter().map(|(name, bytes)| (&**name, bytes.len()))
    }

    /// The name of its file.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}-{}.synapse", self.manifest.name, self.manifest.version)
    }

    /// Puts a signature in the place of the one that it had.
    pub fn signed_by(&mut self, signature: Signature) {
        self.signature = Some(signature);
    }

    /// The key that signed it, if one did.
    ///
    /// # Errors
    /// It bears a signature that does not hold.
    pub fn signer(&self) -> Result<Option<Key>, PackageError> {
        let Some(signature) = &self.signature else { return Ok(None) };
        signature.verify(&self.digest()).map(Some).ok_or_else(|| {
            PackageError::new(
                "the signature does not hold",
                "who signed it signed other bytes, so that these are nobody's",
                "do not install it; ask its publisher for a whole one",
            )
        })
    }

    fn component_name(&self) -> String {
        format!("{}.wasm", self.manifest.name)
    }

    fn image(&self) -> (Vec<u8>, Descriptor) {
        let layers = self.files.iter().map(|(name, bytes)| {
            let kind = match name.rsplit_once('.') {
                Some((_, "wasm")) => "application/wasm",
                Some((_, "md")) => "text/markdown",
                _ => "text/plain",
            };
            Descriptor { title: Some(name.clone()), ..Descriptor::of(kind, bytes) }
        });
        let Manifest { name, version, publisher, licence, .. } = &self.manifest;
        let image = Image {
            artifact_type: PACKAGE,
            config: Descriptor::of(CONFIG, self.text.as_bytes()),
            layers: layers.collect(),
            subject: None,
            annotations: vec![
                ("org.opencontainers.image.licenses", licence.clone()),
                ("org.opencontainers.image.title", name.clone()),
                ("org.opencontainers.image.vendor", publisher.clone()),
                ("org.opencontainers.image.version", version.to_string()),
            ],
        };
        let image = image.json();
        let own = Descriptor { artifact_type: Some(PACKAGE), ..Descriptor::of(IMAGE, &image) };
        (image, own)
    }

    /// The manifest of its signature, and the signature's bytes.
    fn signed_image(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let bytes = self.signature.as_ref()?.to_bytes();
        let image = Image {
            artifact_type: SIGNATURE,
            config: Descriptor::of(EMPTY, b"{}"),
            layers: vec![Descriptor::of(SIGNATURE, &bytes)],
            subject: Some(self.image().1),
            annotations: Vec::new(),
        };
        Some((image.json(), bytes))
    }

    /// Whether the files are those of a package with this manifest.
    fn check(&self) -> Result<(), PackageError> {
        let component = self.component_name();
        let mut folded = BTreeSet::new();
        for (name, bytes) in &self.files {
            if !is_file_name(name) || !folded.insert(name.to_ascii_lowercase()) {
                return Err(wrong(
                    &format!(
                        "a file is called `{name}`, which leads out, is another's or reads in two ways"
                    ),
                    "use letters, digits, `.`, `_` and `-`, below `docs` if anywhere",
                ));
            }
            let wasm = name.to_ascii_lowercase().ends_with(".wasm");
            if wasm && *name != component {
                return Err(wrong(
                    &format!("its manifest says `{component}`, and its component is `{name}`"),
                    "a package has one component, named as the manifest has it",
                ));
            }
            if !wasm && (bytes.len() > FILE_MAX || str::from_utf8(bytes).is_err()) {
                return Err(wrong(
                    &format!("`{name}` has more than 1 MiB or is no text"),
                    "leave it out",
                ));
            }
        }
        if self.files.len() > FILES_MAX {
            return Err(wrong("it holds more than 64 files", "join some"));
        }
        if self.files.get(SOUL).is_some_and(|soul| soul.len() > SOUL_MAX) {
            return Err(wrong("its SOUL.md has more than 64 KiB", "say less to the agent"));
        }
        let Some(component) = self.files.get(&component) else {
            return Err(wrong(
                &format!("`{component}` is not in it"),
                "build it first: `synapse build FOLDER`",
            ));
        };
        admit(component).map_err(|why| {
            wrong(&why.to_string(), "an agent has one import and no other way out")
        })?;
        Ok(())
    }
}

/// What an image lists, if that is not more than a package has.
///
/// # Errors
/// It is no image of a package.
pub fn parts(image: &[u8]) -> Result<Vec<Descriptor>, PackageError> {
    let Listed { config, layers } = listed(image)?;
    if layers.len() > FILES_MAX {
        return Err(broken("it holds too many files"));
    }
    Ok([config].into_iter().chain(layers).collect())
}

/// Whether a file of a package may be called this.
fn is_file_name(name: &str) -> bool {
    let part = |part: &str| {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        !part.is_empty()
            && part.len() <= 64
            && !part.starts_with(['.', '-'])
            && !part.ends_with('.')
            && part.bytes().all(letter)
    };
    match name.split_once('/') {
        None => part(name) && name != "manifest.toml" && name != "docs",
        Some((folder, rest)) => {
            folder == "docs" && rest.split('/').count() <= 3 && rest.split('/').all(part)
        }
    }
}

fn listed(image: &[u8]) -> Result<Listed, PackageError> {
    short(image).and_then(Image::read).ok_or_else(strange)
}

fn short(document: &[u8]) -> Option<&[u8]> {
    (document.len() <= MANIFEST_MAX).then_some(document)
}

fn strange() -> PackageError {
    broken("its index or its image manifest is not what Synapse writes")
}

fn unaccounted() -> PackageError {
    broken(
        "its bytes are not those that its content has: something in it is signed by nobody, or \
         was added or changed",
    )
}

fn broken(why: &str) -> PackageError {
    PackageError::new(
        "this is no package",
        why,
        "do not install it; ask its publisher for a whole one",
    )
}

fn wrong(why: &str, todo: &str) -> PackageError {
    PackageError::new("this makes no package", why, todo)
}

const BLOBS: &str = "blobs/sha256/";
const SOUL: &str = "SOUL.md";
const LAYOUT: &[u8] = br#"{"imageLayoutVersion":"1.0.0"}"#;
const PACKAGE: &str = "application/vnd.synapse.package.v1";
const CONFIG: &str = "application/vnd.synapse.manifest.v1+toml";
/// What the image of a signature is.
pub const SIGNATURE: &str = "application/vnd.synapse.signature.v1";
