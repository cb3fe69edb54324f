//! What a server says that it offers, and what changed of it
//!
//! Nothing here decides: it is shown to a human, who writes the manifest, and its
//! digest is held against the one that they approved.
//!
//! # Not here
//! Showing it harmlessly (the command line).

use core::fmt::Write;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use synapse_kernel::manifest::Start;

/// Tools that a server may offer.
pub const TOOLS: usize = 512;

/// What a server offers, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct List {
    /// Its tools.
    pub tools: Vec<Offer>,
}

/// One tool, in the server's own words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Its name.
    pub name: String,
    /// What the server says of it.
    pub description: String,
    /// Everything else that the server says, its arguments among that, as JSON.
    pub rest: Value,
}

impl List {
    /// The list of these tools.
    #[must_use]
    pub fn new(tools: &[rmcp::model::Tool]) -> Self {
        let offer = |tool: &rmcp::model::Tool| {
            let mut rest = serde_json::to_value(tool).unwrap_or_default();
            if let Some(rest) = rest.as_object_mut() {
                rest.remove("name");
                rest.remove("description");
            }
            let description = tool.description.as_deref().unwrap_or_default().to_owned();
            Offer { name: tool.name.clone().into_owned(), description, rest }
        };
        let mut tools: Vec<Offer> = tools.iter().map(offer).collect();
        tools.sort_by(|one, other| one.name.cmp(&other.name));
        Self { tools }
    }

    /// What an approval is bound to.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.text()).into()
    }

    /// It as JSON, one line a tool.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::from("[\n");
        for (place, tool) in self.tools.iter().enumerate() {
            let line = serde_json::to_string(tool).unwrap_or_default();
            let _ = writeln!(text, "{}{line}", if place == 0 { "" } else { "," });
        }
        text.push_str("]\n");
        text
    }

    /// Reads what [`List::text`] wrote.
    ///
    /// # Errors
    /// It is something else.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text).map(|tools| Self { tools })
    }

    /// What this list has otherwise than the one before, a line each.
    #[must_use]
    pub fn differences(&self, before: &Self) -> Vec<String> {
        let find =
            |list: &Self, name: &str| list.tools.iter().find(|tool| tool.name == name).cloned();
        let mut lines = Vec::new();
        for tool in &before.tools {
            if find(self, &tool.name).is_none() {
                lines.push(format!("- tool `{}` is gone", tool.name));
            }
        }
        for tool in &self.tools {
            let Some(old) = find(before, &tool.name) else {
                lines.push(format!("+ tool `{}`: {}", tool.name, tool.description));
                continue;
            };
            if old.description != tool.description {
                lines.push(format!("- `{}` said: {}", tool.name, old.description));
                lines.push(format!("+ `{}` says: {}", tool.name, tool.description));
            }
            if old.rest != tool.rest {
                lines.push(format!("- `{}` took: {}", tool.name, old.rest));
                lines.push(format!("+ `{}` takes: {}", tool.name, tool.rest));
            }
        }
        lines
    }

    /// A first manifest of a server with this list: every verb is the strictest.
    #[must_use]
    pub fn manifest(&self, server: &str, start: &Start) -> String {
        let mut text = format!(
            "# Every verb is the strictest until its effect and the roles of its arguments are\n\
             # written here.\n{}",
            head(server, "", start)
        );
        let mut taken = Vec::new();
        for tool in &self.tools {
            let name = plain(&tool.name, &taken);
            let _ = writeln!(text, "\n[verbs.{name}]");
            if name != tool.name {
                let _ = writeln!(text, "tool = {}", quoted(&tool.name));
            }
            text.push_str("about = \"\"\neffect = \"execute\"\n");
            let arguments = tool.rest.pointer("/inputSchema/properties").and_then(Value::as_object);
            for argument in arguments.into_iter().flat_map(serde_json::Map::keys) {
                let _ = writeln!(text, "arguments.{} = {{ role = \"target\" }}", quoted(argument));
            }
            taken.push(name);
        }
        if self.tools.is_empty() {
            text.push_str("\n[verbs]\n");
        }
        text
    }
}

/// How a manifest begins, down to its verbs.
pub(crate) fn head(server: &str, about: &str, start: &Start) -> String {
    let mut text = format!(
        "# What this says is what counts: nothing that the server says of itself does.\n\
         # docs/abi.md has the format. Then: synapse tools approve {server}\n\
         version = 1\nserver = {}\ndescription = {}\n\n[start]\n",
        quoted(server),
        quoted(about)
    );
    if !start.url.is_empty() {
        let _ = writeln!(text, "url = {}", quoted(&start.url));
        return text;
    }
    let lists = [
        ("command", &start.command),
        ("environment", &start.environment),
        ("read", &start.read),
        ("write", &start.write),
    ];
    for (key, list) in lists {
        let list: Vec<String> = list.iter().map(|item| quoted(item)).collect();
        let _ = writeln!(text, "{key} = [{}]", list.join(", "));
    }
    let _ = writeln!(text, "network = {}\nmemory = {}", start.network, start.memory);
    let _ = writeln!(text, "seconds = {}\nreply = {}", start.seconds, start.reply);
    text
}

/// A verb's name for a tool's, that no other has.
fn plain(tool: &str, taken: &[String]) -> String {
    let mut name = String::new();
    for char in tool.chars() {
        match char {
            'A'..='Z' => {
                if name.ends_with(|last: char| last.is_ascii_lowercase()) {
                    name.push('_');
                }
                name.push(char.to_ascii_lowercase());
            }
            'a'..='z' | '0'..='9' | '_' | '-' => name.push(char),
            _ => name.push('_'),
        }
    }
    if name.is_empty() {
        name.push('_');
    }
    while taken.contains(&name) {
        name.push('_');
    }
    name
}

/// A TOML string.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for char in text.chars() {
        match char {
            '"' | '\\' => out.extend(['\\', char]),
            _ if char.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(char));
            }
            _ => out.push(char),
        }
    }
    out.push('"');
    out
}
