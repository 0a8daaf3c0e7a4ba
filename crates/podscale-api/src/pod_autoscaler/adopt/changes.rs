//! The last changes of an HPA's size, from what was reported of them. An HPA's own status has no more
//! than the time of the last one, but rate policies count how many pods came and went.

use crate::pod_autoscaler::status::{DecisionStatus, MOST_DECISIONS};
use crate::serde_form::null_default;
use crate::time::Timestamp;
use podscale_core::Span;
use serde::Deserialize;

/// How far apart the reports of an HPA and of its target about the same change may be.
const SAME_CHANGE: Span = Span::seconds(30);

/// As much of a core/v1 Event as tells of a change of size.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReportedEvent {
    reason: String,
    message: String,
    #[serde(deserialize_with = "null_default")]
    count: i32,
    first_timestamp: Option<Timestamp>,
    last_timestamp: Option<Timestamp>,
    event_time: Option<Timestamp>,
}

/// A size that was set at some time.
struct Size {
    at: Timestamp,
    replicas: i32,
    reason: String,
}

impl ReportedEvent {
    /// When it happened last.
    fn last(&self) -> Option<Timestamp> {
        self.last_timestamp.or(self.event_time)
    }

    /// The sizes that an HPA's event tells of: the same one is reported once, with the times at which it
    /// was set first and last.
    fn sizes(&self) -> Vec<Size> {
        let told = self.message.strip_prefix("New size: ").filter(|_| self.reason == RESCALED);
        let Some((replicas, reason)) = told.and_then(|told| told.split_once("; reason: ")) else {
            return Vec::new();
        };
        let Ok(replicas) = replicas.parse() else { return Vec::new() };
        let first = self.first_timestamp.filter(|_| self.count > 1);
        let mut times: Vec<Timestamp> = first.into_iter().chain(self.last()).collect();
        times.dedup();
        times.into_iter().map(|at| Size { at, replicas, reason: reason.to_owned() }).collect()
    }

    /// The sizes before and after that a Deployment's event tells of: `Scaled up replica set web-1 from 2
    /// to 4`, or `… to 4 from 2` of older clusters.
    fn change(&self) -> Option<(Timestamp, i32, i32)> {
        let told = self.message.strip_prefix("Scaled ").filter(|_| self.reason == SCALED)?;
        let words: Vec<&str> = told.split_whitespace().collect();
        let after = |word: &str| {
            let place = words.iter().position(|found| *found == word)?;
            words.get(place + 1)?.parse().ok()
        };
        Some((self.last()?, after("from")?, after("to")?))
    }
}

const RESCALED: &str = "SuccessfulRescale";
const SCALED: &str = "ScalingReplicaSet";

/// The last changes of size that events of an HPA tell of, the newest first. They name the size after
/// each change; the one before it is that of the event before, or what an event of the target says. One
/// of which neither is known is left out.
#[must_use]
pub fn changes(of_hpa: &[ReportedEvent], of_target: &[ReportedEvent]) -> Vec<DecisionStatus> {
    let mut sizes: Vec<Size> = of_hpa.iter().flat_map(ReportedEvent::sizes).collect();
    sizes.sort_by_key(|size| size.at);
    let by_target: Vec<_> = of_target.iter().filter_map(ReportedEvent::change).collect();
    let before = |size: &Size| {
        let apart = |at: Timestamp| Span(at.0.since(size.at.0).0.saturating_abs());
        let same = |(at, _, to): &&(Timestamp, i32, i32)| {
            *to == size.replicas && apart(*at) <= SAME_CHANGE
        };
        by_target.iter().find(same).map(|(_, from, _)| *from)
    };
    let mut found = Vec::new();
    let mut last: Option<i32> = None;
    for size in sizes {
        let from = last.or_else(|| before(&size));
        last = Some(size.replicas);
        if let Some(from) = from.filter(|from| *from != size.replicas) {
            let Size { at: time, replicas: to, reason } = size;
            found.push(DecisionStatus { time, from, to, reason });
        }
    }
    found.reverse();
    found.truncate(MOST_DECISIONS);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn event(reason: &str, message: &str, count: i32, first: u32, last: u32) -> Value {
        let time = |minute: u32| format!("2026-01-01T00:{minute:02}:00Z");
        json!({"reason": reason, "message": message, "count": count,
            "firstTimestamp": time(first), "lastTimestamp": time(last)})
    }

    fn found(of_hpa: Value, of_target: Value) -> String {
        let read = |events: Value| -> Vec<ReportedEvent> {
            serde_json::from_value(events).expect("events")
        };
        let changes = changes(&read(of_hpa), &read(of_target));
        let text = |change: &DecisionStatus| {
            let minutes = change.time.0.since(podscale_core::Time(1_767_225_600_000_000)).0;
            format!("{}: {}→{}", minutes / 60_000_000, change.from, change.to)
        };
        changes.iter().map(text).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn changes_are_put_together_from_sizes() {
        let size = |size: i32, minute| {
            let message = format!("New size: {size}; reason: All metrics below target");
            event(RESCALED, &message, 1, minute, minute)
        };
        let of_target = |text: &str, minute| json!([event(SCALED, text, 1, minute, minute)]);
        for (what, of_hpa, target, expected) in [
            ("nothing", json!([]), json!([]), ""),
            ("what was before is not known", json!([size(5, 3)]), json!([]), ""),
            (
                "three, in any order",
                json!([size(3, 9), size(5, 3), size(4, 6)]),
                json!([]),
                "9: 4→3, 6: 5→4",
            ),
            (
                "one, and the target's word",
                json!([size(5, 3)]),
                of_target("Scaled up replica set web-1 from 2 to 5", 3),
                "3: 2→5",
            ),
            (
                "as older clusters have it",
                json!([size(5, 3)]),
                of_target("Scaled down replica set web-1 to 5 from 8", 3),
                "3: 8→5",
            ),
            (
                "another change of the target",
                json!([size(5, 3)]),
                of_target("Scaled up replica set web-1 from 2 to 5", 9),
                "",
            ),
            (
                "without sizes",
                json!([size(5, 3)]),
                of_target("Scaled up replica set web-1 to many", 3),
                "",
            ),
            (
                "to and fro between two sizes",
                json!([event(RESCALED, "New size: 4; reason: x", 3, 2, 8), size(5, 5)]),
                json!([]),
                "8: 5→4, 5: 4→5",
            ),
            (
                "other events",
                json!([
                    event("FailedRescale", "New size: 4; reason: x; error: y", 1, 2, 2),
                    size(5, 5),
                    event(RESCALED, "New size: lots; reason: x", 1, 3, 3),
                    size(6, 6)
                ]),
                json!([]),
                "6: 5→6",
            ),
        ] {
            assert_eq!(found(of_hpa, target), expected, "{what}");
        }
        let many: Value = (0..30).map(|n| size(n, u32::try_from(n).expect("a minute"))).collect();
        assert_eq!(found(many, json!([])).split(", ").count(), MOST_DECISIONS);
        let series = json!([{"reason": RESCALED, "message": "New size: 2; reason: a",
            "eventTime": "2026-01-01T00:01:00.5Z", "firstTimestamp": null, "lastTimestamp": null,
            "count": null}, size(3, 2)]);
        assert_eq!(found(series, json!([])), "2: 2→3", "of the newer events API");
    }
}
