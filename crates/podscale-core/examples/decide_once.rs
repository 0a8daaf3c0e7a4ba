//! Decides once on a scene of so many pods: what the instruction counter measures.
//! `decide_once (steady|rescaling) PODS`

#[path = "../tests/support/scene.rs"]
mod scene;

use podscale_core::{Decision, Snapshot, decide};
use scene::Scene;
use std::hint::black_box;

/// The counter collects inside this function only.
#[inline(never)]
fn measured_decision(snapshot: &Snapshot<'_>) -> (Decision, bool) {
    let decision = decide(snapshot);
    let changes = decision.changes_status(snapshot);
    (decision, changes)
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let percent = match arguments.next().as_deref() {
        Some("steady") => 50,
        Some("rescaling") => 100,
        other => panic!("steady or rescaling, not {other:?}"),
    };
    let pods = arguments.next().and_then(|n| n.parse().ok()).expect("a number of pods");
    let mut scene = Scene::of(pods).cpu(percent, 50).limits(1, 10_000);
    scene.settle_in();
    let (decision, changes) = measured_decision(black_box(&scene.snapshot()));
    assert_eq!(decision.rescale.is_some(), percent != 50);
    assert!(!changes || percent != 50);
}
