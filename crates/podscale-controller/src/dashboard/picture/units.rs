//! Numbers of metrics in few words.

use super::Unit;

impl Unit {
    /// A number of this unit in few words.
    #[must_use]
    pub fn text(self, number: f64) -> String {
        match self {
            Unit::Percent => format!("{number:.0}%"),
            Unit::Cores if number.abs() < 1.0 => format!("{:.0}m", number * 1000.0),
            Unit::Cores => short(number, ""),
            Unit::Bytes => {
                let (scaled, suffix) = stepped(number, 1024.0, &["", "Ki", "Mi", "Gi", "Ti"]);
                short(scaled, suffix)
            }
            Unit::Count if number != 0.0 && number.abs() < 1.0 => short(number * 1000.0, "m"),
            Unit::Count => {
                let (scaled, suffix) = stepped(number, 1000.0, &["", "k", "M", "G", "T"]);
                short(scaled, suffix)
            }
        }
    }
}

fn stepped(number: f64, base: f64, suffixes: &'static [&'static str]) -> (f64, &'static str) {
    let mut scaled = number;
    let mut rest = suffixes.iter();
    let mut suffix = rest.next().copied().unwrap_or_default();
    // Small counts stay whole: 1,500 is easier to read than 1.5k.
    let limit = if base < 1024.0 { 10.0 * base } else { base };
    while scaled.abs() >= limit {
        let Some(next) = rest.next() else { break };
        scaled /= base;
        suffix = next;
    }
    (scaled, suffix)
}

/// Three digits or so, without needless zeros.
fn short(number: f64, suffix: &str) -> String {
    let digits = if number.abs() >= 100.0 { 0 } else { 1 };
    let text = format!("{number:.digits$}");
    let text = if digits > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{suffix}")
}
