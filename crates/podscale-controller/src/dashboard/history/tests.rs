use super::*;
use crate::dashboard::picture::sample::{picture, wanting};

const CAPACITY: Capacity = Capacity { points: 16, decisions: 3 };

fn decision(at: i64, outcome: OutcomeKind) -> Arc<Picture> {
    Arc::new(picture("web", at, 1, outcome))
}

fn point(at: i64, current: i32, metrics: usize) -> Point {
    Point {
        version: at as u64,
        time: Time(at * 1_000_000),
        current,
        desired: current,
        min: 1,
        max: 9,
        metrics: (0..metrics).map(|_| (0.5, 1.0)).collect(),
    }
}

fn history(outcomes: &[OutcomeKind]) -> History {
    let mut history = History::default();
    for (at, outcome) in (1..).zip(outcomes) {
        history.add(point(at, 1, 0), &decision(at, *outcome), CAPACITY);
    }
    history
}

#[test]
fn only_news_is_kept() {
    use OutcomeKind::*;
    let check = |outcomes: &[OutcomeKind], expected: &[i64]| {
        let kept = history(outcomes).decisions_since(0);
        let times: Vec<i64> = kept.iter().map(|d| d.time.0 / 1_000_000).collect();
        assert_eq!(times, expected, "{outcomes:?}");
    };
    check(&[Steady, Steady, Steady], &[]);
    check(&[Steady, Held, Held, Steady], &[2]);
    check(&[Up, Held, Down, Steady], &[1, 3]);
    check(&[Steady, Failed, Failed, Steady], &[2, 4]);
    check(&[Failed, Failed, Up], &[1, 3]);
    check(&[Up, Paused, Paused], &[1, 2]);
    check(&[Up, Up, Up, Up, Down], &[3, 4, 5]);
    check(&[Steady, Withheld, Withheld, Steady], &[2]);
}

#[test]
fn a_withheld_size_is_news_when_it_changes() {
    let mut history = History::default();
    for (at, to) in (1..).zip([4, 4, 5]) {
        let decision = wanting(to, picture("web", at, 2, OutcomeKind::Withheld));
        history.add(point(at, 2, 0), &Arc::new(decision), CAPACITY);
    }
    let sizes: Vec<i32> = history.decisions_since(0).iter().map(|d| d.decision().to).collect();
    assert_eq!(sizes, [4, 5]);
}

#[test]
fn space_is_bounded_and_the_past_gets_sparser() {
    let mut steady = History::default();
    let mut restless = History::default();
    for at in 1..=10_000 {
        let decision = decision(at, OutcomeKind::Steady);
        let mut busy = point(at, i32::from(at > 5), 1);
        busy.metrics[0].0 = at as f32;
        steady.add(busy, &decision, CAPACITY);
        restless.add(point(at, (at % 7) as i32, 1), &decision, CAPACITY);
        assert!(steady.points.len() <= 16 && restless.points.len() <= 16);
    }
    let times: Vec<u64> = steady.points.iter().map(|p| p.version).collect();
    assert_eq!(times[..2], [1, 6], "the first point and the change of size stay");
    assert_eq!(times[times.len() - 4..], [9997, 9998, 9999, 10_000]);
    assert_eq!(restless.points.back().map(|p| p.version), Some(10_000));
}

#[test]
fn nothing_is_kept_between_equal_points() {
    let mut history = History::default();
    for at in 1..=10 {
        let mut point = point(at, i32::from(at == 5), 1);
        point.metrics[0].0 = if at > 7 { f32::NAN } else { 0.5 };
        history.add(point, &decision(at, OutcomeKind::Steady), CAPACITY);
    }
    let versions = |since| history.points_since(since).iter().map(|p| p.version).collect();
    let all: Vec<u64> = versions(0);
    assert_eq!(all, [1, 4, 5, 6, 7, 8, 10]);
    let new: Vec<u64> = versions(9);
    assert_eq!(new, [10]);
}

#[test]
fn a_smaller_capacity_holds_at_once() {
    let mut history = history(&[OutcomeKind::Up; 16]);
    let small = Capacity { points: 1, decisions: 0 };
    history.add(point(17, 3, 0), &decision(17, OutcomeKind::Up), small);
    assert_eq!(history.points_since(0).len(), 1);
    assert_eq!(history.decisions_since(0).len(), 1);
}

#[test]
fn other_metrics_do_not_continue_the_old_lines() {
    let mut history = History::default();
    history.add(point(1, 1, 1), &decision(1, OutcomeKind::Steady), CAPACITY);
    history.add(point(2, 1, 2), &decision(2, OutcomeKind::Steady), CAPACITY);
    let lengths: Vec<usize> = history.points.iter().map(|p| p.metrics.len()).collect();
    assert_eq!(lengths, [0, 2]);
}

#[test]
fn the_trend_is_spread_over_time() {
    assert_eq!(history(&[OutcomeKind::Steady]).trend(3), [1, 1, 1]);
    let mut history = History::default();
    for (at, size) in [(0, 1), (10, 1), (90, 5), (100, 7)] {
        history.add(point(at, size, 0), &decision(at, OutcomeKind::Steady), CAPACITY);
    }
    assert_eq!(history.trend(11), [1, 1, 1, 1, 1, 1, 1, 1, 1, 5, 7]);
    assert!(History::default().trend(5).is_empty());
}

#[test]
fn a_point_is_a_short_list() {
    let mut point = point(2, 4, 1);
    point.metrics.push((f32::INFINITY, f32::NAN));
    point.metrics.push((f32::NAN, f32::NAN));
    assert_eq!(
        serde_json::to_string(&point).unwrap(),
        "[2000,4,4,1,9,0.5,1.0,\"no pods\",null,null,null]"
    );
}
