//! The task line: which pages, which folder, which address.
//!
//! # Not here
//! Whether the line names them well enough for the door (`synapse-boundary`).

use alloc::vec::Vec;

/// What a line asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan<'t> {
    pub(crate) pages: Vec<&'t str>,
    pub(crate) folder: &'t str,
    pub(crate) post: Option<&'t str>,
}

/// What can be said.
pub(crate) const SAYS: &str = "fetch https://a.example/ and https://b.example/news, keep the \
                               digest in /data/news and post it to https://c.example/in";

/// Reads a line: URLs are pages, but the one after `post`; a path is the folder.
pub(crate) fn parse(line: &str) -> Option<Plan<'_>> {
    let (mut pages, mut folder, mut post, mut posting) = (Vec::new(), None, None, false);
    for word in line.split_whitespace().map(|word| word.trim_end_matches(['.', ',', ';'])) {
        if word.starts_with("http://") || word.starts_with("https://") {
            if posting {
                post = Some(word);
            } else {
                pages.push(word);
            }
        } else if word.starts_with('/') {
            folder = folder.or(Some(word.trim_end_matches('/')));
        }
        posting |= word.eq_ignore_ascii_case("post");
    }
    let folder = folder?;
    (!pages.is_empty()).then_some(Plan { pages, folder, post })
}
