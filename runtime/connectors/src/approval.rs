//! What a human approved of a server: its manifest, and the list that it offered
//!
//! # Invariants
//! - An approval is bound to every byte of the manifest and to the whole list: a
//!   change of either needs another.
//!
//! # Not here
//! Asking the human (the command line); holding the list against the server that runs
//! (`board`).

use core::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use synapse_kernel::grant::Notice;
use synapse_kernel::manifest::Manifest;
use synapse_primitives::{hex, unhex};

use crate::list::List;

/// The folder of one server.
#[derive(Clone, Debug)]
pub struct Folder {
    server: String,
    path: PathBuf,
}

/// A server that may be called.
#[derive(Debug)]
pub struct Approved {
    /// What its verbs do.
    pub manifest: Manifest,
    /// The digest of the list that it has to offer.
    pub list: [u8; 32],
}

/// Why a server may not be called.
#[derive(Debug)]
pub enum Unapproved {
    /// There is no such connector.
    Missing,
    /// Its manifest has mistakes.
    Mistakes(Vec<Notice>),
    /// Nobody approved it.
    Never,
    /// Its manifest is another than the approved one.
    Changed,
    /// Its files cannot be read.
    Unread(PathBuf, io::Error),
}

impl fmt::Display for Unapproved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("there is no such connector; see `synapse tools list`"),
            Self::Mistakes(all) => match all.first() {
                Some(first) => write!(f, "{first}"),
                None => f.write_str("its manifest has mistakes; see `synapse tools check`"),
            },
            Self::Never => f.write_str(
                "nobody approved it; read its manifest, then use `synapse tools approve`",
            ),
            Self::Changed => f.write_str(
                "its manifest changed since it was approved; see `synapse tools diff`, then \
                 `synapse tools approve`",
            ),
            Self::Unread(path, why) => {
                write!(f, "cannot read {}: {why}; check its permissions", path.display())
            }
        }
    }
}

impl core::error::Error for Unapproved {}

/// How an approval begins, with its version.
const HEADER: &str = "synapse approval 1";

impl Folder {
    /// That of a server among the settings of all.
    #[must_use]
    pub fn of(tools: &Path, server: &str) -> Self {
        Self { server: server.to_owned(), path: tools.join(server) }
    }

    /// Those that there are, by name.
    ///
    /// # Errors
    /// The folder of all cannot be read.
    pub fn all(tools: &Path) -> io::Result<Vec<Self>> {
        let entries = match fs::read_dir(tools) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names = Vec::new();
        for entry in entries {
            names.extend(entry?.file_name().into_string().ok());
        }
        names.sort();
        let folders = names.iter().map(|name| Self::of(tools, name));
        Ok(folders.filter(|folder| folder.manifest_path().is_file()).collect())
    }

    /// The server's name.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The file that a human edits.
    #[must_use]
    pub fn manifest_path(&self) -> PathBuf {
        self.path.join("manifest.toml")
    }

    /// Writes a first manifest.
    ///
    /// # Errors
    /// There is one, or it cannot be written.
    pub fn add(&self, manifest: &str) -> io::Result<()> {
        fs::create_dir_all(&self.path)?;
        fs::File::create_new(self.manifest_path())?.write_all(manifest.as_bytes())
    }

    /// The manifest as it is now, approved or not.
    ///
    /// # Errors
    /// It is not there, or has mistakes.
    pub fn manifest(&self) -> Result<(String, Manifest), Unapproved> {
        let path = self.manifest_path();
        let text = match fs::read_to_string(&path) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Err(Unapproved::Missing),
            text => text.map_err(|why| Unapproved::Unread(path, why))?,
        };
        let manifest = Manifest::check(&text).map_err(Unapproved::Mistakes)?;
        Ok((text, manifest))
    }

    /// What was approved before: the manifest's text and the list.
    #[must_use]
    pub fn before(&self) -> Option<(String, List)> {
        let text = fs::read_to_string(self.path.join("approved.toml")).ok()?;
        let list = fs::read_to_string(self.path.join("approved.json")).ok()?;
        Some((text, List::parse(&list).ok()?))
    }

    /// Keeps that a human approved this manifest of a server with this list.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn approve(&self, text: &str, manifest: &Manifest, list: &List) -> io::Result<()> {
        self.put("approved.toml", text)?;
        self.put("approved.json", &list.text())?;
        let (manifest, list) = (hex(&manifest.digest), hex(&list.digest()));
        // Last: until then the approval before is the one that holds.
        self.put("approval", &format!("{HEADER}\nmanifest {manifest}\nlist {list}\n"))
    }

    /// What may be called.
    ///
    /// # Errors
    /// It is not approved as it is.
    pub fn approved(&self) -> Result<Approved, Unapproved> {
        let (_, manifest) = self.manifest()?;
        let path = self.path.join("approval");
        let approval = match fs::read_to_string(&path) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Err(Unapproved::Never),
            text => text.map_err(|why| Unapproved::Unread(path, why))?,
        };
        let lines: Vec<&str> = approval.lines().collect();
        let [HEADER, approved, list] = lines[..] else { return Err(Unapproved::Never) };
        let list = list.strip_prefix("list ").and_then(unhex).ok_or(Unapproved::Never)?;
        if approved.strip_prefix("manifest ") != Some(&*hex(&manifest.digest)) {
            return Err(Unapproved::Changed);
        }
        // Its folder is what grants and calls name it by.
        if manifest.server != self.server {
            return Err(Unapproved::Changed);
        }
        Ok(Approved { manifest, list })
    }

    fn put(&self, name: &str, text: &str) -> io::Result<()> {
        replace(&self.path.join(name), text)
    }
}

/// Writes a file whole or not at all.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let part = path.with_extension("part");
    let mut file = fs::File::create(&part)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(part, path)
}
