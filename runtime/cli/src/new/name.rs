//! Names that a project may have
//!
//! A project's name is that of its folder, its package and its component.
//!
//! # Not here
//! Whether the folder is free (`new`).

use super::lock;

/// Reads a name, or says what is wrong with it.
pub(super) fn parse(text: &str) -> Result<String, String> {
    let known = |character: char| matches!(character, 'a'..='z' | '0'..='9' | '-');
    if !text.starts_with(|first: char| first.is_ascii_lowercase())
        || !text.chars().all(known)
        || text.len() > LONGEST
    {
        return Err(format!(
            "a name has up to {LONGEST} small letters, digits and hyphens, and begins with a letter"
        ));
    }
    if RESERVED.contains(&text) || lock::names(super::LOCK).any(|name| name == text) {
        return Err("Rust, or a library that agents link, has this name; choose another".to_owned());
    }
    Ok(text.to_owned())
}

const LONGEST: usize = 60;

/// What Cargo accepts as no package's name, or what hides a library of Rust's.
#[rustfmt::skip]
const RESERVED: [&str; 53] = [
    "abstract", "alloc", "as", "async", "await", "become", "box", "break", "build", "const",
    "continue", "core", "crate", "deps", "do", "dyn", "else", "enum", "examples", "extern", "false",
    "final", "fn", "for", "gen", "if", "impl", "in", "incremental", "let", "loop", "macro", "match",
    "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static", "std",
    "struct", "super", "test", "trait", "true", "try", "type", "typeof", "where",
];

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn names_that_cargo_takes_are_taken() {
        for name in ["a", "my-agent", "agent2"] {
            assert_eq!(parse(name).as_deref(), Ok(name));
        }
        for name in ["", "-a", "2a", "A", "a_b", "a/b", "..", ".a", "ä", &"a".repeat(61)] {
            assert!(parse(name).unwrap_err().contains("small letters"), "{name}");
        }
        for name in ["loop", "test", "serde", "synapse-guest"] {
            assert!(parse(name).unwrap_err().contains("has this name"), "{name}");
        }
    }
}
