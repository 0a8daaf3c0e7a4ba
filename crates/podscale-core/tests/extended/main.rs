//! What autoscalers may ask for beyond native ones: each field makes a difference, and the difference
//! is the one that its words promise.

#[path = "../support/fixture.rs"]
mod fixture;
#[path = "../support/generate.rs"]
mod generate;
#[path = "../support/minutes.rs"]
mod minutes;

mod adversarial;
mod ahead;
mod costs;
mod fields;
mod means;
mod metrics;
mod properties;
mod queues;
mod sequences;
mod tolerance;
mod triggers;
mod windows;
mod zero;

use fixture::Fixture;
use podscale_core::model::Extensions;
use podscale_core::{decide, explain};

/// The size that is decided on; `None` if none can be.
fn desired(fixture: &Fixture) -> Option<i32> {
    decide(&fixture.snapshot()).desired
}

/// Checks that an extension makes a difference: the size without it, and with it.
#[track_caller]
fn differs(
    base: Fixture,
    change: impl FnOnce(&mut Extensions),
    without: impl Into<Option<i32>>,
    with: impl Into<Option<i32>>,
) {
    let (without, with) = (without.into(), with.into());
    assert_ne!(without, with, "the extension must matter");
    assert_eq!(desired(&base), without, "without");
    assert_eq!(desired(&base.extend(change)), with, "with");
}

/// Compares the words of all steps but the first, which only says what the target is.
#[track_caller]
fn check(fixture: &Fixture, expected: &[&str]) {
    let snapshot = fixture.snapshot();
    let lines = explain::lines(&decide(&snapshot).steps, snapshot.autoscaler, snapshot.now);
    assert_eq!(lines[1..], *expected);
}
