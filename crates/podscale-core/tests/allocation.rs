//! While nothing changes, a pass takes nothing from the heap.

#![allow(missing_docs, unreachable_pub, reason = "nothing here is used from elsewhere")]

#[path = "support/fixture.rs"]
mod fixture;

use fixture::Fixture;
use podscale_core::{Pass, Write};

#[test]
fn a_steady_pass_allocates_nothing() {
    for pods in [1, 10, 100, 1000] {
        let mut fixture = Fixture::of(pods).cpu(50, 50).limits(1, 10_000);
        fixture.run_in();
        let snapshot = fixture.snapshot();
        let used = allocation_counter::measure(|| {
            let mut pass = Pass::begin(&snapshot);
            assert_eq!(pass.next_write(), Write::Nothing);
            let outcome = pass.finish();
            assert!(outcome.decision.learned.recommendation.is_some());
        });
        assert_eq!(used.count_total, 0, "{pods} pods: {used:?}");
    }
}

#[test]
fn a_rescaling_pass_allocates_nothing_until_it_is_written() {
    let mut fixture = Fixture::of(10).cpu(100, 50).limits(1, 10_000);
    fixture.run_in();
    let snapshot = fixture.snapshot();
    let used = allocation_counter::measure(|| {
        assert!(matches!(Pass::begin(&snapshot).next_write(), Write::Scale(_)));
    });
    assert_eq!(used.count_total, 0, "{used:?}");
}
