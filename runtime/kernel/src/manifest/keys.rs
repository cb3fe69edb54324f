//! Every key of a manifest, in one table: the reader and the schema use it.
//!
//! # Not here
//! What the values mean (`read`).

use crate::grant::keys::Shape::{self, Flag, Integer, List, Named, Table, Text, Version, Word};
use crate::grant::keys::Unless::{Default, Needed, Nothing};
use crate::grant::keys::{Key, LIMIT, key};

/// The whole file.
pub(crate) static MANIFEST: [Key; 7] = [
    key("version", Version, Needed("version = 1"), "The version of this format."),
    key("server", Text, Needed("server = \"mail\""), "What grants and calls name it by."),
    key("description", Text, Default("\"\""), "One line about it, for people."),
    key(
        "clear",
        List(&Text),
        Nothing,
        "Compartments that may go there besides the prompt and its own, where a grant says \
         nothing else.",
    ),
    key(
        "let_out",
        Flag,
        Default("false"),
        "Whether what it answers may go elsewhere under a warrant.",
    ),
    key(
        "start",
        Table(&START),
        Needed("start = { url = \"https://mail.example/mcp\" }"),
        "How it is reached.",
    ),
    key(
        "verbs",
        Named(&VERB),
        Needed("[verbs.send]"),
        "What it does, by the names that calls use.",
    ),
];

static START: [Key; 13] = [
    key("command", List(&Text), Nothing, "The program, by its absolute path, and its arguments."),
    key("url", Text, Nothing, "Its address, in place of a program."),
    key(
        "lines",
        Flag,
        Default("false"),
        "In place of both: there is no server, and each verb is a line that is run.",
    ),
    key("environment", List(&Text), Nothing, "Variables that it inherits; it has no other."),
    key(
        "secrets",
        Named(&Text),
        Nothing,
        "Variables, or headers where it has an address, with secrets: `{secret:NAME}`.",
    ),
    key("read", List(&Text), Nothing, "Absolute paths of what it may read besides its program."),
    key("write", List(&Text), Nothing, "Absolute paths of what it may read and change."),
    key("network", Flag, Default("false"), "Whether the program may use the network."),
    key("memory", Integer(1 << 24, 1 << 36), Default("1073741824"), "Bytes of its memory."),
    key("seconds", Integer(1, 3600), Default("60"), "How long one call may take."),
    key("reply", Integer(1, 1 << 26), Default("4194304"), "Bytes of one answer."),
    key(
        "set",
        Named(&Text),
        Nothing,
        "Of lines: variables with these values. `{cache}` at the beginning of one is a folder \
         that is kept from call to call.",
    ),
    key("disk", Integer(1 << 20, 1 << 40), Default("4294967296"), "Of a line: bytes it may add."),
];

const VERB: Shape = Table(&VERBS);

static VERBS: [Key; 10] = [
    key("tool", Text, Nothing, "Its name at the server, if that is another."),
    key("about", Text, Needed("about = \"Sends one message.\""), "One line for agents and people."),
    key(
        "effect",
        Word("effect", &EFFECTS),
        Default("\"execute\""),
        "What it does. Nothing said is the strictest.",
    ),
    key(
        "free",
        Flag,
        Default("false"),
        "Of a store: it needs no question where what asks for it is from outside.",
    ),
    key("inverse", Text, Nothing, "The verb that takes it back."),
    key(
        "line",
        List(&Text),
        Nothing,
        "The program by its absolute path and its arguments, where there is no server. `{name}` at \
         the end of one stands for an argument of the verb.",
    ),
    key("says", List(&Text), Nothing, "Words with which people ask for it."),
    key(
        "arguments",
        Named(&ARGUMENT),
        Nothing,
        "Its arguments. One that is not here is fixed by a warrant like a target.",
    ),
    key(
        "fields",
        Named(&Text),
        Nothing,
        "Fields of the records that it answers with, all of them at once, and the type of each: \
         a selector may take them for a target of the same type.",
    ),
    key("own", Flag, Default("false"), "Whether those records are the user's own."),
];

/// The words for effects, the mildest first.
pub(super) const EFFECTS: [&str; 9] =
    ["read", "fetch", "store", "send", "pay", "account", "destroy", "actuate", "execute"];

const ARGUMENT: Shape = Table(&ARGUMENTS);

/// The words for what may stand in a line.
pub(super) const FORMS: [&str; 4] = ["word", "number", "path", "text"];

static ARGUMENTS: [Key; 4] = [
    key(
        "role",
        Word("role", &["target", "parameter", "content"]),
        Default("\"target\""),
        "What the verb acts upon, how it does, or what it passes on.",
    ),
    key(
        "type",
        Text,
        Nothing,
        "Of a target: what it is, in a word. A `person` makes a store a send; `person`, `payee` \
         and `url` are taken from the user's own records alone.",
    ),
    key("limit", LIMIT, Nothing, "What it may be, as in a grant."),
    key(
        "form",
        Word("form", &FORMS),
        Nothing,
        "Of a line: a word, a whole number, a path in the folder that is there, or one line of text.",
    ),
];
