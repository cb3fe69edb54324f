//! Questions to the human, one at a time, and what they say to them
//!
//! An agent that asks for a line, or for a yes, waits here; the shell, which owns
//! the console, shows the question whose turn it is and hands back what is typed.
//! Who asks stands above each, in the image's own words; what an agent says
//! itself stands behind the column that no guest can print.
//!
//! # Invariants
//! - What was typed before a question was shown is no answer to it.
//! - While a question stands, no line is a command, and only `yes`, typed after
//!   the question was whole on the screen, is a yes.
//! - A question ends: by an answer, by the end of its run, or by time.
//!
//! # Not here
//! Reading lines (`console`). What a question for a yes says
//! (`synapse_kernel::asking`). Which label an answer has (`primitives`).

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::future::poll_fn;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::task::Poll;
use core::time::Duration;

use spin::Mutex;
use synapse_boundary::Said;
use synapse_kernel::asking::Asking;
use synapse_kernel::confirm::Heard;
use synapse_kernel::{render, words};
use synapse_primitives::Fault;
use synapse_primitives::platform::Asker;

use crate::board::COLUMNS;
use crate::console::{Console, Typed};
use crate::{clock, println, serial};

/// Where questions wait for the human.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    /// The first one is what the human sees.
    waiting: Mutex<VecDeque<Question>>,
    next: AtomicU64,
}

#[derive(Debug)]
struct Question {
    number: u64,
    wanted: Wanted,
    /// What is still to be shown.
    pages: VecDeque<String>,
    stage: Stage,
    /// When it is given up; nothing, while none of it is shown.
    until: Option<Duration>,
    answer: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Line,
    Yes,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// The next page is to be shown.
    Show,
    /// A page was shown, and more follow.
    Page,
    /// All was shown; nothing counts until then.
    Quiet(Duration),
    /// The next line is the answer.
    Open,
}

impl Wanted {
    const fn prompt(self) -> &'static str {
        match self {
            Self::Line => "your answer, in one line: ",
            Self::Yes => "yes and Enter allows this, once; anything else is a no: ",
        }
    }
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

/// Why a question has no answer.
enum Unanswered {
    Cancelled,
    Late,
}

impl Desk {
    /// Asks for a line, and waits for it.
    pub(crate) async fn ask(
        &self,
        agent: &str,
        question: &[u8],
        asker: Asker,
        cancel: &AtomicBool,
    ) -> Result<Vec<u8>, Fault> {
        let mut text = format!("\n{}\n", words::asks(agent, asker));
        text.push_str(&render::wrapped(question, COLUMNS));
        match self.put(Wanted::Line, VecDeque::from([text]), cancel).await {
            Ok(line) => Ok(line.into_bytes()),
            Err(Unanswered::Cancelled) => Err(Fault::Cancelled),
            Err(Unanswered::Late) => {
                println!("\nno answer came in time");
                Err(Fault::TimedOut)
            }
        }
    }

    /// Asks for a yes, and waits for what is said.
    pub(crate) async fn confirm(&self, agent: &str, asking: Asking, cancel: &AtomicBool) -> Heard {
        let mut text = format!("{} asks for a yes:\n", render::line(agent, 40));
        text.push_str(&asking.text(COLUMNS));
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let pages = lines.chunks(ROWS).map(<[&str]>::concat).collect();
        let said = match self.put(Wanted::Yes, pages, cancel).await.as_deref() {
            Ok("yes") => Said::Yes,
            Ok("" | "n" | "no") => Said::No,
            Ok(_) => Said::Unrecognised,
            Err(Unanswered::Cancelled) => Said::Cancelled,
            Err(Unanswered::Late) => Said::TimedOut,
        };
        println!("{}", if said == Said::Yes { "allowed once" } else { "not allowed" });
        Heard { said, console: "the machine's console".to_string() }
    }

    /// Puts a question behind those that wait, and waits for its answer.
    async fn put(
        &self,
        wanted: Wanted,
        pages: VecDeque<String>,
        cancel: &AtomicBool,
    ) -> Result<String, Unanswered> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (stage, until, answer) = (Stage::Show, None, None);
        let question = Question { number, wanted, pages, stage, until, answer };
        self.waiting.lock().push_back(question);
        let _standing = Standing { desk: self, number };
        poll_fn(|context| {
            // Nobody says when it is answered: it is asked again.
            context.waker().wake_by_ref();
            self.look(number, cancel).map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// What a question has come to, if it has.
    fn look(&self, number: u64, cancel: &AtomicBool) -> Option<Result<String, Unanswered>> {
        if cancel.load(Ordering::Relaxed) {
            return Some(Err(Unanswered::Cancelled));
        }
        let mut waiting = self.waiting.lock();
        let first = waiting.front_mut().filter(|first| first.number == number)?;
        if let Some(answer) = first.answer.take() {
            return Some(Ok(answer));
        }
        let late = first.until.is_some_and(|until| clock::passed() >= until);
        late.then_some(Err(Unanswered::Late))
    }

    /// Shows what is to be shown, and takes what is typed for the question whose
    /// turn it is.
    pub(crate) fn tend(&self, console: &mut Console) -> Tended {
        let mut waiting = self.waiting.lock();
        match waiting.front_mut().filter(|first| first.answer.is_none()) {
            Some(first) => first.tend(console),
            None => Tended::Free,
        }
    }
}

impl Question {
    fn tend(&mut self, console: &mut Console) -> Tended {
        match self.stage {
            Stage::Show => {
                console.forget();
                self.show();
            }
            Stage::Quiet(until) => {
                console.forget();
                if clock::passed() >= until {
                    serial::show(self.wanted.prompt());
                    self.stage = Stage::Open;
                }
            }
            Stage::Page | Stage::Open => match console.poll() {
                Some(Typed::Line(line)) => self.typed(line, console),
                Some(Typed::Interrupt) => {
                    if self.wanted == Wanted::Yes {
                        self.answer = Some(NO.to_string());
                    }
                    return Tended::Interrupt;
                }
                None => {}
            },
        }
        Tended::Taken
    }

    fn show(&mut self) {
        let now = clock::passed();
        self.until.get_or_insert(now.saturating_add(PATIENCE));
        serial::show(&self.pages.pop_front().unwrap_or_default());
        self.stage = if self.pages.is_empty() {
            Stage::Quiet(now.saturating_add(LEAST))
        } else {
            serial::show("Enter shows the next page, anything else is a no: ");
            Stage::Page
        };
    }

    fn typed(&mut self, line: String, console: &mut Console) {
        match (self.stage, self.wanted) {
            (Stage::Page, _) if line.is_empty() => self.stage = Stage::Show,
            (Stage::Page, _) => self.answer = Some(NO.to_string()),
            (_, Wanted::Line) if console.has_more() => {
                println!("more than one line is no answer; type one line");
                serial::show(self.wanted.prompt());
            }
            _ => self.answer = Some(line),
        }
    }
}

/// A question whose asker waits; one that waits no more has no question.
struct Standing<'d> {
    desk: &'d Desk,
    number: u64,
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        self.desk.waiting.lock().retain(|question| question.number != self.number);
    }
}

const NO: &str = "no";
/// Before an answer counts: nobody has read in that time, so what is typed in it was meant
/// for something else.
pub(crate) const LEAST: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_mins(5);
/// Of a screen that is not known.
const ROWS: usize = 22;
