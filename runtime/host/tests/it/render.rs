//! The renderer shows everything and obeys nothing.

use synapse_host::render::{block, escape, is_hidden, line, wrapped};

#[test]
fn each_kind_of_trick_is_seen() {
    let table: &[(&[u8], &str)] = &[
        (b"plain text, 100 %", "plain text, 100 %"),
        ("Grüße, 日本, 🙂".as_bytes(), "Grüße, 日本, 🙂"),
        (b"\x1b[2J", "\\u{1b}[2J"),
        (b"a\nb\tc\rd\0", "a\\u{a}b\\u{9}c\\u{d}d\\u{0}"),
        ("\u{9b}31m".as_bytes(), "\\u{9b}31m"),
        ("gpj.\u{202e}exe".as_bytes(), "gpj.\\u{202e}exe"),
        ("\u{2066}a\u{2069}".as_bytes(), "\\u{2066}a\\u{2069}"),
        ("pay\u{200b}pal".as_bytes(), "pay\\u{200b}pal"),
        ("\u{feff}x\u{2060}".as_bytes(), "\\u{feff}x\\u{2060}"),
        ("\u{e0041}\u{e007f}".as_bytes(), "\\u{e0041}\\u{e007f}"),
        ("a\u{fe0f}\u{e0100}".as_bytes(), "a\\u{fe0f}\\u{e0100}"),
        ("\u{2028}\u{2029}".as_bytes(), "\\u{2028}\\u{2029}"),
        ("\u{e000}\u{10ffff}".as_bytes(), "\\u{e000}\\u{10ffff}"),
        (b"a\xff\xc3", "a\\xff\\xc3"),
        (b"\xe2\x80", "\\xe2\\x80"),
        (b"", ""),
    ];
    for (bytes, shown) in table {
        assert_eq!(&escape(bytes), shown);
        assert!(!escape(bytes).chars().any(is_hidden));
    }
}

#[test]
fn every_line_of_a_block_stands_behind_the_column() {
    for (text, shown) in [
        ("", ""),
        ("one", "│ one\n"),
        ("one\n", "│ one\n"),
        ("one\n\n│ two", "│ one\n│ \n│ │ two\n"),
        ("a\rb", "│ a\\u{d}b\n"),
        ("\n", "│ \n"),
    ] {
        assert_eq!(block(text), shown);
    }
}

#[test]
fn a_line_that_a_terminal_would_wrap_keeps_the_column() {
    assert_eq!(wrapped("0123456789abcdef", 12), "│ 0123456789\n│ abcdef\n");
    // A wide character counts as two columns, and an escape is not divided.
    assert_eq!(wrapped("日本日本日本", 12), "│ 日本日本日\n│ 本\n");
    assert_eq!(wrapped("abc\u{202e}", 12), "│ abc\n│ \\u{202e}\n");
}

#[test]
fn a_line_is_cut_between_pieces() {
    for (max, shown) in
        [(0, ""), (1, "…"), (3, "ab…"), (5, "ab…"), (10, "ab…"), (11, "ab\\u{202e}c")]
    {
        assert_eq!(line("ab\u{202e}c", max), shown, "{max}");
    }
    assert_eq!(line("abc", 3), "abc");
    assert_eq!(line("abcd", 3), "ab…");
    assert_eq!(line("", 0), "");
}
