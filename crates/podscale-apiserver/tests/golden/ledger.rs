//! Keeps account of which answers agree, which differ, and which were expected to.

use std::collections::BTreeSet;

/// The differences of one file of recorded answers.
pub struct Ledger {
    file: &'static str,
    departures: BTreeSet<&'static str>,
    open: BTreeSet<&'static str>,
    differing: Vec<String>,
    report: Vec<String>,
    agreed: u32,
    total: u32,
}

impl Ledger {
    /// `departures` differ on purpose, `open` (the text of `file`) differ still; each line is
    /// `name`, or `name -- reason`.
    pub fn new(departures: &'static str, file: &'static str, open: &'static str) -> Self {
        Self {
            file,
            departures: names(departures),
            open: names(open),
            differing: Vec::new(),
            report: Vec::new(),
            agreed: 0,
            total: 0,
        }
    }

    /// Enters one comparison. What is listed but agrees is reported too, so that no list grows stale.
    pub fn enter(&mut self, name: &str, differences: &[String]) {
        let departure = self.departures.remove(name);
        let open = self.open.remove(name);
        self.total += 1;
        if differences.is_empty() {
            self.agreed += 1;
            if departure || open {
                self.report.push(format!("{name}: agrees now, take it off the list"));
            }
            return;
        }
        if !departure {
            self.differing.push(name.to_owned());
            if !open {
                self.report.push(format!("{name}:\n{}", differences.join("\n")));
            }
        }
    }

    /// Fails if anything is not as listed. With `GOLDEN_UPDATE` set, writes the open list anew instead.
    pub fn close(mut self) {
        if std::env::var_os("GOLDEN_UPDATE").is_some() {
            let path = format!("{}/tests/golden/{}", env!("CARGO_MANIFEST_DIR"), self.file);
            let head = "# Still answered differently than by a real API server. May only shrink.\n";
            let list: String = self.differing.iter().map(|name| format!("{name}\n")).collect();
            std::fs::write(path, format!("{head}{list}")).unwrap();
            return;
        }
        let unknown = self.departures.iter().chain(&self.open);
        self.report.extend(unknown.map(|name| format!("{name}: listed, but there is no such")));
        let Self { report, agreed, total, .. } = self;
        assert!(report.is_empty(), "{}\n\n{agreed} of {total} agree", report.join("\n\n"));
    }
}

fn names(list: &'static str) -> BTreeSet<&'static str> {
    list.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_once(" -- ").map_or(line, |(name, _reason)| name))
        .collect()
}
