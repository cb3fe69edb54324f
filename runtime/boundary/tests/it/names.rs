//! What random worlds and sentences are made of, and how a person would compare
//! it: for these names, not for all.

use core::net::IpAddr;

/// Components of paths, each sound by itself.
pub(crate) const NAMES: &[&str] = &[
    "a", "x", "y.md", "out", "private", "Private", "SOUL.md", "soul.MD", ".GIT", "repo.git",
    "b.pth", ".github", "workflows", "e\u{301}", "\u{e9}", "%2e", ".env", ".ENV", "a b",
];
/// Components that mean nothing, or the directory above.
pub(crate) const STEPS: &[&str] = &["", ".", "..", "..", "../.."];
/// Components that some file system reads as another.
pub(crate) const BAD: &[&str] =
    &["a.", "a ", "a:b", "a\\b", "GIT~1", "a\u{200d}b", "a\u{ad}", "n\n", "\0", "\u{7f}", "..."];

/// Canonical URLs with what they say: host, port, path.
pub(crate) const URLS: &[(&str, &str, u64, &str)] = &[
    ("https://a.example/", "a.example", 443, "/"),
    ("https://a.example/v1", "a.example", 443, "/v1"),
    ("https://a.example/v1?k=%7Bsecret:a%7D", "a.example", 443, "/v1"),
    ("https://a.example/?k=1&k=%7Bsecret:b_9%7D", "a.example", 443, "/"),
    ("https://a.example/?k=x%7Bsecret:a%7D", "a.example", 443, "/"),
    ("https://a.example/%7Bsecret:a%7D?k=%7Bsecret%3Aa%7D", "a.example", 443, "/%7Bsecret:a%7D"),
    ("https://a.example/v1x", "a.example", 443, "/v1x"),
    ("https://a.example:8443/v1/y", "a.example", 8443, "/v1/y"),
    ("http://a.example/v1/", "a.example", 80, "/v1/"),
    ("https://b.example/", "b.example", 443, "/"),
    ("https://x.b.example/v1/z?q=/v2", "x.b.example", 443, "/v1/z"),
    ("https://no.b.example/v1", "no.b.example", 443, "/v1"),
    ("https://xb.example/", "xb.example", 443, "/"),
    ("https://10.1.2.3/v1", "10.1.2.3", 443, "/v1"),
    ("http://10.9.2.3/", "10.9.2.3", 80, "/"),
    ("http://127.0.0.1:8080/", "127.0.0.1", 8080, "/"),
    ("http://169.254.169.254/latest", "169.254.169.254", 80, "/latest"),
    ("https://8.8.8.8/", "8.8.8.8", 443, "/"),
    ("https://[::1]:8443/v1", "[::1]", 8443, "/v1"),
    ("https://[fd00::1]/", "[fd00::1]", 443, "/"),
    ("https://[::ffff:a01:203]/", "[::ffff:a01:203]", 443, "/"),
    ("https://[2606:4700::1111]/", "[2606:4700::1111]", 443, "/"),
];
/// Names of secrets.
pub(crate) const SECRETS: &[&str] = &["a", "b_9"];
/// URLs with another canonical form, or none.
pub(crate) const WRONG_URLS: &[&str] = &[
    "https://A.example/", "https://a.example", "https://a.example:443/", "ftp://a.example/",
    "https://u@a.example/", "https://a.example/#f", "https://a.example/../x",
    "https://a.example/%2f", "https://10.1/", "https://[::ffff:10.1.2.3]/", "https:///", "", "/",
];
/// Canonical hosts.
pub(crate) const HOSTS: &[&str] = &[
    "a.example", "x.b.example", "no.b.example", "127.0.0.1", "10.1.2.3", "8.8.8.8", "[::1]",
    "[fd00::1]", "[2606:4700::1111]",
];
/// Hosts with another canonical form, or none.
pub(crate) const WRONG_HOSTS: &[&str] =
    &["A.example", "a.example.", "127.1", "0x7f.0.0.1", "::1", "[::0001]", "", "a b"];
/// Patterns of network entries.
pub(crate) const NETS: &[&str] = &[
    "a.example", "a.example", "*.b.example", "*.example", "no.b.example", "10.0.0.0/8",
    "10.1.0.0/16", "8.0.0.0/6", "0.0.0.0/0", "127.0.0.1", "[::1]", "[::]/0", "[fc00::]/6",
    "[fd00::]/8", "[2606::]/16", "[::ffff:a00:0]/104", "169.254.169.254",
];
/// The blocks that make some of the addresses above not globally reachable.
const SPECIAL: &[&str] = &["10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "[::1]", "[fc00::]/7"];

/// The components that a path comes to, or its defect.
pub(crate) fn normal(path: &str) -> Result<Vec<String>, u16> {
    let rest = path.strip_prefix('/').ok_or(403_u16)?;
    if path.len() > 4096 {
        return Err(406);
    }
    let mut components = Vec::new();
    for name in rest.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(components.pop().ok_or(404_u16)?),
            _ if name.len() > 255 => return Err(406),
            _ if BAD.contains(&name) => return Err(405),
            _ => components.push(name.to_owned()),
        }
        if components.len() > 64 {
            return Err(406);
        }
    }
    Ok(components)
}

/// The components of a path or a pattern as they stand.
pub(crate) fn split(path: &str) -> Vec<String> {
    path.split('/').filter(|name| !name.is_empty()).map(Into::into).collect()
}

/// Names as deny entries and the list of protected names compare them.
pub(crate) fn folded(path: &[String]) -> Vec<String> {
    path.iter().map(|name| name.to_lowercase().replace("e\u{301}", "\u{e9}")).collect()
}

/// Whether a path pattern covers a path.
pub(crate) fn covers(pattern: &[String], path: &[String]) -> bool {
    match pattern {
        [head @ .., last] if last == "**" => path.starts_with(head),
        [head @ .., last] if last == "*" => path.starts_with(head) && path.len() == head.len() + 1,
        _ => path == pattern,
    }
}

/// Whether the path is, or lies below, a protected name.
pub(crate) fn is_protected(path: &[String]) -> bool {
    let path = folded(path);
    let protected = |name: &String| ["soul.md", ".git", "repo.git", "b.pth"].contains(&&**name);
    path.iter().any(protected)
        || path.windows(2).any(|pair| pair == [".github", "workflows"])
        || path.last().is_some_and(|last| last == ".github")
}

/// Where something goes: host, port and URL path.
pub(crate) type Place<'a> = (&'a str, u64, Option<&'a str>);

/// The place of a URL that was held, which may be none.
pub(crate) fn url(text: &str) -> Result<Place<'static>, u16> {
    match URLS.iter().find(|(url, ..)| *url == text) {
        Some((_, host, port, path)) => Ok((host, *port, Some(path))),
        None => Err(409),
    }
}

/// The place of a host that was held, which may be none, and a port.
pub(crate) fn listener(text: &str, port: u64) -> Result<Place<'_>, u16> {
    // The name of a file may be that of a host.
    let letters = |label: &str| !label.is_empty() && label.bytes().all(|b| b.is_ascii_lowercase());
    let is_host = HOSTS.contains(&text) || text.split('.').all(letters);
    let found = is_host.then_some((text, port, None));
    found.ok_or(409)
}

/// Whether a URL path lies below a prefix, by whole segments.
pub(crate) fn is_below(path: &str, prefix: &str) -> bool {
    path == prefix || path.starts_with(&format!("{}/", prefix.trim_end_matches('/')))
}

/// Whether a host pattern covers a host, and by how many bits of an address.
pub(crate) fn host_within(pattern: &str, host: &str) -> Option<u32> {
    if let Some(suffix) = pattern.strip_prefix('*') {
        return host.ends_with(suffix).then_some(128);
    }
    let (network, length) = pattern.split_once('/').unwrap_or((pattern, ""));
    match (address(network), address(host)) {
        (None, None) => (pattern == host).then_some(128),
        (Some(network), Some(host)) => {
            let ours = if pattern.starts_with('[') { 0 } else { 96 };
            let length = length.parse().map_or(128, |length: u32| length + ours);
            (0..length).all(|bit| (network ^ host) >> (127 - bit) & 1 == 0).then_some(length)
        }
        _ => None,
    }
}

/// How many bits an allow entry must fix to name a host: those of the block
/// that makes it not globally reachable.
pub(crate) fn bits_to_name(host: &str) -> u32 {
    SPECIAL.iter().filter_map(|block| host_within(block, host)).max().unwrap_or(0)
}

fn address(host: &str) -> Option<u128> {
    match host.trim_matches(['[', ']']).parse().ok()? {
        IpAddr::V4(address) => Some(address.to_ipv6_mapped().to_bits()),
        IpAddr::V6(address) => Some(address.to_bits()),
    }
}

/// Whether a text is what a pattern with at most one `*` says.
pub(crate) fn like(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => {
            let run = text.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            let word = |char: char| char.is_alphanumeric() || "._+-".contains(char);
            run.is_some_and(|run| run.chars().all(word) && !run.contains(".."))
        }
    }
}

/// Headers that say where a request goes, where it ends or what it asks.
pub(crate) const FRAMING: &[&str] =
    &["host", "te", "content-length", "x-http-method-override", "-method", "upgrade", "connection"];

/// What the name of a header is made of.
pub(crate) const TOKEN: &str =
    "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
