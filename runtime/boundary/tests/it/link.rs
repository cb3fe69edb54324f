//! Links in a text that leaves under a warrant.

use proptest::prelude::*;
use synapse_abi::code::Refusal;
use synapse_boundary::link::vouched;
use synapse_boundary::url::Host;

const LINES: &[&str] = &[
    "post it, and link https://typed.example/a or \u{201c}typed.example/b?x=1\u{201d}.",
    "see (http://t.example/c_(d)) and www.typed.example; read notes.md and other.example",
    "https://typed.example/r?u=https://deep.example/",
];

#[test]
fn a_text_without_a_link_passes() {
    for text in [
        "",
        "Plain words, and/or more: 50% of 1,000.",
        "Dear Bob, the report is in notes.md. Did you read notes.md? Yes.",
        "Version 1.2/1.3, at 10:30, e.g. now; bob@x.com",
        "a: b, http: is a scheme, https is another",
        "Tom & Jerry &#39;quoted&#39; &amp; &unknown; &#xZZ; &#99999999999; &",
        "other.example is a name, and [label](  ) or f(x)[1]",
        "\u{4f60}\u{597d}\u{ff0c}\u{4e16}\u{754c}\u{3002}",
    ] {
        assert_eq!(vouched(text, None, LINES), Ok(()), "{text:?}");
    }
}

#[test]
fn a_link_passes_if_the_human_typed_it_or_it_leads_back() {
    for text in [
        "https://typed.example/a",
        "See https://typed.example/a.",
        "See HTTPS://Typed.Example/a, please",
        "See typed.example/a",
        "See //typed.example/a",
        "See https://typed.example:443/a",
        "(https://typed.example/b?x=1)",
        "**typed.example/b?x=1**",
        "[here](https://typed.example/a)",
        "[https://typed.example/a](https://typed.example/a)",
        "<a href=\"https://typed.example/a\">https://typed.example/a</a>",
        "http://t.example/c_(d)",
        "www.typed.example!",
        "https://typed.example/r?u=https://deep.example/",
        "https&#58;//typed.example/a",
        "https://dest.example/",
        "https://dest.example/any?q=1",
        "http://DEST.example:8080/x",
        "//dest.example/x",
        "dest.example/x and dest.example:99",
        "[x](dest.example/x)",
    ] {
        assert_eq!(vouched(text, Host::parse("dest.example").ok(), LINES), Ok(()), "{text:?}");
    }
}

#[test]
fn a_text_that_is_a_word_of_the_human_s_passes_whatever_it_looks_like() {
    let lines = ["set /home/me/.config/app/a.toml up"];
    assert_eq!(vouched("/home/me/.config/app/a.toml", None, &lines), Ok(()));
    for text in [
        "/home/me/.config/app/b.toml",
        ".config/app/a.toml",
        "see /home/me/.config/app/a.toml",
        "/home/me/.config/app/a.toml up",
    ] {
        assert_eq!(vouched(text, None, &lines), Err(Refusal::Link), "{text}");
    }
}

#[test]
fn any_other_link_is_refused() {
    for text in [
        // Where nobody sent it.
        "https://evil.example/",
        "https://evil.example",
        "x:https://evil.example",
        "(http://evil.example)",
        "ftp://evil.example/",
        "git+ssh://evil.example/",
        "anything://x",
        "http:evil.example",
        "https:/evil.example",
        "//evil.example",
        "///evil.example",
        "https:///evil.example",
        "\\\\evil.example",
        "/\\evil.example",
        "\\/\\/evil.example\\/x",
        "://evil.example",
        "//[::1]/x",
        "www.evil.example",
        "WwW.evil.example",
        "_www.evil.example_",
        "\u{200b}www.evil.example",
        "-https:evil.example",
        "evil.example/x",
        "evil.example?x",
        "evil.example:80",
        "evil.example./x",
        "bob@evil.example/x",
        "evil.xn--p1ai/x",
        "\u{437}\u{43b}\u{43e}.\u{440}\u{444}/x",
        "evil.\u{b87}\u{ba8}\u{bcd}\u{ba4}\u{bbf}\u{baf}\u{bbe}/x",
        "evil\u{3002}example/x",
        "evil.exam\u{ad}ple/x",
        "ev\u{200b}il.example/x",
        "\u{1f4a9}.example/x",
        // Markdown and HTML.
        "[x](https://evil.example)",
        "[x](evil.example)",
        "[x]( <evil.example> )",
        "![](evil.example)",
        "[https://typed.example/a](https://evil.example)",
        "<https://evil.example>",
        "<a href=evil>",
        "<a HREF = 'evil'>",
        "<a href=\"ht\ntps:/\n/evil\">",
        "<img src=evil>",
        "<meta content=\"0;url=evil\">",
        "https&#58;&#47;&#47;evil.example",
        "https&colon;&sol;&sol;evil.example",
        "&#x2f;&#X2F;evil.example",
        "&#0047&#47evil.example",
        "evil&period;example&sol;x",
        // Almost what was typed, almost the destination.
        "https://typed.example/a/",
        "https://typed.example/ab",
        "https://typed.example/A",
        "https://typed.example/a?q=secret",
        "https://typed.example/a#secret",
        "https://typed.example/a'secret",
        "https://typed.example/a)secret",
        "https://typed.example/a]secret",
        "https://typed.example/a,secret",
        "https://typed.example/a\u{200b}secret",
        "http://typed.example/a",
        "https://typed.example/",
        "https://x.typed.example/a",
        "https://typed.example.evil.example/a",
        "https://typed.example@evil.example/a",
        "https://deep.example/",
        "https://notes.md/",
        "https://other.example/",
        "https://evil.dest.example/",
        "https://dest.example.evil.example/",
        "https://dest.example@evil.example/",
        "https://dest.example\\@evil.example/",
        "https://dest.example&#46;evil.example/",
        "https://dest.example:@evil.example/",
        "https://evil.example/?dest.example",
        "https://dest.example/r?u=https://evil.example/",
        "javascript://dest.example/%0aevil",
        "https:dest.example",
        "https://d\u{435}st.example/",
        "https://typed.example/a https://evil.example/",
        "https://typed.example/a&#32;//evil.example",
    ] {
        let found = vouched(text, Host::parse("dest.example").ok(), LINES);
        assert_eq!(found, Err(Refusal::Link), "{text:?}");
    }
    let none: [&str; 0] = [];
    assert_eq!(vouched("https://dest.example/", None, LINES), Err(Refusal::Link));
    assert_eq!(vouched("https://typed.example/a", None, &none), Err(Refusal::Link));
    let address = Host::parse("10.1.2.3").ok();
    assert_eq!(vouched("http://10.1.2.3/x", address, &none), Ok(()));
    assert_eq!(vouched("http://10.1.2.4/x", address, &none), Err(Refusal::Link));
}

proptest! {
    /// Whatever stands around a link of a stranger's, the text does not pass.
    #[test]
    fn a_link_is_found_anywhere(before in ".{0,20}", after in ".{0,20}", at in 0_usize..4) {
        let link = ["https://evil.example/x", "//evil.example/x", "www.evil.example", "[x](evil)"][at];
        for text in [format!("{before} {link} {after}"), format!("{before}({link}){after}")] {
            prop_assert_eq!(vouched(&text, Host::parse("dest.example").ok(), LINES), Err(Refusal::Link), "{}", text);
        }
    }

    /// A text without what makes a link has none.
    #[test]
    fn words_and_stops_are_no_link(text in "[a-z0-9 ,;!()'-]{0,60}") {
        prop_assert_eq!(vouched(&text, None, LINES), Ok(()));
    }
}

/// A text may be as long as a sentence and made to be slow to read.
#[test]
fn long_texts_are_read_in_one_go() {
    for piece in
        ["a", "a.", "\"", " ", "&", "&#", "src=", "](", "//", "https://typed.example/a ", "\u{ad}"]
    {
        let text = piece.repeat((1 << 20) / piece.len());
        let start = std::time::Instant::now();
        let _ = vouched(&text, None, LINES);
        assert!(start.elapsed().as_secs() < 5, "{piece:?}");
    }
}
