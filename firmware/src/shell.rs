//! What the human can ask for at the console
//!
//! # Not here
//! Where lines come from (`console`). Running agents (`agents`), and what is left
//! of runs (`past`).

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;

use synapse_kernel::{render, words};
use synapse_primitives::platform::Kind;
use synapse_store::Shelf;

use crate::agents::Agents;
use crate::console::{self, Console, Typed};
use crate::desk::Tended;
use crate::exit::{Exit, exit};
use crate::memory::heap;
use crate::{bench, cpu, install, past, println, serial};

/// The console's reader.
pub(crate) struct Shell {
    agents: Agents,
    shelf: Arc<Shelf>,
    console: Console,
    /// Lines that wait for the one before them.
    ahead: VecDeque<String>,
}

impl Shell {
    /// A shell over these agents and files.
    pub(crate) fn new(agents: Agents, shelf: Arc<Shelf>) -> Self {
        Self { agents, shelf, console: Console::default(), ahead: VecDeque::new() }
    }

    /// Does what the bundle's `start` says, and then what is typed.
    pub(crate) fn run(mut self) -> ! {
        if let Some(Ok(start)) = self.agents.bundle().text("start") {
            self.ahead.extend(start.lines().map(ToString::to_string));
        }
        console::prompt();
        loop {
            if let Some(line) = self.ahead.pop_front() {
                println!("{}", render::line(&line, LINE));
                self.obey(&line);
                console::prompt();
            }
            match self.typed() {
                Some(Typed::Line(line)) => {
                    self.obey(&line);
                    console::prompt();
                }
                Some(Typed::Interrupt) => console::prompt(),
                None => cpu::pause(),
            }
            self.agents.step();
        }
    }

    /// What was typed for the shell, after the desk has taken what is for it.
    fn typed(&mut self) -> Option<Typed> {
        match self.agents.desk().tend(&mut self.console) {
            Tended::Free => self.console.poll(),
            Tended::Taken => None,
            Tended::Interrupt => Some(Typed::Interrupt),
        }
    }

    fn obey(&mut self, line: &str) {
        let (verb, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        let rest = rest.trim();
        let told = match verb {
            "" => Ok(()),
            "help" => {
                self.help();
                Ok(())
            }
            "run" => self.start(rest),
            "install" => self.install(rest),
            "list" => install::list(&self.shelf, self.agents.bundle()),
            "show" => install::show(&self.shelf, rest),
            "revoke" => install::revoke(&self.shelf, rest).map(|name| self.agents.end(name)),
            "remove" => install::remove(&self.shelf, rest).map(|()| self.agents.end(rest)),
            "confirm" => self.confirm(rest),
            "ls" => self.list(rest),
            "cat" => self.show(rest),
            "runs" => {
                self.runs();
                Ok(())
            }
            "why" => past::why(&self.shelf, rest),
            "audit" => past::audit(&self.shelf, rest),
            "undo" => self.undo(rest),
            #[cfg(feature = "replay")]
            "replay" => crate::replay::run(self.agents.bundle(), self.agents.budget(), rest),
            "bench" | "/bench" => {
                let agent = if rest == "synapse" { "" } else { rest };
                bench::run(self.agents.bundle(), self.agents.budget(), agent)
            }
            "forget" => self.agents.forget().map(|count| println!("logs forgotten: {count}")),
            "free" => {
                println!("{} KiB of memory are free", heap::free() >> 10);
                Ok(())
            }
            "poweroff" => exit(Exit::Success),
            _ => {
                Err(format!("there is no `{}`; `help` says what there is", render::line(verb, 40)))
            }
        };
        if let Err(why) = told {
            println!("error: {why}");
        }
    }

    fn help(&self) {
        serial::show(HELP);
        for agent in self.agents.bundle().agents() {
            println!("agent: {}", render::line(agent, 40));
        }
    }

    /// Asks whether a package may do what it wants to, and installs it.
    fn install(&mut self, words: &str) -> Result<(), String> {
        if self.agents.under_way().next().is_some() {
            return Err("an agent is at work, and its lines would stand among the question's; \
                        wait until it has ended"
                .to_string());
        }
        let room = self.agents.budget().code;
        install::install(&self.shelf, self.agents.bundle(), room, &mut self.console, words)
    }

    fn start(&mut self, words: &str) -> Result<(), String> {
        let (words, behind) = match words.strip_suffix('&') {
            Some(words) => (words.trim_end(), true),
            None => (words, false),
        };
        let (name, task) = words.split_once(' ').unwrap_or((words, ""));
        let started = self.agents.start(name, task.trim())?;
        if behind {
            println!("run {} is under way", started.number);
            return Ok(());
        }
        while !started.has_ended() {
            self.agents.step();
            match self.typed() {
                Some(Typed::Interrupt) => started.cancel(),
                Some(Typed::Line(line)) => self.ahead.push_back(line),
                None => {}
            }
        }
        Ok(())
    }

    /// Whether runs that start from now on ask for what only a human can allow.
    fn confirm(&mut self, word: &str) -> Result<(), String> {
        self.agents.ask = match word {
            "ask" => true,
            "deny" => false,
            _ => return Err("say `confirm ask` or `confirm deny`".to_string()),
        };
        Ok(())
    }

    fn list(&self, path: &str) -> Result<(), String> {
        let path = if path.is_empty() { "/" } else { path };
        let mut after = String::new();
        loop {
            let page = self.shelf.list(path, &after, PAGE);
            let page = page.map_err(|fault| failed(path, fault.name()))?;
            for entry in &page.entries {
                let sign = if entry.kind == Kind::Directory { "/" } else { "" };
                println!(
                    "{:>10}  {}{sign}",
                    words::grouped(entry.size),
                    render::line(&entry.name, LINE)
                );
            }
            match page.entries.last() {
                Some(last) if page.more => after.clone_from(&last.name),
                _ => return Ok(()),
            }
        }
    }

    fn show(&self, path: &str) -> Result<(), String> {
        let mut offset = 0;
        loop {
            let bytes = self.shelf.read(path, offset, SHOWN);
            let bytes = bytes.map_err(|fault| failed(path, fault.name()))?.bytes;
            if bytes.is_empty() {
                return Ok(());
            }
            serial::show(&render::block(&bytes));
            offset += SHOWN;
        }
    }

    fn runs(&self) {
        for run in self.shelf.runs() {
            let state = if self.agents.under_way().any(|number| number == run.number) {
                "runs"
            } else if run.ended {
                "ended"
            } else {
                "was cut off"
            };
            println!("run {}  {}  {state}", run.number, render::line(&run.name, 40));
        }
    }

    /// Shows what would be put back of a run, asks, and puts it back.
    fn undo(&mut self, number: &str) -> Result<(), String> {
        if self.agents.under_way().next().is_some() {
            return Err("an agent is at work in these files; wait until it has ended".to_string());
        }
        let run = past::find(&self.shelf, number)?;
        let changes = past::changes(&self.shelf, run.number)?;
        for (_, entry) in &changes {
            println!("{}", past::planned(entry));
        }
        if changes.is_empty() {
            println!("nothing is left to put back of run {}", run.number);
            return Ok(());
        }
        // A line that came before the question is no answer to it.
        self.console.forget();
        let count = past::counted(changes.len());
        serial::show(&format!("put back {count} of run {}? Type yes: ", run.number));
        if self.line().as_deref() != Some("yes") {
            println!("nothing was put back");
            return Ok(());
        }
        past::put_back(&self.shelf, run.number, &changes)
    }

    /// The line that is typed now; none if it is given up.
    fn line(&mut self) -> Option<String> {
        loop {
            match self.console.poll() {
                Some(Typed::Line(line)) => return Some(line),
                Some(Typed::Interrupt) => return None,
                None => cpu::pause(),
            }
        }
    }
}

fn failed(path: &str, name: &str) -> String {
    format!("{}: {name}", render::line(path, LINE))
}

const HELP: &str = "\
run AGENT TASK [&]        runs an agent on a task, behind the prompt with &
install PACKAGE           asks what a package may do from now on, and keeps it; it is run by name
list, show NAME           what is installed and what came along; what was agreed to
revoke NAME PART..., remove NAME
                          takes back a part of that, or all of it
confirm ask|deny          whether a run asks for what only a human can allow; deny at first
runs                      runs since the machine was started
ls [PATH], cat PATH       files
why N [RUN]               record N of the last run or this one, and what came of it
audit show|verify [RUN]   a run's records; whether they are as they were written
undo [RUN]                puts back what a run changed, after it asked
forget                    drops what is kept of runs that have ended
bench [AGENT]             ticks of a call
free                      memory
poweroff                  ends the machine
";
/// Characters of a name or a line that are shown.
const LINE: usize = 200;
/// Entries of a directory that are read at once, and bytes of a file.
const PAGE: u64 = 100;
const SHOWN: u64 = 4096;
