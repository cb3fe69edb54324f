//! The cost table, as a program reads it.

use crate::{err, out, synapse};

#[test]
fn bench_tells_a_median_between_its_quartiles_for_every_row() {
    let dir = tempfile::tempdir().unwrap();
    let bench = synapse(dir.path(), &["bench", "--json"]);
    assert_eq!(bench.status.code(), Some(0), "{}", err(&bench));
    let mut groups = Vec::new();
    for line in out(&bench).lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let time = |key: &str| row["nanoseconds"][key].as_f64().unwrap();
        assert!(0.0 < time("low") && time("low") <= time("median"), "{line}");
        assert!(time("median") <= time("high"), "{line}");
        groups.push(row["group"].as_str().unwrap().to_owned());
    }
    assert_eq!(groups.len(), 16);
    groups.dedup();
    assert_eq!(groups.len(), 6, "{groups:?}");
}
