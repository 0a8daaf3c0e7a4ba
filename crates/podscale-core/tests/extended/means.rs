//! Sizes by the mean demand of a window, and what bursts change.

use super::check;
use super::fixture::Fixture;
use podscale_core::model::{Stabilization, Window};
use podscale_core::{History, Span};

const WINDOW: Window =
    Window { stable: Span::seconds(60), panic: Span::seconds(6), panic_percent: 200 };

/// Passes fifteen seconds apart over four pods that take ten of a queue each: the sizes asked for. The history
/// goes through its compact form in between.
fn sizes(window: Window, queues: &[i64]) -> Vec<Option<i32>> {
    let mut fixture = Fixture::of(4).queue(40, 10).extend(|e| {
        e.window = Some(window);
        e.stabilization = Stabilization::Off;
    });
    let scale = fixture.scale.clone();
    let pass = |length: &i64| {
        fixture.readings = Fixture::of(0).queue(*length, 10).readings;
        fixture.history = History::from_bytes(&fixture.history.to_bytes()).expect("a history");
        let desired = fixture.pass().decision.desired;
        fixture.scale = scale.clone();
        fixture.now = fixture.now.after(Span::seconds(15));
        desired
    };
    queues.iter().map(pass).collect()
}

#[test]
fn a_size_follows_the_mean_of_its_window() {
    assert_eq!(sizes(WINDOW, &[40, 40, 60, 60, 40]), [4, 4, 5, 5, 5].map(Some));
    let short = Window { stable: Span::seconds(15), ..WINDOW };
    assert_eq!(sizes(short, &[40, 40, 60, 60, 40]), [4, 4, 6, 6, 4].map(Some));
}

#[test]
fn a_burst_is_followed_at_once_and_held_for_a_window() {
    let queues = [40, 80, 40, 40, 40, 40, 40];
    assert_eq!(sizes(WINDOW, &queues), [4, 8, 8, 8, 8, 4, 4].map(Some));
    let calm = Window { panic_percent: 400, ..WINDOW };
    assert_eq!(sizes(calm, &queues), [4, 6, 6, 5, 5, 4, 4].map(Some));
}

#[test]
fn it_says_what_it_does_and_forgets_with_the_rule() {
    let mut fixture = Fixture::of(4).queue(40, 10).settled().extend(|e| e.window = Some(WINDOW));
    check(
        &fixture,
        &[
            "queue is at 10 per pod, target 10 (ratio 1.000): close enough, stay at 4",
            "the metrics ask for 4",
            "over the window 4 are needed; the last demand alone asks for 4",
            "no recent recommendation stands against 4",
            "so the size stays 4",
        ],
    );
    fixture.pass();
    assert!(fixture.history.memory.is_some());
    let mut fixture = fixture.extend(|e| e.window = None);
    fixture.pass();
    assert_eq!(fixture.history.memory, None);
}
