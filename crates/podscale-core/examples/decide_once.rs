//! Decides once on a fixture of so many pods: what the instruction counter measures.
//! `decide_once (steady|rescaling) PODS`

#![allow(missing_docs, unreachable_pub, reason = "nothing here is used from elsewhere")]

#[path = "../tests/support/fixture.rs"]
mod fixture;

use fixture::Fixture;
use podscale_core::{Snapshot, decide};
use std::hint::black_box;

/// The counter collects inside this function only.
#[inline(never)]
fn measured_decision(snapshot: &Snapshot<'_>) -> bool {
    let decision = decide(snapshot);
    black_box(&decision);
    decision.rescale.is_some()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let percent = match arguments.next().as_deref() {
        Some("steady") => 50,
        Some("rescaling") => 100,
        _ => return Err("steady or rescaling?".into()),
    };
    let pods = arguments.next().ok_or("how many pods?")?.parse()?;
    let mut fixture = Fixture::of(pods).cpu(percent, 50).limits(1, 10_000);
    fixture.run_in();
    let rescales = measured_decision(black_box(&fixture.snapshot()));
    assert_eq!(rescales, percent != 50);
    Ok(())
}
