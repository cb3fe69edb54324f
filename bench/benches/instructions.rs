//! Decides every sentence so many times and does nothing else: to be counted,
//! where a clock would only say how busy the machine is.

use std::process::ExitCode;

use synapse_bench::door::{World, sentences};

fn main() -> ExitCode {
    let passes = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(1_u32);
    let Ok(world) = World::small() else { return ExitCode::FAILURE };
    let sentences = sentences();
    for _ in 0..passes {
        for sentence in &sentences {
            drop(core::hint::black_box(world.decide(core::hint::black_box(sentence))));
        }
    }
    ExitCode::SUCCESS
}
