//! Memory of the machine, and what the compiler expects to find there
mod builtins;
