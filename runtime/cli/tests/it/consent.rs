//! The consent screen at a real terminal.

use core::time::Duration;
use std::fs::{self};
use std::path::Path;
use std::thread;
use std::time::Instant;

use serde_json::Value;

use crate::guest::guest;
use crate::packages::folder;
use crate::terminal::{PATIENCE, Session};
use crate::{out, synapse};

const MENU: &str = "installs nothing\r\n> ";
const ASKS: [&str; 7] = [
    "primitive = \"fs_read\"",
    "primitive = \"fs_delete\"",
    "primitive = \"net_http_post\"",
    "path = \"/data/**\"\nrights = [\"read\", \"delete\"]",
    "host = \"*.com\"\nmethods = [\"POST\"]\nports = [443, \"1-65535\"]",
    "tool = \"mail/send\"\nlimits = { amount = 50 }",
    "primitive = \"tool_commit\"",
];

fn grant(root: &Path) -> String {
    let shown = synapse(&root.join("state"), &["show", "reader", "--json"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    shown["grant"].as_str().unwrap().to_owned()
}

/// Goes to the last page, and returns all that was shown.
fn to_the_end(session: &mut Session) -> String {
    let mut shown = String::new();
    loop {
        let rest = session.rest();
        if rest.contains(MENU) {
            return shown + &session.expect(MENU);
        }
        if rest.contains("no ends: ") {
            shown += &session.expect("no ends: ");
            session.type_in("\n");
        }
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn it_is_shown_to_its_end_narrowed_and_agreed_to() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let package = folder(root, "src", &guest(&[]), &ASKS);
    let mut session =
        Session::start_on(root, 24, &["install", "--plain", package.to_str().unwrap()]);
    session.expect("page 1 of ");
    session.type_in("agree\n");
    session.expect("not before you have seen it all");
    let first = session.screen();
    session.expect("page 1 of ");
    let shown = first + &to_the_end(&mut session);
    for part in [
        "reader 1.0.0, by acme",
        "│ Reads notes",
        "signature: none. Nobody vouches for it",
        "digest: sha256:",
        "IT CAN DELETE\r\n[1] delete files, and folders with all in them (fs_delete)\r\n│ Reason 1.",
        "IT CAN SEND",
        "[2] send to hosts (net_http_post)",
        "mail/send: cannot be taken back",
        "! host `*.com` is over-broad",
        "! host `*.com` has all ports",
        "every host below com: POST on port 443, 1-65535; it may be told: what you typed",
        "/data and everything below it: read, delete",
        "100,000 calls a run",
        "WHICH CONNECTORS IT NEEDS",
        "IT WILL NEVER BE ABLE TO",
        "- start other agents",
    ] {
        assert!(shown.replace("\r\n    ", " ").contains(part), "{part}\n{shown}");
    }
    let number = |text: &str| {
        let line = shown.lines().find(|line| line.contains(text)).unwrap();
        line.split(']').next().unwrap().trim_start_matches('[').to_owned()
    };
    for (typed, told) in [
        (format!("off {}\n", number("(fs_delete)")), "OFF: delete files"),
        (format!("narrow {} /data/notes/** read\n", number("/data and")), "narrowed by you"),
        (
            format!("narrow {} /other/**\n", number("/data and")),
            "nothing is changed: that is not less",
        ),
        (format!("narrow {} /data/**/x\n", number("/data and")), "nothing is changed"),
        (format!("narrow {} mail.example.com\n", number("every host")), "mail.example.com: POST"),
        (format!("off {}\n", number("mail/send")), "OFF: mail/send"),
        (format!("narrow {} 10 20 30\n", number("calls a run")), "10 calls a run"),
        (format!("narrow {} 0 20 30\n", number("calls a run")), "nothing is changed"),
        ("off 99\n".to_owned(), "no such entry"),
        ("yes\n".to_owned(), "`yes` is no answer"),
    ] {
        session.type_in(&typed);
        session.expect(told);
        session.expect(MENU);
    }
    session.type_in("show\n");
    let again = to_the_end(&mut session);
    session.type_in("agree\n");
    session.expect("installed reader 1.0.0");
    assert_eq!(session.end().0, Some(0));
    let grant = grant(root);
    assert_eq!(
        grant,
        "version = 1\nprimitives = [\n    \"net_http_post\",\n    \"tool_commit\",\n    \"fs_read\",\n]\n\n\
         [[paths]]\npath = \"/data/notes/**\"\nrights = [\"read\"]\n\n\
         [[hosts]]\nhost = \"mail.example.com\"\nports = [443, \"1-65535\"]\nmethods = [\"POST\"]\n\
         paths = [\"/\"]\nclear = [\"prompt\"]\n\n\
         [budget]\ncalls = 10\nseconds = 20\nmemory = 31457280\n"
    );
    // What was shown last is what `show` says on any day.
    let day = out(&synapse(&root.join("state"), &["show", "reader"]));
    for line in again.lines().filter(|line| line.starts_with('[')) {
        assert!(day.contains(line.trim_end()), "{line}\n{day}");
    }
}

#[test]
fn a_no_an_end_and_what_was_typed_before_install_nothing() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let package = folder(root, "src", &guest(&[]), &ASKS);
    let arguments = ["install", "--plain", package.to_str().unwrap()];
    for (pages, typed) in [(false, "no\n"), (true, "no\n"), (true, "\u{4}"), (false, "\u{4}")] {
        let mut session = Session::start_on(root, 24, &arguments);
        if pages {
            to_the_end(&mut session);
        } else {
            session.expect("no ends: ");
        }
        session.type_in(typed);
        let (code, screen) = session.end();
        assert!(code == Some(1) && screen.contains("nothing was changed"), "{screen}");
        assert_eq!(out(&synapse(&root.join("state"), &["list"])), "");
    }
    // A paste of all the answers answers one page.
    let mut session = Session::start_on(root, 24, &arguments);
    session.expect("no ends: ");
    session.type_in(&format!("{}agree\n", "\n".repeat(9)));
    session.expect("page 2 of ");
    thread::sleep(Duration::from_millis(300));
    assert!(session.child.try_wait().unwrap().is_none());
    assert_eq!(out(&synapse(&root.join("state"), &["list"])), "");
}

#[test]
fn an_upgrade_shows_what_is_new_and_nothing_else() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let package = folder(root, "src", &guest(&[]), &ASKS[..1]);
    let path = package.to_str().unwrap();
    let mut session = Session::start_on(root, 60, &["install", "--plain", path]);
    to_the_end(&mut session);
    session.type_in("agree\n");
    assert_eq!(session.end().0, Some(0));
    folder(root, "src", &guest(&[]), &[ASKS[0], ASKS[1], ASKS[3]]);
    let manifest = fs::read_to_string(package.join("manifest.toml")).unwrap();
    fs::write(package.join("manifest.toml"), manifest.replace("1.0.0", "1.1.0")).unwrap();
    let mut session = Session::start_on(root, 60, &["upgrade", "--plain", path]);
    let shown = to_the_end(&mut session);
    assert!(
        shown.contains("You agreed to 1.0.0 before, and that stays as it is. New is:"),
        "{shown}"
    );
    assert!(shown.contains("(fs_delete)") && shown.contains("/data and"), "{shown}");
    assert!(!shown.contains("(fs_read)") && !shown.contains("calls a run"), "{shown}");
    session.type_in("off 1\n");
    session.expect(MENU);
    session.type_in("agree\n");
    assert_eq!(session.end().0, Some(0));
    let grant = grant(root);
    assert!(grant.contains("fs_read") && grant.contains("/data/**"), "{grant}");
    assert!(!grant.contains("fs_delete"), "{grant}");
    // What was turned off stays off, and is not asked about again.
    let manifest = fs::read_to_string(package.join("manifest.toml")).unwrap();
    fs::write(package.join("manifest.toml"), manifest.replace("1.1.0", "1.2.0")).unwrap();
    let done = synapse(&root.join("state"), &["upgrade", path]);
    assert!(done.status.success(), "{done:?}");
    assert!(!self::grant(root).contains("fs_delete"));
}

/// What a terminal of 80 columns and 24 rows shows of these bytes.
fn drawn(bytes: &str) -> String {
    let mut cells = vec![vec![' '; 80]; 24];
    let (mut row, mut column, mut rest) = (0, 0, bytes.chars());
    while let Some(char) = rest.next() {
        match char {
            '\u{1b}' => {
                if rest.next() != Some('[') {
                    continue;
                }
                let parameters = rest.by_ref().take_while_inclusive();
                let (numbers, last) = parameters.split_at(parameters.len() - 1);
                let mut numbers = numbers.split(';').map(|n| n.parse::<usize>().unwrap_or(1));
                match last {
                    "H" => {
                        row = numbers.next().unwrap_or(1) - 1;
                        column = numbers.next().unwrap_or(1) - 1;
                    }
                    "J" => cells = vec![vec![' '; 80]; 24],
                    _ => {}
                }
            }
            '\r' => column = 0,
            '\n' => row += 1,
            char => {
                if let Some(cell) = cells.get_mut(row).and_then(|cells| cells.get_mut(column)) {
                    *cell = char;
                }
                column += 1;
            }
        }
    }
    let lines = cells.iter().map(|cells| cells.iter().collect::<String>());
    lines.map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// The parameters of a control sequence, with the letter that ends it.
trait Sequence {
    fn take_while_inclusive(self) -> String;
}

impl<I: Iterator<Item = char>> Sequence for I {
    fn take_while_inclusive(self) -> String {
        let mut text = String::new();
        for char in self {
            text.push(char);
            if ('@'..='~').contains(&char) {
                break;
            }
        }
        text
    }
}

impl Session {
    /// The screen, once it shows this.
    fn wait(&self, text: &str) -> String {
        let began = Instant::now();
        loop {
            let screen = drawn(&self.screen());
            if screen.contains(text) {
                return screen;
            }
            assert!(began.elapsed() < PATIENCE, "no `{text}` in:\n{screen}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn the_whole_screen_is_scrolled_narrowed_and_agreed_to() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let package = folder(root, "src", &guest(&[]), &ASKS);
    let arguments = ["install", package.to_str().unwrap()];
    let mut session = Session::start_on(root, 24, &arguments);
    let first = session.wait("a agree  q no");
    assert!(first.contains("reader 1.0.0, by acme\n│ Reads notes\nsignature: none"), "{first}");
    assert!(first.contains("more below") && !first.contains("IT WILL NEVER"), "{first}");
    session.type_in("a");
    session.wait("not before you have seen it all");
    session.type_in(" ");
    session.wait("[1] OFF: delete files");
    // Down to the folder: each entry comes onto the screen.
    let mut place = String::new();
    for number in 2..=8 {
        session.type_in("\u{1b}[B");
        let screen = session.wait(&format!("[{number}] "));
        if let Some(line) = screen.lines().find(|line| line.contains("/data and everything")) {
            place = line.to_owned();
            if line.starts_with(&format!("[{number}] ")) {
                break;
            }
        }
    }
    assert!(!place.is_empty());
    session.type_in("n/else\r");
    session.wait("that is not less than what it asks for");
    session.type_in("n/data/notes/** read\r");
    session.wait("narrowed by you");
    while !session.wait("a agree").contains("\nthe end") {
        session.type_in("\u{1b}[6~");
        thread::sleep(Duration::from_millis(100));
    }
    // Too soon for a person.
    thread::sleep(Duration::from_millis(700));
    session.type_in("a");
    assert_eq!(session.end().0, Some(0));
    let grant = grant(root);
    assert!(grant.contains("path = \"/data/notes/**\"\nrights = [\"read\"]"), "{grant}");
    assert!(!grant.contains("fs_delete") && grant.contains("tool_commit"), "{grant}");

    assert!(synapse(&root.join("state"), &["remove", "reader"]).status.success());
    for no in ["q", "\u{3}"] {
        let mut session = Session::start_on(root, 24, &arguments);
        session.wait("a agree");
        session.type_in(no);
        let (code, screen) = session.end();
        assert!(code == Some(1) && screen.contains("nothing was changed"), "{screen}");
    }
    assert_eq!(out(&synapse(&root.join("state"), &["list"])), "");
}

/// The words of a text, without its bars, its folds, and the digest, which is the compiler's.
fn words(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("digest: "));
    let words = lines.flat_map(str::split_whitespace).filter(|word| *word != "│");
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn the_captures_in_the_documents_are_what_is_shown() {
    let (readme, packages) =
        (include_str!("../../../../README.md"), include_str!("../../../../docs/packages.md"));
    let captures = |text: &'static str| {
        let blocks = text.split("\n```").skip(1).step_by(2).map(str::trim_start);
        blocks.filter(|block| block.starts_with("librarian 0.1.0, by")).collect::<Vec<_>>()
    };
    let ([short], [screen, whole]) = (&*captures(readme), &*captures(packages)) else {
        panic!("{:?} {:?}", captures(readme), captures(packages))
    };
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let package = root.join("librarian");
    fs::create_dir(&package).unwrap();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packages/librarian");
    for name in ["manifest.toml", "SOUL.md"] {
        fs::copy(own.join(name), package.join(name)).unwrap();
    }
    fs::write(package.join("librarian.wasm"), guest(&[])).unwrap();
    let path = package.to_str().unwrap();

    let mut session = Session::start_on(root, 24, &["install", path]);
    let drawn = session.wait("a agree  q no");
    let alike = |text: &str| {
        let lines = text.trim_end().lines().filter(|line| !line.starts_with("digest: "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(alike(&drawn), alike(screen), "{drawn}");
    session.type_in("q");
    assert_eq!(session.end().0, Some(1));

    let mut session = Session::start_on(root, 120, &["install", "--plain", path]);
    let shown = words(&session.expect(MENU));
    session.type_in("no\n");
    assert_eq!(session.end().0, Some(1));
    assert!(shown.contains(&words(whole)), "{shown}\n{}", words(whole));
    for piece in short.split('…') {
        assert!(shown.contains(&words(piece)), "{shown}\n{piece}");
    }
}
