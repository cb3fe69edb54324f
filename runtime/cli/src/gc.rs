//! `synapse gc`: removes what old runs left
//!
//! # Not here
//! What may go (`synapse_host::gc`).

use core::time::Duration;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::SystemTime;
use synapse_connectors::exec::Holds;
use synapse_host::gc::{self, Item, Order, Stays, What};
use synapse_host::{log, render, tools};
use synapse_kernel::verify::Broken;
use synapse_kernel::words;

use crate::output;

/// Removes the logs and journals of runs that ended long ago, and copies of folders.
///
/// With its journal goes what a run displaced, also where it is kept in a folder:
/// such a run can no longer be undone, audited or explained; the labels of files that
/// were taken away in its time are forgotten. What goes on stays,
/// and so does a run whose log is not as it was written: each is told. The copy of a
/// folder that a connector's lines were run in goes when none was for so long, or when
/// the folder or the connector is gone; it is made anew when it is needed.
///
/// Exit codes: 0 done, also if nothing was old enough; 1 something could not be
/// removed; 2 the command line is wrong.
#[derive(clap::Args)]
pub(crate) struct Gc {
    /// How long ago a run wrote its last record: so many days, hours or minutes.
    #[arg(long, value_name = "Nd|Nh|Nm", default_value = "30d", value_parser = age)]
    older: Duration,

    /// Show what would go, and remove nothing.
    #[arg(long)]
    dry_run: bool,

    /// Also remove runs whose log or journal is not as it was written, or whose
    /// folders are not there, and copies with what was not brought back from them.
    #[arg(long)]
    broken: bool,

    /// Print one JSON object a line: each old run and copy, then the summary.
    #[arg(long)]
    json: bool,
}

impl Gc {
    /// Removes, tells of each run, and sums up.
    pub(crate) fn run(self) -> Result<ExitCode, String> {
        let runs = log::runs_dir().map_err(|why| format!("no run can be found: {why}"))?;
        let before = SystemTime::now().checked_sub(self.older).unwrap_or(SystemTime::UNIX_EPOCH);
        let order = Order { before, broken: self.broken, look: self.dry_run };
        let (mut sum, mut failed, mut told) = (Sum::default(), false, Ok(()));
        let mut tell = |item: &Item| {
            match &item.stays {
                None => {
                    match item.what {
                        What::Run => sum.runs += 1,
                        What::Copy(_) => sum.copies += 1,
                    }
                    sum.bytes = sum.bytes.saturating_add(item.bytes);
                }
                Some(Stays::Host(_)) => failed = true,
                Some(_) => {}
            }
            if told.is_ok() {
                told = output::say(&if self.json {
                    output::json(&object(item, self.dry_run))
                } else {
                    line(item, self.dry_run)
                });
            }
        };
        let unlisted = |what: &str, why| {
            let dir = render::line(runs.as_os_str().as_encoded_bytes(), WIDTH);
            format!("the {what} of {dir} cannot be listed: {why}\ncheck its permissions")
        };
        gc::collect(&runs, order, &mut tell).map_err(|why| unlisted("runs", why))?;
        let settings =
            tools::settings().map_err(|why| format!("no connector can be found: {why}"))?;
        let state = runs.parent().unwrap_or(&runs);
        gc::collect_copies(state, &settings, order, &mut tell)
            .map_err(|why| unlisted("copies", why))?;
        let told = told.and_then(|()| output::say(&self.sum(&sum)));
        if let Some(why) = told.err().and_then(|why| output::told(&why)) {
            return Err(why);
        }
        Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    fn sum(&self, sum: &Sum) -> String {
        let Sum { runs, copies, bytes } = *sum;
        if self.json {
            let key = if self.dry_run { "would_free" } else { "freed" };
            let object = json!({"type": "summary", "runs": runs, "copies": copies, key: bytes});
            return output::json(&object);
        }
        let what = if self.dry_run { "would be removed" } else { "removed" };
        let counted = |count, one: &str, many: &str| {
            format!("{} {}", words::grouped(count), if count == 1 { one } else { many })
        };
        let mut all = counted(runs, "run", "runs");
        if copies > 0 {
            all = format!("{all} and {}", counted(copies, "copy", "copies"));
        }
        let end = if runs == 0 { "" } else { "; what is removed cannot be undone or audited" };
        format!("{all} {what}, {} bytes{end}", words::grouped(bytes))
    }
}

/// What went.
#[derive(Default)]
struct Sum {
    runs: u64,
    copies: u64,
    bytes: u64,
}

fn line(item: &Item, dry_run: bool) -> String {
    let mut run = render::line(item.name.as_bytes(), WIDTH);
    if let What::Copy(folder) = &item.what {
        run = format!("copy {run}");
        if let Some(folder) = folder {
            let folder = render::line(folder.as_os_str().as_encoded_bytes(), WIDTH);
            run = format!("{run} of {folder}");
        }
    }
    let Some(stays) = &item.stays else {
        let what = if dry_run { "would be removed" } else { "removed" };
        return format!("{run} {what}, {} bytes", words::grouped(item.bytes));
    };
    let also = "`--broken` removes it too";
    match stays {
        Stays::Live if item.what == What::Run => {
            format!("{run} stays: it goes on, or is being undone")
        }
        Stays::Live => format!("{run} stays: a run has it"),
        Stays::Holds(Holds::Line) => {
            format!("{run} stays: a line was begun in it and not ended; {also}")
        }
        Stays::Holds(Holds::Changes) => {
            format!("{run} stays: what a line changed in it was not brought back; {also}")
        }
        Stays::Log(Broken::Header) => {
            format!("{run} stays: its log is none of this version; {also}")
        }
        Stays::Log(Broken::Record(record) | Broken::Torn(record)) => {
            format!("{run} stays: its log is not as it was written at record {record}; {also}")
        }
        Stays::Journal => {
            format!("{run} stays: its journal is not as this version wrote it; {also}")
        }
        Stays::Away(folder) => format!(
            "{run} stays: {} holds what it displaced, and is not there or is another folder; {also}",
            render::line(folder.as_bytes(), WIDTH)
        ),
        Stays::Host(why) => format!("{run} stays: {why}; check the permissions below it"),
    }
}

fn object(item: &Item, dry_run: bool) -> Value {
    let stays = item.stays.as_ref().map(|stays| match stays {
        Stays::Live => "live",
        Stays::Holds(Holds::Line) => "line",
        Stays::Holds(Holds::Changes) => "changes",
        Stays::Log(_) => "log",
        Stays::Journal => "journal",
        Stays::Away(_) => "away",
        Stays::Host(_) => "host",
    });
    let (kind, folder) = match &item.what {
        What::Run => ("run", None),
        What::Copy(folder) => ("copy", folder.as_ref()),
    };
    let mut object = json!({
        "type": kind,
        kind: item.name,
        "bytes": item.bytes,
        "removed": item.stays.is_none() && !dry_run,
        "stays": stays,
    });
    if let (Some(object), Some(folder)) = (object.as_object_mut(), folder) {
        object.insert("folder".to_owned(), folder.to_string_lossy().into());
    }
    object
}

/// So many days, hours or minutes.
fn age(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no age; write a number and d, h or m, such as 30d");
    let units = [('d', 24 * 60), ('h', 60), ('m', 1)];
    let (count, minutes) = units
        .into_iter()
        .find_map(|(unit, minutes)| Some((text.strip_suffix(unit)?, minutes)))
        .ok_or_else(wrong)?;
    let count: u64 = count.parse().map_err(|_| wrong())?;
    let seconds = count.checked_mul(minutes * 60).ok_or_else(wrong)?;
    Ok(Duration::from_secs(seconds))
}

const WIDTH: usize = 160;

#[cfg(test)]
mod tests {
    use super::age;
    use core::time::Duration;

    #[test]
    fn an_age_is_a_number_with_its_unit() {
        assert_eq!(age("30d"), Ok(Duration::from_hours(720)));
        assert_eq!(age("0m"), Ok(Duration::ZERO));
        for wrong in ["", "d", "30", "3dd", "-1d", "1.5h", "30s", "+", "18446744073709551615d"] {
            assert!(age(wrong).is_err(), "{wrong}");
        }
    }
}
