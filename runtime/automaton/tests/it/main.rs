//! The tables, and the grammars that have none

mod generator;
mod language;

#[path = "../../build/nfa.rs"]
mod nfa;
#[path = "../../build/table.rs"]
mod table;
