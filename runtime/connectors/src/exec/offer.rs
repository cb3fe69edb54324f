//! What lines run: the programs' files, as they are now
//!
//! It stands where a server's list would: an approval is bound to it, and it is held
//! against that again before each line.
//!
//! # Not here
//! What a program loads besides (its folders are in the manifest).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};

use serde_json::json;
use sha2::{Digest as _, Sha256};
use synapse_kernel::manifest::Manifest;
use synapse_primitives::hex;

use crate::list::{List, Offer};

/// The lines of a manifest and the digests of their programs.
///
/// # Errors
/// A program is not there, in words.
pub fn offers(manifest: &Manifest) -> Result<List, String> {
    let mut known: BTreeMap<&str, String> = BTreeMap::new();
    let mut tools = Vec::new();
    for verb in &manifest.verbs {
        let program = verb.line.first().map_or("", String::as_str);
        if !known.contains_key(program) {
            let digest = digest(program).map_err(|why| {
                format!(
                    "the program {program} of verb `{}` cannot be read: {why}; install it, or \
                     correct the line",
                    verb.name
                )
            })?;
            known.insert(program, digest);
        }
        let digest = known.get(program).map_or("", String::as_str);
        tools.push(Offer {
            name: verb.tool.clone(),
            description: format!("runs {program}, sha256:{digest}"),
            rest: json!({ "line": verb.line }),
        });
    }
    tools.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(List { tools })
}

fn digest(program: &str) -> io::Result<String> {
    let mut digest = Sha256::new();
    let (mut file, mut part) = (File::open(program)?, vec![0; 1 << 16]);
    while let length @ 1.. = file.read(&mut part)? {
        digest.update(part.get(..length).unwrap_or_default());
    }
    Ok(hex(&digest.finalize()))
}
