use super::*;
use crate::model::{Policy, PolicyAmount, PolicySelect, ScalingRules};

fn at(seconds: i64) -> Time {
    Time(0).after(Span::seconds(seconds))
}

fn behavior(period_seconds: i64) -> Behavior {
    let policies =
        vec![Policy { amount: PolicyAmount::Pods(4), period: Span::seconds(period_seconds) }];
    let rules = ScalingRules {
        stabilization_window: None,
        select: PolicySelect::Max,
        policies,
        tolerance: None,
    };
    Behavior { scale_up: rules.clone(), scale_down: rules }
}

#[test]
fn events_take_the_last_outlived_slot() {
    let behavior = behavior(60);
    let mut history = History::default();
    for (size, seconds) in [(1, 0), (2, 10), (3, 20)] {
        history.scaled(Some(&behavior), size, size + 1, at(seconds));
    }
    // Both the first and the second are older than a minute; the second is overwritten.
    history.scaled(Some(&behavior), 4, 9, at(75));
    let changes: Vec<_> = history.ups.iter().map(|e| (e.change, e.outdated)).collect();
    assert_eq!(changes, [(1, true), (5, false), (1, false)]);
    assert!(history.downs.is_empty());
}

#[test]
fn an_event_of_exactly_a_periods_age_is_neither_counted_nor_outlived() {
    let behavior = behavior(60);
    let mut history = History::default();
    history.scaled(Some(&behavior), 1, 3, at(0));
    assert_eq!(changed_within(&history.ups, Span::seconds(60), at(60)), 0);
    assert_eq!(changed_within(&history.ups, Span::seconds(60), at(59)), 2);
    history.scaled(Some(&behavior), 3, 4, at(60));
    assert_eq!(history.ups.len(), 2);
}

#[test]
fn without_a_behavior_no_event_is_kept() {
    let mut history = History::default();
    history.scaled(None, 1, 5, at(0));
    assert_eq!(history, History::default());
}

#[test]
fn a_full_list_gives_up_its_oldest_entry() {
    let mut history = History::default();
    for second in 0..MAX_ENTRIES as i64 + 3 {
        let recommendation = Recommendation { replicas: 1, at: at(second) };
        let recommendation = Some((recommendation, None));
        history.commit(&Learned { recommendation, ..Learned::default() });
    }
    assert_eq!(history.recommendations.len(), MAX_ENTRIES);
    let oldest = history.recommendations.iter().map(|r| r.at).min();
    assert_eq!(oldest, Some(at(3)));
}

#[test]
fn bytes_that_are_no_history_are_refused() {
    for (bytes, error) in [
        (&[][..], CompactError::Truncated),
        (&[9], CompactError::Version(9)),
        (&[0], CompactError::Version(0)),
        (&[2, 0, 0, 0], CompactError::Truncated),
        (&[2, 0, 0, 0, 2], CompactError::Range(4)),
        (&[2, 0, 0, 0, 0, 0, 0x80, 1], CompactError::Truncated),
        (&[2, 0, 0, 0, 0, 0, 0, 0], CompactError::Trailing(7)),
        (&[3, 0, 0, 0, 2], CompactError::Range(4)),
        (&[3, 0, 0, 0, 0, 2], CompactError::Range(5)),
        (&[3, 0, 0, 0, 0, 1, 0], CompactError::Truncated),
        (&[3, 0, 0, 0, 1, 0, 0, 0, 0, 0xff, 3], CompactError::Truncated),
        (&[3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2], CompactError::Range(10)),
        (&[4, 0, 0, 0, 0], CompactError::Range(4)),
        (&[4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0], CompactError::Range(11)),
        (&[4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 65], CompactError::Range(11)),
        (&[4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 7], CompactError::Truncated),
        (&[1, 5], CompactError::Truncated),
        (&[1, 0, 0, 0, 7], CompactError::Trailing(4)),
        (&[1, 0xff, 0xff, 0xff, 0x7f], CompactError::Range(1)),
        (&[1, 1, 0, 0xff, 0xff, 0xff, 0xff, 0x7f], CompactError::Range(2)),
        (&[1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], CompactError::Range(1)),
    ] {
        assert_eq!(History::from_bytes(bytes), Err(error), "{bytes:?}");
    }
}

#[test]
fn twenty_recommendations_are_small() {
    let mut history = History::default();
    for n in 0..20 {
        let at = at(946_684_800 + n * 15);
        history.recommendations.push(Recommendation { replicas: 3, at });
    }
    let bytes = history.to_bytes();
    assert!(bytes.len() < 128, "{} bytes", bytes.len());
    assert_eq!(History::from_bytes(&bytes), Ok(history));
}
