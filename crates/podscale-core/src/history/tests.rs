use super::*;
use crate::model::{Milli, Policy, PolicyAmount, PolicySelect, ScalingRules};

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
        (&[3, 0, 0, 0, 1, 0, 2], CompactError::Range(6)),
        (&[4, 0, 0, 0, 2], CompactError::Range(4)),
        (&[4, 0, 0, 0, 0, 2], CompactError::Range(5)),
        (&[4, 0, 0, 0, 0, 1, 0], CompactError::Truncated),
        (&[4, 0, 0, 0, 1, 0, 0, 0, 0, 0xff, 3], CompactError::Truncated),
        (&[4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2], CompactError::Range(10)),
        (&[4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 65], CompactError::Range(11)),
        (&[4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 7], CompactError::Truncated),
        (&[4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0], CompactError::Trailing(13)),
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

/// Version 3 had three endings: the demand alone; with a window and a burst; with a forecaster that knows gains.
#[test]
fn of_the_earlier_forms_of_demands_only_the_certain_part_is_read() {
    // A recommendation of 3 at one second; last active at two seconds; one answer of 5 at three seconds.
    let start = [&[3, 1, 0x80, 0x89, 0x7a, 6, 0, 0, 1][..], &[1, 0x80, 0x92, 0xf4, 1, 0]].concat();
    let start = [&start[..], &[1, 0x80, 0x9b, 0xee, 2, 10, 9]].concat();
    let memory = Memory {
        last_active: Some(at(2)),
        last_answers: vec![LastAnswer { metric: 9, replicas: 5, at: at(3) }],
        ..Memory::default()
    };
    let history = History {
        recommendations: vec![Recommendation { replicas: 3, at: at(1) }],
        memory: Some(Box::new(memory)),
        ..History::default()
    };
    let demand = [1, 6, 20, 30];
    let window = [1, 2, 4, 1, 8, 4];
    let forecaster = vec![1u8; 1100];
    let ends = [
        [&demand[..], &[0]].concat(),
        [&demand[..], &window, &[0]].concat(),
        [&demand[..], &window, &[1], &forecaster].concat(),
    ];
    for end in ends {
        let bytes = [&start[..], &end].concat();
        assert_eq!(History::from_bytes(&bytes), Ok(history.clone()), "{end:?}");
    }
    let again = history.to_bytes();
    assert_eq!((again[0], History::from_bytes(&again)), (2, Ok(history)));
}

/// So that a change of the form does not go unnoticed: what is stored by this version must be read by the next.
#[test]
fn the_newest_form_stays_as_it_is() {
    let memory = Memory {
        last_active: Some(at(2)),
        asked: vec![Asked { replicas: Milli(2500), at: Time(1) }],
        burst: Some(Burst { last: Time(4), replicas: 9 }),
        failures: vec![Failures { trigger: 300, count: 4 }],
        ..Memory::default()
    };
    let history = History { memory: Some(Box::new(memory)), ..History::default() };
    let demands = [0, 1, 2, 0x88, 0x27, 1, 8, 18];
    let bytes = [&[4, 0, 0, 0, 1, 1, 0x80, 0x92, 0xf4, 1, 0, 0][..], &demands, &[1, 0xac, 2, 4, 0]];
    let bytes = bytes.concat();
    assert_eq!(history.to_bytes(), bytes);
    assert_eq!(History::from_bytes(&bytes).as_ref(), Ok(&history));
    let learned = Memory {
        room: Some(Room { part: 70_000, at: Time(5) }),
        ..history.memory.as_deref().cloned().unwrap_or_default()
    };
    let history = History { memory: Some(Box::new(learned)), ..History::default() };
    let bytes = [&[5][..], &bytes[1..bytes.len() - 1], &[10, 0xe0, 0xc5, 8, 0]].concat();
    assert_eq!(history.to_bytes(), bytes);
    assert_eq!(History::from_bytes(&bytes), Ok(history));
    let forecaster = Some(Box::new(Forecaster::default()));
    let bytes = History { forecaster, ..History::default() }.to_bytes();
    // Two seasons without anything, a trend, three backtests, two counts of bursts, two times.
    assert_eq!((&bytes[..6], bytes.len()), (&[4, 0, 0, 0, 0, 1][..], 1170));
}
