//! Rules of single metrics, and how metrics are combined.

use super::fixture::Fixture;
use super::{check, desired, differs};
use podscale_core::Span;
use podscale_core::model::{
    Aggregate, Binary, Combine, Extensions, Fact, Formula, MetricRules, Milli, OnMissing, Part,
    ShareOf, Source, Targets, Unary, Watermarks,
};
use podscale_core::snapshot::Reading;
use podscale_core::{Metric, decide};

fn rule(change: impl FnOnce(&mut MetricRules)) -> impl FnOnce(&mut Extensions) {
    |extensions| {
        let mut rules = MetricRules::default();
        change(&mut rules);
        extensions.metrics = vec![rules];
    }
}

/// The first pods were measured so many seconds ago.
fn aged(mut fixture: Fixture, pods: usize, seconds: i64) -> Fixture {
    let taken = fixture.now.before(Span::seconds(seconds));
    if let Some(Reading::PerPod(readings)) = fixture.readings.first_mut() {
        readings.samples.iter_mut().take(pods).flatten().for_each(|s| s.taken = taken);
    }
    fixture
}

#[test]
fn old_samples_are_no_samples() {
    let max_age = |seconds| rule(move |r| r.max_age = Some(Span::seconds(seconds)));
    // Two of four are too old, so they count as idle: 4 × 2 becomes 4 × 1.
    differs(aged(Fixture::of(4).cpu(100, 50), 2, 61).settled(), max_age(60), 8, 4);
    assert_eq!(desired(&aged(Fixture::of(4).cpu(100, 50), 2, 60).extend(max_age(60))), Some(8));
    differs(aged(Fixture::of(4).cpu(100, 50), 4, 61), max_age(60), 8, None);
    differs(Fixture::of(4).prometheus(20, 10, 61), max_age(60), 8, None);
    assert_eq!(desired(&Fixture::of(4).prometheus(20, 10, 60).extend(max_age(60))), Some(8));
    check(
        &Fixture::of(4).prometheus(20, 10, 90).extend(max_age(60)),
        &[
            "rps is broken: the newest value is 90s old, more than the 60s allowed",
            "no metric works, so the size stays as it is",
        ],
    );
}

#[test]
fn something_stands_in_for_a_missing_metric() {
    let by = |on_missing| {
        move |e: &mut Extensions| {
            e.metrics =
                vec![MetricRules::default(), MetricRules { on_missing, ..MetricRules::default() }];
        }
    };
    let down = || Fixture::of(4).cpu(25, 50).broken().settled();
    differs(down(), by(OnMissing::Ignore), None, 2);
    differs(down(), by(OnMissing::Replicas(3)), None, 3);
    differs(down(), by(OnMissing::Replicas(7)), None, 7);
    let up = || Fixture::of(4).cpu(75, 50).broken().settled();
    differs(up(), by(OnMissing::Abort), 6, None);
    // Without a last value it holds, which is what happens anyway.
    assert_eq!(desired(&down().extend(by(OnMissing::LastValue))), None);
    check(
        &down().extend(by(OnMissing::Ignore)),
        &[
            "cpu is at 25% of requests, target 50% (ratio 0.500; pods: 4 ready): asks for 2",
            "queue is broken: unable to get external metric default/queue/nil: unable to fetch \
             metrics from external metrics API: connection refused",
            "queue is left out",
            "cpu asks for most: 2",
            "no recent recommendation stands against 2",
            "so the size changes from 4 to 2",
        ],
    );
    // Nothing is left to decide.
    let alone = Fixture::of(4).broken().rule(0, |r| r.on_missing = OnMissing::Ignore);
    assert_eq!(desired(&alone), None);
}

#[test]
fn a_last_answer_is_kept_and_belongs_to_its_metric() {
    let mut fixture = Fixture::of(4).queue(60, 10).rule(0, |r| r.on_missing = OnMissing::LastValue);
    assert_eq!(fixture.pass().decision.desired, Some(6));
    let readings = fixture.readings.clone();
    fixture.readings = vec![Reading::Failed("gone".into())];
    for _ in 0..3 {
        assert_eq!(fixture.pass().decision.desired, Some(6));
    }
    check(
        &fixture,
        &[
            "queue is broken: unable to get external metric default/queue/nil: unable to fetch \
             metrics from external metrics API: gone",
            "queue counts with its last answer, 6",
            "the metrics ask for 6",
            "no recent recommendation stands against 6",
            "so the size stays 6",
        ],
    );
    // Another target is another metric.
    let edited = Fixture::of(0).queue(0, 20).autoscaler.metrics;
    let before = std::mem::replace(&mut fixture.autoscaler.metrics, edited);
    assert_eq!(desired(&fixture), None);
    fixture.autoscaler.metrics = before;
    // What was learned survives its compact form, and is forgotten with the rule.
    let bytes = fixture.history.to_bytes();
    assert_eq!(podscale_core::History::from_bytes(&bytes).as_ref(), Ok(&fixture.history));
    assert!(fixture.history.memory.is_some());
    fixture.readings = readings;
    let mut fixture = fixture.rule(0, |r| r.on_missing = OnMissing::Hold);
    fixture.pass();
    assert_eq!(fixture.history.memory, None);
}

#[test]
fn values_of_pods_are_aggregated() {
    let pods = [10, 20, 30, 100];
    let base = || Fixture::of(4).cpu_of_pods(&pods, 50).settled();
    let aggregate = |aggregate| rule(move |r| r.aggregate = aggregate);
    differs(base(), aggregate(Aggregate::Max), 4, 8);
    differs(base(), aggregate(Aggregate::Percentile(50)), 4, 2);
    differs(base(), aggregate(Aggregate::Percentile(75)), 4, 3);
    differs(base(), aggregate(Aggregate::Percentile(99)), 4, 8);
    check(
        &base().extend(aggregate(Aggregate::Max)),
        &[
            "the largest cpu is at 100% of requests, target 50% (ratio 2.000; pods: 4 ready): asks \
             for 8",
            "the metrics ask for 8",
            "no recent recommendation stands against 8",
            "so the size changes from 4 to 8",
        ],
    );
    // A pod without a sample counts as idle on the way up: P50 of 0, 20, 60, 100 is 20.
    let missing = Fixture::of(4).cpu_of_pods(&[0, 20, 60, 100], 15).without_samples(1).settled();
    let p50 = rule(|r| r.aggregate = Aggregate::Percentile(50));
    assert_eq!(desired(&missing.extend(p50)), Some(6));
}

#[test]
fn plain_values_are_aggregated_too() {
    let mut base = Fixture::of(2).cpu_of_pods(&[1000, 3000], 0).settled();
    let targets = Targets { average_value: Some(Milli(2000)), ..Targets::default() };
    base.autoscaler.metrics[0] = Metric::new(Source::Resource { name: "cpu".into() }, &targets);
    differs(base, rule(|r| r.aggregate = Aggregate::Max), 2, 3);
}

#[test]
fn shares_of_limits_are_called_so() {
    let targets = Targets { average_utilization: Some(50), ..Targets::default() };
    let metric =
        Metric::sharing(Source::Resource { name: "cpu".into() }, &targets, ShareOf::Limits);
    let mut fixture = Fixture::of(4).cpu(100, 50).rule(0, |r| r.share_of = ShareOf::Limits);
    fixture.autoscaler.metrics[0] = metric;
    let outcome = fixture.clone().pass();
    let event = &outcome.decision.events[0].message;
    assert_eq!(
        event,
        "New size: 8; reason: cpu resource utilization (percentage of limit) above target"
    );
    let line = podscale_core::explain::lines(
        &decide(&fixture.snapshot()).steps,
        &fixture.autoscaler,
        fixture.now,
    );
    assert!(line[1].starts_with("cpu is at 100% of limits, target 50%"), "{}", line[1]);
}

#[test]
fn between_watermarks_nothing_moves() {
    let marks = |low, high| {
        rule(move |r| r.watermarks = Some(Watermarks { low: Milli(low), high: Milli(high) }))
    };
    // Percent for a utilization.
    differs(Fixture::of(4).cpu(80, 50).settled(), marks(30_000, 80_000), 7, 4);
    differs(Fixture::of(4).cpu(30, 50).settled(), marks(30_000, 80_000), 3, 4);
    assert_eq!(desired(&Fixture::of(4).cpu(81, 50).extend(marks(30_000, 80_000))), Some(7));
    let low = Fixture::of(4).cpu(29, 50).settled();
    assert_eq!(desired(&low.extend(marks(30_000, 80_000))), Some(3));
    // Narrower than the tolerance as well.
    differs(Fixture::of(10).cpu(52, 50).settled(), marks(50_000, 51_000), 10, 11);
    // The metric's own unit for a value.
    differs(Fixture::of(4).prometheus(15, 10, 0), marks(5_000, 15_000), 6, 4);
}

#[test]
fn proposals_are_combined() {
    let base = || Fixture::of(4).cpu(100, 50).queue(50, 10).settled();
    let combine = |combine| move |e: &mut Extensions| e.combine = combine;
    differs(base(), combine(Combine::Min), 8, 5);
    differs(base(), combine(Combine::Average), 8, 7);
    // Metrics that hold block all of them, up and down.
    let broken = || Fixture::of(4).cpu(100, 50).broken().settled();
    differs(broken(), combine(Combine::Min), 8, None);
    differs(broken(), combine(Combine::Average), 8, None);
    check(
        &base().extend(combine(Combine::Average)),
        &[
            "cpu is at 100% of requests, target 50% (ratio 2.000; pods: 4 ready): asks for 8",
            "queue is at 12.5 per pod, target 10 (ratio 1.250): asks for 5",
            "their average is 7",
            "no recent recommendation stands against 7",
            "so the size changes from 4 to 7",
        ],
    );
    let mut average = base().extend(combine(Combine::Average));
    let reason = "New size: 7; reason: All metrics combined above target";
    assert_eq!(average.pass().decision.events[0].message, reason);
}

fn number(number: f64) -> Box<Part> {
    Part::Number(number).into()
}

fn metric(metric: u32, fact: Fact) -> Box<Part> {
    Part::Metric { metric, fact }.into()
}

/// Decides with a formula over cpu (asks for 8, is at 100) and a broken queue.
#[track_caller]
fn formula(part: Part, expected: Option<i32>) {
    let formula = Formula::new("f", part.clone()).expect("small");
    let fixture = Fixture::of(4).cpu(100, 50).broken().settled().limits(0, 100);
    let fixture = fixture.extend(|e| e.combine = Combine::Formula(formula));
    assert_eq!(desired(&fixture), expected, "{part:?}");
}

#[test]
fn formulas_are_evaluated() {
    use Binary::{
        Add, And, Divide, Equal, Greater, Less, Max, Min, Multiply, Or, Remainder, Subtract,
    };
    let binary = |f, a, b| Part::Binary(f, a, b);
    let cpu = || metric(0, Fact::Replicas);
    let queue = || metric(1, Fact::Replicas);
    formula(*cpu(), Some(8));
    formula(binary(Divide, metric(0, Fact::Value), number(20.0)), Some(5));
    formula(*metric(0, Fact::Ratio), Some(2));
    formula(*queue(), None);
    formula(Part::CurrentReplicas, Some(4));
    formula(binary(Add, cpu(), number(-1.5)), Some(7));
    formula(binary(Subtract, cpu(), number(2.0)), Some(6));
    formula(binary(Multiply, number(0.7), cpu()), Some(6));
    formula(binary(Divide, cpu(), number(3.0)), Some(3));
    formula(binary(Divide, cpu(), number(0.0)), None);
    formula(binary(Remainder, cpu(), number(5.0)), Some(3));
    formula(binary(Max, number(5.0), number(3.0)), Some(5));
    formula(binary(Min, number(5.0), number(3.0)), Some(3));
    formula(Part::Unary(Unary::Floor, number(2.9)), Some(2));
    formula(Part::Unary(Unary::Round, number(2.5)), Some(3));
    formula(Part::Unary(Unary::Ceil, number(2.1)), Some(3));
    formula(Part::Unary(Unary::Abs, number(-3.0)), Some(3));
    formula(Part::Unary(Unary::Negate, number(-3.0)), Some(3));
    formula(*number(f64::NAN), None);
    let has = |metric| Box::new(Part::Has { metric });
    formula(Part::If(has(1), queue(), number(7.0)), Some(7));
    formula(Part::If(has(0), number(7.0), queue()), Some(7));
    let broken = || Box::new(binary(Greater, queue(), number(1.0)));
    let yes = || Box::new(binary(Less, number(1.0), number(2.0)));
    let no = || Box::new(binary(Equal, number(1.0), number(2.0)));
    let choose = |condition: Part| Part::If(condition.into(), number(1.0), number(2.0));
    formula(choose(binary(Or, broken(), yes())), Some(1));
    formula(choose(binary(And, broken(), no())), Some(2));
    formula(choose(binary(And, broken(), yes())), None);
    formula(choose(Part::Unary(Unary::Not, no())), Some(1));
}

#[test]
fn a_formula_that_fails_says_so() {
    let formula = Formula::new("queue", *metric(1, Fact::Replicas)).expect("small");
    let mut fixture = Fixture::of(4).cpu(100, 50).broken();
    fixture = fixture.rule(1, |r| r.name = Some("queue".into()));
    let mut fixture = fixture.extend(|e| e.combine = Combine::Formula(formula));
    check(
        &fixture,
        &[
            "cpu is at 100% of requests, target 50% (ratio 2.000; pods: 4 ready): asks for 8",
            "queue is broken: unable to get external metric default/queue/nil: unable to fetch \
             metrics from external metrics API: connection refused",
            "the expression needs queue, which has no usable value, so the size stays as it is",
        ],
    );
    let outcome = fixture.pass();
    let error = outcome.decision.error.as_deref().expect("an error");
    assert!(error.ends_with("the expression needs queue, which has no usable value"), "{error}");
}

#[test]
fn large_formulas_are_refused() {
    let mut deep = Part::Number(1.0);
    for _ in 0..podscale_core::model::MAX_DEPTH {
        deep = Part::Unary(Unary::Negate, deep.into());
    }
    assert!(Formula::new("", deep).is_err());
}
