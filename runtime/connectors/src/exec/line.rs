//! A line with its arguments in their places
//!
//! # Invariants
//! - A value has the form that the human wrote, or nothing is run.
//!
//! # Not here
//! What a line may look like (`synapse_kernel::manifest::lines`).

use std::path::Path;

use serde_json::{Map, Value};
use synapse_kernel::manifest::lines::place;
use synapse_kernel::manifest::{FOLDER, Form, Verb};

/// Bytes of a word, and of a text.
const WORD: usize = 200;
const TEXT: usize = 1000;

/// The folder that a call names.
pub(super) fn folder(arguments: &Map<String, Value>) -> Result<&str, String> {
    let folder = arguments.get(FOLDER).and_then(Value::as_str).ok_or_else(|| {
        format!("argument `{FOLDER}` is missing; name the folder in which the line is to run")
    })?;
    let normal = folder.starts_with('/') && folder.len() > 1 && !folder.ends_with('/');
    let parts = folder.split('/').skip(1);
    if normal && parts.clone().all(|part| !["", ".", ".."].contains(&part)) {
        return Ok(folder);
    }
    Err(format!("argument `{FOLDER}` is no normal path; name the folder like `/data/project`"))
}

/// The words that are run. `has` says whether something stands at a path of the folder.
pub(super) fn fill(
    verb: &Verb,
    arguments: &Map<String, Value>,
    root: &str,
    has: impl Fn(&str) -> bool,
) -> Result<Vec<String>, String> {
    for name in arguments.keys() {
        if !verb.arguments.iter().any(|known| known.name == *name) {
            let name = name.escape_debug();
            return Err(format!("the line has no argument `{name}`; leave it out"));
        }
    }
    let mut words = Vec::new();
    for word in &verb.line {
        let (before, name) = place(word).map_err(|_| "the line cannot be read".to_owned())?;
        let Some(name) = name else {
            words.push(word.clone());
            continue;
        };
        let form = verb.arguments.iter().find(|known| known.name == name);
        let form = form.and_then(|argument| argument.form);
        let value = arguments
            .get(name)
            .ok_or_else(|| format!("argument `{name}` is missing; the line has a place for it"))?;
        let value = value_of(name, value)?;
        let value = formed(form, &value, root, has_name(name), &has)?;
        words.push(format!("{before}{value}"));
    }
    Ok(words)
}

fn has_name(name: &str) -> impl Fn(&str) -> String {
    move |why| format!("argument `{name}` {why}")
}

fn value_of(name: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(format!("argument `{name}` is no text and no number; give it as one")),
    }
}

fn formed(
    form: Option<Form>,
    value: &str,
    root: &str,
    told: impl Fn(&str) -> String,
    has: &impl Fn(&str) -> bool,
) -> Result<String, String> {
    if value.chars().any(char::is_control) {
        return Err(told("holds a control character; give one line of plain text"));
    }
    if value.starts_with('-') {
        return Err(told("begins with `-`, which the line alone may say; give another value"));
    }
    let sign = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:+~^@-".contains(&byte);
    match form {
        Some(Form::Word) => {
            let begins =
                value.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_');
            if begins && value.len() <= WORD && value.bytes().all(sign) {
                return Ok(value.to_owned());
            }
            Err(told("is no word; use letters, digits and `_.:+~^@-`, a letter or digit first"))
        }
        Some(Form::Number) => {
            let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
            if digits && value.len() <= 9 {
                return Ok(value.to_owned());
            }
            Err(told("is no whole number of at most nine digits; give one"))
        }
        Some(Form::Text) => {
            if !value.is_empty() && value.len() <= TEXT {
                return Ok(value.to_owned());
            }
            Err(told("is empty or longer than 1000 bytes; say it in one line"))
        }
        Some(Form::Path) => {
            let inner = match value.strip_prefix(root) {
                Some("") => ".",
                Some(inner) => inner.strip_prefix('/').unwrap_or(value),
                None => value,
            };
            let normal = |part: &str| !["", ".", ".."].contains(&part);
            if inner != "." && !inner.split('/').all(normal) {
                return Err(told("leads out of the folder; name what stands in it"));
            }
            if inner.starts_with('-') || !has(inner) {
                return Err(told("names nothing that is there in the folder; look with `fs_list`"));
            }
            Ok(inner.to_owned())
        }
        None => Err(told("has no form; the manifest is to say one")),
    }
}

/// What was written, with the folder called what the caller calls it.
pub(super) fn renamed(bytes: &[u8], (copy, root): (&Path, &str)) -> Vec<u8> {
    let from = copy.as_os_str().as_encoded_bytes();
    let (mut shown, mut rest) = (Vec::new(), bytes);
    let finder = memchr::memmem::Finder::new(from);
    while let Some(at) = finder.find(rest).filter(|_| !from.is_empty()) {
        let (before, after) = rest.split_at(at);
        shown.extend_from_slice(before);
        shown.extend_from_slice(root.as_bytes());
        rest = after.get(from.len()..).unwrap_or_default();
    }
    shown.extend_from_slice(rest);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use synapse_kernel::manifest::Manifest;

    const MANIFEST: &str = r#"version = 1
server = "t"
[start]
lines = true
[verbs.a]
about = "A."
line = ["/bin/a", "--w={word}", "{path}", "-n", "{number}", "{text}"]
[verbs.a.arguments]
word = { form = "word" }
path = { form = "path" }
number = { form = "number" }
text = { form = "text" }
"#;

    fn filled(change: (&str, Value)) -> Result<Vec<String>, String> {
        let manifest = Manifest::check(MANIFEST).unwrap();
        let arguments = serde_json::json!({
            "tree": "/data/p", "word": "a::b", "path": "src/a.rs", "number": 3, "text": "it's; $(x)"
        });
        let Value::Object(mut arguments) = arguments else { unreachable!() };
        arguments.insert(change.0.to_owned(), change.1);
        let has = |path: &str| ["src/a.rs", "."].contains(&path);
        fill(manifest.verb("a").unwrap(), &arguments, "/data/p", has)
    }

    #[test]
    fn values_stand_where_they_belong_and_nothing_of_them_is_read() {
        let line = ["/bin/a", "--w=a::b", "src/a.rs", "-n", "3", "it's; $(x)"];
        assert_eq!(filled(("number", 3.into())).unwrap(), line);
        assert_eq!(filled(("path", "/data/p/src/a.rs".into())).unwrap(), line);
        assert_eq!(filled(("path", "/data/p".into())).unwrap()[2], ".");
    }

    #[test]
    fn what_is_not_of_its_form_is_told_and_not_run() {
        for (name, value, says) in [
            ("word", "-x", "`word` begins with `-`"),
            ("text", "--force", "`text` begins with `-`"),
            ("text", "a\nb", "holds a control character"),
            ("text", "a\0b", "holds a control character"),
            ("text", "", "is empty"),
            ("word", "a b", "is no word"),
            ("word", "a/../../b", "is no word"),
            ("word", "a=b", "is no word"),
            ("number", "1x", "is no whole number"),
            ("number", "1234567890", "is no whole number"),
            ("path", "../secret", "leads out of the folder"),
            ("path", "/etc/passwd", "leads out of the folder"),
            ("path", "/data/p2/a", "leads out of the folder"),
            ("path", "src/../src/a.rs", "leads out of the folder"),
            ("path", "-rf", "begins with `-`"),
            ("path", "/data/p/-rf", "names nothing"),
            ("path", "src/none.rs", "names nothing that is there"),
            ("other", "a", "no argument `other`"),
        ] {
            let told = filled((name, value.into())).unwrap_err();
            assert!(told.contains(says), "{name} {value:?}: {told}");
        }
        assert!(filled(("word", Value::Bool(true))).unwrap_err().contains("no text and no number"));
    }

    #[test]
    fn a_folder_is_a_normal_path() {
        for (folder, sound) in [
            ("/data/p", true),
            ("/data/../p", false),
            ("data", false),
            ("/", false),
            ("/a/", false),
        ] {
            let arguments = Map::from_iter([(FOLDER.to_owned(), folder.into())]);
            assert_eq!(super::folder(&arguments).is_ok(), sound, "{folder}");
        }
    }

    #[test]
    fn the_folder_is_called_what_the_caller_calls_it() {
        let names = (Path::new("/state/x/tree"), "/data/p");
        let shown = renamed(b"at /state/x/tree/src, /state/x/tree and /state/x/tre", names);
        assert_eq!(shown, b"at /data/p/src, /data/p and /state/x/tre");
    }
}
