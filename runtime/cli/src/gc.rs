//! `synapse gc`: removes what old runs left
//!
//! # Not here
//! What may go (`synapse_host::gc`).

use core::time::Duration;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::SystemTime;
use synapse_host::gc::{self, Item, Order, Stays};
use synapse_host::{log, render};
use synapse_kernel::verify::Broken;
use synapse_kernel::words;

use crate::output;

/// Removes the logs and journals of runs that ended long ago.
///
/// With its journal goes what a run displaced, also where it is kept in a folder:
/// such a run can no longer be undone, audited or explained; the labels of files that
/// were taken away in its time are forgotten. What goes on stays,
/// and so does a run whose log is not as it was written: each is told.
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
    /// folders are not there.
    #[arg(long)]
    broken: bool,

    /// Print one JSON object a line: each old run, then the summary.
    #[arg(long)]
    json: bool,
}

impl Gc {
    /// Removes, tells of each run, and sums up.
    pub(crate) fn run(self) -> Result<ExitCode, String> {
        let runs = log::runs_dir().map_err(|why| format!("no run can be found: {why}"))?;
        let before = SystemTime::now().checked_sub(self.older).unwrap_or(SystemTime::UNIX_EPOCH);
        let order = Order { before, broken: self.broken, look: self.dry_run };
        let (mut count, mut bytes, mut failed, mut told) = (0_u64, 0_u64, false, Ok(()));
        gc::collect(&runs, order, |item| {
            match &item.stays {
                None => {
                    count += 1;
                    bytes = bytes.saturating_add(item.bytes);
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
        })
        .map_err(|why| {
            let dir = render::line(runs.as_os_str().as_encoded_bytes(), WIDTH);
            format!("the runs in {dir} cannot be listed: {why}\ncheck its permissions")
        })?;
        let told = told.and_then(|()| output::say(&self.sum(count, bytes)));
        if let Some(why) = told.err().and_then(|why| output::told(&why)) {
            return Err(why);
        }
        Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    fn sum(&self, count: u64, bytes: u64) -> String {
        if self.json {
            let key = if self.dry_run { "would_free" } else { "freed" };
            return output::json(&json!({"type": "summary", "runs": count, key: bytes}));
        }
        let what = if self.dry_run { "would be removed" } else { "removed" };
        let plural = if count == 1 { "run" } else { "runs" };
        let end = if count == 0 { "" } else { "; what is removed cannot be undone or audited" };
        let (count, bytes) = (words::grouped(count), words::grouped(bytes));
        format!("{count} {plural} {what}, {bytes} bytes{end}")
    }
}

fn line(item: &Item, dry_run: bool) -> String {
    let run = render::line(item.run.as_bytes(), WIDTH);
    let Some(stays) = &item.stays else {
        let what = if dry_run { "would be removed" } else { "removed" };
        return format!("{run} {what}, {} bytes", words::grouped(item.bytes));
    };
    let also = "`--broken` removes it too";
    match stays {
        Stays::Live => format!("{run} stays: it goes on, or is being undone"),
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
        Stays::Log(_) => "log",
        Stays::Journal => "journal",
        Stays::Away(_) => "away",
        Stays::Host(_) => "host",
    });
    json!({
        "type": "run",
        "run": item.run,
        "bytes": item.bytes,
        "removed": item.stays.is_none() && !dry_run,
        "stays": stays,
    })
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
