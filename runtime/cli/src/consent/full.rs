//! The consent screen on a whole terminal
//!
//! The same lines as in plain text, to scroll through, with keys for each entry. It shows
//! no colours, so that it is the same on every terminal.
//!
//! # Not here
//! What is shown, and what an answer means (`synapse_host::package`). Pages (`plain`).

use core::time::Duration;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use ratatui::{DefaultTerminal, Frame};
use std::io;
use std::time::Instant;
use synapse_host::package::Consent;
use synapse_host::render;

/// Columns and rows below which it is asked in plain text.
pub(super) const COLUMNS: usize = 60;
pub(super) const ROWS: usize = 16;

/// Shows the question and takes the answers; nothing is a no.
pub(super) fn ask(question: &mut Consent) -> Result<Option<()>, String> {
    let failed =
        |why: io::Error| format!("the terminal cannot show it: {why}\ntry another one, or --plain");
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let answer = Screen::default().run(&mut terminal, question);
    // Whatever went wrong, the person gets the terminal back.
    ratatui::restore();
    answer.map_err(failed)
}

/// Where the person is, and what was seen.
#[derive(Default)]
struct Screen {
    /// The first line that is shown.
    top: usize,
    /// Lines that fit, and how wide they may be.
    room: usize,
    columns: usize,
    /// The entry that the keys are about, from 1.
    chosen: usize,
    /// Since when the last line has been seen.
    seen: Option<Instant>,
    /// What is typed to narrow an entry.
    typed: Option<String>,
    told: String,
}

impl Screen {
    fn run(
        mut self,
        terminal: &mut DefaultTerminal,
        question: &mut Consent,
    ) -> io::Result<Option<()>> {
        self.chosen = 1;
        loop {
            let mut end = false;
            terminal.draw(|frame| end = self.draw(frame, question))?;
            if end && self.seen.is_none() {
                // What was typed before it was seen is no answer to it.
                while event::poll(Duration::ZERO)? {
                    event::read()?;
                }
                self.seen = Some(Instant::now());
            }
            let Event::Key(key) = event::read()? else { continue };
            if key.kind == KeyEventKind::Release {
                continue;
            }
            if let Some(answer) = self.key(key, question) {
                return Ok(answer.then_some(()));
            }
        }
    }

    /// Draws, and says whether the last line is among what is shown.
    fn draw(&mut self, frame: &mut Frame<'_>, question: &Consent) -> bool {
        let [body, told, keys] =
            Layout::vertical([Constraint::Min(1), Constraint::Length(1), Constraint::Length(1)])
                .areas(frame.area());
        (self.room, self.columns) = (body.height.into(), body.width.into());
        let lines = question.screen(self.columns);
        self.top = self.top.min(lines.len().saturating_sub(self.room));
        let chosen = format!("[{}] ", self.chosen);
        let shown = lines.iter().skip(self.top).take(self.room).map(|line| {
            let heading = !line.starts_with(['│', '[', ' ', '-', '!'])
                && line.chars().any(|c| c.is_ascii_uppercase())
                && !line.chars().any(|c| c.is_ascii_lowercase());
            let style = if line.starts_with(&chosen) {
                Style::new().add_modifier(Modifier::REVERSED)
            } else if heading || line.contains("! ") && line.trim_start().starts_with('!') {
                Style::new().add_modifier(Modifier::BOLD)
            } else {
                Style::new()
            };
            Line::styled(line.clone(), style)
        });
        frame.render_widget(Paragraph::new(shown.collect::<Vec<_>>()), body);
        let last = self.top + self.room >= lines.len();
        let rest = if last { "the end".to_owned() } else { "more below".to_owned() };
        let status = match &self.typed {
            Some(typed) => format!("narrow {} to: {}_", self.chosen, render::escape(typed)),
            None => format!("{rest}  {}", self.told),
        };
        frame.render_widget(Paragraph::new(status), told);
        let bar = Style::new().add_modifier(Modifier::REVERSED);
        frame.render_widget(Paragraph::new(KEYS).style(bar), keys);
        last
    }

    /// What a key does; an answer ends it.
    fn key(&mut self, key: KeyEvent, question: &mut Consent) -> Option<bool> {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return matches!(key.code, KeyCode::Char('c' | 'd')).then_some(false);
        }
        if let Some(typed) = &mut self.typed {
            match key.code {
                KeyCode::Esc => self.typed = None,
                KeyCode::Backspace => drop(typed.pop()),
                KeyCode::Char(char) => typed.push(char),
                KeyCode::Enter => {
                    let words: Vec<&str> = typed.split_whitespace().collect();
                    let done = question.narrow(self.chosen, &words);
                    self.typed = None;
                    self.tell(done);
                }
                _ => {}
            }
            return None;
        }
        self.told.clear();
        let page = self.room.saturating_sub(1).max(1);
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Some(false),
            KeyCode::Char('a') => match self.seen {
                Some(seen) if seen.elapsed() >= PAUSE => return Some(true),
                Some(_) | None => {
                    "not before you have seen it all: PageDown".clone_into(&mut self.told);
                }
            },
            KeyCode::Up => self.choose(question, self.chosen.saturating_sub(1).max(1)),
            KeyCode::Down => self.choose(question, self.chosen + 1),
            KeyCode::PageDown => self.top += page,
            KeyCode::PageUp => self.top = self.top.saturating_sub(page),
            KeyCode::Home => self.top = 0,
            KeyCode::Char('n') => self.typed = Some(String::new()),
            KeyCode::Char(' ') => {
                let item = question.items().get(self.chosen.saturating_sub(1));
                let done = match item.map(|item| item.on) {
                    Some(on) => question.turn(self.chosen, !on),
                    None => Err("it cannot be turned off, only narrowed".to_owned()),
                };
                self.tell(done);
            }
            _ => {}
        }
        None
    }

    /// Goes to an entry, and brings it onto the screen.
    fn choose(&mut self, question: &Consent, number: usize) {
        // The budget stands behind the items.
        if number > question.items().len() + 1 {
            return;
        }
        self.chosen = number;
        let before = format!("[{number}] ");
        let lines = question.screen(self.columns);
        if let Some(at) = lines.iter().position(|line| line.starts_with(&before)) {
            if at < self.top {
                self.top = at;
            } else if at + 2 > self.top + self.room {
                self.top = (at + 2).saturating_sub(self.room);
            }
        }
    }

    fn tell(&mut self, done: Result<(), String>) {
        self.told = match done {
            Ok(()) => String::new(),
            Err(why) => format!("nothing is changed: {}", render::line(why, 200)),
        };
    }
}

const KEYS: &str = " ↑↓ entry  PageDown PageUp  space on/off  n narrow  a agree  q no ";

/// An answer that comes sooner after the end was shown was on its way before.
const PAUSE: Duration = Duration::from_millis(500);
