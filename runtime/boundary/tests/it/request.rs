//! What a request to the network says, as a person would read it: for the names of
//! these worlds, not for all.

use crate::names;
use crate::world::{Json, Sentence, World};

/// The secrets that a request is to carry, each a whole literal value.
pub(crate) fn secrets(sentence: &Sentence) -> Result<Vec<&'static str>, u16> {
    let mut asked = Vec::new();
    let whole = |text: &str, [open, close]: [&str; 2]| {
        let is = |name: &&&str| text == format!("{open}{name}{close}");
        names::SECRETS.iter().find(is).copied().ok_or(410_u16)
    };
    if let Some(Json::Object(members)) = sentence.argument(1) {
        for (name, value) in members {
            match value {
                Json::Text(text) if text.contains("{secret:") => {
                    let schemed = name.eq_ignore_ascii_case("authorization");
                    let text = text.strip_prefix("Bearer ").filter(|_| schemed).unwrap_or(text);
                    asked.push(whole(text, ["{secret:", "}"])?);
                }
                _ => {}
            }
        }
    }
    if let Some(Json::Text(url)) = sentence.argument(0)
        && let Some((_, query)) = url.split_once('?')
    {
        for pair in query.split('&').filter(|pair| pair.contains("%7Bsecret:")) {
            asked.push(whole(pair.trim_start_matches("k="), ["%7Bsecret:", "%7D"])?);
        }
    }
    Ok(asked)
}

/// Whether no header moves the request, its end or its meaning, and each is one line.
pub(crate) fn headers(world: &World, sentence: &Sentence) -> bool {
    let Some(Json::Object(members)) = sentence.argument(1) else { return false };
    let names: Vec<_> = members.iter().map(|(name, _)| name.to_lowercase()).collect();
    let sound = |(name, (_, value)): (&String, &(_, Json))| {
        let dashed = name.replace('_', "-");
        let moves = names::FRAMING.contains(&&*dashed)
            || ["proxy-", "x-forwarded-", "x-original-"].iter().any(|s| dashed.starts_with(s));
        let once = names.iter().filter(|other| *other == name).count() == 1;
        let token = !name.is_empty() && name.chars().all(|c| names::TOKEN.contains(c));
        let line = world.read(value).is_some_and(|text| {
            text.trim() == text && text.chars().all(|c| c.is_ascii() && !c.is_ascii_control())
        });
        token && once && !moves && line
    };
    names.iter().zip(members).all(sound)
}
