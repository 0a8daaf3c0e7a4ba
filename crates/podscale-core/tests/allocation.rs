//! While nothing changes, deciding takes nothing from the heap.

#[path = "support/scene.rs"]
mod scene;

use podscale_core::decide;
use scene::Scene;

#[test]
fn a_steady_decision_allocates_nothing() {
    for pods in [1, 10, 100, 1000] {
        let mut scene = Scene::of(pods).cpu(50, 50).limits(1, 10_000);
        scene.settle_in();
        let snapshot = scene.snapshot();
        let used = allocation_counter::measure(|| {
            let decision = decide(&snapshot);
            assert!(decision.rescale.is_none() && !decision.changes_status(&snapshot));
        });
        assert_eq!(used.count_total, 0, "{pods} pods: {used:?}");
    }
}

#[test]
fn a_rescaling_decision_allocates_nothing_until_it_is_written() {
    let mut scene = Scene::of(10).cpu(100, 50).limits(1, 10_000);
    scene.settle_in();
    let snapshot = scene.snapshot();
    let used = allocation_counter::measure(|| assert!(decide(&snapshot).rescale.is_some()));
    assert_eq!(used.count_total, 0, "{used:?}");
}
