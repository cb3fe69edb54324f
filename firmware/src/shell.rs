//! What the human can ask for at the console
//!
//! # Not here
//! Where lines come from (`console`). Running agents (`agents`).

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use core::fmt::Write;

use synapse_kernel::account::Account;
use synapse_kernel::verify::{Broken, Reader};
use synapse_kernel::{render, words};
use synapse_primitives::Platform;
use synapse_primitives::platform::Kind;

use crate::agents::{Agents, Started};
use crate::board::Board;
use crate::console::{self, Console, Typed};
use crate::exit::{Exit, exit};
use crate::human::Tended;
use crate::memory::heap;
use crate::{bench, cpu, executor, println, replay, serial};

/// The console's reader.
pub(crate) struct Shell {
    agents: Agents,
    board: Arc<Board>,
    console: Console,
    /// Lines that wait for the one before them.
    ahead: VecDeque<String>,
}

impl Shell {
    /// A shell over these agents and files.
    pub(crate) fn new(agents: Agents, board: Arc<Board>) -> Self {
        Self { agents, board, console: Console::default(), ahead: VecDeque::new() }
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
            "confirm" => self.confirm(rest),
            "ls" => self.list(rest),
            "cat" => self.show(rest),
            "runs" => {
                self.runs();
                Ok(())
            }
            "why" => self.why(rest),
            "audit" => self.audit(rest),
            "replay" => replay::run(self.agents.bundle(), self.agents.budget(), rest),
            "bench" | "/bench" => {
                let agent = if rest == "synapse" { "" } else { rest };
                bench::run(self.agents.bundle(), self.agents.budget(), agent)
            }
            "forget" => {
                println!("logs forgotten: {}", self.agents.forget());
                Ok(())
            }
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
            let page = executor::finish(self.board.list(path, &after, PAGE), || {});
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
            let read = executor::finish(self.board.read(path, offset, SHOWN), || {});
            let bytes = read.map_err(|fault| failed(path, fault.name()))?.bytes;
            if bytes.is_empty() {
                return Ok(());
            }
            serial::show(&render::block(&bytes));
            offset += SHOWN;
        }
    }

    fn runs(&self) {
        for run in self.agents.runs() {
            let state = if run.has_ended() { "ended" } else { "runs" };
            println!("run {}  {}  {state}", run.number, render::line(&run.name, 40));
        }
    }

    /// The last run, or the one with this number.
    fn find(&self, number: &str) -> Result<&Started, String> {
        let runs = self.agents.runs();
        if number.is_empty() {
            return runs.last().ok_or_else(|| "nothing was run yet".to_string());
        }
        let named = |run: &&Started| number.parse() == Ok(run.number);
        runs.iter()
            .find(named)
            .ok_or_else(|| format!("no run is called {}", render::line(number, 40)))
    }

    /// A record of the last run, with what came of it.
    fn why(&self, number: &str) -> Result<(), String> {
        let number = number.trim_start_matches('#');
        let wanted: u64 = number.parse().map_err(|_| "say which record: `why 12`".to_string())?;
        let run = self.find("")?;
        let log = run.log.lock();
        let account = Account::find(&log, wanted).map_err(|why| why.to_string())?;
        for line in account.lines() {
            println!("{line}");
        }
        Ok(())
    }

    fn audit(&self, words: &str) -> Result<(), String> {
        let (verb, number) = words.split_once(' ').unwrap_or((words, ""));
        let run = self.find(number)?;
        let log = run.log.lock();
        let mut reader = Reader::new(&log);
        let mut count = 0_u64;
        for record in reader.by_ref() {
            let record = record.map_err(broken)?;
            if verb == "show" {
                println!("{}", words::record(&record));
            }
            count += 1;
        }
        let mut chain = String::new();
        for byte in Reader::chain(&reader) {
            // Writing to a String cannot fail.
            let _ = write!(chain, "{byte:02x}");
        }
        match verb {
            "show" => Ok(()),
            "verify" => {
                println!("run {}: {} records, chain {chain}", run.number, words::grouped(count));
                Ok(())
            }
            _ => Err("say `audit show` or `audit verify`".to_string()),
        }
    }
}

fn broken(what: Broken) -> String {
    match what {
        Broken::Header => "the log has no header: it was forgotten".to_string(),
        Broken::Record(number) => format!("record {number} is not as it was written"),
        Broken::Torn(number) => format!("the log ends inside record {number}"),
    }
}

fn failed(path: &str, name: &str) -> String {
    format!("{}: {name}", render::line(path, LINE))
}

const HELP: &str = "\
run AGENT TASK [&]        runs an agent on a task, behind the prompt with &
confirm ask|deny          whether a run asks for what only a human can allow; deny at first
runs                      runs since the machine was started
ls [PATH], cat PATH       files
why N                     record N of the last run, and what came of it
audit show|verify [RUN]   a run's records; whether they are as they were written
forget                    drops the logs of runs that have ended
replay [N]                the bundle's runs in a world that stands still
bench [AGENT]             ticks of a call
free                      memory
poweroff                  ends the machine
";
/// Characters of a name or a line that are shown.
const LINE: usize = 200;
/// Entries of a directory that are read at once, and bytes of a file.
const PAGE: u64 = 100;
const SHOWN: u64 = 4096;
