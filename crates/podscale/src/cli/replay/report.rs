//! Writes what a replay found: differences and explanations as they come, the sums at the end.

use super::judge::{Judged, JudgedStep, Verdict};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// For whom the report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// A report in the making.
pub(super) struct Report<W> {
    out: W,
    format: Format,
    explain: bool,
    /// How many recordings were decided anew.
    pub recordings: usize,
    /// How many steps were selected.
    pub selected_steps: usize,
    /// How many lines could not be read.
    pub unreadable_lines: usize,
    decisions: usize,
    agree: usize,
    fields: BTreeMap<String, usize>,
}

impl<W: Write> Report<W> {
    /// An empty report.
    pub(super) fn new(out: W, format: Format, explain: bool) -> Report<W> {
        Report {
            out,
            format,
            explain,
            recordings: 0,
            selected_steps: 0,
            unreadable_lines: 0,
            decisions: 0,
            agree: 0,
            fields: BTreeMap::new(),
        }
    }

    /// Whether every decision agrees.
    pub(super) fn all_agree(&self) -> bool {
        self.agree == self.decisions
    }

    /// Adds a recording, and writes what there is to say of it.
    pub(super) fn add(&mut self, judged: &Judged) -> io::Result<()> {
        self.recordings += 1;
        self.selected_steps += judged.steps;
        self.decisions += judged.decisions;
        self.agree += judged.agree;
        for step in &judged.shown {
            if let Verdict::Differs(differences) = &step.verdict {
                let mut tops: Vec<&str> = differences.iter().map(|d| d.top()).collect();
                tops.dedup();
                for top in tops {
                    *self.fields.entry(top.to_owned()).or_default() += 1;
                }
            }
        }
        match self.format {
            Format::Text => self.add_text(judged),
            Format::Json => self.add_json(judged),
        }
    }

    fn add_text(&mut self, judged: &Judged) -> io::Result<()> {
        if self.explain && !judged.shown.is_empty() {
            match &judged.description {
                Some(description) => writeln!(self.out, "{}: {description}", judged.name)?,
                None => writeln!(self.out, "{}", judged.name)?,
            }
        }
        for step in &judged.shown {
            let JudgedStep { place, time, verdict, lines, .. } = step;
            let differs = match verdict {
                Verdict::Differs(differences) => differences.as_slice(),
                Verdict::Agrees | Verdict::NotRecorded => &[],
            };
            if self.explain {
                let note = match verdict {
                    Verdict::Agrees => "",
                    Verdict::Differs(_) => ", differs from the recorded decision",
                    Verdict::NotRecorded => ", no decision recorded",
                };
                writeln!(self.out, "  step {place}, {time}{note}")?;
                for line in lines {
                    writeln!(self.out, "    {line}")?;
                }
            } else {
                writeln!(self.out, "{} step {place}, {time}", judged.name)?;
            }
            for difference in differs {
                let (field, expected, got) =
                    (&difference.field, shown(&difference.expected), shown(&difference.got));
                writeln!(self.out, "    {field}: expected {expected}, got {got}")?;
            }
        }
        Ok(())
    }

    fn add_json(&mut self, judged: &Judged) -> io::Result<()> {
        for step in &judged.shown {
            let mut object = json!({
                "kind": "Step",
                "recording": judged.name,
                "step": step.place,
                "time": step.time,
                "replicas": step.replicas,
            });
            match &step.verdict {
                Verdict::Agrees => object["agrees"] = json!(true),
                Verdict::Differs(differences) => {
                    object["agrees"] = json!(false);
                    object["differences"] = json!(differences);
                }
                Verdict::NotRecorded => object["agrees"] = Value::Null,
            }
            if self.explain {
                object["explanation"] = json!(step.lines);
            }
            writeln!(self.out, "{object}")?;
        }
        Ok(())
    }

    /// Writes the sums.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        let (agree, decisions) = (self.agree, self.decisions);
        let unrecorded = self.selected_steps - decisions;
        match self.format {
            Format::Text => {
                if !self.fields.is_empty() {
                    writeln!(self.out, "decisions that differ, by field:")?;
                    for (field, count) in &self.fields {
                        writeln!(self.out, "  {field}: {count}")?;
                    }
                }
                if unrecorded > 0 {
                    writeln!(self.out, "{unrecorded} steps have no recorded decision")?;
                }
                writeln!(self.out, "{agree} of {decisions} decisions agree")?;
            }
            Format::Json => {
                let summary = json!({
                    "kind": "Summary",
                    "recordings": self.recordings,
                    "decisions": decisions,
                    "agree": agree,
                    "unrecorded": unrecorded,
                    "unreadableLines": self.unreadable_lines,
                    "differByField": self.fields,
                });
                writeln!(self.out, "{summary}")?;
            }
        }
        self.out.flush()
    }
}

fn shown(value: &Value) -> String {
    if value.is_null() { "nothing".to_owned() } else { value.to_string() }
}
