//! The servers that another client's configuration names
//!
//! # Not here
//! Starting them; what they may do (a manifest, which a human writes).

use serde::Deserialize;
use std::collections::BTreeMap;

use synapse_kernel::manifest::Start;

/// A file as the common clients have it.
#[derive(Debug, Deserialize)]
struct File {
    #[serde(rename = "mcpServers", alias = "servers")]
    servers: BTreeMap<String, Entry>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    #[serde(default)]
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    url: String,
}

/// A server of such a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Imported {
    /// Its name there.
    pub name: String,
    /// How it is reached. Values of variables are not taken over: they are often secrets.
    pub start: Start,
}

/// Reads a client's configuration file.
///
/// # Errors
/// It is no such file.
pub fn parse(text: &str) -> Result<Vec<Imported>, serde_json::Error> {
    let file: File = serde_json::from_str(text)?;
    let imported = |(name, entry): (String, Entry)| {
        let program = Some(entry.command).filter(|program| !program.is_empty());
        let start = Start {
            command: program.into_iter().chain(entry.args).collect(),
            url: entry.url,
            environment: entry.env.into_keys().collect(),
            ..Start::default()
        };
        Imported { name, start }
    };
    Ok(file.servers.into_iter().map(imported).collect())
}
