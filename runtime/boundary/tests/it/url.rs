//! Hosts and URLs: every spelling that a network or a reader could take for
//! another, each with what the door makes of it.

use synapse_abi::code::Refusal;
use synapse_boundary::url::{Host, Scheme, Url};

#[test]
fn i11_a_host_has_one_spelling() {
    let long = ["a".repeat(63), "b".repeat(63), "c".repeat(63)].join(".");
    let longest = format!("{long}.{}", "d".repeat(61));
    for (host, expected) in [
        // Names.
        ("example.org", "name"),
        ("a", "name"),
        ("a-b.c--d.e1", "name"),
        ("1a.2b", "name"),
        ("123.abc", "name"),
        ("xn--bcher-kva.example", "name"),
        ("localhost", "name"),
        (&longest, "name"),
        (&format!("{longest}d"), NO),
        (&"a".repeat(64), NO),
        ("", NO),
        (".", NO),
        ("a.", NO),
        (".a", NO),
        ("a..b", NO),
        ("Example.org", NO),
        ("XN--BCHER-KVA.example", NO),
        ("bücher.example", NO),
        ("ｅｘａｍｐｌｅ.org", NO),
        ("example。org", NO),
        ("exam\u{ad}ple.org", NO),
        ("-a.org", NO),
        ("a-.org", NO),
        ("a_b.org", NO),
        ("a b", NO),
        ("a\tb", NO),
        ("a\0", NO),
        ("a%2Eb", NO),
        ("*.example.org", NO),
        ("user@example.org", NO),
        ("example.org:80", NO),
        ("a/b", NO),
        ("a\\b", NO),
        // IPv4: dotted decimal alone.
        ("127.0.0.1", "127.0.0.1"),
        ("0.0.0.0", "0.0.0.0"),
        ("255.255.255.255", "255.255.255.255"),
        ("256.0.0.1", NO),
        ("2130706433", NO),
        ("0x7f000001", NO),
        ("0x7f.0.0.1", NO),
        ("127.0.0.0x1", NO),
        ("127.0.0.0X1", NO),
        ("0x", NO),
        ("a.0x", NO),
        ("0177.0.0.1", NO),
        ("127.0.0.01", NO),
        ("127.1", NO),
        ("127.0.1", NO),
        ("0", NO),
        ("a.1", NO),
        ("1.2.3.4.5", NO),
        ("127.0.0.1.", NO),
        ("１２７.0.0.1", NO),
        ("+1.2.3.4", NO),
        // Digits and letters that no resolver reads as a number.
        ("1.2.3.4e5", "name"),
        ("1.2.3.0xg", "name"),
        // IPv6: in brackets, as RFC 5952 writes it.
        ("[::1]", "::1"),
        ("[::]", "::"),
        ("[2001:db8::1:0:0:1]", "2001:db8::1:0:0:1"),
        ("[2001:db8:0:1:1:1:1:1]", "2001:db8:0:1:1:1:1:1"),
        ("[::ffff:7f00:1]", "::ffff:127.0.0.1"),
        ("[64:ff9b::7f00:1]", "64:ff9b::7f00:1"),
        ("[::7f00:1]", "::7f00:1"),
        ("[fe80::1]", "fe80::1"),
        ("[::ffff:127.0.0.1]", NO),
        ("[64:ff9b::127.0.0.1]", NO),
        ("[::127.0.0.1]", NO),
        ("[0:0:0:0:0:0:0:1]", NO),
        ("[2001:db8:0:0:1:0:0:1]", NO),
        ("[2001:db8:0:0:1::1]", NO),
        ("[2001:db8::1:1:1:1:1]", NO),
        ("[2001:DB8::1]", NO),
        ("[2001:0db8::1]", NO),
        ("[::00]", NO),
        ("[fe80::1%eth0]", NO),
        ("[fe80::1%25eth0]", NO),
        ("::1", NO),
        ("[::1", NO),
        ("::1]", NO),
        ("[[::1]]", NO),
        ("[]", NO),
        ("[1.2.3.4]", NO),
        ("[v1.a]", NO),
        ("[::1]a", NO),
        ("[::1 ]", NO),
    ] {
        assert_eq!(read_host(Host::parse(host), host), expected, "{host:?}");
    }
}

#[test]
fn i11_a_url_has_one_spelling() {
    for (url, expected) in [
        // The parts of a good one.
        ("https://example.org/", "https name 443 /"),
        ("http://example.org/", "http name 80 /"),
        ("https://example.org:8443/a/b", "https name 8443 /a/b"),
        ("http://example.org:443/", "http name 443 /"),
        ("https://example.org:80/", "https name 80 /"),
        ("https://127.0.0.1:1/", "https 127.0.0.1 1 /"),
        ("https://[::1]:65535/", "https ::1 65535 /"),
        ("https://[::1]/", "https ::1 443 /"),
        ("https://a/b?c=d&e=/?:@", "https name 443 /b ? c=d&e=/?:@"),
        ("https://a/?", "https name 443 / ? "),
        // Schemes.
        ("ftp://a/", NO),
        ("HTTPS://a/", NO),
        ("https:/a/", NO),
        ("https:a/", NO),
        ("//a/", NO),
        ("a/", NO),
        ("", NO),
        ("https://", NO),
        (" https://a/", NO),
        ("https://a/ ", NO),
        ("file:///etc/passwd", NO),
        ("javascript://a/", NO),
        // Authority.
        ("https:///", NO),
        ("https://a", NO),
        ("https://a?b", NO),
        ("https://a#b", NO),
        ("https://user@a/", NO),
        ("https://user:pass@a/", NO),
        ("https://@a/", NO),
        ("https://a@b@c/", NO),
        ("https://A/", NO),
        ("https://a./", NO),
        ("https://a%2Eb/", NO),
        ("https://a\\b/", NO),
        ("https:\\\\a/", NO),
        ("https://a b/", NO),
        ("https://2130706433/", NO),
        ("https://0x7f.1/", NO),
        ("https://[::ffff:127.0.0.1]/", NO),
        ("https://::1/", NO),
        ("https://[::1/", NO),
        ("https://::1]/", NO),
        // Ports.
        ("https://a:443/", NO),
        ("http://a:80/", NO),
        ("https://a:/", NO),
        ("https://a:0/", NO),
        ("https://a:65536/", NO),
        ("https://a:08443/", NO),
        ("https://a:+1/", NO),
        ("https://a:-1/", NO),
        ("https://a:1:2/", NO),
        ("https://a:x/", NO),
        ("https://:1/", NO),
        ("https://a:１/", NO),
        // Dot segments, however they are spelled.
        ("https://a/.", NO),
        ("https://a/..", NO),
        ("https://a/./b", NO),
        ("https://a/b/../c", NO),
        ("https://a/%2e", NO),
        ("https://a/%2E", NO),
        ("https://a/%2E%2E/b", NO),
        ("https://a/.%2E/b", NO),
        ("https://a/%2E./b", NO),
        ("https://a/.%2e/b", NO),
        ("https://a/...", "https name 443 /..."),
        ("https://a/.b/c..", "https name 443 /.b/c.."),
        ("https://a/?../..", "https name 443 / ? ../.."),
        ("https://a//b", "https name 443 //b"),
        // Escapes.
        ("https://a/%20", "https name 443 /%20"),
        ("https://a/%2F", "https name 443 /%2F"),
        ("https://a/%2f", NO),
        ("https://a/%c3%A9", NO),
        ("https://a/%C3%A9", "https name 443 /%C3%A9"),
        ("https://a/%", NO),
        ("https://a/%4", NO),
        ("https://a/%G0", NO),
        ("https://a/%u0041", NO),
        ("https://a/?%2f", NO),
        // What needs an escape and has none.
        ("https://a/b c", NO),
        ("https://a/b?c d", NO),
        ("https://a/é", NO),
        ("https://a/b\\c", NO),
        ("https://a/b\tc", NO),
        ("https://a/b\nc", NO),
        ("https://a/\0", NO),
        ("https://a/\u{7f}", NO),
        ("https://a/<", NO),
        ("https://a/\"", NO),
        ("https://a/{}", NO),
        ("https://a/`", NO),
        ("https://a/^", NO),
        ("https://a/?\"", NO),
        ("https://a/?<>", NO),
        // Fragments never leave the machine.
        ("https://a/#", NO),
        ("https://a/b#c", NO),
        ("https://a/?b#c", NO),
    ] {
        assert_eq!(read_url(url), expected, "{url:?}");
    }
}

/// Refused as not canonical.
const NO: &str = "not canonical";

fn read_host(host: Result<Host<'_>, Refusal>, written: &str) -> String {
    match host {
        Ok(Host::Name(name)) => {
            assert_eq!(name.as_str(), written);
            "name".to_owned()
        }
        Ok(Host::V4(address)) => address.to_string(),
        Ok(Host::V6(address)) => address.to_string(),
        Err(refusal) => {
            assert_eq!(refusal, Refusal::NotCanonical);
            NO.to_owned()
        }
    }
}

fn read_url(text: &str) -> String {
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(refusal) => {
            assert_eq!(refusal, Refusal::NotCanonical);
            return NO.to_owned();
        }
    };
    let scheme = match url.scheme() {
        Scheme::Http => "http",
        Scheme::Https => "https",
    };
    let host = match url.host() {
        Host::Name(name) => read_host(Ok(url.host()), name.as_str()),
        Host::V4(_) | Host::V6(_) => read_host(Ok(url.host()), ""),
    };
    let query = url.query().map(|query| format!(" ? {query}")).unwrap_or_default();
    format!("{scheme} {host} {} {}{query}", url.port(), url.path())
}
