//! An agent that lists a folder.
//!
//! The kernel calls `turn` once for each turn, in a fresh instance. All that the
//! agent can do is call `synapse_guest`, and each call passes the door.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use synapse_guest::{Error, Turn, files};

synapse_guest::agent!(turn);

/// The folder that `synapse run --dir FOLDER` shows.
const ROOT: &str = "/data";

/// What a turn answers when its input cannot be read.
const BAD_INPUT: u32 = 1;

/// Answers with the names and sizes of what stands in the folder.
///
/// # Errors
/// The input is no turn, or the door's number.
pub fn turn(input: &[u8]) -> Result<Vec<u8>, u32> {
    let turn = Turn::parse(input).map_err(|_| BAD_INPUT)?;
    let list = list(ROOT).map_err(Error::number)?;
    Ok(format!("{}\n{list}", turn.task()).into_bytes())
}

fn list(folder: &str) -> Result<String, Error> {
    let mut text = String::new();
    for entry in files::list_all(folder)? {
        text.push_str(&format!("{:>8}  {}\n", entry.size, entry.name));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::list;
    use synapse_guest::Error;
    use synapse_guest::abi::code::Refusal;
    use synapse_guest::reply::frame::{Form, Mark, header};
    use synapse_guest::testing::with_door;

    #[test]
    fn names_and_sizes_are_listed() {
        let door = |_: &[u8]| {
            let page = br#"[{"name":"a.md","kind":"file","size":12,"modified":0}]"#;
            Ok([&header(Form::Json, Mark::Ingested)[..], page].concat())
        };
        assert_eq!(with_door(door, || list("/data")).as_deref(), Ok("      12  a.md\n"));
    }

    #[test]
    fn a_refusal_is_handed_on() {
        let refused = Err(Error::Refused(Refusal::OutOfScope));
        assert_eq!(with_door(|_| Err(401), || list("/etc")), refused);
    }
}
