//! Whoever sits at the console, asked for a yes
//!
//! A run puts its question on the desk and waits; the shell, which owns the
//! console, shows it page by page and hands back what is typed. Half a second
//! after its end everything typed so far is thrown away.
//!
//! # Invariants
//! - While a question stands, no line is a command, and only `yes`, typed after
//!   the question was whole on the screen, is a yes.
//!
//! # Not here
//! What a question says (`synapse_kernel::asking`).

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use core::future::poll_fn;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::Poll;

use spin::Mutex;
use synapse_boundary::Said;
use synapse_kernel::asking::Asking;
use synapse_kernel::confirm::{Confirm, Heard};
use synapse_kernel::render;

use crate::console::{Console, Typed};
use crate::{clock, println, serial};

/// Where the one standing question lies.
#[derive(Debug, Default)]
pub(crate) struct Desk(Mutex<Option<Standing>>);

#[derive(Debug)]
struct Standing {
    pages: VecDeque<String>,
    stage: Stage,
    /// When it is given up, in milliseconds.
    until: u64,
    said: Option<Said>,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// The next page is to be shown.
    Show,
    /// A page was shown, and more follow.
    Page,
    /// All was shown; nothing counts until then.
    Quiet(u64),
    /// The next line is the answer.
    Open,
}

/// What the shell has to do after it looked at the desk.
pub(crate) enum Tended {
    /// No question stands: the console is the shell's.
    Free,
    /// The desk has the console.
    Taken,
    /// Ctrl-C at a question.
    Interrupt,
}

impl Desk {
    /// Shows what is to be shown, and takes what is typed.
    pub(crate) fn tend(&self, console: &mut Console) -> Tended {
        let mut desk = self.0.lock();
        let Some(standing) = desk.as_mut().filter(|standing| standing.said.is_none()) else {
            return Tended::Free;
        };
        match standing.stage {
            Stage::Show => {
                console.forget();
                serial::show(&standing.pages.pop_front().unwrap_or_default());
                standing.stage = if standing.pages.is_empty() {
                    Stage::Quiet(clock::now_ms().saturating_add(LEAST))
                } else {
                    serial::show("Enter shows the next page, anything else is a no: ");
                    Stage::Page
                };
            }
            Stage::Quiet(until) => {
                console.forget();
                if clock::now_ms() >= until {
                    serial::show("yes and Enter allows this, once; anything else is a no: ");
                    standing.stage = Stage::Open;
                }
            }
            Stage::Page | Stage::Open => match (console.poll(), standing.stage) {
                (Some(Typed::Interrupt), _) => {
                    standing.said = Some(Said::No);
                    return Tended::Interrupt;
                }
                (Some(Typed::Line(line)), Stage::Page) if line.is_empty() => {
                    standing.stage = Stage::Show;
                }
                (Some(Typed::Line(_)), Stage::Page) => standing.said = Some(Said::No),
                (Some(Typed::Line(line)), _) => {
                    standing.said = Some(match line.as_str() {
                        "yes" => Said::Yes,
                        "" | "n" | "no" => Said::No,
                        _ => Said::Unrecognised,
                    });
                }
                (None, _) => {}
            },
        }
        Tended::Taken
    }

    /// Puts a question there, if none stands.
    fn put(&self, text: &str) -> bool {
        let mut desk = self.0.lock();
        if desk.is_some() {
            return false;
        }
        let lines: alloc::vec::Vec<&str> = text.split_inclusive('\n').collect();
        *desk = Some(Standing {
            pages: lines.chunks(ROWS).map(<[&str]>::concat).collect(),
            stage: Stage::Show,
            until: clock::now_ms().saturating_add(PATIENCE),
            said: None,
        });
        true
    }

    /// What came of the question, once something did.
    fn said(&self) -> Option<Said> {
        let desk = self.0.lock();
        let standing = desk.as_ref()?;
        standing.said.or_else(|| (clock::now_ms() >= standing.until).then_some(Said::TimedOut))
    }
}

/// The human, for one run.
pub(crate) struct Human {
    /// Where its questions lie.
    pub(crate) desk: Arc<Desk>,
    /// The agent's name.
    pub(crate) agent: String,
    /// Set to end the run.
    pub(crate) cancel: Arc<AtomicBool>,
}

impl Confirm for Human {
    fn ask<'a>(&'a self, asking: Asking) -> Pin<Box<dyn Future<Output = Heard> + Send + 'a>> {
        let mut place = Place { desk: &self.desk, taken: false };
        Box::pin(poll_fn(move |_| {
            // The whole of it: its fields alone would be copied, and it dropped at once.
            let place = &mut place;
            if !place.taken {
                let heading = alloc::format!("{} asks for a yes:\n", render::line(&self.agent, 40));
                place.taken = place.desk.put(&(heading + &asking.text(COLUMNS)));
            }
            let said = if self.cancel.load(Ordering::Relaxed) {
                Some(Said::Cancelled)
            } else if place.taken {
                place.desk.said()
            } else {
                // Another run's question stands.
                None
            };
            let Some(said) = said else { return Poll::Pending };
            println!("{}", if said == Said::Yes { "allowed once" } else { "not allowed" });
            Poll::Ready(Heard { said, console: "the machine's console".to_string() })
        }))
    }
}

/// A run's place at the desk: whoever leaves takes the question along.
struct Place<'d> {
    desk: &'d Desk,
    taken: bool,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.taken {
            *self.desk.0.lock() = None;
        }
    }
}

/// Milliseconds before an answer counts, and until a question is given up.
const LEAST: u64 = 500;
const PATIENCE: u64 = 300_000;
/// Of a screen that is not known.
const COLUMNS: usize = 80;
const ROWS: usize = 22;
