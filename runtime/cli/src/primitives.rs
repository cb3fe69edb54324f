//! `synapse primitives`: the registry, as people and programs read it
//!
//! # Not here
//! The registry itself (`synapse_abi::registry`).

use serde_json::{Value, json};
use std::io;
use synapse_abi::registry::{Argument, Egress, Harm, Kind, REGISTRY, Row, Type};
use synapse_reply::frame::{Form, form, ingests};

use crate::output;

/// Lists the 26 primitives: everything that an agent can ever ask for.
///
/// Flags: D destructive, J journaled, E leaves the machine, e may leave the
/// machine, I brings in what others wrote.
#[derive(clap::Args)]
pub(crate) struct Primitives {
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

impl Primitives {
    /// Prints the table.
    pub(crate) fn run(&self) -> io::Result<()> {
        if self.json {
            return REGISTRY.iter().try_for_each(|row| output::say(&output::json(&object(row))));
        }
        output::say(&line("ID", "NAME", "FLAGS", "REPLY", "ARGUMENTS"))?;
        REGISTRY.iter().try_for_each(|row| {
            let arguments: Vec<String> = row.arguments.iter().map(argument).collect();
            let id = row.primitive.id().to_string();
            output::say(&line(
                &id,
                row.name,
                &flags(row),
                reply(form(row.primitive)),
                &arguments.join(", "),
            ))
        })
    }
}

fn line(id: &str, name: &str, flags: &str, reply: &str, arguments: &str) -> String {
    format!("{id:>2}  {name:<14}  {flags:<5}  {reply:<7}  {arguments}").trim_end().to_owned()
}

fn flags(row: &Row) -> String {
    let harm = match row.harm {
        Harm::None => "",
        Harm::Journaled => "J",
        Harm::Destructive => "D",
    };
    let egress = match row.egress {
        Egress::Never => "",
        Egress::ByPeer => "e",
        Egress::Always => "E",
    };
    let ingest = if ingests(row.primitive) { "I" } else { "" };
    format!("{harm}{egress}{ingest}")
}

fn reply(reply: Form) -> &'static str {
    match reply {
        Form::Nothing => "nothing",
        Form::Bytes => "bytes",
        Form::Json => "json",
        Form::Handle => "handle",
        Form::Held => "held",
    }
}

fn argument(argument: &Argument) -> String {
    format!("{}: {}", argument.name, ty(argument.ty))
}

fn ty(ty: Type) -> String {
    match ty {
        Type::Text => "text".to_owned(),
        Type::Path => "path".to_owned(),
        Type::Url => "url".to_owned(),
        Type::Host => "host".to_owned(),
        Type::Port => "port".to_owned(),
        Type::Uint => "uint".to_owned(),
        Type::Choice(words) => words.join("|"),
        Type::Handle(Kind::Value) => "value".to_owned(),
        Type::Handle(Kind::Agent) => "agent".to_owned(),
        Type::Handle(Kind::Channel) => "channel".to_owned(),
        Type::Handle(Kind::Listener) => "listener".to_owned(),
        Type::Handle(Kind::Any) => "handle".to_owned(),
        Type::Name => "name".to_owned(),
        Type::Json => "json".to_owned(),
        Type::Literal => "literal json".to_owned(),
        Type::Selector => "selector".to_owned(),
        Type::Content => "content".to_owned(),
        Type::Prompt => "prompt".to_owned(),
    }
}

fn object(row: &Row) -> Value {
    let arguments: Vec<Value> = row
        .arguments
        .iter()
        .map(|argument| json!({"name": argument.name, "type": ty(argument.ty)}))
        .collect();
    json!({
        "id": row.primitive.id(),
        "name": row.name,
        "summary": row.summary,
        "arguments": arguments,
        "destructive": row.harm == Harm::Destructive,
        "journaled": row.harm == Harm::Journaled,
        "egress": match row.egress {
            Egress::Never => "never",
            Egress::ByPeer => "by peer",
            Egress::Always => "always",
        },
        "ingests": ingests(row.primitive),
        "reply": reply(form(row.primitive)),
    })
}
