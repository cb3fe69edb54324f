//! A start function that can pause: exported, instead of run at once.
//!
//! wasmi runs a start function in one go, in which it can neither wait for the
//! door nor give way to others. So the section that names it is taken out of
//! the module, and the function gets an export of its own to be called by.
//!
//! # Not here
//! Calling it (`turn`), at the moment at which it would have run.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use wasmparser::{BinaryReader, Parser, Payload, Result};

/// A core module without its start section, and the export that stands for it.
pub(crate) struct Started {
    pub(crate) module: Vec<u8>,
    pub(crate) export: String,
}

/// Rewrites a module that has a start function; any other needs no rewriting.
pub(crate) fn exported(module: &[u8]) -> Result<Option<Started>> {
    let Some((start, export)) = find(module)? else { return Ok(None) };
    let mut entry = Vec::new();
    unsigned(&mut entry, export.len());
    entry.extend_from_slice(export.as_bytes());
    entry.push(FUNC);
    entry.extend_from_slice(start);

    let mut out = Vec::with_capacity(module.len().saturating_add(entry.len()));
    let mut exports = Some(entry);
    for payload in Parser::new(0).parse_all(module) {
        let payload = payload?;
        if let Payload::Version { range, .. } = &payload {
            out.extend_from_slice(module.get(range.clone()).unwrap_or_default());
        }
        let Some((id, range)) = payload.as_section() else { continue };
        let content = module.get(range).unwrap_or_default();
        match (id, exports.take()) {
            (EXPORTS, Some(entry)) => {
                let mut reader = BinaryReader::new(content, 0);
                let count = reader.read_var_u32()?;
                let others = content.get(reader.original_position()..).unwrap_or_default();
                section(&mut out, EXPORTS, |out| {
                    unsigned(out, usize::try_from(count).unwrap_or(usize::MAX).saturating_add(1));
                    out.extend_from_slice(others);
                    out.extend_from_slice(&entry);
                });
            }
            // No export section came before it: here is where one belongs.
            (START, Some(entry)) => section(&mut out, EXPORTS, |out| {
                out.push(1);
                out.extend_from_slice(&entry);
            }),
            (START, None) => {}
            (id, waiting) => {
                exports = waiting;
                section(&mut out, id, |out| out.extend_from_slice(content));
            }
        }
    }
    Ok(Some(Started { module: out, export }))
}

/// The start function's index as it is encoded, and a name no export has.
fn find(module: &[u8]) -> Result<Option<(&[u8], String)>> {
    let mut start = None;
    let mut names = BTreeSet::new();
    for payload in Parser::new(0).parse_all(module) {
        match payload? {
            Payload::ExportSection(exports) => {
                for export in exports {
                    names.insert(export?.name);
                }
            }
            Payload::StartSection { range, .. } => start = module.get(range),
            _ => {}
        }
    }
    let mut name = String::from("start");
    while names.contains(name.as_str()) {
        name.push('\'');
    }
    Ok(start.map(|start| (start, name)))
}

fn section(out: &mut Vec<u8>, id: u8, content: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = Vec::new();
    content(&mut bytes);
    out.push(id);
    unsigned(out, bytes.len());
    out.extend_from_slice(&bytes);
}

/// Appends a number as WebAssembly writes it: seven bits a byte, low ones first.
fn unsigned(out: &mut Vec<u8>, mut number: usize) {
    loop {
        let low = u8::try_from(number & 0x7f).unwrap_or_default();
        number >>= 7;
        if number == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

const EXPORTS: u8 = 7;
const START: u8 = 8;
/// The kind of an export that is a function.
const FUNC: u8 = 0;
