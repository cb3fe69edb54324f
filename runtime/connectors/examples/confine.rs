//! What the tests start programs by: the walls, and nothing else.

use std::process::ExitCode;

use synapse_connectors::confine::enter;

fn main() -> ExitCode {
    ExitCode::from(enter(std::env::args().skip(1)))
}
