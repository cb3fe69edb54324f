use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;

use synapse_guest::reply::frame::{Form, Mark, header};
use synapse_guest::serde_json::{self, Value};
use synapse_guest::testing::with_door;

use super::{Plan, plan, turn};

#[test]
fn the_line_names_folders_and_a_report() {
    let found = plan("report on /data/a, /data/b/ and /data/c into /data/report.md.");
    let folders = Vec::from(["/data/a", "/data/b", "/data/c"]);
    let report = "/data/report.md";
    assert_eq!(found, Some(Plan { folders, report, doomed: Vec::new() }));
    let found = plan("report on /data/a into /data/report.md; delete /data/a/x and /data/a/y.");
    let (folders, doomed) = (Vec::from(["/data/a"]), Vec::from(["/data/a/x", "/data/a/y"]));
    assert_eq!(found, Some(Plan { folders, report, doomed }));
    for line in ["", "report on /data/a", "report into /data/x", "/data/a into the report"] {
        assert_eq!(plan(line), None, "{line}");
    }
}

/// Answers as the kernel does, but that nobody lives.
fn answer(said: &mut Vec<String>, sentence: &[u8]) -> Result<Vec<u8>, u32> {
    said.push(String::from_utf8(sentence.to_vec()).unwrap());
    let call: Value = serde_json::from_slice(sentence).unwrap();
    let number = said.len() as u64;
    let framed = |form, payload: &[u8]| Ok([&header(form, Mark::User)[..], payload].concat());
    match call["name"].as_str() {
        Some("agent_spawn") if call["arguments"]["task"] == "/data/none" => Err(401),
        Some("agent_spawn") => framed(Form::Handle, &number.to_le_bytes()),
        Some("agent_wait") => framed(Form::Held, &number.to_le_bytes()),
        _ => framed(Form::Nothing, b""),
    }
}

#[test]
fn reports_are_put_together_unseen() {
    let said = Rc::new(RefCell::new(Vec::new()));
    let heard = Rc::clone(&said);
    let door = move |sentence: &[u8]| answer(&mut heard.borrow_mut(), sentence);
    let line = "report on /data/a and /data/none into /data/r.md";
    let input = alloc::format!(r#"{{"v":1,"messages":[{{"from":"human","text":"{line}"}}]}}"#);
    assert_eq!(with_door(door, || turn(input.as_bytes())), Ok(Vec::new()));
    let said = said.borrow();
    assert!(said[0].starts_with(r#"{"warrant":"fs_write","arguments":{"path":"/data/r.md"}"#));
    assert!(said[1].contains(
        r#""paths":[{"path":"/data/a/**","rights":["list","read"]}],"primitives":["fs_list","fs_read"]}"#
    ));
    assert!(said[4].ends_with(r#""timeout":60000},"hold":true}"#), "{}", said[4]);
    assert!(said[5].contains("{\"parts\":[\"\\n## /data/a\\n\\n\",{\"$held\":5}]}"), "{}", said[5]);
    assert!(said[6].contains(r#"{"name":"channel_close""#), "{}", said[6]);
    assert!(said[7].contains("no report: "), "{}", said[7]);
    assert!(said[8].contains("2 folders, 1 without a report"), "{}", said[8]);
}

#[test]
fn leave_to_delete_goes_to_the_child_whose_folder_it_is_in() {
    let said = Rc::new(RefCell::new(Vec::new()));
    let heard = Rc::clone(&said);
    let door = move |sentence: &[u8]| answer(&mut heard.borrow_mut(), sentence);
    let line = "report on /data/a and /data/ab into /data/r.md; delete /data/a/x";
    let input = alloc::format!(r#"{{"v":1,"messages":[{{"from":"human","text":"{line}"}}]}}"#);
    assert_eq!(with_door(door, || turn(input.as_bytes())), Ok(Vec::new()));
    let said = said.borrow();
    let warrant = r#"{"warrant":"fs_delete","arguments":{"path":"/data/a/x"},"uses":1}"#;
    assert_eq!(said[1], warrant);
    let quoted = warrant.replace('"', "\\\"");
    assert!(said[2].contains(&alloc::format!(r#""warrants":["{quoted}"]"#)), "{}", said[2]);
    assert!(said[2].contains(r#""task":"/data/a\n/data/a/x""#), "{}", said[2]);
    assert!(!said[3].contains("fs_delete"), "{}", said[3]);
}
