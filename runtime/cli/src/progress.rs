//! How far something is, on the terminal's error stream
//!
//! # Not here
//! Fetching and pushing (`synapse_host::package`).

use core::time::Duration;
use std::io::{self, IsTerminal as _};
use std::time::Instant;
use synapse_host::package::{Progress, Source};
use synapse_host::render;

/// A line that is written over; where nobody watches, one at the beginning and one at
/// the end.
pub(crate) struct Bar {
    doing: &'static str,
    what: String,
    is_watched: bool,
    last: Option<Progress>,
    shown: Option<Instant>,
}

impl Bar {
    /// For what is done with what is there; where it is here already, nothing is shown.
    pub(crate) fn new(doing: &'static str, source: &Source) -> Self {
        let what = render::line(source.to_string(), 50);
        Self { doing, what, is_watched: io::stderr().is_terminal(), last: None, shown: None }
    }

    /// How far it is.
    pub(crate) fn show(&mut self, progress: Progress) {
        let first = self.last.replace(progress).is_none();
        if first && progress.done > 0 {
            tell!("going on with {}, of which {} came before", self.what, size(progress.done));
        } else if first {
            tell!("{} {}", self.doing, self.what);
        }
        if self.is_watched && self.shown.is_none_or(|shown| shown.elapsed() >= PERIOD) {
            self.shown = Some(Instant::now());
            write(progress);
        }
    }

    /// It is over, well or not.
    pub(crate) fn end(&self) {
        match self.last {
            Some(progress) if self.is_watched => {
                write(progress);
                tell!("");
            }
            Some(progress) => tell!("{}", told(progress)),
            None => {}
        }
    }
}

fn write(progress: Progress) {
    // The line before may have been longer.
    tell_part!("\r{:<40}", told(progress));
}

fn told(progress: Progress) -> String {
    match progress.of {
        Some(of) => format!("{} of {}", size(progress.done), size(of)),
        None => size(progress.done),
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{}.{} kB", bytes / 1000, bytes % 1000 / 100),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

const PERIOD: Duration = Duration::from_millis(100);
