//! Decides once on a scene of so many pods: what the instruction counter measures.
//! `decide_once (steady|rescaling) PODS`

#[path = "../tests/support/scene.rs"]
mod scene;

use podscale_core::{Snapshot, decide};
use scene::Scene;
use std::hint::black_box;

/// The counter collects inside this function only.
#[inline(never)]
fn measured_decision(snapshot: &Snapshot<'_>) -> Decided {
    let decision = decide(snapshot);
    let changes_status = decision.changes_status(snapshot);
    black_box(&decision);
    Decided { rescales: decision.rescale.is_some(), changes_status }
}

struct Decided {
    rescales: bool,
    changes_status: bool,
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
    let decided = measured_decision(black_box(&scene.snapshot()));
    assert_eq!(decided.rescales, percent != 50);
    assert!(decided.rescales || !decided.changes_status);
}
