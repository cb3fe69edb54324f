//! Grants as they are read: hosts, tools, clearances, warnings, any text at all.

use proptest::prelude::*;
use synapse_abi::code::Refusal;
use synapse_boundary::scope::{Decimal, Effect, Limit, Method, Pattern, Place, Terms};
use synapse_boundary::url::Url;
use synapse_boundary::{NormalPath, Rights, Scope, Secrecy};
use synapse_kernel::grant::{Grant, Notice};

const HEAD: &str = r#"version = 1
primitives = ["net_http_get", "net_http_post", "tool_use", "tool_commit"]
"#;

const FULL: &str = r#"version = 1
primitives = ["net_http_get", "net_http_post", "net_listen", "tool_use", "tool_commit"]
deny_hosts = ["no.b.example", "10.9.0.0/16"]

[[hosts]]
host = "a.example"
methods = ["GET", "POST"]
ports = [443, "8000-8010"]
paths = ["/v1"]
clear = ["files", "payroll"]

[[hosts]]
host = "*.b.example"

[[hosts]]
host = "10.0.0.0/8"

[[hosts]]
host = "[::ffff:a00:0]/104"
methods = ["POST"]

[[hosts]]
host = "127.0.0.1"
ports = [8080]
methods = ["LISTEN"]
clear = []

[[tools]]
tool = "mail/send"
limits = { to = ["*@a.example", "b@b.example"], "a \"b\"" = 50, at = { min = -1.50, max = 2 } }

[[tools]]
tool = "mail/list"
effect = "read"
clear = ["tool:pay"]

[[tools]]
tool = "pay/draft"
effect = "store"

[compartments]
payroll = ["/data/payroll/**", "/data/wages"]
"#;

fn bits(numbers: &[u32]) -> Secrecy {
    numbers.iter().fold(Secrecy::NONE, |all, bit| all.join(Secrecy::bit(*bit).unwrap()))
}

const PAYROLL: u32 = Secrecy::NAMED;
const TEN: u32 = PAYROLL + 1;
const LOOP: u32 = PAYROLL + 2;
const MAIL: u32 = PAYROLL + 3;
const PAY: u32 = PAYROLL + 4;

#[test]
fn i9_hosts_are_covered_as_the_file_says_and_not_otherwise() {
    let grant = Grant::parse(FULL).unwrap();
    let at =
        |url: &str, method| grant.scope.check_net(&Place::of(&Url::parse(url).unwrap(), method));
    let terms =
        |clear: &[u32], own: &[u32]| Ok(Terms { clear: bits(clear), own: bits(own), acts: 0 });
    let (out, denied) = (Err(Refusal::OutOfScope), Err(Refusal::Denied));
    for (url, method, expected) in [
        ("https://a.example/v1/x", Method::Post, terms(&[1, PAYROLL], &[])),
        ("https://a.example:8010/v1", Method::Get, terms(&[1, PAYROLL], &[])),
        ("https://a.example:8011/v1", Method::Get, out),
        ("https://a.example/v2", Method::Get, out),
        ("https://x.b.example/v2", Method::Get, terms(&[0], &[])),
        ("https://x.b.example/v2", Method::Post, out),
        ("https://b.example/", Method::Get, out),
        ("https://no.b.example/", Method::Get, denied),
        ("https://10.1.2.3/", Method::Get, terms(&[0, TEN], &[TEN])),
        ("https://10.1.2.3/", Method::Post, terms(&[0, TEN], &[TEN])),
        ("https://10.9.2.3/", Method::Get, denied),
        ("https://192.168.0.1/", Method::Get, out),
    ] {
        assert_eq!(at(url, method), expected, "{url} {method:?}");
    }
    let url = Url::parse("http://127.0.0.1:8080/any").unwrap();
    let listener = Place { path: None, ..Place::of(&url, Method::Listen) };
    assert_eq!(grant.scope.check_net(&listener), terms(&[LOOP], &[LOOP]));
    assert_eq!(
        grant.compartments,
        ["payroll", "net:10.0.0.0/8", "net:127.0.0.1", "tool:mail", "tool:pay"]
    );
    let named = grant.scope.named();
    assert_eq!(named.bits(), 0b1_1111 << 8, "a file may hold what a place or a tool said");
}

#[test]
fn i9_tools_are_what_the_file_says_and_the_strictest_else() {
    let grant = Grant::parse(FULL).unwrap();
    let number = |text| Decimal::parse(text).unwrap();
    let send = grant.scope.entry("mail/send").unwrap();
    assert_eq!(send.effect, Effect::Commit);
    assert_eq!(send.terms, Terms { clear: bits(&[0, MAIL]), own: bits(&[MAIL]), acts: 0 });
    let limits = [
        ("to", Limit::Like(["*@a.example".into(), "b@b.example".into()].into())),
        ("a \"b\"", Limit::Within(number("0")..=number("50"))),
        ("at", Limit::Within(number("-1.5")..=number("2"))),
    ];
    assert_eq!(send.limits.len(), limits.len());
    for (argument, limit) in limits {
        assert!(send.limits.contains(&(argument.into(), limit)), "{argument}: {send:?}");
    }
    let list = grant.scope.entry("mail/list").unwrap();
    assert_eq!((list.effect, &*list.limits), (Effect::Read, &[][..]));
    assert_eq!(list.terms, Terms { clear: bits(&[MAIL, PAY]), own: bits(&[MAIL]), acts: 0 });
    assert_eq!(grant.scope.entry("pay/draft").unwrap().effect, Effect::Store);
    assert!(grant.scope.entry("mail/delete").is_none());
}

#[test]
fn the_documents_show_grants() {
    for document in [include_str!("../../../../docs/abi.md"), include_str!("../../../../README.md")]
    {
        let example = document.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
        let grant = Grant::parse(example).unwrap();
        assert_eq!(grant.warnings(), []);
    }
}

#[test]
fn i17_an_entry_names_the_secrets_that_go_there_and_its_answers_stay_apart() {
    let entry = |host: &str, rest: &str| format!("[[hosts]]\nhost = \"{host}\"\n{rest}\n");
    let text = format!(
        "version = 1\nprimitives = [\"net_http_get\"]\n{}{}{}",
        entry("a.example", "secrets = [\"key\", \"other\"]\nreads = true\npaths = [\"/v1\"]"),
        entry("a.example", "secrets = [\"key\"]"),
        entry("b.example", ""),
    );
    let grant = Grant::parse(&text).unwrap();
    assert_eq!(grant.compartments, ["net:a.example"]);
    assert!(grant.secrets().eq(["key", "other", "key"]));
    let at = |url: &str, secrets: &[&str]| {
        let url = Url::parse(url).unwrap();
        let terms = grant.scope.check_net(&Place { secrets, ..Place::of(&url, Method::Get) });
        terms.map(|terms| (terms.own.bits(), terms.acts))
    };
    let (a, b) = ("https://a.example/v1", "https://b.example/");
    assert_eq!(at(a, &[]), Ok((1 << 8, 0)));
    assert_eq!(at(a, &["key"]), Ok((1 << 8, 0)));
    assert_eq!(at(a, &["key", "other"]), Ok((1 << 8, 0)));
    assert_eq!(at("https://a.example/", &["key"]), Ok((1 << 8, 1)));
    assert_eq!(at("https://a.example/", &["other"]), Err(Refusal::OutOfScope));
    assert_eq!(at(b, &[]), Ok((0, 0)));
    assert_eq!(at(b, &["key"]), Err(Refusal::OutOfScope));
    let summary: serde_json::Value = serde_json::from_str(grant.summary()).unwrap();
    assert_eq!(summary["hosts"][0]["secrets"].to_string(), r#"["key","other"]"#);
    assert_eq!(summary["hosts"][0]["reads"], true);
    assert_eq!(summary["hosts"][2].get("secrets"), None);
    let idle = Grant::parse(&text.replace("secrets = [\"key\", \"other\"]\n", "")).unwrap();
    assert!(idle.warnings().iter().any(|said| said.to_string().contains("`reads` says nothing")));
}

#[test]
fn the_summary_says_hosts_and_tools() {
    let grant = Grant::parse(FULL).unwrap();
    let summary: serde_json::Value = serde_json::from_str(grant.summary()).unwrap();
    assert_eq!(
        summary["hosts"][0].to_string(),
        r#"{"clear":["files","payroll"],"host":"a.example","methods":["GET","POST"],"paths":["/v1"],"ports":[443,"8000-8010"]}"#
    );
    assert_eq!(summary["hosts"].as_array().unwrap().len(), 5);
    assert_eq!(summary["tools"][0]["effect"], "commit");
    assert_eq!(summary["tools"][0]["limits"]["a \"b\""].to_string(), r#"{"max":50,"min":0}"#);
    assert_eq!(summary["tools"][0]["limits"]["at"].to_string(), r#"{"max":2,"min":-1.5}"#);
}

#[test]
fn a_mistake_in_hosts_and_tools_is_reported_with_its_place() {
    let host = |host: &str, rest: &str| format!("{HEAD}[[hosts]]\nhost = \"{host}\"\n{rest}");
    let tool = |rest: &str| format!("{HEAD}[[tools]]\ntool = \"a/b\"\n{rest}");
    for (text, place, says) in [
        (host("A.example", ""), (4, 8), "host `A.example` cannot be read"),
        (host("10.0.0.1/8", ""), (4, 8), "nothing set behind a network's prefix"),
        (host("", ""), (4, 8), "host `` cannot be read"),
        (host("a.example", "ports = []"), (5, 9), "`ports` is empty"),
        (host("a.example", "ports = [0]"), (5, 10), "an entry of `ports` is 0"),
        (host("a.example", "ports = [65536]"), (5, 10), "at most 65535"),
        (host("a.example", "ports = [\"9-8\"]"), (5, 10), "in rising order"),
        (host("a.example", "ports = [\"08-9\"]"), (5, 10), "ports `08-9` cannot be read"),
        (host("a.example", "ports = [1.5]"), (5, 10), "has the wrong type"),
        (host("a.example", "methods = [\"get\"]"), (5, 12), "use one of GET, POST, LISTEN"),
        (host("a.example", "methods = [\"PUT\"]"), (5, 12), "method `PUT` is unknown"),
        (host("localhost", "methods = [\"LISTEN\"]"), (5, 12), "cannot be listened at"),
        (host("*.a.example", "methods = [\"GET\", \"LISTEN\"]"), (5, 19), "cannot be listened at"),
        (host("10.0.0.0/31", "methods = [\"LISTEN\"]"), (5, 12), "cannot be listened at"),
        (host("127.0.0.0/7", "methods = [\"LISTEN\"]"), (4, 8), "cannot be read"),
        (host("126.0.0.0/7", "methods = [\"LISTEN\"]"), (5, 12), "is loopback unless an entry"),
        (host("0.0.0.0/0", "methods = [\"LISTEN\"]"), (5, 12), "cannot be listened at"),
        (host("a.example", "paths = [\"v1\"]"), (5, 10), "no canonical URL path"),
        (host("a.example", "paths = [\"/a/../b\"]"), (5, 10), "no canonical URL path"),
        (host("a.example", "paths = [\"/a?b\"]"), (5, 10), "no canonical URL path"),
        (host("a.example", "clear = [\"prmpt\"]"), (5, 10), "nearest is `prompt`"),
        (host("a.example", "clear = [\"files\", \"files\"]"), (5, 19), "stands twice"),
        (host("a.example", "port = [1]"), (5, 1), "nearest is `ports`"),
        (host("a.example", "secrets = [\"a}b\"]"), (5, 12), "secret `a}b` has no valid name"),
        (host("a.example", "secrets = [\"a\", \"a\"]"), (5, 17), "stands twice"),
        (host("a.example", "reads = \"yes\""), (5, 9), "has the wrong type"),
        (format!("{HEAD}[[hosts]]\n"), (3, 1), "`host` is missing"),
        (format!("{HEAD}deny_hosts = [\"*\"]"), (3, 15), "host `*` cannot be read"),
        (
            format!("{HEAD}deny_hosts = [\"10.0.0.0/8\", \"[::ffff:a00:0]/104\"]"),
            (3, 29),
            "stands twice",
        ),
        (format!("{HEAD}[[tools]]\ntool = \"send\""), (4, 8), "it is `server/verb`"),
        (format!("{HEAD}[[tools]]\ntool = \"a/b/c\""), (4, 8), "it is `server/verb`"),
        (format!("{}[[tools]]\ntool = \"a/b\"", tool("")), (6, 8), "tool `a/b` stands twice"),
        (tool("effect = \"write\""), (5, 10), "effect `write` is unknown"),
        (tool("limits = { to = [] }"), (5, 17), "`to` is empty"),
        (tool("limits = { to = [\"*@*\"] }"), (5, 18), "write one `*` at most"),
        (tool("limits = { to = \"x\" }"), (5, 17), "`to` has the wrong type"),
        (tool("limits = { n = -1 }"), (5, 16), "limit `n` admits nothing"),
        (tool("limits = { n = { min = 2, max = 1.5 } }"), (5, 16), "at least 2 and at most 1.5"),
        (tool("limits = { n = { min = 2 } }"), (5, 16), "`max` is missing"),
        (tool("limits = { n = 1e3 }"), (5, 16), "at most 15 digits"),
        (tool("limits = { n = nan }"), (5, 16), "at most 15 digits"),
        (tool("limits = { n = 1234567890123456 }"), (5, 16), "at most 15 digits"),
    ] {
        let mistakes = Grant::check(&text).unwrap_err();
        let told = |at: &Notice| (at.line, at.column) == place && at.to_string().contains(says);
        assert!(mistakes.iter().any(told), "{text}: {mistakes:#?}");
    }
}

#[test]
fn a_host_is_unreachable_only_where_deny_covers_all_of_it() {
    for (deny, host, unreachable) in [
        ("a.example", "a.example", true),
        ("*.example", "a.example", true),
        ("*.example", "*.a.example", true),
        ("*.example", "*.example", true),
        ("10.0.0.0/8", "10.1.0.0/16", true),
        ("10.0.0.0/8", "[::ffff:a01:203]", true),
        ("0.0.0.0/0", "8.8.8.8", true),
        ("*.a.example", "a.example", false),
        ("*.a.example", "xa.example", false),
        ("*.a.example", "*.example", false),
        ("a.example", "*.example", false),
        ("10.1.0.0/16", "10.0.0.0/8", false),
        ("10.1.0.0/16", "10.2.0.0/16", false),
        ("10.0.0.0/8", "[fd00::1]", false),
    ] {
        let text = format!("{HEAD}deny_hosts = [\"{deny}\"]\n[[hosts]]\nhost = \"{host}\"");
        let got = Grant::parse(&text);
        assert_eq!(got.is_err(), unreachable, "{deny} {host}");
        if let Err(error) = got {
            assert_eq!((error.line, error.column), (5, 8), "{error}");
            assert!(error.what.contains("unreachable: deny_hosts covers it"), "{error}");
        }
    }
}

#[test]
fn what_is_probably_not_meant_is_a_warning() {
    let host = |rest: &str| format!("{HEAD}[[hosts]]\nhost = {rest}\n");
    let path =
        |path: &str, rights: &str| format!("[[paths]]\npath = \"{path}\"\nrights = {rights}\n");
    let files = |list: &str| format!("version = 1\nprimitives = [{list}]\n");
    for (text, place, says) in [
        (host("\"*.com\""), (4, 8), "over-broad"),
        (host("\"0.0.0.0/0\""), (4, 8), "over-broad"),
        (host("\"[2000::]/3\""), (4, 8), "over-broad"),
        (host("\"a.example\"\nports = [\"1-65535\"]"), (4, 8), "has all ports"),
        (host("\"a.example\"") + "[[hosts]]\nhost = \"a.example\"", (6, 8), "adds nothing"),
        (host("\"a.b.example\"") + "[[hosts]]\nhost = \"*.b.example\"", (4, 8), "adds nothing"),
        (
            files("\"fs_read\"") + &path("/a/**", "[\"read\", \"list\"]"),
            (5, 19),
            "right `list` has no use",
        ),
        (
            files("\"fs_move\"") + &path("/a", "[\"delete\"]"),
            (2, 15),
            "no path has the right `write`",
        ),
        (files("\"net_listen\""), (2, 15), "no host has the method `LISTEN`"),
        (files("\"net_accept\""), (2, 15), "no host has the method `LISTEN`"),
        (
            files("\"net_listen\"") + "[[hosts]]\nhost = \"0.0.0.0\"\nmethods = [\"LISTEN\"]",
            (5, 12),
            "is each address of this machine",
        ),
        (files("\"tool_use\"") + "[[tools]]\ntool = \"a/b\"", (4, 8), "tool `a/b` has no use"),
        (files("\"tool_use\"") + "[[tools]]\ntool = \"a/b\"", (2, 15), "no tool reads"),
        (files("\"model_generate\""), (2, 15), "no entry that covers it"),
        (
            files("") + "[[hosts]]\nhost = \"a.b\"\nmethods = [\"POST\"]",
            (5, 12),
            "method `POST` has no use",
        ),
        (
            files("\"fs_read\"") + &path("/a/b", "[\"read\"]") + &path("/a/**", "[\"read\"]"),
            (4, 8),
            "path `/a/b` adds nothing",
        ),
    ] {
        let grant = Grant::parse(&text).unwrap();
        let told = |at: &Notice| (at.line, at.column) == place && at.to_string().contains(says);
        assert!(grant.warnings().iter().any(told), "{text}: {:#?}", grant.warnings());
    }
    for text in [
        files("\"fs_read\", \"value_read\", \"console_write\"")
            + &path("/a/*", "[\"read\"]")
            + &path("/a", "[\"read\"]"),
        files("\"net_http_get\"")
            + "[[hosts]]\nhost = \"10.0.0.0/8\"\n[[hosts]]\nhost = \"10.1.0.0/16\"\n\
               [[hosts]]\nhost = \"*.b.example\"\n\
               [[hosts]]\nhost = \"a.b.example\"\nclear = [\"files\"]",
    ] {
        assert_eq!(Grant::parse(&text).unwrap().warnings(), [], "{text}");
    }
}

#[test]
fn entries_and_compartments_have_their_bounds() {
    let entry =
        |host: &str, port: usize| format!("[[hosts]]\nhost = \"{host}\"\nports = [{port}]\n");
    let many = |count: usize| -> String {
        HEAD.to_owned() + &(1..=count).map(|port| entry("a.example", port)).collect::<String>()
    };
    assert!(Grant::parse(&many(64)).is_ok());
    let error = Grant::parse(&many(65)).unwrap_err();
    assert_eq!((error.line, error.column), (3 + 64 * 3 + 1, 8), "{error}");
    assert!(error.what.contains("too many entries"), "{error}");
    let own = |count: usize| -> String {
        HEAD.to_owned()
            + &(0..count).map(|n| entry(&format!("10.0.0.{n}"), 443)).collect::<String>()
            + "[[tools]]\ntool = \"mail/send\"\n"
    };
    assert_eq!(Grant::parse(&own(55)).unwrap().compartments.len(), 56);
    let error = Grant::parse(&own(56)).unwrap_err();
    assert!(error.what.contains("compartment `tool:mail` is one too many"), "{error}");
}

/// Every note's place lies in the text.
fn placed(text: &str, notices: &[Notice]) {
    let lines: Vec<&str> = text.split('\n').collect();
    for Notice { line, column, width, .. } in notices {
        let there = lines.get(line.wrapping_sub(1)).unwrap().chars().count();
        assert!((1..=there + 1).contains(column), "{line}:{column} in {text:?}");
        assert!(*width >= 1 && column + width <= there.max(*column) + 1, "{width} in {text:?}");
    }
}

fn read_any(text: &str) {
    match Grant::check(text) {
        Ok(grant) => placed(text, grant.warnings()),
        Err(mistakes) => {
            assert!(!mistakes.is_empty(), "{text:?}");
            placed(text, &mistakes);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4096) })]

    #[test]
    fn no_text_panics(text: String) {
        read_any(&text);
    }

    #[test]
    fn no_changed_grant_panics(
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0..40_usize, 0..PIECES.len()), 1..4),
    ) {
        let mut chars: Vec<char> = FULL.chars().collect();
        for (at, length, piece) in cuts {
            let start = at.index(chars.len() + 1);
            let end = chars.len().min(start + length);
            chars.splice(start..end, PIECES[piece].chars());
        }
        read_any(&chars.into_iter().collect::<String>());
    }
}

const PIECES: [&str; 24] = [
    "", "\"", "\n", "\r\n", "é\u{301}\u{1f600}", "[", "]", "{", "}", "=", "[[hosts]]\n",
    "[[paths]]\n", "[budget]\n", "*", "/**", "\"\"\"\n\n", "-1", "1e400", "inf", "1979-05-27",
    "\u{0}", "#", "\\u0000", "9223372036854775807",
];

/// Every path of up to four names, some of them of other case.
fn paths() -> Vec<String> {
    let names = ["a", "A", "b", "z"];
    let mut all = vec![String::new()];
    let mut last = all.clone();
    for _ in 0..4 {
        last = last.iter().flat_map(|path| names.map(|name| format!("{path}/{name}"))).collect();
        all.extend(last.clone());
    }
    all[0] = "/".into();
    all
}

#[test]
fn what_is_unreachable_or_adds_nothing_is_so_on_every_path() {
    let folders = ["", "/a", "/A", "/b", "/a/b", "/a/A", "/a/b/a"];
    let patterns: Vec<String> = folders
        .iter()
        .flat_map(|folder| ["", "/*", "/**"].map(|reach| format!("{folder}{reach}")))
        .filter(|pattern| !["", "/**"].contains(&&**pattern))
        .collect();
    let paths = paths();
    let paths: Vec<NormalPath<'_>> =
        paths.iter().map(|path| NormalPath::parse(path.into()).unwrap()).collect();
    let covered = |allow: &str, deny: Option<&str>| -> Vec<bool> {
        let mut scope = Scope::default();
        scope.allow(&Pattern::parse(allow).unwrap(), Rights::READ);
        match deny.map(|deny| (deny, deny.strip_prefix("**/"))) {
            Some((_, Some(name))) => scope.deny_name(name),
            Some((deny, None)) => scope.deny(&Pattern::parse(deny).unwrap()),
            None => {}
        }
        paths.iter().map(|path| scope.check(path, Rights::READ).is_ok()).collect()
    };
    let entry = |path: &str| format!("[[paths]]\npath = \"{path}\"\nrights = [\"read\"]\n");
    let head = "version = 1\nprimitives = [\"fs_read\"]\n";
    for path in &patterns {
        for deny in patterns.iter().map(|deny| &**deny).chain(["**/a", "**/z", "/", "/**"]) {
            let reachable = covered(path, Some(deny)).contains(&true);
            let got = Grant::parse(&format!("{head}deny = [\"{deny}\"]\n{}", entry(path)));
            assert_eq!(got.is_ok(), reachable, "path {path} deny {deny}");
        }
        for other in patterns.iter().filter(|other| *other != path) {
            let (mine, wide) = (covered(path, None), covered(other, None));
            let adds = mine.iter().zip(wide).any(|(mine, wide)| *mine && !wide);
            let grant = Grant::parse(&format!("{head}{}{}", entry(path), entry(other))).unwrap();
            let told = grant.warnings().iter().any(|at| at.line == 4);
            assert_eq!(told, !adds, "path {path} besides {other}");
        }
    }
}
