//! A child: one turn of a package, for its parent.
//!
//! Its task, and then its report, pass between the two by a post that both know.
//! What it does is in the run's log under its own number.
//!
//! # Invariants
//! - I3: its task, its turn and the end of that are in the log, also where it was
//!   ended by others.
//! - I6: it begins with the label of everything its task may come from, and its report
//!   carries the mark that it ended with, also where there is none.
//! - I13: it has no line of the human's, and so can mint no warrant; those that it has
//!   are its parent's no more, and die with the turn in which they were minted.
//!
//! # Not here
//! Who may have which child (`holding`).

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;
use core::task::{Context, Poll, Waker};

use spin::Mutex;
use synapse_boundary::{Integrity, Label};
use synapse_primitives::hands::Spawn;
use synapse_primitives::{Labelled, Platform};
use synapse_reply::Fault;

use crate::channel::{Risen, Shelf};
use crate::crew::{Crew, Job, Package, Turn};
use crate::engine::Ended;
use crate::grant::moved;
use crate::holding::Seat;
use crate::line::Line;
use crate::record::{Kind, Sink};
use crate::run::{BROKE, Note, about, bounds, ending, note};
use crate::session::{Author, Message};
use crate::task::Task;

/// What lies between a child and its parent.
pub(crate) struct Post {
    /// How far the child's mark has risen.
    pub(crate) risen: Arc<Risen>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// What was given and not taken yet.
    given: Vec<Line>,
    report: Option<Report>,
    waker: Option<Waker>,
}

struct Report {
    what: Labelled<Result<Vec<u8>, Fault>>,
    _shelf: Option<Shelf>,
}

impl Post {
    pub(crate) fn new(risen: Arc<Risen>) -> Arc<Self> {
        Arc::new(Self { risen, inner: Mutex::default() })
    }

    pub(crate) fn give(&self, line: Line) {
        self.inner.lock().given.push(line);
    }

    pub(crate) fn given(&self) -> Vec<Line> {
        mem::take(&mut self.inner.lock().given)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.inner.lock().report.is_some()
    }

    /// What the child came to, as often as it is asked for.
    pub(crate) fn poll_report(
        &self,
        context: &Context<'_>,
    ) -> Poll<Labelled<Result<Vec<u8>, Fault>>> {
        let mut inner = self.inner.lock();
        if let Some(report) = &inner.report {
            return Poll::Ready(report.what.clone());
        }
        inner.waker = Some(context.waker().clone());
        Poll::Pending
    }

    fn report(&self, report: Report) {
        let mut inner = self.inner.lock();
        inner.report = Some(report);
        // What it did not take, nobody will.
        let given = mem::take(&mut inner.given);
        let waker = inner.waker.take();
        drop(inner);
        drop(given);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Records a child, and makes what it will do.
pub(crate) fn begin<P: Platform + 'static, S: Sink + 'static>(
    crew: &Arc<Crew<P, S>>,
    seat: Seat,
    package: Package<Turn<P, S>>,
    order: Spawn<'_>,
    parent: u64,
) -> Result<Job, Fault> {
    let (label, record) = (order.task.label(), order.record);
    let message = match String::from_utf8(order.task.value().clone()) {
        Ok(text) if label.integrity != Integrity::Ingested => {
            Message::clear(Author::Parent, Labelled::new(text, label))
        }
        _ => None,
    };
    let line = message.as_ref().and_then(Message::text).map(|text| text.value().clone());
    let text = about(
        (line.as_deref(), Some((parent, order.package))),
        None,
        &seat.grant,
        package.approval.as_ref(),
        None,
    );
    let start = Note { task: seat.task, cause: Some(record), ..Note::of(Kind::TaskStart, label) };
    note(&mut crew.log.lock(), &*crew.platform, &start.saying(&text))
        .map_err(|_| Fault::NoRecord)?;
    let (number, post) = (seat.task, seat.post.clone());
    let bound = crew.staff.as_ref().map_or(0, |staff| staff.memory);
    let limits = bounds(&seat.grant, bound);
    let mut task = Task::seated(Arc::clone(crew), label, seat);
    let message = match message {
        Some(message) => message,
        None => Message::held(Author::Parent, task.keep_task(order.task, record)?),
    };
    let (crew, warrants) = (Arc::clone(crew), moved(order.grant));
    let Package { program, texts, .. } = package;
    Ok(Box::pin(async move {
        let mut ending = Ending { crew: Arc::clone(&crew), number, label, end: None };
        let start = Note { task: number, ..Note::of(Kind::TurnStart, label) };
        let noted = note(&mut crew.log.lock(), &*crew.platform, &start);
        let (task, ended) = match noted {
            Ok(_) => {
                let input = task.input(&texts, &[message], &warrants);
                program(task, input.into_bytes(), limits).await
            }
            Err(_) => (task, Err(Ended::Engine)),
        };
        ending.label = task.mark();
        ending.end = Some(ended.as_ref().map(drop).map_err(|ended| *ended));
        drop(ending);
        let label = task.mark();
        // What it holds goes before anybody learns that it is over.
        drop(task);
        let shelf = ended.as_ref().ok().map(|report| crew.pantry.take(report.len()));
        let what = match (&shelf, ended) {
            (Some(Some(_)), Ok(report)) => Ok(report),
            (_, Ok(_)) => Err(Fault::NoRoom),
            (_, Err(_)) => Err(Fault::Closed),
        };
        if let Some(post) = post {
            post.report(Report { what: Labelled::new(what, label), _shelf: shelf.flatten() });
        }
    }))
}

/// Records the end of a child's turn, also where it does not come to it.
struct Ending<P: Platform, S: Sink> {
    crew: Arc<Crew<P, S>>,
    number: u64,
    label: Label,
    end: Option<Result<(), Ended>>,
}

impl<P: Platform, S: Sink> Drop for Ending<P, S> {
    fn drop(&mut self) {
        let (code, said) = self.end.map_or((BROKE, None), ending);
        let end = Note { task: self.number, code, ..Note::of(Kind::TurnEnd, self.label) };
        let end = match &said {
            Some(said) => end.saying(said),
            None => end,
        };
        // A log that takes nothing has said so to whoever asked it before.
        let _ = note(&mut self.crew.log.lock(), &*self.crew.platform, &end);
    }
}
