//! Every key of a grant file, in one table: the reader and the schema use it.
//!
//! # Invariants
//! - What the table does not name is a mistake, and so is a value of another
//!   shape than it says.
//!
//! # Not here
//! What the values mean (`paths`, `hosts`, `tools`, `compartments`).

use synapse_abi::registry::{COUNT, REGISTRY};

use super::MEMORY_MAX;

/// What may stand in a place.
#[derive(Debug)]
pub(crate) enum Shape {
    /// The version of the format.
    Version,
    /// A string.
    Text,
    /// One of these strings; what one is called.
    Word(&'static str, &'static [&'static str]),
    /// An integer from the first to the last.
    Integer(i64, i64),
    /// A number.
    Number,
    /// `true` or `false`.
    Flag,
    /// An array; nothing stands in it twice.
    List(&'static Shape),
    /// An array of at least one.
    Filled(&'static Shape),
    /// An array of tables with these keys.
    Entries(&'static [Key]),
    /// A table with these keys.
    Table(&'static [Key]),
    /// A table whose keys are names that the human gives.
    Named(&'static Shape),
    /// One of these, told apart by its type.
    Either(&'static [Shape]),
}

/// A key of a table.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) unless: Unless,
    /// What it is for, for people.
    pub(crate) about: &'static str,
}

/// What holds where a key is left out.
#[derive(Debug)]
pub(crate) enum Unless {
    /// It is a mistake; how it is written.
    Needed(&'static str),
    /// This value, as TOML and JSON have it.
    Default(&'static str),
    /// Nothing of it.
    Nothing,
}

use Shape::{
    Either, Entries, Filled, Flag, Integer, List, Named, Number, Table, Text, Version, Word,
};
use Unless::{Default, Needed, Nothing};

pub(crate) const fn key(
    name: &'static str,
    shape: Shape,
    unless: Unless,
    about: &'static str,
) -> Key {
    Key { name, shape, unless, about }
}

/// The whole file.
pub(crate) static FILE: [Key; 9] = [
    key("version", Version, Needed("version = 1"), "The version of this format."),
    key("primitives", List(&PRIMITIVE), Needed("primitives = []"), "What the agent may call."),
    key(
        "deny",
        TEXTS,
        Nothing,
        "Paths that stay closed whatever else is granted, each with all below it; \
         `**/NAME` is that name anywhere.",
    ),
    key("deny_hosts", TEXTS, Nothing, "Hosts that stay closed whatever else is granted."),
    key("paths", Entries(&PATHS), Nothing, "Files and folders that the agent may use."),
    key("hosts", Entries(&HOSTS), Nothing, "Hosts that the agent may reach."),
    key("tools", Entries(&TOOLS), Nothing, "Verbs of connectors that the agent may use."),
    key(
        "compartments",
        COMPARTMENTS,
        Nothing,
        "Names for what stands below a path, so that it goes only where that name is cleared.",
    ),
    key("budget", USE, Nothing, "How much the agent may use."),
];

static PATHS: [Key; 2] = [
    key(
        "path",
        Text,
        Needed("path = \"/data/**\""),
        "A path: itself; with `/*` its direct children; with `/**` itself and all below it.",
    ),
    key("rights", RIGHTS, Needed("rights = [\"list\", \"read\"]"), "What may be done there."),
];

static HOSTS: [Key; 7] = [
    key(
        "host",
        Text,
        Needed("host = \"example.org\""),
        "A name; `*.suffix`, every name below it; an address, or a network like `10.0.0.0/8`.",
    ),
    key("ports", PORTS, Default("[443]"), "Ports, and ranges like \"8000-8010\"."),
    key("methods", METHODS, Default("[\"GET\"]"), "How it may be reached."),
    key(
        "paths",
        Filled(&Text),
        Default("[\"/\"]"),
        "Below which paths of the URL, whole segments.",
    ),
    key("clear", TEXTS, Default(CLEAR), CLEAR_ABOUT),
    key(
        "secrets",
        TEXTS,
        Nothing,
        "Secrets that a request may carry there, as `{secret:NAME}`; what comes back stays with \
         the host's own compartment.",
    ),
    key(
        "reads",
        Flag,
        Default("false"),
        "Whether a GET that carries a secret only reads; else it counts as what cannot be taken \
         back.",
    ),
];

static TOOLS: [Key; 4] = [
    key("tool", Text, Needed("tool = \"mail/send\""), "A connector and its verb: `server/verb`."),
    key(
        "effect",
        EFFECT,
        Default("\"commit\""),
        "What it does: it reads; it stores what can be taken back; it stores and needs no \
         question; or it cannot be taken back.",
    ),
    key(
        "limits",
        LIMITS,
        Nothing,
        "What an argument may be: texts, with one `*` for a run of characters; a number, from 0 \
         to this one; a range of numbers; or dates, in days from the clock's.",
    ),
    key("clear", TEXTS, Default(CLEAR), CLEAR_ABOUT),
];

const CLEAR: &str = "[\"prompt\"]";
const CLEAR_ABOUT: &str =
    "Compartments that may go there; its own may always go back to where they are from.";

// A package's manifest has these too.
pub(crate) const TEXTS: Shape = List(&Text);
pub(crate) const PRIMITIVE: Shape = Word("primitive", &PRIMITIVES);
pub(crate) const RIGHTS: Shape = Filled(&Word("right", &["list", "read", "write", "delete"]));
pub(crate) const PORTS: Shape = Filled(&Either(&[Integer(1, 65535), Text]));
pub(crate) const METHODS: Shape = Filled(&Word("method", &["GET", "POST", "LISTEN"]));
pub(crate) const EFFECT: Shape = Word("effect", &["read", "store", "free", "commit"]);
pub(crate) const LIMITS: Shape = Named(&LIMIT);
pub(crate) const COMPARTMENTS: Shape = Named(&Either(&[Text, Filled(&Text)]));
pub(crate) const USE: Shape = Table(&BUDGET);

/// What an argument may be.
pub(crate) const LIMIT: Shape = Either(&[Filled(&Text), Number, Table(&RANGE), Table(&DATES)]);

static RANGE: [Key; 2] = [
    key("min", Number, Needed("min = 0"), "The least."),
    key("max", Number, Needed("max = 50"), "The most."),
];

static DATES: [Key; 2] = [
    key("from", Text, Needed("from = \"-1d\""), "The first day, counted from the clock's."),
    key("to", Text, Needed("to = \"+366d\""), "The last day, counted from the clock's."),
];

static BUDGET: [Key; 3] = [
    key("calls", Integer(1, i64::MAX), Default("100000"), "Calls of a task."),
    key("seconds", Integer(1, i64::MAX), Default("300"), "Seconds that its guest may compute."),
    key("memory", Integer(1, MEMORY_MAX), Default("268435456"), "Bytes of its guest's memory."),
];

#[expect(clippy::indexing_slicing, reason = "an index out of range fails the build")]
static PRIMITIVES: [&str; COUNT] = {
    let mut names = [""; COUNT];
    let mut id = 0;
    while id < COUNT {
        names[id] = REGISTRY[id].name;
        id += 1;
    }
    names
};
