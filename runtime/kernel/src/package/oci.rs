//! The documents of an OCI image layout, in the one form that Synapse writes.
//!
//! They are written by hand and read by the reader of grants: JSON on one line is TOML but
//! for its colons, and nothing is taken that would not be written so again.
//!
//! # Invariants
//! - A document has one spelling for its content.
//!
//! # Not here
//! Which documents a package has (`layout`).

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use toml::de::DeTable;

use super::digest::Digest;
use crate::grant::shape::{Value, get, integer, items, text};
use crate::grant::{equated, quoted};

/// Something by its digest.
#[derive(Clone, Debug)]
pub struct Descriptor {
    pub(super) media_type: String,
    /// Its digest, as it is written.
    pub digest: String,
    /// How many bytes it has.
    pub size: u64,
    pub(super) artifact_type: Option<&'static str>,
    /// The name of a file.
    pub(super) title: Option<String>,
}

/// An image's manifest.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) artifact_type: &'static str,
    pub(super) config: Descriptor,
    pub(super) layers: Vec<Descriptor>,
    pub(super) subject: Option<Descriptor>,
    /// By their keys, in the order of these.
    pub(super) annotations: Vec<(&'static str, String)>,
}

/// What an image's manifest lists.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) config: Descriptor,
    pub(super) layers: Vec<Descriptor>,
}

impl Descriptor {
    pub(super) fn of(media_type: &str, bytes: &[u8]) -> Self {
        Self {
            media_type: media_type.to_owned(),
            digest: Digest::of(bytes).to_string(),
            size: bytes.len() as u64,
            artifact_type: None,
            title: None,
        }
    }

    fn read(value: &Value<'_>) -> Option<Self> {
        let word = |key| get(value, key)?.get_ref().as_str();
        let title = get(value, "annotations").and_then(|all| get(all, TITLE));
        Some(Self {
            media_type: word("mediaType")?.to_owned(),
            digest: word("digest")?.to_owned(),
            size: u64::try_from(integer(get(value, "size")?)?).ok()?,
            // What it is follows from where it stands, and what is written again says so.
            artifact_type: None,
            title: title.map(|title| text(title).to_owned()),
        })
    }

    fn json(&self) -> String {
        let mut members = format!(
            "\"mediaType\":{},\"digest\":{},\"size\":{}",
            quoted(&self.media_type),
            quoted(&self.digest),
            self.size
        );
        if let Some(kind) = self.artifact_type {
            members.push_str(&format!(",\"artifactType\":{}", quoted(kind)));
        }
        if let Some(title) = &self.title {
            members.push_str(&format!(",\"annotations\":{{{}:{}}}", quoted(TITLE), quoted(title)));
        }
        format!("{{{members}}}")
    }
}

impl Image {
    /// Its bytes.
    pub(super) fn json(&self) -> Vec<u8> {
        let mut json = format!(
            "{{\"schemaVersion\":2,\"mediaType\":{},\"artifactType\":{},\"config\":{},\"layers\":{}",
            quoted(IMAGE),
            quoted(self.artifact_type),
            self.config.json(),
            array(&self.layers)
        );
        if let Some(subject) = &self.subject {
            json.push_str(&format!(",\"subject\":{}", subject.json()));
        }
        if !self.annotations.is_empty() {
            let member = |(key, text): &(&str, String)| format!("{}:{}", quoted(key), quoted(text));
            let all: Vec<String> = self.annotations.iter().map(member).collect();
            json.push_str(&format!(",\"annotations\":{{{}}}", all.join(",")));
        }
        json.push('}');
        json.into_bytes()
    }

    /// What one lists.
    pub(super) fn read(bytes: &[u8]) -> Option<Listed> {
        read(bytes, |value| {
            Some(Listed {
                config: Descriptor::read(get(value, "config")?)?,
                layers: descriptors(get(value, "layers")?)?,
            })
        })
    }
}

/// The bytes of an index of these.
pub(super) fn index(manifests: &[Descriptor]) -> Vec<u8> {
    format!(
        "{{\"schemaVersion\":2,\"mediaType\":{},\"manifests\":{}}}",
        quoted(INDEX),
        array(manifests)
    )
    .into_bytes()
}

/// What an index lists.
pub(super) fn read_index(bytes: &[u8]) -> Option<Vec<Descriptor>> {
    read(bytes, |value| descriptors(get(value, "manifests")?))
}

/// Reads a JSON object, if TOML could have it: one without `null` and without a key twice.
pub(super) fn read<T>(bytes: &[u8], with: impl FnOnce(&Value<'_>) -> Option<T>) -> Option<T> {
    let json = str::from_utf8(bytes).ok().filter(|json| json.starts_with('{'))?;
    let text = format!("document = {}", equated(json));
    let document = DeTable::parse(&text).ok()?.into_inner();
    let (_, value) = document.iter().next().filter(|_| document.len() == 1)?;
    value.get_ref().as_table().and_then(|_| with(value))
}

fn descriptors(value: &Value<'_>) -> Option<Vec<Descriptor>> {
    items(value).iter().map(Descriptor::read).collect()
}

fn array(descriptors: &[Descriptor]) -> String {
    let all: Vec<String> = descriptors.iter().map(Descriptor::json).collect();
    format!("[{}]", all.join(","))
}

/// What an index is.
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// What an image's manifest is.
pub const IMAGE: &str = "application/vnd.oci.image.manifest.v1+json";
pub(super) const EMPTY: &str = "application/vnd.oci.empty.v1+json";
const TITLE: &str = "org.opencontainers.image.title";
