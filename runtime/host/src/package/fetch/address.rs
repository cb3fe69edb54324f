//! Where a package comes from, as a person writes it
//!
//! # Not here
//! Going there (`registry`, `web`).

use core::fmt;
use std::ffi::OsStr;
use std::path::PathBuf;

use synapse_boundary::url::Url;

use super::super::{Digest, PackageError};
use super::web::is_here;

/// Where a package comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file or a folder.
    Path(PathBuf),
    /// A file of the web, and the package's digest.
    Web {
        /// Its canonical URL.
        url: String,
        /// What it must be.
        pin: Option<Digest>,
    },
    /// An image of a registry.
    Registry(Image),
}

/// An image of a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    pub(super) authority: String,
    pub(super) repository: String,
    pub(super) tag: Option<String>,
    pub(super) pin: Option<Digest>,
}

impl Source {
    /// Reads a path, `https://…` or `oci://HOST/NAME:TAG`; the latter two may end in
    /// `@sha256:…`.
    ///
    /// # Errors
    /// It begins as the latter two do, and goes on otherwise.
    pub fn parse(text: &OsStr) -> Result<Self, PackageError> {
        let Some(text) = text.to_str() else { return Ok(Self::Path(text.into())) };
        let scheme = text.split_once("://").map(|(scheme, _)| scheme);
        match scheme {
            Some("https" | "http") => {
                let (url, pin) = pinned(text)?;
                web(url, pin)
            }
            Some("oci") => {
                let (rest, pin) = pinned(text.trim_start_matches("oci://"))?;
                Image::read(rest, pin).map(Self::Registry)
            }
            _ => Ok(Self::Path(text.into())),
        }
    }
}

fn web(url: &str, pin: Option<Digest>) -> Result<Source, PackageError> {
    if Url::parse(url).is_err() {
        return Err(wrong(
            url,
            "it is not a URL in its plain form",
            "write the host in lower case, a path, no port that is the usual one, no `#`, and \
             `%20` for a space",
        ));
    }
    Ok(Source::Web { url: url.to_owned(), pin })
}

impl Image {
    /// The same, if it has this digest.
    #[must_use]
    pub fn pinned(&self, digest: Digest) -> Source {
        Source::Registry(Self { pin: Some(digest), ..self.clone() })
    }

    fn read(text: &str, pin: Option<Digest>) -> Result<Self, PackageError> {
        let form = "write oci://HOST/NAME:TAG, or oci://HOST/NAME@sha256:…";
        let (authority, path) =
            text.split_once('/').ok_or_else(|| wrong(text, "no image is named", form))?;
        let (repository, tag) = match path.split_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (path, None),
        };
        if tag.is_none() && pin.is_none() {
            return Err(wrong(text, "neither a tag nor a digest is named", form));
        }
        let sound = repository.len() <= 255
            && repository.split('/').all(is_component)
            && tag.is_none_or(is_tag)
            && Url::parse(&format!("https://{authority}/")).is_ok();
        if !sound {
            return Err(wrong(text, "it is not the name of an image", form));
        }
        Ok(Self {
            authority: authority.to_owned(),
            repository: repository.to_owned(),
            tag: tag.map(ToOwned::to_owned),
            pin,
        })
    }
}

/// The URL of a registry's server: over TLS, unless it is this machine.
pub(super) fn server(authority: &str) -> String {
    let secure = format!("https://{authority}/");
    let here = Url::parse(&secure).is_ok_and(|url| is_here(&url));
    if here { format!("http://{authority}/") } else { secure }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pin = match self {
            Self::Path(path) => return path.display().fmt(f),
            Self::Web { url, pin } => {
                f.write_str(url)?;
                pin
            }
            Self::Registry(Image { authority, repository, tag, pin }) => {
                write!(f, "oci://{authority}/{repository}")?;
                if let Some(tag) = tag {
                    write!(f, ":{tag}")?;
                }
                pin
            }
        };
        pin.map_or(Ok(()), |pin| write!(f, "@{pin}"))
    }
}

/// What stands before a digest at the end, and the digest.
fn pinned(text: &str) -> Result<(&str, Option<Digest>), PackageError> {
    let Some((rest, pin)) = text.rsplit_once("@sha256:") else { return Ok((text, None)) };
    let pin = Digest::parse(&format!("sha256:{pin}"));
    let pin = pin.ok_or_else(|| {
        wrong(text, "what stands behind the `@` is no digest", "it is sha256: and 64 hex digits")
    })?;
    Ok((rest, Some(pin)))
}

fn is_component(part: &str) -> bool {
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = part.as_bytes();
    edge(bytes.first())
        && edge(bytes.last())
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(byte))
}

fn is_tag(tag: &str) -> bool {
    (1..=128).contains(&tag.len())
        && !tag.starts_with(['.', '-'])
        && tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

fn wrong(text: &str, why: &str, todo: &str) -> PackageError {
    PackageError::new(&format!("`{text}` names no package"), why, todo)
}

#[cfg(test)]
mod tests {
    use super::Source;

    fn parse(text: &str) -> Result<Source, String> {
        Source::parse(text.as_ref()).map_err(|why| why.to_string())
    }

    #[test]
    fn what_is_written_is_what_is_named() {
        let pin = format!("@sha256:{}", "0f".repeat(32));
        for text in [
            "https://example.org/a.synapse",
            "http://127.0.0.1:8000/a.synapse",
            "oci://example.org/acme/reader:1.0.0",
            "oci://127.0.0.1:5000/reader:latest",
        ] {
            for text in [text.to_owned(), format!("{text}{pin}")] {
                let source = parse(&text).unwrap();
                assert!(!matches!(source, Source::Path(_)), "{text}");
                assert_eq!(source.to_string(), text);
            }
        }
        assert!(parse(&format!("oci://example.org/reader{pin}")).is_ok());
        for path in ["packages/librarian", "./a.synapse", "ftp://example.org/a", "oci:a", ""] {
            assert!(matches!(parse(path), Ok(Source::Path(_))), "{path}");
        }
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_not_read() {
        for (text, told) in [
            ("https://Example.org/a", "plain form"),
            ("https://example.org", "plain form"),
            ("https://a@example.org/a", "plain form"),
            ("https://example.org/a/../b", "plain form"),
            ("https://example.org/a@sha256:00", "no digest"),
            ("oci://example.org", "no image"),
            ("oci://example.org/reader", "neither a tag nor a digest"),
            ("oci://example.org/Reader:1", "not the name"),
            ("oci://example.org/a/../b:1", "not the name"),
            ("oci://example.org//b:1", "not the name"),
            ("oci://example.org/a:1?x", "not the name"),
            ("oci://Example.org/a:1", "not the name"),
            ("oci://u@example.org/a:1", "not the name"),
        ] {
            let why = parse(text).unwrap_err();
            assert!(why.contains(told), "{text}: {why}");
        }
    }
}
