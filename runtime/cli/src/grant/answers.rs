//! Questions on a terminal, asked until the answer is one
//!
//! # Not here
//! Which questions (`new`).

use core::fmt;
use std::io::{self, BufRead, Write};

/// A person who is asked: the questions and the answers.
pub(super) struct Person<R, W> {
    pub(super) answers: R,
    pub(super) questions: W,
}

impl<R: BufRead, W: Write> Person<R, W> {
    /// Asks until `read` takes the answer; an empty one is the default.
    pub(super) fn ask<T>(
        &mut self,
        question: &str,
        default: &str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> io::Result<T> {
        for _ in 0..ATTEMPTS {
            write!(self.questions, "{question} [{default}] ")?;
            self.questions.flush()?;
            let mut line = String::new();
            if self.answers.read_line(&mut line)? == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, Ended::Input));
            }
            let answer = line.trim();
            match read(if answer.is_empty() { default } else { answer }) {
                Ok(read) => return Ok(read),
                Err(why) => writeln!(self.questions, "  {}", synapse_host::render::escape(why))?,
            }
        }
        Err(io::Error::other(Ended::Attempts))
    }

    /// Asks for a yes or a no.
    pub(super) fn yes(&mut self, question: &str, default: &str) -> io::Result<bool> {
        self.ask(question, default, |answer| match answer.to_lowercase().as_str() {
            "y" | "yes" => Ok(true),
            "n" | "no" => Ok(false),
            _ => Err("answer yes or no".to_owned()),
        })
    }

    /// Asks for a number from 1 on.
    pub(super) fn number(&mut self, question: &str, default: u64) -> io::Result<u64> {
        self.ask(question, &default.to_string(), |answer| match answer.parse() {
            Ok(number) if number > 0 && i64::try_from(number).is_ok() => Ok(number),
            _ => Err("write a whole number from 1 on".to_owned()),
        })
    }
}

/// Answers to one question that are read before it is given up.
const ATTEMPTS: usize = 3;

/// Why there is no answer.
#[derive(Debug)]
enum Ended {
    Input,
    Attempts,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Input => "the input ended before the last question",
            Self::Attempts => "three answers to one question could not be read",
        })
    }
}

impl core::error::Error for Ended {}
