//! Licences, sources and wildcards of every locked dependency
//!
//! The part of `cargo deny` that needs no network, over the same `deny.toml`:
//! installing that tool takes longer than every other check, and a check that
//! is not installed is a check that is skipped.
//!
//! # Not here
//! Advisories and yanked versions (`advisories`), double versions (`cargo deny check`).

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::step::{Failure, metadata, root, text};

/// Checks the lock file's packages, and tells every breach at once.
pub(crate) fn run() -> Result<(), Failure> {
    let path = root().join("deny.toml");
    let allowed = fs::read_to_string(&path)
        .map_err(|why| why.to_string())
        .and_then(|text| allow_list(&text))
        .map_err(|why| format!("`{}` cannot be used: {why}\ncorrect it", path.display()))?;
    let metadata = metadata()?;
    let (count, breaches) = check(&metadata, &allowed, root())?;
    if breaches.is_empty() {
        println!("{count} packages: licences, sources and versions are as deny.toml wants");
        return Ok(());
    }
    Err(format!("{}\nuse another dependency, or change deny.toml", breaches.join("\n")))
}

fn allow_list(text: &str) -> Result<BTreeSet<String>, String> {
    let table: toml::Table = toml::from_str(text).map_err(|why| why.to_string())?;
    let list = table.get("licenses").and_then(|licenses| licenses.get("allow"));
    let list = list.and_then(toml::Value::as_array).ok_or("licenses.allow is not a list")?;
    list.iter()
        .map(|name| name.as_str().map(str::to_owned).ok_or_else(|| format!("{name:?} is no text")))
        .collect()
}

fn check(
    metadata: &Value,
    allowed: &BTreeSet<String>,
    root: &Path,
) -> Result<(usize, Vec<String>), Failure> {
    let packages = metadata.get("packages").and_then(Value::as_array);
    let packages = packages.ok_or("cargo described the dependencies in no known form")?;
    let mut breaches = Vec::new();
    for package in packages {
        let name = format!("{} {}", text(package, "name"), text(package, "version"));
        let licence = text(package, "license");
        if !satisfied(licence, allowed) {
            breaches.push(format!("{name}: the licence `{licence}` is not allowed"));
        }
        let manifest = text(package, "manifest_path");
        match package.get("source").and_then(Value::as_str) {
            None if Path::new(manifest).starts_with(root) => {}
            None => breaches.push(format!("{name}: it stands outside of the project")),
            Some(source) if source.starts_with("registry+") => {}
            Some(source) => breaches.push(format!("{name}: the source `{source}` is no registry")),
        }
        for needed in package.get("dependencies").and_then(Value::as_array).into_iter().flatten() {
            let target = text(needed, "name");
            // Cargo names a registry only where it is not the default one.
            if !needed.get("registry").is_none_or(Value::is_null) {
                breaches.push(format!("{name}: `{target}` comes from another registry"));
            }
            let by_path = needed.get("path").is_some_and(Value::is_string);
            if text(needed, "req") == "*"
                && !by_path
                && package.get("source").is_some_and(Value::is_null)
            {
                breaches.push(format!("{name}: `{target}` may be of any version"));
            }
        }
    }
    Ok((packages.len(), breaches))
}

/// Whether an SPDX expression can be satisfied by allowed licences alone.
fn satisfied(expression: &str, allowed: &BTreeSet<String>) -> bool {
    // The old spelling of OR.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    any(&mut words, allowed) == Some(true) && words.next().is_none()
}

type Words<'a> = core::iter::Peekable<core::str::SplitWhitespace<'a>>;

/// `all (OR all)*`; `None` is an expression with a fault in it.
fn any(words: &mut Words<'_>, allowed: &BTreeSet<String>) -> Option<bool> {
    let mut result = all(words, allowed)?;
    while words.next_if_eq(&"OR").is_some() {
        result |= all(words, allowed)?;
    }
    Some(result)
}

/// `one (AND one)*`.
fn all(words: &mut Words<'_>, allowed: &BTreeSet<String>) -> Option<bool> {
    let mut result = one(words, allowed)?;
    while words.next_if_eq(&"AND").is_some() {
        result &= one(words, allowed)?;
    }
    Some(result)
}

/// A licence, one with an exception, or an expression in parentheses.
fn one(words: &mut Words<'_>, allowed: &BTreeSet<String>) -> Option<bool> {
    let word = words.next()?;
    if word == "(" {
        let result = any(words, allowed)?;
        return words.next_if_eq(&")").map(|_| result);
    }
    if words.next_if_eq(&"WITH").is_some() {
        let exception = words.next()?;
        return Some(allowed.contains(&format!("{word} WITH {exception}")));
    }
    Some(allowed.contains(word))
}

#[cfg(test)]
mod tests {
    use super::{allow_list, check, satisfied};
    use std::path::Path;

    const DENY: &str = r#"[licenses]
        allow = ["MIT", "Apache-2.0 WITH LLVM-exception", "Unicode-3.0"]"#;

    #[test]
    fn expression_is_satisfied_by_allowed_licences_alone() {
        let allowed = allow_list(DENY).unwrap();
        for good in [
            "MIT",
            "MIT OR GPL-3.0",
            "GPL-3.0/MIT",
            "(MIT OR GPL-3.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-3.0",
            "GPL-3.0 AND BSD-3-Clause OR MIT",
        ] {
            assert!(satisfied(good, &allowed), "{good}");
        }
        for bad in [
            "", "GPL-3.0", "MIT AND GPL-3.0", "Apache-2.0", "(MIT", "MIT)", "MIT MIT", "OR MIT",
            "(GPL-3.0 OR MIT) AND GPL-3.0",
        ] {
            assert!(!satisfied(bad, &allowed), "{bad}");
        }
    }

    #[test]
    fn every_kind_of_breach_is_told() {
        let metadata = serde_json::json!({"packages": [
            {"name": "own", "version": "1.0.0", "license": "MIT", "source": null,
             "manifest_path": "/p/own/Cargo.toml", "dependencies": [
                {"name": "near", "req": "*", "path": "/p/near"},
                {"name": "loose", "req": "*"},
                {"name": "far", "req": "^1", "registry": "elsewhere"}]},
            {"name": "copied", "version": "1.0.0", "license": "MIT", "source": null,
             "manifest_path": "/elsewhere/Cargo.toml"},
            {"name": "cloned", "version": "1.0.0", "license": "MIT", "source": "git+somewhere",
             "manifest_path": "/c/Cargo.toml"},
            {"name": "free", "version": "1.0.0", "license": "GPL-3.0", "source": "registry+it",
             "manifest_path": "/r/Cargo.toml"}]});
        let (count, breaches) =
            check(&metadata, &allow_list(DENY).unwrap(), Path::new("/p")).unwrap();
        assert_eq!(count, 4);
        assert_eq!(
            breaches,
            [
                "own 1.0.0: `loose` may be of any version",
                "own 1.0.0: `far` comes from another registry",
                "copied 1.0.0: it stands outside of the project",
                "cloned 1.0.0: the source `git+somewhere` is no registry",
                "free 1.0.0: the licence `GPL-3.0` is not allowed",
            ]
        );
    }
}
