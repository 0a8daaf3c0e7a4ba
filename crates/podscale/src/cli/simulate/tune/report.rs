//! What came of a search, in words, as a chart and as YAML.

use crate::simulate::tune::{HeldOut, Objective, Worth};
use serde_json::Value;
use std::fmt::Write;

/// The size of the chart, in characters.
const COLUMNS: usize = 60;
const LINES: usize = 12;
/// The fields of the metadata that are not a cluster's.
const OWN_METADATA: [&str; 4] = ["name", "namespace", "labels", "annotations"];

/// What was chosen by what comes before a part that is held out, and how it did in that part.
pub(super) struct Fold {
    pub(super) part: HeldOut,
    pub(super) settings: String,
    pub(super) current: Worth,
    pub(super) chosen: Worth,
}

/// One choice and what it is worth on what was held out.
pub(super) struct Row {
    pub(super) settings: String,
    pub(super) worth: Worth,
    pub(super) is_current: bool,
    pub(super) is_recommended: bool,
}

impl Row {
    fn mark(&self) -> char {
        match (self.is_recommended, self.is_current) {
            (true, _) => '*',
            (false, true) => 'o',
            (false, false) => '+',
        }
    }
}

/// What came of the search for one autoscaler.
pub(super) struct Report {
    pub(super) name: String,
    pub(super) loads: String,
    pub(super) tried: usize,
    pub(super) objective: Objective,
    /// In the last part that is held out.
    pub(super) rows: Vec<Row>,
    pub(super) folds: Vec<Fold>,
    pub(super) current: Value,
    pub(super) recommended: Value,
}

impl Report {
    /// The recommended object alone; the object as it is where a change is not recommended.
    pub(super) fn yaml(&self) -> Result<String, String> {
        if self.is_worse() {
            let why = "# As it is: what was tried did worse in a part that was held out.";
            return Ok(format!("---\n{why}\n{}", yaml(&self.current)?));
        }
        Ok(format!("---\n{}", yaml(&self.recommended)?))
    }

    /// In how many parts that were held out the object as it is did better.
    fn worse_parts(&self) -> usize {
        let worse = |fold: &&Fold| self.objective.prefers(&fold.current, &fold.chosen);
        self.folds.iter().filter(worse).count()
    }

    /// Whether nothing should be changed for what was found.
    fn is_worse(&self) -> bool {
        self.worse_parts() > 0
    }

    /// The whole text.
    pub(super) fn render(&self) -> Result<String, String> {
        let (current, recommended) = (yaml(&self.current)?, yaml(&self.recommended)?);
        let mut out = self.head();
        out.push_str(&self.parts());
        let _ = writeln!(out, "\nthe frontier of {}, scored in {}:", self.before(), self.last());
        out.push_str(&self.table());
        out.push_str(&self.chart());
        out.push_str(&self.verdict());
        if current != recommended && !self.is_worse() {
            let _ = write!(out, "\nwhat changes:\n{}", diff(&current, &recommended));
            let _ = write!(out, "\nthe recommended object:\n---\n{recommended}");
        }
        Ok(out)
    }

    fn head(&self) -> String {
        let objective = match self.objective {
            Objective::MaxViolations(most) => {
                format!("fewest pod-hours with at most {:.2}% violations", most * 100.0)
            }
            Objective::Weight(weight) => {
                format!("fewest pod-hours, {weight} more for each percent of violations")
            }
        };
        let (name, loads) = (&self.name, &self.loads);
        format!(
            "{name}: {objective}\non {loads}; every score is of a part that its settings were not chosen by\n\n"
        )
    }

    /// What was tried in the last search.
    fn before(&self) -> String {
        let percent = self.folds.last().map_or(0.0, |fold| fold.part.from * 100.0);
        format!("{} settings tried on the first {percent:.0}%", self.tried)
    }

    /// The last part that was held out.
    fn last(&self) -> String {
        self.folds.last().map_or_else(String::new, |fold| part_text(fold.part))
    }

    /// How settings did that were chosen by what came before.
    fn parts(&self) -> String {
        let (chosen, current) = ("chosen before that", "as it is");
        let mut out = format!("{:<11}  {chosen:<24}  {current:<24}  settings\n", "scored in");
        for Fold { part, settings, current, chosen } in &self.folds {
            let worth = |Worth { violations, pod_hours, .. }: &Worth| {
                format!("{:>7.3}% {pod_hours:>9.1} pod-h", violations * 100.0)
            };
            let (part, chosen, current) = (part_text(*part), worth(chosen), worth(current));
            let _ = writeln!(out, "{part:<11}  {chosen}  {current}  {settings}");
        }
        out
    }

    /// The rows, the cheapest first.
    fn sorted(&self) -> Vec<&Row> {
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        rows.sort_by(|one, other| one.worth.pod_hours.total_cmp(&other.worth.pod_hours));
        rows
    }

    fn table(&self) -> String {
        let mut out = "  violations  pod-hours  reversals/h  settings\n".to_owned();
        for row in self.sorted() {
            let Worth { violations, pod_hours, reversals_per_hour } = row.worth;
            // Jobs come and go by themselves, so that there is none.
            let reversals = match reversals_per_hour.is_nan() {
                true => "-".to_owned(),
                false => format!("{reversals_per_hour:.2}"),
            };
            let _ = writeln!(
                out,
                "{} {:>9.3}%  {pod_hours:>9.1}  {reversals:>11}  {}",
                row.mark(),
                violations * 100.0,
                row.settings
            );
        }
        out
    }

    /// Violations upwards, pod-hours to the right.
    fn chart(&self) -> String {
        let most =
            |of: fn(&Worth) -> f64| self.rows.iter().map(|row| of(&row.worth)).fold(0.0, f64::max);
        let least = |of: fn(&Worth) -> f64| {
            self.rows.iter().map(|row| of(&row.worth)).fold(f64::INFINITY, f64::min)
        };
        let (low, high) = (least(|worth| worth.pod_hours), most(|worth| worth.pod_hours));
        let top = most(|worth| worth.violations);
        let place = |value: f64, low: f64, high: f64, places: usize| {
            let part = if high > low { (value - low) / (high - low) } else { 0.0 };
            (part * (places - 1) as f64).round() as usize
        };
        let mut cells = vec![[' '; COLUMNS]; LINES];
        // The recommended one and the current one are drawn over the others.
        let mut rows = self.sorted();
        rows.sort_by_key(|row| (row.is_recommended, row.is_current));
        for row in rows {
            let line = LINES - 1 - place(row.worth.violations, 0.0, top, LINES).min(LINES - 1);
            let column = place(row.worth.pod_hours, low, high, COLUMNS).min(COLUMNS - 1);
            cells[line][column] = row.mark();
        }
        let mut out = format!("\n{:>9.3}% violations\n", top * 100.0);
        for line in cells {
            let text: String = line.iter().collect();
            let _ = writeln!(out, "           |{}", text.trim_end());
        }
        let _ = writeln!(out, "   0.000%  +{}", "-".repeat(COLUMNS));
        let _ = writeln!(
            out,
            "            {low:<10.1}{high:>width$.1} pod-hours",
            width = COLUMNS - 10
        );
        out
    }

    fn verdict(&self) -> String {
        let find = |is: fn(&Row) -> bool| self.rows.iter().find(|row| is(row));
        let mut out =
            "\n* recommended, o as it is, + others that nothing was better than in both\n"
                .to_owned();
        let Some(best) = find(|row| row.is_recommended) else { return out };
        if best.is_current {
            out.push_str("nothing that was tried is better than the object as it is\n");
            return out;
        }
        if let Objective::MaxViolations(most) = self.objective
            && best.worth.violations > most
        {
            out.push_str("the recommended settings miss the objective on what was held out\n");
        }
        if self.is_worse() {
            let _ = writeln!(
                out,
                "in {} of {} parts that were held out the object as it is does better: do not change it for this",
                self.worse_parts(),
                self.folds.len()
            );
        }
        out
    }
}

fn part_text(HeldOut { from, to }: HeldOut) -> String {
    format!("{:.0}% to {:.0}%", from * 100.0, to * 100.0)
}

/// An object as people write it, without what a cluster adds.
fn yaml(object: &Value) -> Result<String, String> {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, _| OWN_METADATA.contains(&field.as_str()));
    }
    serde_saphyr::to_string(&object).map_err(|error| error.to_string())
}

/// The lines of two texts that differ, in their order, with those around them.
fn diff(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    // How many lines of the rests are the same at most.
    let mut same = vec![vec![0usize; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            same[i][j] = if old[i] == new[j] {
                same[i + 1][j + 1] + 1
            } else {
                same[i + 1][j].max(same[i][j + 1])
            };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push((' ', old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && same[i + 1][j] >= same[i][j + 1]) {
            lines.push(('-', old[i]));
            i += 1;
        } else {
            lines.push(('+', new[j]));
            j += 1;
        }
    }
    let near = |place: usize| {
        let around = place.saturating_sub(2)..(place + 3).min(lines.len());
        lines[around].iter().any(|(mark, _)| *mark != ' ')
    };
    let shown = lines.iter().enumerate().filter(|(place, _)| near(*place));
    shown.map(|(_, (mark, line))| format!("{mark} {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(settings: &str, violations: f64, pod_hours: f64, marks: (bool, bool)) -> Row {
        let worth = Worth { violations, pod_hours, reversals_per_hour: 0.5 };
        let (is_current, is_recommended) = marks;
        Row { settings: settings.to_owned(), worth, is_current, is_recommended }
    }

    /// One whose choice costs so much, and needs no more than twelve pod-hours as it is.
    fn report(violations: f64, pod_hours: f64) -> Report {
        let object = |most: i32| {
            json!({"metadata": {"name": "web", "generation": 3, "uid": "u"},
                "spec": {"maxReplicas": most}, "status": {"currentReplicas": 2}})
        };
        Report {
            name: "shop/web".to_owned(),
            loads: "a, b".to_owned(),
            tried: 7,
            objective: Objective::MaxViolations(0.005),
            rows: vec![
                row("as it is", 0.004, 12.0, (true, false)),
                row("x=1", violations, pod_hours, (false, true)),
            ],
            folds: vec![Fold {
                part: HeldOut { from: 0.6, to: 1.0 },
                settings: "x=1".to_owned(),
                current: Worth { violations: 0.004, pod_hours: 12.0, reversals_per_hour: 0.5 },
                chosen: Worth { violations, pod_hours, reversals_per_hour: 0.5 },
            }],
            current: object(5),
            recommended: object(9),
        }
    }

    #[test]
    fn a_report_says_what_is_better_and_what_changes() {
        let report = report(0.002, 8.0);
        let text = report.render().expect("a report");
        for part in [
            "on a, b; every score is of a part that its settings were not chosen by",
            "60% to 100%    0.200%       8.0 pod-h    0.400%      12.0 pod-h  x=1",
            "the frontier of 7 settings tried on the first 60%, scored in 60% to 100%:",
            "*     0.200%        8.0         0.50  x=1\no     0.400%       12.0",
            "-   maxReplicas: 5\n+   maxReplicas: 9",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        let expected = "---\nmetadata:\n  name: web\nspec:\n  maxReplicas: 9\n";
        assert!(text.ends_with(expected), "without what a cluster adds:\n{text}");
        assert_eq!(report.yaml().expect("YAML"), expected);
    }

    #[test]
    fn what_did_worse_is_not_recommended() {
        let report = report(0.006, 8.0);
        let text = report.render().expect("a report");
        for part in [
            "miss the objective on what was held out",
            "in 1 of 1 parts that were held out the object as it is does better",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        assert!(!text.contains("maxReplicas"), "there is nothing to apply:\n{text}");
        let yaml = report.yaml().expect("YAML");
        assert!(yaml.starts_with("---\n# As it is: ") && yaml.contains("maxReplicas: 5"), "{yaml}");
    }

    #[test]
    fn lines_that_differ_are_shown_with_those_around_them() {
        let (old, new) = ("a\nb\nc\nd\ne\nf\ng", "a\nb\nc\nD\ne\nf\ng");
        assert_eq!(diff(old, new), "  b\n  c\n- d\n+ D\n  e\n  f\n");
        assert_eq!(diff("a", "a"), "");
        assert_eq!(diff("", "a"), "+ a\n");
    }
}
