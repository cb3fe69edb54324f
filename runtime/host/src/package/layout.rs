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

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use synapse_kernel::admit::{COMPONENT_MAX, admit};

use super::digest::Digest;
use super::manifest::{MANIFEST_MAX, Manifest};
use super::oci::{Descriptor, EMPTY, IMAGE, INDEX, Image, Index, json};
use super::sign::{Key, Secret, Signature};
use super::{PackageError, tar};

/// Bytes of a package.
pub(super) const PACKAGE_MAX: usize = COMPONENT_MAX + (20 << 20);

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
        let index: Index = parse(found.get("index.json").copied().unwrap_or_default())?;
        let [own, signatures @ ..] = &*index.manifests else {
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
    pub(super) fn assemble<'b>(
        image: &[u8],
        signature: Option<&[u8]>,
        blob: &dyn Fn(&Descriptor) -> Option<&'b [u8]>,
    ) -> Result<Self, PackageError> {
        let blob = |part: &Descriptor| {
            blob(part).ok_or_else(|| broken("something that it lists is not in it"))
        };
        let own: Image = parse(image)?;
        let text = String::from_utf8(blob(&own.config)?.to_vec())
            .map_err(|_| broken("its manifest.toml is no text"))?;
        let mut files = BTreeMap::new();
        for layer in &own.layers {
            let name = layer.annotations.get(TITLE).ok_or_else(|| broken("a file has no name"))?;
            if files.insert(name.clone(), blob(layer)?.to_vec()).is_some() {
                return Err(broken("two of its files have one name"));
            }
        }
        let mut package = Self::new(text, files)?;
        if let Some(signature) = signature {
            let image: Image = parse(signature)?;
            let [layer] = &*image.layers else { return Err(broken("its signature is none")) };
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
        let (image, own) = self.image();
        let mut blobs = BTreeMap::new();
        let mut keep = |bytes: &[u8]| {
            blobs.insert(format!("{BLOBS}{}", Digest::of(bytes).digits()), bytes.to_vec());
        };
        keep(self.text.as_bytes());
        keep(&image);
        for content in self.files.values() {
            keep(content);
        }
        let mut manifests = vec![own.clone()];
        if let Some((image, bytes)) = self.signed_image() {
            keep(b"{}");
            keep(&bytes);
            keep(&image);
            manifests.push(Descriptor {
                artifact_type: Some(SIGNATURE.to_owned()),
                ..Descriptor::of(IMAGE, &image)
            });
        }
        let index = json(&Index { schema_version: 2, media_type: INDEX.to_owned(), manifests });
        let rest = [("index.json", &*index), ("oci-layout", LAYOUT)];
        tar::write(blobs.iter().map(|(name, bytes)| (&**name, &**bytes)).chain(rest))
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

    /// Signs it, in the place of whoever signed it before.
    pub fn sign(&mut self, secret: &Secret) {
        self.signature = Some(secret.sign(&self.digest()));
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
            let annotations = [(TITLE.to_owned(), name.clone())].into();
            Descriptor { annotations, ..Descriptor::of(kind, bytes) }
        });
        let Manifest { name, version, publisher, licence, .. } = &self.manifest;
        let note = |key: &str, text: &str| (format!("org.opencontainers.image.{key}"), text.into());
        let image = json(&Image {
            artifact_type: PACKAGE.to_owned(),
            config: Descriptor::of(CONFIG, self.text.as_bytes()),
            layers: layers.collect(),
            annotations: [
                note("title", name),
                note("version", &version.to_string()),
                note("vendor", publisher),
                note("licenses", licence),
            ]
            .into(),
            ..Image::default()
        });
        let own =
            Descriptor { artifact_type: Some(PACKAGE.to_owned()), ..Descriptor::of(IMAGE, &image) };
        (image, own)
    }

    /// The manifest of its signature, and the signature's bytes.
    fn signed_image(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let bytes = self.signature.as_ref()?.to_bytes();
        let image = Image {
            artifact_type: SIGNATURE.to_owned(),
            config: Descriptor::of(EMPTY, b"{}"),
            layers: [Descriptor::of(SIGNATURE, &bytes)].into(),
            subject: Some(self.image().1),
            ..Image::default()
        };
        Some((json(&image), bytes))
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
pub(super) fn parts(image: &[u8]) -> Result<Vec<Descriptor>, PackageError> {
    let image: Image = parse(image)?;
    if image.layers.len() > FILES_MAX {
        return Err(broken("it holds too many files"));
    }
    Ok([image.config].into_iter().chain(image.layers).collect())
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

fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, PackageError> {
    let short = bytes.len() <= MANIFEST_MAX;
    let read = short.then(|| serde_json::from_slice(bytes).ok()).flatten();
    read.ok_or_else(|| broken("its index or its image manifest is not what Synapse writes"))
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
const TITLE: &str = "org.opencontainers.image.title";
const PACKAGE: &str = "application/vnd.synapse.package.v1";
const CONFIG: &str = "application/vnd.synapse.manifest.v1+toml";
pub(super) const SIGNATURE: &str = "application/vnd.synapse.signature.v1";
