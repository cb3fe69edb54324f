//! Names that a hurried eye takes for one another.
//!
//! Names of packages and publishers are plain small letters, so that none has two
//! spellings. What is left are letters that look alike and letters that are swapped.
//!
//! # Not here
//! Whether a name is valid (`manifest`).

use alloc::string::String;

/// The known name that this one may be taken for, if there is one and it is not itself.
pub(super) fn of<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known.into_iter().find(|known| {
        *known != name
            && (skeleton(known) == skeleton(name) || near(known.as_bytes(), name.as_bytes()))
    })
}

/// The name as an eye that does not look closely reads it.
fn skeleton(name: &str) -> String {
    let name = name.replace("rn", "m").replace("vv", "w").replace("cl", "d");
    let plain = |char| match char {
        '0' => Some('o'),
        '1' | 'i' | 'j' => Some('l'),
        '5' => Some('s'),
        '3' => Some('e'),
        '-' | '_' | '.' => None,
        other => Some(other),
    };
    name.chars().filter_map(plain).collect()
}

/// Whether one letter more, less, other or swapped makes the two alike.
fn near(a: &[u8], b: &[u8]) -> bool {
    if a.len().min(b.len()) < 4 {
        return false;
    }
    let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (a.get(same..).unwrap_or_default(), b.get(same..).unwrap_or_default());
    let swapped = match (a, b) {
        ([first, second, a @ ..], [third, fourth, b @ ..]) => {
            first == fourth && second == third && a == b
        }
        _ => false,
    };
    let after = |name: &'_ [u8], rest: &[u8]| name.get(1..) == Some(rest);
    swapped || after(a, b) || after(b, a) || a.get(1..).is_some_and(|rest| after(b, rest))
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn look_alikes_are_found() {
        let known = ["librarian", "tidy", "courier"];
        for name in [
            "librar1an", "libranian", "lib-rarian", "iibrarian", "librarians", "librraian", "tldy",
            "t1dy",
        ] {
            assert!(of(name, known).is_some(), "{name}");
        }
        for name in ["librarian", "library-of-babel", "steward", "tie"] {
            assert_eq!(of(name, known), None, "{name}");
        }
        assert_eq!(of("modem", ["modern"]), Some("modern"));
    }
}
