//! What a person is asked before a package may do anything, and what comes of it.
//!
//! A first installation asks about everything. An upgrade keeps what was agreed to, asks
//! about what was never asked for before, and about that alone: what a person turned off
//! stays off.
//!
//! # Invariants
//! - I9: what is agreed to is at most what was asked for, and each entry of it was shown.
//! - What the publisher wrote stands escaped, its sentences behind the column.
//!
//! # Not here
//! Pages and answers (`dialogue`). Keeping what was agreed to (`installed`).

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::installed::Installed;
use super::trust::Vouched;
use super::words::{self, Danger};
use super::{Package, PackageError, screen};
use crate::grant::{Authority, Budget, Entry, Grant, Kind};

/// A question about a package, with the answers so far.
#[derive(Clone, Debug)]
pub struct Consent {
    head: Vec<String>,
    items: Vec<Item>,
    /// What was agreed to before and is asked for still.
    kept: Option<Authority>,
    /// What closes and bounds it all.
    rest: Authority,
    /// The budget, where it is asked about.
    budget: Option<Budget>,
    asked_budget: Budget,
    tail: Vec<String>,
}

/// One entry that is asked about.
#[derive(Clone, Debug)]
pub struct Item {
    /// What the package asks for.
    pub asked: Entry,
    /// What it gets if the answer is yes.
    pub entry: Entry,
    /// Whether it gets it.
    pub on: bool,
    /// What it is listed under.
    pub danger: Danger,
    pub(super) reason: String,
    pub(super) warnings: Vec<String>,
}

impl Consent {
    /// The question that this package raises, where another version of it may be installed.
    #[must_use]
    pub fn new(
        package: &Package,
        installed: Option<&Installed>,
        vouched: Vouched,
        warnings: &[String],
    ) -> Self {
        let manifest = &package.manifest;
        let request = &manifest.request;
        let (text, lines) = request.written();
        let grant = Grant::parse(&text);
        let notices = grant.as_ref().map_or(&[][..], Grant::warnings);
        let warned = |at: usize| -> Vec<String> {
            let starts = lines.get(at).copied().unwrap_or_default();
            let next = lines.iter().filter(|line| **line > starts).min().copied();
            let inside = |line: usize| line >= starts && next.is_none_or(|next| line < next);
            let inside = notices.iter().filter(|notice| inside(notice.line));
            inside.map(|notice| format!("{}: {}", notice.what, notice.why)).collect()
        };
        let news = |entry: &Entry| {
            installed.is_none_or(|installed| {
                let before = &installed.package.manifest.request;
                !before.covers_entry(entry) && !installed.grant.covers_entry(entry)
            })
        };
        let mut items: Vec<Item> = manifest
            .capabilities
            .iter()
            .enumerate()
            .filter(|(_, asked)| news(&asked.entry))
            .map(|(at, asked)| Item {
                asked: asked.entry.clone(),
                entry: asked.entry.clone(),
                on: true,
                danger: Danger::of(&asked.entry),
                reason: asked.reason.clone(),
                warnings: warned(at),
            })
            .collect();
        items.sort_by_key(|item| item.danger);
        let kept = installed.map(|installed| request.meet(&installed.grant));
        let rest = kept.clone().unwrap_or_else(|| request.clone());
        let before = installed.map(|installed| &installed.package.manifest.request.budget);
        let more = |before: &Budget| {
            let Budget { calls, seconds, memory } = request.budget;
            calls > before.calls || seconds > before.seconds || memory > before.memory
        };
        let budget = before.is_none_or(more).then_some(request.budget);
        Self {
            head: screen::head(package, installed, vouched, warnings),
            items,
            kept,
            rest: Authority { entries: Vec::new(), ..rest },
            budget,
            asked_budget: request.budget,
            tail: screen::tail(package, request),
        }
    }

    /// What an installed package may do, and what of what it asks for it may not.
    #[must_use]
    pub fn given(installed: &Installed) -> Self {
        let vouched = installed.key.map_or(Vouched::Nobody, Vouched::Known);
        let mut given = Self::new(&installed.package, None, vouched, &[]);
        for item in &mut given.items {
            let granted = installed.grant.entries.iter().find(|entry| item.asked.covers(entry));
            item.on = granted.is_some();
            item.entry = granted.unwrap_or(&item.asked).clone();
        }
        given.budget = Some(installed.grant.budget);
        given.tail = screen::tail(&installed.package, &installed.grant);
        if let Some(line) = given.head.last_mut() {
            "You agreed to this, and it can do this and never more:".clone_into(line);
        }
        given
    }

    /// Whether there is nothing to ask: it gets no more than was agreed to before.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.items.is_empty() && self.budget.is_none()
    }

    /// What is asked about, in the order of the screen.
    #[must_use]
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// What the package may do if this is agreed to.
    #[must_use]
    pub fn agreed(&self) -> Authority {
        let entries = self.items.iter().filter(|item| item.on).map(|item| item.entry.clone());
        let rest =
            Authority { budget: self.budget.unwrap_or(self.rest.budget), ..self.rest.clone() };
        self.kept.clone().unwrap_or_default().with(entries, &rest)
    }

    /// Turns the entry with this number on or off.
    ///
    /// # Errors
    /// There is none, or what is left is no grant.
    pub fn turn(&mut self, number: usize, on: bool) -> Result<(), String> {
        self.change(number, |item| {
            item.on = on;
            Ok(())
        })
    }

    /// Narrows the entry with this number to what these words say: for a place a pattern
    /// and, if they are not to stay, rights; for a host another; for the budget three numbers.
    ///
    /// # Errors
    /// There is none, it is not narrower, or it is no grant.
    pub fn narrow(&mut self, number: usize, words: &[&str]) -> Result<(), String> {
        if let Some(budget) = &mut self.budget
            && number == self.items.len() + 1
        {
            *budget = less(self.asked_budget, words)?;
            return Ok(());
        }
        self.change(number, |item| {
            let entry = match (&item.asked.0, words) {
                (Kind::Path(_), [path, rights @ ..]) => {
                    let rights: Vec<&str> = rights.iter().flat_map(|r| r.split(',')).collect();
                    item.asked.at(path, &rights)
                }
                (Kind::Host(_), [host]) => item.asked.at(host, &[]),
                (Kind::Primitive(_) | Kind::Tool(_), _) => {
                    return Err("it cannot be narrowed, only turned off".to_owned());
                }
                _ => return Err("say what it is to be narrowed to".to_owned()),
            };
            let less = entry.filter(|entry| item.asked.covers(entry));
            let entry = less.ok_or_else(|| "that is not less than what it asks for".to_owned())?;
            (item.entry, item.on) = (entry, true);
            Ok(())
        })
    }

    fn change(
        &mut self,
        number: usize,
        with: impl FnOnce(&mut Item) -> Result<(), String>,
    ) -> Result<(), String> {
        let before = self.items.clone();
        let item = number.checked_sub(1).and_then(|at| self.items.get_mut(at));
        let done = item.ok_or_else(|| "there is no such entry".to_owned()).and_then(with);
        let sound = done.and_then(|()| {
            Authority::read(&self.agreed().text())
                .map(|_| ())
                .map_err(|notice| format!("{}: {}", notice.what, notice.why))
        });
        if sound.is_err() {
            self.items = before;
        }
        sound
    }

    /// The question, line by line, for a screen of so many columns.
    #[must_use]
    pub fn screen(&self, columns: usize) -> Vec<String> {
        let mut lines = Vec::new();
        for line in &self.head {
            screen::fold(line, "", columns, &mut lines);
        }
        let mut heading = None;
        for (number, item) in (1..).zip(&self.items) {
            if heading != Some(item.danger) {
                heading = Some(item.danger);
                lines.push(String::new());
                screen::fold(item.danger.heading(), "", columns, &mut lines);
            }
            screen::shown(number, item, columns, &mut lines);
        }
        if let Some(budget) = &self.budget {
            lines.push(String::new());
            lines.push("IT CAN USE".to_owned());
            let text = format!("[{}] {}", self.items.len() + 1, words::budget(budget));
            screen::fold(&text, "    ", columns, &mut lines);
        }
        lines.push(String::new());
        for line in &self.tail {
            screen::fold(line, "  ", columns, &mut lines);
        }
        lines
    }

    /// The lines of the entry with this number.
    #[must_use]
    pub fn entry(&self, number: usize, columns: usize) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(item) = number.checked_sub(1).and_then(|at| self.items.get(at)) {
            screen::shown(number, item, columns, &mut lines);
        } else if let Some(budget) = &self.budget {
            screen::fold(
                &format!("[{number}] {}", words::budget(budget)),
                "    ",
                columns,
                &mut lines,
            );
        }
        lines
    }

    /// What was agreed to, for who watches: the digest of the grant's file among it.
    ///
    /// # Errors
    /// What is left is no grant, which does not happen to what was narrowed here.
    pub fn grant(&self) -> Result<Authority, PackageError> {
        let agreed = self.agreed();
        Authority::read(&agreed.text()).map_err(|notice| {
            PackageError::new(
                "what was agreed to is no grant",
                &format!("{}; {}", notice.what, notice.why),
                "remove the package and install it anew",
            )
        })
    }
}

fn less(most: Budget, words: &[&str]) -> Result<Budget, String> {
    let numbers: Option<Vec<u64>> = words.iter().map(|word| word.parse().ok()).collect();
    let Some([calls, seconds, mebibytes]) = numbers.as_deref() else {
        return Err("say calls, seconds and MiB, as three numbers".to_owned());
    };
    let memory = mebibytes.saturating_mul(1 << 20);
    let within = |number: u64, most: u64| number > 0 && number <= most;
    if within(*calls, most.calls) && within(*seconds, most.seconds) && within(memory, most.memory) {
        Ok(Budget { calls: *calls, seconds: *seconds, memory })
    } else {
        Err("that is not less than what it asks for".to_owned())
    }
}
