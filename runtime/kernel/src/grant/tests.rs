//! The reader: everything the file names, nothing else, and each mistake's place.

use alloc::format;
use alloc::string::ToString;

use synapse_abi::code::Refusal;
use synapse_boundary::{NormalPath, Rights, Secrecy};

use super::*;

const FULL: &str = r#"version = 1
primitives = ["fs_read", "console_write"]
deny = ["/data/private/**", "**/.env"]

[[paths]]
path = "/data/**"
rights = ["read", "list"]

[[paths]]
path = "/data/a\"b/*"
rights = ["write", "delete"]

[compartments]
payroll = "/data/payroll/**"
all-of_2 = "/**"

[budget]
calls = 7
seconds = 0x10
memory = 1_073_741_824
"#;

fn check(grant: &Grant, path: &str, rights: Rights) -> Result<(), Refusal> {
    grant.scope.check(&NormalPath::parse(path.into()).unwrap(), rights)
}

#[test]
fn i9_everything_that_the_file_names_and_nothing_else() {
    let grant = Grant::parse(FULL).unwrap();
    assert_eq!(grant.granted, 0b1001);
    assert_eq!((grant.calls, grant.seconds, grant.memory), (7, 16, 1 << 30));
    assert_eq!(check(&grant, "/data/x", Rights::READ.and(Rights::LIST)), Ok(()));
    assert_eq!(check(&grant, "/data/x", Rights::WRITE), Err(Refusal::OutOfScope));
    assert_eq!(check(&grant, "/data/a\"b/x", Rights::DELETE), Ok(()));
    assert_eq!(check(&grant, "/data/Private/x", Rights::READ), Err(Refusal::Denied));
    assert_eq!(check(&grant, "/data/x/.ENV", Rights::READ), Err(Refusal::Denied));
    let at = |path: &str| grant.scope.compartments(&NormalPath::parse(path.into()).unwrap());
    assert_eq!(at("/data/payroll/x").bits(), 0b11 << 8);
    assert_eq!(at("/data/x").bits(), 0b10 << 8);
    assert_eq!(grant.scope.named().bits(), 0b11 << 8);
}

#[test]
fn the_summary_is_canonical() {
    assert_eq!(
        Grant::parse(FULL).unwrap().summary(),
        r#"{"primitives":["console_write","fs_read"],"paths":[{"path":"/data/**","rights":["list","read"]},{"path":"/data/a\"b/*","rights":["write","delete"]}],"hosts":[],"tools":[]}"#
    );
    let empty = Grant::parse("version = 1\nprimitives = []").unwrap();
    assert_eq!(empty.summary(), r#"{"primitives":[],"paths":[],"hosts":[],"tools":[]}"#);
}

#[test]
fn only_the_budget_has_defaults() {
    let grant = Grant::parse("version = 1\nprimitives = []").unwrap();
    assert_eq!((grant.calls, grant.seconds, grant.memory), (100_000, 300, 268_435_456));
    assert_eq!(grant.granted, 0);
    assert_eq!(check(&grant, "/data", Rights::LIST), Err(Refusal::OutOfScope));
    assert_eq!(grant.scope.named(), Secrecy::NONE);
}

#[test]
fn a_mistake_is_reported_with_its_place() {
    let head = "version = 1\nprimitives = []\n";
    let path = |path: &str, rest: &str| format!("[[paths]]\npath = {path}\n{rest}");
    let read = "rights = [\"read\"]\n";
    let table: Vec<(String, (usize, usize), &str)> = [
        ("", "version = 1\nprimitives = [\n\"a\" \"b\"]", (3, 5), "the file is not TOML; "),
        ("", "version = 1\nversion = 1", (2, 1), "duplicate key"),
        ("", "primitives = []", (1, 1), "`version` is missing"),
        ("", "version = 1", (1, 1), "`primitives` is missing"),
        ("", "version = 2", (1, 11), "version 2 is unknown"),
        ("", "version = \"1\"", (1, 11), "`version` has the wrong type"),
        ("", "primitives = [\n  \"fs_raed\"]", (2, 3), "nearest is `fs_read`"),
        ("", "primitives = [\"fs_read\", \"fs_read\"]", (1, 26), "`fs_read` stands twice"),
        ("", "primitives = [1]", (1, 15), "an entry of `primitives` has the wrong type"),
        ("", "primitives = \"fs_read\"", (1, 14), "`primitives` has the wrong type"),
        (
            head,
            "budgets = 1",
            (3, 1),
            "key `budgets` is unknown; a grant has no such key; the nearest is `budget`",
        ),
        (head, "\"é\\u001b\" = 1", (3, 1), "key `é\\u{1b}` is unknown"),
        (head, "deny = [\"é\"]", (3, 9), "does not start with `/`"),
        (head, "deny = [\"/é\", 1]", (3, 15), "an entry of `deny` has the wrong type"),
        (head, "deny = [\"/a\", \"/A\"]", (3, 15), "deny entry `/A` stands twice"),
        (head, "deny = [\"**/.env\", \"**/.ENV\"]", (3, 20), "stands twice"),
        (head, "deny = [\"**/a/b\"]", (3, 9), "one whole name"),
        (head, "deny = [\"**/*\"]", (3, 9), "one whole name"),
        (head, "deny = [\"**/\"]", (3, 9), "names nothing"),
        (head, "deny = [\"**/..\"]", (3, 9), "above the root"),
        (head, "deny = [\"/*/a\"]", (3, 9), "`*` stands only in a last"),
        (head, "paths = 1", (3, 9), "`paths` has the wrong type"),
        (head, "paths = [1]", (3, 10), "an entry of `paths` has the wrong type"),
        (head, "[compartments]\nA = \"/a\"", (4, 1), "compartment `A` has no valid name"),
        (head, "[compartments]\n\"\" = \"/a\"", (4, 1), "has no valid name"),
        (head, "[compartments]\nfiles = \"/a\"", (4, 1), "`files` is built in"),
        (
            head,
            "[compartments]\na = 1",
            (4, 5),
            "`a` has the wrong type; it is a string, or an array",
        ),
        (head, "[compartments]\na = \"/a/\"", (4, 5), "not in normal form"),
        (head, "compartments = 1", (3, 16), "`compartments` has the wrong type"),
        (head, "[budget]\ncall = 1", (4, 1), "nearest is `calls`"),
        (head, "[budget]\ncalls = 0", (4, 9), "`calls` is 0"),
        (head, "[budget]\nseconds = -1", (4, 11), "`seconds` is -1"),
        (head, "[budget]\nseconds = 1.5", (4, 11), "`seconds` has the wrong type"),
        (head, "[budget]\ncalls = 9223372036854775808", (4, 9), "64 bits"),
        (head, "[budget]\nmemory = 1073741825", (4, 10), "at most 1073741824"),
        (head, "zebra = 1\napple = 1", (3, 1), "`zebra`"),
    ]
    .into_iter()
    .map(|(head, rest, at, says)| (format!("{head}{rest}"), at, says))
    .chain(
        [
            (path("\"/**\"", read), (4, 8), "`/**` is over-broad"),
            (path("\"/a\"", ""), (3, 1), "`rights` is missing"),
            (format!("[[paths]]\n{read}"), (3, 1), "`path` is missing"),
            (path("\"/a\"", "rights = []"), (5, 10), "`rights` is empty"),
            (path("\"/a\"", "rights = [\"raed\"]"), (5, 11), "nearest is `read`"),
            (path("\"/a\"", "rights = [\"read\", \"read\"]"), (5, 19), "stands twice"),
            (path("\"/a\"", "right = 1"), (5, 1), "nearest is `rights`"),
            (path("\"/a/../b\"", read), (4, 8), "not in normal form"),
            (path("\"/a.\"", read), (4, 8), "ends in a dot"),
            (path("\"/a\"", read).repeat(2), (7, 8), "path `/a` stands twice"),
        ]
        .map(|(rest, at, says)| (format!("{head}{rest}"), at, says)),
    )
    .collect();
    for (text, place, says) in table {
        let mistakes = Grant::check(&text).unwrap_err();
        let told = |at: &Notice| (at.line, at.column) == place && at.to_string().contains(says);
        assert!(mistakes.iter().any(told), "{text:?}: {mistakes:#?}");
        assert!(mistakes.is_sorted_by_key(|at| (at.line, at.column)), "{mistakes:#?}");
    }
    let error = Grant::parse("version = 2").unwrap_err().to_string();
    assert!(error.starts_with("grant line 1, column 11: version 2 is unknown; "), "{error}");
}

#[test]
fn a_path_is_unreachable_only_where_deny_covers_all_of_it() {
    for (deny, path, unreachable) in [
        ("/data/**", "/data/**", true),
        ("/data/**", "/data/*", true),
        ("/data/**", "/data/a/**", true),
        ("/DATA/**", "/data", true),
        ("/**", "/data", true),
        ("/", "/data/a/*", true),
        ("/*", "/data", true),
        ("/*", "/", false),
        ("/data/*", "/data/a", true),
        ("/data/*", "/data/*", true),
        ("/data", "/data", true),
        ("**/.env", "/data/.ENV/a", true),
        ("/data/a/**", "/data/**", false),
        ("/data/*", "/data/**", false),
        ("/data/*", "/data/a/**", true),
        ("/data/*", "/data", false),
        ("/data", "/data/**", true),
        ("/data", "/data/*", true),
        ("/data/a", "/data/*", false),
        ("/data/**", "/database", false),
        ("**/.env", "/data/**", false),
    ] {
        let text = format!(
            "version = 1\nprimitives = []\ndeny = [\"{deny}\"]\n[[paths]]\npath = \"{path}\"\n\
                 rights = [\"read\"]"
        );
        let got = Grant::parse(&text);
        assert_eq!(got.is_err(), unreachable, "{deny} {path}");
        if let Err(error) = got {
            assert_eq!((error.line, error.column), (5, 8), "{error}");
            assert!(error.what.contains("unreachable: deny covers it"), "{error}");
        }
    }
}

#[test]
fn as_many_compartments_as_there_are_bits() {
    let text = |count: usize| {
        let names: Vec<String> = (0..count)
            .map(|number| {
                format!(
                    "c{number} = \"/c{number}/**\"
"
                )
            })
            .collect();
        format!(
            "version = 1
primitives = []
[compartments]
{}",
            names.concat()
        )
    };
    let named = Grant::parse(&text(56)).unwrap().scope.named();
    assert_eq!(named.bits(), u64::MAX << Secrecy::NAMED);
    let error = Grant::parse(&text(57)).unwrap_err();
    assert_eq!((error.line, error.column), (60, 1), "{error}");
    assert!(error.why.contains("at most 56"), "{error}");
}
