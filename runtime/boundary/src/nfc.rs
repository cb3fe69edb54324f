//! Normalization Form C of a text, so that one name has one spelling.
//!
//! As Unicode Standard Annex 15 has it, over the library's tables for canonical forms: the
//! library's own iterator brings those for compatibility along, which nothing here reads.
//!
//! # Not here
//! Folding case (`path`, `cite`).

use alloc::borrow::Cow;
use alloc::vec::Vec;

use unicode_normalization::char::{canonical_combining_class, compose, decompose_canonical};

/// The text in its one canonical spelling.
pub(crate) fn nfc(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut parts: Vec<(u8, char)> = Vec::new();
    for char in text.chars() {
        decompose_canonical(char, |part| parts.push((canonical_combining_class(part), part)));
    }
    for marks in parts.split_mut(|(class, _)| *class == 0) {
        marks.sort_by_key(|(class, _)| *class);
    }
    let mut out: Vec<char> = Vec::new();
    // Where the last starter stands, and the class of what stands behind it.
    let (mut starter, mut behind) = (0, None);
    for (class, part) in parts {
        let open = behind.is_none_or(|behind| behind < class);
        let place = out.get_mut(starter).filter(|_| open);
        if let Some(place) = place
            && let Some(both) = compose(*place, part)
        {
            *place = both;
            continue;
        }
        if class == 0 {
            (starter, behind) = (out.len(), None);
        } else {
            behind = Some(class);
        }
        out.push(part);
    }
    Cow::Owned(out.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use proptest::prelude::*;
    use unicode_normalization::UnicodeNormalization as _;

    use super::nfc;

    fn alike(text: &str) -> bool {
        nfc(text).chars().eq(text.nfc())
    }

    #[test]
    fn each_character_comes_to_what_the_library_says() {
        for char in '\0'..=char::MAX {
            let text = String::from_iter(['a', char, '\u{301}', char, '\u{327}']);
            assert!(alike(&text) && alike(&String::from(char)), "{char:?}");
        }
    }

    proptest! {
        #[test]
        fn so_does_each_text(
            text in "[a-eA-Eé\u{300}-\u{345}\u{1100}-\u{1112}\u{1161}-\u{1175}\u{11a7}-\u{11c2}가-힣\u{9be}\u{9c7}\u{f71}-\u{f84}]{0,12}",
            any in "\\PC{0,12}",
        ) {
            prop_assert!(alike(&text) && alike(&any), "{text:?} {any:?}");
        }
    }
}
