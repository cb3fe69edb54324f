//! The documents of an OCI image layout, in the one form that Synapse writes.
//!
//! # Invariants
//! - Keys stand in the order of these types, and no other key is read.
//!
//! # Not here
//! Which documents a package has (`layout`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::digest::Digest;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Index {
    pub(super) schema_version: u64,
    pub(super) media_type: String,
    pub(super) manifests: Vec<Descriptor>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Image {
    pub(super) schema_version: u64,
    pub(super) media_type: String,
    pub(super) artifact_type: String,
    pub(super) config: Descriptor,
    pub(super) layers: Vec<Descriptor>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) subject: Option<Descriptor>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) annotations: BTreeMap<String, String>,
}

impl Default for Image {
    fn default() -> Self {
        Self {
            schema_version: 2,
            media_type: IMAGE.to_owned(),
            artifact_type: String::new(),
            config: Descriptor::of(EMPTY, b"{}"),
            layers: Vec::new(),
            subject: None,
            annotations: BTreeMap::new(),
        }
    }
}

/// Something by its digest.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Descriptor {
    pub(super) media_type: String,
    pub(super) digest: String,
    pub(super) size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) artifact_type: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) annotations: BTreeMap<String, String>,
}

impl Descriptor {
    pub(super) fn of(media_type: &str, bytes: &[u8]) -> Self {
        Self {
            media_type: media_type.to_owned(),
            digest: Digest::of(bytes).to_string(),
            size: bytes.len() as u64,
            artifact_type: None,
            annotations: BTreeMap::new(),
        }
    }
}

/// A document's bytes.
pub(super) fn json(value: &impl Serialize) -> Vec<u8> {
    // Maps with text keys and numbers: nothing in them has no JSON.
    serde_json::to_vec(value).unwrap_or_default()
}

pub(super) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub(super) const IMAGE: &str = "application/vnd.oci.image.manifest.v1+json";
pub(super) const EMPTY: &str = "application/vnd.oci.empty.v1+json";
