//! What a human's line names, and what it does not.
#![expect(clippy::string_slice, reason = "a span that cuts a character fails the test")]

use proptest::prelude::*;
use synapse_boundary::NormalPath;
use synapse_boundary::cite::{Bearer, Names, Wanted, cite, covers_mount};
use synapse_boundary::path::fold;
use synapse_boundary::scope::Pattern;

/// An index of files and directories in two mounts.
struct Index {
    files: Vec<String>,
    mounts: Vec<(String, String)>,
}

impl Index {
    fn new(files: &[&str]) -> Self {
        let mounts = [("/data", "/home/u/my notes"), ("/work", "/srv/work")];
        Self {
            files: files.iter().map(ToString::to_string).collect(),
            mounts: mounts.map(|(guest, host)| (guest.into(), host.into())).into(),
        }
    }

    /// The same, with one mount.
    fn single(files: &[&str]) -> Self {
        let mut index = Self::new(files);
        index.mounts.truncate(1);
        index
    }
}

impl Names for Index {
    fn exists(&self, path: &str) -> bool {
        let below = format!("{path}/");
        self.files.iter().any(|file| file == path || file.starts_with(&below))
    }

    fn bearer(&self, name: &str) -> Bearer<'_> {
        let bears = |file: &&String| fold(file.rsplit('/').next().unwrap()) == fold(name);
        let mut bearers = self.files.iter().filter(bears);
        match (bearers.next(), bearers.next()) {
            (None, _) => Bearer::Nobody,
            (Some(one), None) => Bearer::One(one),
            (Some(_), Some(_)) => Bearer::Several,
        }
    }

    fn mounts(&self) -> &[(String, String)] {
        &self.mounts
    }
}

const FILES: &[&str] = &[
    "/data/report old.md", "/data/archive/old.md", "/data/report", "/data/sub/plan.md",
    "/data/sub/twice.md", "/work/twice.md", "/work/deep/thrice.md", "/data/sub/thrice.md",
    "/data/Big File.txt", "/data/photo (copy)", "/data/photo (copy", "/data/13", "/data/2024",
    "/data/tmp/a.log", "/data/tmp/b c.log", "/data/tmp/.git/config", "/data/caf\u{e9}.txt",
    "/data/e.example", "/data/f\u{131}ne.md", "/work/out/x.md", "/data/two words/in folder.md",
    "/data/both.md", "/work/both.md", "/data/several x.md", "/data/sub/same name.md",
    "/work/deep/same name.md", "/data/sub/name.md",
];

/// What the line cites, if it cites the path.
fn path<'l>(index: &Index, line: &'l str, path: &str) -> Option<&'l str> {
    let path = NormalPath::parse(path.into()).unwrap();
    cite(line, 0, Wanted::Path(&path, ""), index).map(|span| &line[span])
}

/// A line, a path, and the part of the line that cites it.
const PATHS: &[(&str, &str, Option<&str>)] = &[
    // Guest form.
    ("delete /data/sub/plan.md", "/data/sub/plan.md", Some("/data/sub/plan.md")),
    ("delete /data/sub/plan.md.", "/data/sub/plan.md", Some("/data/sub/plan.md")),
    ("delete \"/data/sub/plan.md\"!", "/data/sub/plan.md", Some("/data/sub/plan.md")),
    ("delete `/data/sub/plan.md`, please", "/data/sub/plan.md", Some("/data/sub/plan.md")),
    ("(see /data/sub/plan.md)", "/data/sub/plan.md", Some("/data/sub/plan.md")),
    ("\u{201c}/data/sub/plan.md\u{201d}", "/data/sub/plan.md", Some("/data/sub/plan.md")),
    ("\u{ab}/data/sub/plan.md\u{bb}?", "/data/sub/plan.md", Some("/data/sub/plan.md")),
    ("delete /data//sub/./plan.md", "/data/sub/plan.md", Some("/data//sub/./plan.md")),
    ("delete /data/x/../sub/plan.md", "/data/sub/plan.md", None),
    ("empty /data/tmp/", "/data/tmp", Some("/data/tmp/")),
    ("delete /data/sub/plan.mdx", "/data/sub/plan.md", None),
    ("delete x/data/sub/plan.md", "/data/sub/plan.md", None),
    ("delete /data/sub/plan", "/data/sub/plan.md", None),
    ("delete /data/sub", "/data/sub/plan.md", None),
    ("delete /data/sub/plan.md", "/data/sub", None),
    ("delete /data/sub/PLAN.md", "/data/sub/plan.md", None),
    ("delete /data/sub/plan.md,/data/report", "/data/sub/plan.md", None),
    ("delete /data/sub/pl\u{430}n.md", "/data/sub/plan.md", None),
    ("delete /data/sub/plan.md\u{200b}", "/data/sub/plan.md", None),
    ("delete /data/sub/plan\u{2024}md", "/data/sub/plan.md", None),
    ("make /data/new.md", "/data/new.md", Some("/data/new.md")),
    ("make /elsewhere/new.md", "/elsewhere/new.md", Some("/elsewhere/new.md")),
    ("file:///data/report", "/data/report", None),
    ("", "/data/report", None),
    ("    ", "/data/report", None),
    ("...", "/data/report", None),
    // Host form.
    ("delete /srv/work/out/x.md", "/work/out/x.md", Some("/srv/work/out/x.md")),
    ("delete /srv/work/new.md", "/work/new.md", Some("/srv/work/new.md")),
    ("delete /srv/works/out/x.md", "/work/out/x.md", None),
    ("delete /srv/work/../work/out/x.md", "/work/out/x.md", None),
    ("delete /srv/work/../data/report", "/data/report", None),
    ("delete /srv/work/../../data/report", "/data/report", None),
    ("delete /home/u/my notes/report", "/data/report", Some("/home/u/my notes/report")),
    ("delete /home/u/my  notes/report", "/data/report", None),
    (
        "delete '/home/u/my notes/report old.md'",
        "/data/report old.md",
        Some("/home/u/my notes/report old.md"),
    ),
    ("delete /home/u/my notes/report old.md", "/data/report", None),
    // Relative to one root.
    ("delete sub/plan.md", "/data/sub/plan.md", Some("sub/plan.md")),
    ("delete ./sub/plan.md", "/data/sub/plan.md", Some("./sub/plan.md")),
    ("delete sub/../sub/plan.md", "/data/sub/plan.md", None),
    ("delete out/x.md", "/work/out/x.md", Some("out/x.md")),
    ("delete out/x.md", "/data/out/x.md", None),
    ("delete ../work/out/x.md", "/work/out/x.md", None),
    ("delete ../etc/passwd", "/etc/passwd", None),
    ("delete both.md", "/data/both.md", None),
    ("delete both.md", "/work/both.md", None),
    ("delete /data/both.md", "/data/both.md", Some("/data/both.md")),
    ("write new.md", "/data/new.md", None),
    ("write data/report", "/data/report", None),
    ("look into tmp", "/data/tmp", Some("tmp")),
    // Bare names.
    ("delete plan.md", "/data/sub/plan.md", Some("plan.md")),
    ("delete Plan.MD", "/data/sub/plan.md", Some("Plan.MD")),
    ("delete plan.md", "/data/plan.md", None),
    ("delete twice.md", "/data/sub/twice.md", None),
    ("delete twice.md", "/work/twice.md", Some("twice.md")),
    ("delete thrice.md", "/data/sub/thrice.md", None),
    ("delete thrice.md", "/work/deep/thrice.md", None),
    ("delete myplan.md", "/data/sub/plan.md", None),
    ("delete plan.md.bak", "/data/sub/plan.md", None),
    ("delete plan.md/", "/data/sub/plan.md", None),
    ("delete fine.md", "/data/f\u{131}ne.md", None),
    ("delete cafe\u{301}.txt", "/data/caf\u{e9}.txt", Some("cafe\u{301}.txt")),
    ("delete CAF\u{c9}.TXT", "/data/caf\u{e9}.txt", Some("CAF\u{c9}.TXT")),
    ("delete cafe.txt", "/data/caf\u{e9}.txt", None),
    ("summarise the report", "/data/report", Some("report")),
    // The longest name that exists.
    ("delete report old.md", "/data/report old.md", Some("report old.md")),
    ("delete report old.md", "/data/report", None),
    ("delete report old.md", "/data/archive/old.md", None),
    ("delete report, old.md", "/data/report", Some("report")),
    ("delete report, old.md", "/data/archive/old.md", Some("old.md")),
    ("delete report  old.md", "/data/report old.md", None),
    ("delete /data/report old.md", "/data/report", None),
    ("delete /data/report old.md", "/data/report old.md", Some("/data/report old.md")),
    ("delete report and report old.md", "/data/report", Some("report")),
    ("delete big file.TXT now", "/data/Big File.txt", Some("big file.TXT")),
    ("delete same name.md", "/data/sub/name.md", None),
    ("delete same name.md", "/data/sub/same name.md", None),
    ("delete the name.md", "/data/sub/name.md", Some("name.md")),
    ("delete several x.md", "/work/out/x.md", None),
    ("delete the x.md", "/work/out/x.md", Some("x.md")),
    ("delete photo (copy)", "/data/photo (copy)", Some("photo (copy)")),
    ("delete photo (copy)", "/data/photo (copy", None),
    ("delete (photo (copy)).", "/data/photo (copy)", Some("photo (copy)")),
    ("open two words/in folder.md", "/data/two words/in folder.md", Some("two words/in folder.md")),
    ("open two words", "/data/two words", Some("two words")),
    ("open two words/in folder.md", "/data/two words", None),
    // Short numbers.
    ("what happened on June 13?", "/data/13", None),
    ("delete 13", "/data/13", None),
    ("delete file 13", "/data/13", Some("13")),
    ("delete File \"13\"", "/data/13", Some("13")),
    ("delete the folder 13.", "/data/13", Some("13")),
    ("delete that file. 13 are left", "/data/13", None),
    ("on June 13 file the taxes", "/data/13", None),
    ("pay $ 13", "/data/13", None),
    ("delete /data/13", "/data/13", Some("/data/13")),
    ("delete 2024", "/data/2024", Some("2024")),
    ("delete file 2024x", "/data/2024", None),
    // Not a whole mount.
    ("summarise /data", "/data", None),
    ("delete /data", "/data", None),
    ("delete /home/u/my notes", "/data", None),
    ("delete ./", "/data", None),
    ("delete /", "/", None),
];

#[test]
fn i13_paths_are_cited_by_a_form_that_means_them_alone() {
    let index = Index::new(FILES);
    for (line, target, expected) in PATHS {
        assert_eq!(path(&index, line, target), *expected, "{line:?} {target}");
    }
    assert!(PATHS.len() >= 100);
}

#[test]
fn a_new_name_has_one_place_where_there_is_one_mount() {
    let index = Index::single(&["/data/sub/old.md"]);
    assert_eq!(path(&index, "save it as new.md", "/data/new.md"), Some("new.md"));
    assert_eq!(path(&index, "save it as out/new.md", "/data/out/new.md"), Some("out/new.md"));
    // What exists is meant, not what does not.
    assert_eq!(path(&index, "save it as old.md", "/data/old.md"), None);
    assert_eq!(path(&index, "save it as old.md", "/data/sub/old.md"), Some("old.md"));
}

#[test]
fn one_text_for_two_places_is_neither() {
    let mut index = Index::new(&["/data/x.md", "/work/x.md"]);
    index.mounts = vec![("/data".into(), "/work".into()), ("/work".into(), "/srv".into())];
    assert_eq!(path(&index, "delete /work/x.md", "/work/x.md"), None);
    assert_eq!(path(&index, "delete /work/x.md", "/data/x.md"), None);
    assert_eq!(path(&index, "delete /data/x.md", "/data/x.md"), Some("/data/x.md"));
    assert_eq!(path(&index, "delete /srv/x.md", "/work/x.md"), Some("/srv/x.md"));
    index.mounts = vec![("/data".into(), String::new())];
    assert_eq!(path(&index, "delete /data/x.md", "/data/x.md"), Some("/data/x.md"));
    assert_eq!(path(&index, "delete /x.md", "/data/x.md"), None);
    index.mounts = vec![("/".into(), "/".into())];
    assert_eq!(path(&index, "delete /data/x.md", "/data/x.md"), Some("/data/x.md"));
    assert_eq!(path(&index, "delete data/x.md", "/data/x.md"), Some("data/x.md"));
}

#[test]
fn i13_a_pattern_is_cited_by_its_folder_or_whole() {
    let index = Index::new(FILES);
    let table: &[(&str, &str, Option<&str>)] = &[
        ("delete everything in /data/tmp", "/data/tmp/**", Some("/data/tmp")),
        ("delete everything in /data/tmp", "/data/tmp/*", Some("/data/tmp")),
        ("delete all in tmp", "/data/tmp/**", Some("tmp")),
        ("delete /data/tmp/**", "/data/tmp/**", Some("/data/tmp/**")),
        ("delete tmp/*", "/data/tmp/*", Some("tmp/*")),
        ("delete /data/tmp/*", "/data/tmp/**", None),
        ("delete /data/tmp/**", "/data/tmp/*", None),
        ("delete /data/tmp/*.log", "/data/tmp/**", None),
        ("delete /data/tmp/*.log", "/data/tmp/*", None),
        ("delete /data/tmp/a.log", "/data/tmp/**", None),
        ("delete /data/tmpx", "/data/tmp/**", None),
        ("summarise /data", "/data/**", None),
        ("delete all of /data", "/data/**", None),
        ("delete /data/**", "/data/**", None),
        ("delete /data/*", "/data/*", None),
        ("delete /**", "/**", None),
        ("delete /home/u/my notes/tmp/**", "/data/tmp/**", Some("/home/u/my notes/tmp/**")),
        ("delete all in two words", "/data/two words/**", Some("two words")),
        ("delete /data/tmp/.git", "/data/tmp/.git/**", None),
        ("delete .git/**", "/data/.git/**", None),
        ("delete /data/t*/x", "/data/t*/x", None),
        ("delete /data/tmp/../**", "/data/tmp/../**", None),
        ("delete /data/tmp", "/data/tmp", Some("/data/tmp")),
    ];
    for (line, target, expected) in table {
        let span = Pattern::parse(target).ok().and_then(|pattern| {
            let stars = target.strip_prefix(pattern.path().as_str()).unwrap();
            cite(line, 0, Wanted::Path(pattern.path(), stars), &index)
        });
        assert_eq!(span.map(|span| &line[span]), *expected, "{line:?} {target}");
    }
    for (path, covers) in
        [("/", true), ("/data", true), ("/work", true), ("/data/tmp", false), ("/dat", false)]
    {
        let path = NormalPath::parse(path.into()).unwrap();
        assert_eq!(covers_mount(&path, &index), covers, "{path:?}");
    }
}

#[test]
fn i13_urls_hosts_and_ports_are_cited_by_their_token() {
    let index = Index::new(FILES);
    let urls: &[(&str, &str, Option<&str>)] = &[
        ("post to https://a.example/x", "https://a.example/x", Some("https://a.example/x")),
        ("post to a.example/x.", "https://a.example/x", Some("a.example/x")),
        ("post to a.example", "https://a.example/", Some("a.example")),
        ("post to <HTTPS://A.Example>", "https://a.example/", Some("HTTPS://A.Example")),
        ("post to https://a.example:443/x", "https://a.example/x", Some("https://a.example:443/x")),
        ("post to http://a.example:80/x", "http://a.example/x", Some("http://a.example:80/x")),
        ("post to a.example:8443/x", "https://a.example:8443/x", Some("a.example:8443/x")),
        // The port of the other scheme is one like any.
        ("get http://a.example:443/", "http://a.example:443/", Some("http://a.example:443/")),
        ("get http://a.example:443/", "https://a.example/", None),
        ("get http://a.example:443/", "http://a.example/", None),
        ("get a.example:80/", "https://a.example:80/", Some("a.example:80/")),
        ("get a.example:80/", "http://a.example/", None),
        ("get https://a.example:80/", "http://a.example/", None),
        (
            "post to https://a.example?q=%c3%a9",
            "https://a.example/?q=%C3%A9",
            Some("https://a.example?q=%c3%a9"),
        ),
        (
            "see a.example/r?u=http://b.example/",
            "https://a.example/r?u=http://b.example/",
            Some("a.example/r?u=http://b.example/"),
        ),
        ("see a.example/x#part", "https://a.example/x", Some("a.example/x#part")),
        ("see http://[::1]:8080/x", "http://[::1]:8080/x", Some("http://[::1]:8080/x")),
        ("see localhost:8080", "https://localhost:8080/", Some("localhost:8080")),
        ("post to http://a.example/x", "https://a.example/x", None),
        ("post to a.example/X", "https://a.example/x", None),
        ("post to a.example/xy", "https://a.example/x", None),
        ("post to a.example/x", "https://a.example/", None),
        ("post to a.example/x/", "https://a.example/x", None),
        ("post to b.a.example/x", "https://a.example/x", None),
        ("post to a.example.evil.example/x", "https://a.example/x", None),
        ("post to a.example@evil.example/", "https://evil.example/", None),
        ("post to u@a.example/", "https://a.example/", None),
        ("mail bob@a.example", "https://a.example/", None),
        ("post to \u{430}.example/", "https://a.example/", None),
        ("post to https://a.example/x?y", "https://a.example/x", None),
        ("post to (https://a.example/x)https://b.example", "https://b.example/", None),
        ("please post this", "https://post/", None),
        ("read e.example", "https://e.example/", None),
        ("read plan.md", "https://plan.md/", None),
        ("read https://plan.md", "https://plan.md/", Some("https://plan.md")),
        ("ftp://a.example/", "https://a.example/", None),
    ];
    for (line, target, expected) in urls {
        let span = cite(line, 0, Wanted::Url(target), &index);
        assert_eq!(span.map(|span| &line[span]), *expected, "{line:?} {target}");
    }
    let hosts: &[(&str, &str, Option<&str>)] = &[
        ("listen on 127.0.0.1", "127.0.0.1", Some("127.0.0.1")),
        ("listen on 127.0.0.1:8080", "127.0.0.1", Some("127.0.0.1:8080")),
        ("listen on LOCALHOST", "localhost", Some("LOCALHOST")),
        ("listen on [::1]:8080", "[::1]", Some("[::1]:8080")),
        ("listen on 127.0.0.10", "127.0.0.1", None),
        ("listen on x.localhost", "localhost", None),
        ("listen on e.example", "e.example", None),
    ];
    for (line, target, expected) in hosts {
        let span = cite(line, 0, Wanted::Host(target), &index);
        assert_eq!(span.map(|span| &line[span]), *expected, "{line:?} {target}");
    }
    let ports: &[(&str, u64, Option<&str>)] = &[
        ("listen on 8080", 8080, Some("8080")),
        ("listen on port 80", 80, Some("80")),
        ("listen on port: 80", 80, Some("80")),
        ("listen on localhost:80", 80, Some("localhost:80")),
        ("listen on 127.0.0.1:80.", 80, Some("127.0.0.1:80")),
        ("listen on 80", 80, None),
        ("listen on 80 port", 80, None),
        ("listen at 10:80", 80, None),
        ("listen on 08080", 8080, None),
        ("listen on 18080", 8080, None),
        ("listen on +8080", 8080, None),
    ];
    for (line, target, expected) in ports {
        let span = cite(line, 0, Wanted::Port(*target), &index);
        assert_eq!(span.map(|span| &line[span]), *expected, "{line:?} {target}");
    }
}

#[test]
fn i13_scalars_are_cited_whole_and_short_numbers_by_their_noun() {
    let index = Index::new(FILES);
    let table: &[(&str, &str, &str, Option<&str>)] = &[
        // Texts and addresses.
        ("mail bob@x.com", "\"bob@x.com\"", "to", Some("bob@x.com")),
        ("mail <Bob@X.com>.", "\"bob@x.com\"", "to", Some("Bob@X.com")),
        ("mail notbob@x.com", "\"bob@x.com\"", "to", None),
        ("mail bob@x.com.evil.example", "\"bob@x.com\"", "to", None),
        ("mail bob@x.com", "\"bob\"", "to", None),
        ("mail bob@x.com", "\"x.com\"", "to", None),
        ("mail bob @ x.com", "\"bob@x.com\"", "to", None),
        ("mail bob@x.com,eve@x.com", "\"eve@x.com\"", "to", None),
        ("mail bob@x.com, eve@x.com", "\"eve@x.com\"", "to", Some("eve@x.com")),
        ("mail b\u{43e}b@x.com", "\"bob@x.com\"", "to", None),
        ("mail bill@x.com", "\"b\u{131}ll@x.com\"", "to", None),
        ("mail sam@x.com", "\"\u{17f}am@x.com\"", "to", None),
        ("mail bob@x.com", "\"\u{ff42}ob@x.com\"", "to", None),
        ("mail bob@x.com", "\"bob@x.com\u{200b}\"", "to", None),
        ("mail bob@x.com eve@y.com", "\"bob@x.com\\neve@y.com\"", "to", None),
        ("invite Bob  Smith, please", "\"bob smith\"", "who", Some("Bob  Smith")),
        ("invite bob. Smith is away", "\"bob smith\"", "who", None),
        ("invite Bob", "\"bob smith\"", "who", None),
        ("invite Bob", "\" bob\"", "who", None),
        ("invite Bob", "\"\"", "who", None),
        ("invite Bob", "\".\"", "who", None),
        ("invite Bob . now", "\".\"", "who", None),
        ("invite Jos\u{e9}", "\"JOSE\u{301}\"", "who", Some("Jos\u{e9}")),
        ("say \"hello!\" twice", "\"hello!\"", "text", Some("hello!")),
        ("say C:\\x", "\"C:\\\\x\"", "text", Some("C:\\x")),
        ("mail the report old.md", "\"old.md\"", "text", None),
        // Short numbers.
        ("delete file 13", "\"13\"", "file_id", Some("13")),
        ("delete file 13", "13", "file_id", Some("13")),
        ("what happened on June 13?", "\"13\"", "file_id", None),
        ("what happened on June 13?", "13", "day", None),
        ("delete the 13", "13", "file_id", None),
        ("id: 13", "\"13\"", "file-id", Some("13")),
        ("pay 13 EUR", "\"13\"", "file_id", None),
        ("delete file 13a", "\"13\"", "file_id", None),
        ("delete message 20241", "\"20241\"", "id", Some("20241")),
        // Numbers by value.
        ("pay 1000 to bob", "1000", "amount", Some("1000")),
        ("pay 1000.00 to bob", "1000", "amount", Some("1000.00")),
        ("pay $50 to bob", "50", "amount", Some("$50")),
        ("pay 50\u{20ac}.", "50", "amount", Some("50\u{20ac}")),
        ("pay \u{a3} 50.50", "50.5", "amount", Some("50.50")),
        ("pay 50 EUR", "50", "amount", Some("50")),
        ("pay USD 50", "50", "amount", Some("50")),
        ("set the amount 50", "50", "amount", Some("50")),
        ("amount: 50", "50", "amount", Some("50")),
        ("pay 50, EUR 30 are left", "50", "amount", None),
        ("pay 50 to bob", "50", "amount", None),
        ("pay 0050 to bob", "50", "amount", None),
        ("pay 50 eur", "50", "amount", None),
        ("pay $5", "50", "amount", None),
        ("pay $500", "50", "amount", None),
        ("pay $1,000", "1000", "amount", None),
        ("pay $1,000", "1", "amount", None),
        ("pay 1000-2000", "1000", "amount", None),
        ("pay 10^4", "10", "amount", None),
        ("cool down to -2000", "-2000", "level", Some("-2000")),
        ("cool down to -2000", "2000", "level", None),
        ("pay 1e3 $", "1000", "amount", None),
        ("it is true", "true", "flag", None),
        ("it is null", "null", "flag", None),
        ("it is [1000]", "[1000]", "flag", None),
    ];
    for (line, json, noun, expected) in table {
        let wanted = match json.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
            Some(text) => Wanted::Text(&text.replace("\\\\", "\\"), noun),
            None => Wanted::Number(json, noun),
        };
        let span = cite(line, 0, wanted, &index);
        assert_eq!(span.map(|span| &line[span]), *expected, "{line:?} {json}");
    }
}

#[test]
fn i13_a_verb_word_is_a_whole_token_of_the_line() {
    let index = Index::new(&["/data/delete me.txt"]);
    let says = ["delete", "get rid of"];
    let table: &[(&str, Option<&str>)] = &[
        ("Delete everything in /data/tmp", Some("Delete")),
        ("please (delete) it", Some("delete")),
        ("please get rid of it", Some("get rid of")),
        ("undelete it", None),
        ("what was deleted?", None),
        ("delete-me", None),
        ("see /data/delete", None),
        ("summarise delete me.txt", None),
        ("d\u{435}lete it", None),
        ("summarise /data", None),
        ("", None),
    ];
    for (line, expected) in table {
        assert_eq!(
            cite(line, 0, Wanted::Word(&says), &index).map(|span| &line[span]),
            *expected,
            "{line:?}"
        );
    }
}

/// Words of which lines are made: forms of names, and what may stand around them.
fn word() -> impl Strategy<Value = String> {
    let core = prop::sample::select(vec![
        "report", "old.md", "plan.md", "sub/plan.md", "/data/report", "/srv/work", "/home/u/my",
        "notes/report", "13", "file", "delete", "bob@x.com", "a.example/x", "50", "$50", "EUR",
        "photo", "copy", "big", "File.txt", "two", "words", "caf\u{e9}.txt", "-", "..", "8080",
        "report.", "\u{131}", "tmp/**", "/data/tmp",
    ]);
    let around = prop::sample::select(vec!["", "", "", "\"", "(", ")", "\u{201c}", ".", ",", "!)"]);
    (around.clone(), core, around)
        .prop_map(|(before, core, after)| format!("{before}{core}{after}"))
}

fn line() -> impl Strategy<Value = String> {
    let blank = prop::sample::select(vec![" ", " ", "  ", "\t", "\u{a0}"]);
    prop::collection::vec((word(), blank), 0..8).prop_map(|words| {
        words.into_iter().flat_map(|(word, blank)| [word, blank.into()]).collect()
    })
}

/// Whether a position is where a token may begin or end, told from the
/// characters on its way to the next blank alone.
fn is_edge(outside: impl Iterator<Item = char>, stops: &str) -> bool {
    let mut word = outside.take_while(|char| !char.is_whitespace());
    word.all(|char| "\"'()\u{201c}\u{201d}".contains(char) || stops.contains(char))
}

/// A slow second reading of what a text may mean.
fn means(index: &Index, text: &str) -> Vec<String> {
    let strip = |root: &str, path: &str| {
        if path == root {
            Some(String::new())
        } else {
            path.strip_prefix(&format!("{root}/")).map(|rest| format!("/{rest}"))
        }
    };
    let mut found: Vec<String> = Vec::new();
    for (guest, host) in &index.mounts {
        found.extend(strip(guest, text).map(|_| text.to_string()));
        found.extend(strip(host, text).map(|rest| format!("{guest}{rest}")));
        if !text.starts_with('/') {
            found.push(format!("{guest}/{text}"));
        }
    }
    let exact: Vec<String> = found.into_iter().filter(|path| index.exists(path)).collect();
    if !exact.is_empty() {
        return exact;
    }
    let lower = |name: &str| name.to_lowercase();
    let bears = |file: &&String| lower(file.rsplit('/').next().unwrap()) == lower(text);
    index.files.iter().filter(bears).cloned().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn i13_a_span_is_whole_tokens_that_mean_the_target_alone(line in line(), at in 0..FILES.len()) {
        let index = Index::new(FILES);
        let target = NormalPath::parse(FILES[at].into()).unwrap();
        if let Some(span) = cite(&line, 0, Wanted::Path(&target, ""), &index) {
            let text = &line[span.clone()];
            prop_assert!(is_edge(line[..span.start].chars().rev(), ""), "{:?}", text);
            prop_assert!(is_edge(line[span.end..].chars(), ".,;:!?"), "{:?}", text);
            prop_assert_eq!(means(&index, text), vec![FILES[at].to_string()], "{:?}", text);
            // No longer text of the line that takes part of it means a thing that exists.
            let ends = || (0..=line.len()).filter(|at| line.is_char_boundary(*at));
            for (start, end) in ends().flat_map(|start| ends().map(move |end| (start, end))) {
                let overlaps = start < span.end && span.start < end && end > start + span.len();
                if overlaps
                    && is_edge(line[..start].chars().rev(), "")
                    && is_edge(line[end..].chars(), ".,;:!?")
                    && line[start..end].trim() == &line[start..end]
                {
                    prop_assert!(means(&index, &line[start..end]).is_empty(), "{:?}", &line[start..end]);
                }
            }
        }
    }

    #[test]
    fn i13_what_is_cited_equals_the_target(line in line(), text in word()) {
        let index = Index::new(FILES);
        for wanted in [
            Wanted::Text(&text, ""), Wanted::Url("https://a.example/x"), Wanted::Port(8080),
            Wanted::Number("50", "file"), Wanted::Host("a.example"),
        ] {
            let Some(span) = cite(&line, 0, wanted, &index) else { continue };
            let found = &line[span.clone()];
            prop_assert!(is_edge(line[..span.start].chars().rev(), ""), "{:?}", found);
            prop_assert!(is_edge(line[span.end..].chars(), ".,;:!?"), "{:?}", found);
            let equal = match wanted {
                Wanted::Text(text, _) => found.to_lowercase() == text.to_lowercase(),
                Wanted::Url(_) => found == "a.example/x",
                Wanted::Port(_) => found == "8080",
                Wanted::Number(..) => found == "50" || found == "$50",
                _ => false,
            };
            prop_assert!(equal, "{:?} {:?}", found, wanted);
        }
    }

    #[test]
    fn any_line_is_read(line in any::<String>(), text in any::<String>()) {
        let index = Index::new(FILES);
        let path = NormalPath::parse("/data/tmp".into()).unwrap();
        for wanted in [Wanted::Text(&text, &text), Wanted::Url(&text), Wanted::Host(&text),
            Wanted::Number(&text, &text), Wanted::Path(&path, &text), Wanted::Port(1)] {
            if let Some(span) = cite(&line, 0, wanted, &index) {
                prop_assert!(line.get(span).is_some());
            }
        }
    }
}
