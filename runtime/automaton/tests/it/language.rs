//! The door's own language, as the tables have it.

use synapse_automaton::{START, STATES, State};

/// The state after `bytes`, or how many of them are alive.
fn after(bytes: &[u8]) -> Result<State, usize> {
    let mut state = START;
    for (place, byte) in bytes.iter().enumerate() {
        state = state.next(*byte).ok_or(place)?;
    }
    Ok(state)
}

#[test]
fn sentence_is_live_then_complete_then_dead() {
    let sentence = br#"{"name":"fs_delete","arguments":{"path":"/a"}}"#;
    for end in 0..sentence.len() {
        assert!(!after(&sentence[..end]).unwrap().is_complete());
    }
    let end = after(sentence).unwrap();
    assert!(end.is_complete());
    assert_eq!(end.bytes().count(), 0);
}

#[test]
fn sentence_dies_at_the_first_wrong_byte() {
    for (alive, dead) in [
        ("", " "),
        (r#"{"name":"fs_"#, "x"),
        (r#"{"name":"fs_delete","arguments":{"path":""#, "\n"),
        (r#"{"name":"fs_delete","arguments":{"path":"\u00"#, "2"),
        (r#"{"name":"fs_read","arguments":{"path":"/a","offset":0"#, "1"),
        (r#"{"name":"fs_read","arguments":{"path":"/a","offset":123456789012345"#, "6"),
        (r#"{"name":"fs_write","arguments":{"path":"/a","content":"","mode":"cre"#, "\""),
        (r#"{"name":"net_listen","arguments":{"host":"a","port":6553"#, "6"),
        (r#"{"name":"net_http_get","arguments":{"url":"a","headers":{"$"#, "a"),
        (r#"{"name":"tool_use","arguments":{"tool":"s/v","arguments":{"a":[[["#, "["),
        (r#"{"name":"tool_use","arguments":{"tool":"s/v","arguments":{"a":-0"#, "}"),
        (r#"{"warrant":"fs_"#, "r"),
        (r#"{"warrant":"fs_delete","arguments":{"path":"/a"},"uses":6"#, "5"),
    ] {
        assert_eq!(after(format!("{alive}{dead}").as_bytes()), Err(alive.len()), "{alive}{dead}");
    }
    let mut bytes = br#"{"name":"console_ask","arguments":{"question":"#.to_vec();
    bytes.extend(b"\"\xed\xa0");
    assert_eq!(after(&bytes), Err(bytes.len() - 1));
}

#[test]
fn every_state_is_met_and_leads_to_a_complete_one() {
    let mut met = vec![START];
    let mut known = vec![false; STATES];
    known[usize::from(START.place())] = true;
    let mut back = vec![Vec::new(); STATES];
    let mut at = 0;
    while let Some(state) = met.get(at).copied() {
        for (_, _, next) in state.bytes() {
            back[usize::from(next.place())].push(state);
            if !core::mem::replace(&mut known[usize::from(next.place())], true) {
                met.push(next);
            }
        }
        at += 1;
    }
    assert_eq!(met.len(), STATES);
    let mut live: Vec<State> = met.into_iter().filter(|state| state.is_complete()).collect();
    assert!(!live.is_empty());
    // No sentence is the beginning of another.
    assert!(live.iter().all(|state| state.bytes().next().is_none()));
    let mut known = vec![false; STATES];
    let mut at = 0;
    while let Some(state) = live.get(at).copied() {
        known[usize::from(state.place())] = true;
        let befores = core::mem::take(&mut back[usize::from(state.place())]);
        live.extend(befores.into_iter().filter(|before| !known[usize::from(before.place())]));
        at += 1;
    }
    assert!(known.iter().all(|live| *live));
}

#[test]
fn next_is_what_the_ranges_say() {
    for byte in 0..=u8::MAX {
        let mut state = START;
        for sent in br#"{"name":"tool_use","arguments":{"tool":"s/v","arguments":{"a":"# {
            state = state.next(*sent).unwrap();
            let range = state.bytes().find(|(low, high, _)| (*low..=*high).contains(&byte));
            assert_eq!(state.next(byte), range.map(|(_, _, next)| next));
        }
    }
}
