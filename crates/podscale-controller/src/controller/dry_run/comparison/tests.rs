use super::*;
use podscale_core::model::{Milli, Series, Source};
use podscale_core::status::{Current, StoredMetric};
use std::sync::Arc;

const MEMORY: Span = Span::seconds(60);

fn at(seconds: i64) -> Moment {
    Moment { now: Time(0).after(Span::seconds(seconds)), memory: MEMORY }
}

/// A value of the only metric, as a status shows it.
fn metrics(value: i32) -> Vec<StoredMetric> {
    let series = Series { name: "x".into(), selector: None, query: None, selector_error: None };
    let value = Some(Milli(i64::from(value) * 1000));
    let current = Current { value, ..Current::default() };
    vec![StoredMetric::Known { source: Arc::new(Source::External(series)), current }]
}

/// What was written with a value of the metric, having found two replicas.
fn observed(desired: i32, value: i32) -> ObservedWrite {
    ObservedWrite { desired, metrics: metrics(value), ..super::super::tests::observed_write() }
}

/// What we chose with a value of the metric and some state of the pods.
fn attempt(chosen: i32, value: i32, pods: u64) -> Attempt {
    let (chosen, metrics) = (Some(chosen), metrics(value));
    Attempt { found: 2, existing: 2, chosen, metrics, pods, same_inputs: false }
}

/// Holds an attempt of ours against an observed write.
fn judge(
    comparison: &mut Comparison,
    observed: &ObservedWrite,
    mut attempt: Attempt,
    seconds: i64,
) -> Option<Verdict> {
    attempt.same_inputs = attempt.metrics == observed.metrics;
    comparison.written(observed, attempt, |_| false, at(seconds))
}

const AGREED: Option<Verdict> = Some(Verdict::Agreed);

fn unknown(reason: Reason) -> Option<Verdict> {
    Some(Verdict::Unknown(reason))
}

fn chose(observed: i32, ours: i32) -> Option<Verdict> {
    Some(Verdict::Disagreed(Disagreement::Chose { observed, ours }))
}

#[test]
fn a_choice_is_judged_only_on_the_same_values_pods_and_past() {
    let mut comparison = Comparison::default();
    for (what, seconds, observed, ours, expected) in [
        ("the same", 0, observed(4, 10), attempt(4, 10, 1), AGREED),
        ("on other values", 15, observed(9, 30), attempt(5, 20, 1), unknown(Reason::Values)),
        ("as the attempt before", 30, observed(5, 20), attempt(6, 25, 1), AGREED),
        ("it may remember", 70, observed(9, 25), attempt(6, 25, 1), unknown(Reason::Past)),
        ("by now it does not", 80, observed(9, 25), attempt(6, 25, 1), chose(9, 6)),
        ("pods came", 95, observed(9, 25), attempt(6, 25, 2), unknown(Reason::Pods)),
        ("it may remember", 155, observed(9, 25), attempt(6, 25, 2), unknown(Reason::Past)),
        ("by now it does not", 156, observed(9, 25), attempt(6, 25, 2), chose(9, 6)),
    ] {
        assert_eq!(judge(&mut comparison, &observed, ours, seconds), expected, "{what}");
    }
    let mut attempt = attempt(20, 25, 2);
    attempt.same_inputs = true;
    let found = comparison.written(&observed(12, 25), attempt, |ours| ours == 12, at(170));
    assert_eq!(found, AGREED, "a second earlier");
}

#[test]
fn other_values_again_and_again_are_reported_once() {
    let mut comparison = Comparison::default();
    let reported = [(); 7].map(|()| judge(&mut comparison, &observed(4, 10), attempt(5, 20, 1), 0));
    let expected = [
        unknown(Reason::Values),
        unknown(Reason::Values),
        unknown(Reason::Values),
        unknown(Reason::Values),
        unknown(Reason::ValuesRepeatedly),
        unknown(Reason::Values),
        unknown(Reason::Values),
    ];
    assert_eq!(reported, expected);
}

#[test]
fn a_choice_that_stays_is_judged_after_three_attempts() {
    let mut comparison = Comparison::default();
    let kept = Some(Verdict::Disagreed(Disagreement::Kept { observed: 6, ours: 9 }));
    for (what, seconds, same_inputs, ours, pods, expected) in [
        ("the same", 0, true, 6, 1, AGREED),
        ("apart once", 15, true, 8, 1, None),
        ("twice", 30, true, 8, 1, None),
        ("the pods change", 45, true, 8, 2, None),
        ("it may remember", 60, true, 8, 2, None),
        ("by now it does not", 106, true, 8, 2, None),
        ("other values do not count", 120, false, 8, 2, None),
        ("twice", 135, true, 8, 2, None),
        ("three times", 150, true, 9, 2, kept),
        ("said once", 165, true, 9, 2, None),
        ("together", 180, true, 6, 2, AGREED),
        ("apart", 195, true, 9, 2, None),
    ] {
        let ours = Attempt { same_inputs, ..attempt(ours, 10, pods) };
        assert_eq!(comparison.unwritten(6, ours, at(seconds)), expected, "{what}");
    }
}
