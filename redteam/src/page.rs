//! The report as one page: tables, a plot, every case.
//!
//! # Invariants
//! 1. Nothing that a case says is markup, and nothing is loaded from elsewhere.
//!
//! # Not here
//! What the numbers are (`report`, `tell`).

use core::fmt::Write as _;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::monitors::{Monitor, Row, Rows};

/// What a page says of one corpus.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its name.
    pub title: String,
    /// Both columns of each monitor.
    pub rows: Rows,
    /// Each case: its name, what came of it, and why.
    pub lines: Vec<(String, String, String)>,
}

/// The page.
#[must_use]
pub fn page(sections: &[Section]) -> String {
    let mut out = String::from(HEAD);
    for section in sections {
        let _ = write!(out, "<h2>{}</h2>", escaped(&section.title));
        out.push_str(&table(&section.rows));
        out.push_str(&plot(&section.rows));
        let _ = write!(out, "<details><summary>{} cases</summary><table>", section.lines.len());
        for (name, end, why) in &section.lines {
            let [name, end, why] = [name, end, why].map(|text| escaped(text));
            let _ = writeln!(out, "<tr><td>{name}</td><td>{end}</td><td>{why}</td></tr>");
        }
        out.push_str("</table></details>\n");
    }
    out.push_str("</body></html>\n");
    out
}

impl Rows {
    /// As lines of a table for people; nothing where nothing was played.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let any = self.each().any(|(_, row)| row.attacks + row.work > 0);
        let head = format!("{:<28} {:>18} {:>18}", "", "attacks permitted", "work interrupted");
        let line = |(monitor, row): (Monitor, Row)| {
            let attacks = format!("{} of {}", row.permitted, row.attacks);
            let work = format!("{} of {}", row.interrupted, row.work);
            let unsaid = match row.unsaid {
                0 => String::new(),
                unsaid => format!("   {unsaid} attacks it cannot say"),
            };
            format!("{:<28} {attacks:>18} {work:>18}{unsaid}", monitor.name())
        };
        any.then_some(head).into_iter().chain(self.each().filter(|_| any).map(line)).collect()
    }

    /// As JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let row = |(monitor, row): (Monitor, Row)| {
            json!({
                "monitor": monitor.name(), "attacks": row.attacks, "permitted": row.permitted,
                "complete": row.complete, "work": row.work, "interrupted": row.interrupted,
                "unsaid": row.unsaid,
            })
        };
        self.each().map(row).collect()
    }
}

fn table(rows: &Rows) -> String {
    let mut out = String::from(
        "<table><tr><th>monitor</th><th>attacks permitted</th><th>complete</th><th>work interrupted</th><th>attacks it cannot say</th></tr>\n",
    );
    for (number, (monitor, row)) in (1..).zip(rows.each()) {
        let Row { attacks, permitted, complete, work, interrupted, unsaid } = row;
        let _ = writeln!(
            out,
            "<tr><td>{number}. {}</td><td>{permitted} of {attacks}</td><td>{complete}</td><td>{interrupted} of {work}</td><td>{unsaid}</td></tr>",
            monitor.name()
        );
    }
    out.push_str("</table>\n");
    out
}

/// Attacks permitted to the right, work interrupted upwards, in percent; the numbers are the table's.
fn plot(rows: &Rows) -> String {
    let share = |part: usize, of: usize| part.saturating_mul(100).checked_div(of).unwrap_or(0);
    let mut out = String::from(
        "<svg viewBox=\"-14 -8 140 126\" width=\"480\" role=\"img\" aria-label=\"attacks permitted against work interrupted\">\
         <path d=\"M0 0V100H100\" fill=\"none\" stroke=\"currentColor\" stroke-width=\".5\"/>\
         <text x=\"50\" y=\"112\" text-anchor=\"middle\">attacks permitted, %</text>\
         <text x=\"-6\" y=\"50\" text-anchor=\"middle\" transform=\"rotate(-90 -6 50)\">work interrupted, %</text>\n",
    );
    let mut points: BTreeMap<(usize, usize), Vec<String>> = BTreeMap::new();
    for (number, (_, row)) in (1..).zip(rows.each()) {
        let at = (share(row.permitted, row.attacks), share(row.interrupted, row.work).min(100));
        points.entry(at).or_default().push(format!("{number}"));
    }
    for ((x, up), numbers) in points {
        let own = if numbers.iter().any(|it| it == "1") { " class=\"own\"" } else { "" };
        let y = 100_usize.saturating_sub(up);
        let (right, above) = (x + 3, y.saturating_sub(2));
        let numbers = numbers.join(", ");
        let _ = writeln!(
            out,
            "<circle{own} cx=\"{x}\" cy=\"{y}\" r=\"2\"/><text{own} x=\"{right}\" y=\"{above}\">{numbers}</text>"
        );
    }
    out.push_str("</svg>\n");
    out
}

/// A text as a page shows it.
fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut out, char| {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(' '),
            char if char.is_control() || is_unseen(char) => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(char));
            }
            char => out.push(char),
        }
        out
    })
}

/// What turns or hides the text around it.
fn is_unseen(char: char) -> bool {
    matches!(char, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

const HEAD: &str = "<!doctype html>
<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Red team</title>
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">
<style>
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
td,th{padding:.2rem .8rem .2rem 0;text-align:left;vertical-align:top;overflow-wrap:anywhere}
tr:nth-child(2) td{font-weight:600}
details tr td{font-weight:400!important}
svg{display:block;margin:1rem 0}svg text{font-size:4.5px;fill:currentColor}
circle{fill:#999}circle.own{fill:#0a7}text.own{font-weight:700}
@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}}
</style></head><body><h1>Red team</h1>
<p>Attacks permitted and work interrupted, of the same plays. The first row is what the log says; the others are
what weaker monitors would have said of the same sentences; with the own corpus, ambient authority is really run.</p>
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_case_says_is_markup() {
        let line =
            ("<script>x</script>".to_owned(), "a\"b'&".to_owned(), "\u{202e}\u{1b}".to_owned());
        let section = Section { title: "<b>".into(), rows: Rows::default(), lines: vec![line] };
        let page = page(&[section]);
        assert!(!page.contains("<script") && !page.contains("<b>"));
        assert!(page.contains("&lt;script&gt;") && page.contains("a&quot;b&#39;&amp;"));
        assert!(page.contains("\\u{202e}\\u{1b}"));
        for from_elsewhere in ["http://", "https://", "src=", "url("] {
            assert!(!page.contains(from_elsewhere), "{from_elsewhere}");
        }
    }
}
