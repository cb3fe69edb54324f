//! Words with which people ask for an effect.
//!
//! A warrant for a pattern, or for a selector without a literal, needs one of
//! these in the human's line. Plain English, few, one primitive a line.
//!
//! # Not here
//! A connector's verbs: their manifests say what people say.

use crate::registry::Primitive;

/// The words of each primitive that has some, in lower case.
const SAYS: &[(Primitive, &[&str])] = &[
    (Primitive::FsWrite, &["write", "save", "create", "overwrite", "replace", "append", "update"]),
    (Primitive::FsEdit, &["edit", "change", "correct", "fix", "replace", "rewrite", "update"]),
    (Primitive::FsMove, &["move", "rename", "archive", "mv"]),
    (Primitive::FsDelete, &["delete", "remove", "erase", "discard", "purge", "rm"]),
    (Primitive::NetListen, &["listen", "serve"]),
    (Primitive::NetHttpGet, &["get", "fetch", "download"]),
    (Primitive::NetHttpPost, &["post", "send", "submit", "upload"]),
];

impl Primitive {
    /// The words with which people ask for it.
    pub fn says(self) -> &'static [&'static str] {
        SAYS.iter().find(|(primitive, _)| *primitive == self).map_or(&[], |(_, words)| words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::REGISTRY;

    #[test]
    fn what_takes_a_warrant_has_words_or_a_manifest_that_does() {
        for row in &REGISTRY {
            let verb = matches!(row.primitive, Primitive::ToolUse | Primitive::ToolCommit);
            let has = !row.primitive.says().is_empty();
            assert_eq!(has, row.primitive.takes_warrant() && !verb, "{}", row.name);
        }
        for (_, words) in SAYS {
            for word in *words {
                assert!(word.bytes().all(|byte| byte.is_ascii_lowercase()), "{word}");
            }
        }
    }
}
