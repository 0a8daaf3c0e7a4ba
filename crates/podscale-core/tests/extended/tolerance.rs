//! How far a ratio may be off before anything moves.

use super::fixture::Fixture;
use super::{desired, differs};
use podscale_core::model::{Extensions, Tolerance};

#[test]
fn tolerance_is_per_direction() {
    let tolerance = |up, down| {
        move |e: &mut Extensions| e.tolerance = Some(Tolerance { up: Some(up), down: Some(down) })
    };
    differs(Fixture::of(10).cpu(60, 50).settled(), tolerance(0.3, 0.1), 12, 10);
    differs(Fixture::of(10).cpu(40, 50).settled(), tolerance(0.1, 0.3), 8, 10);
    differs(Fixture::of(10).cpu(52, 50).settled(), tolerance(0.01, 0.1), 10, 11);
    differs(Fixture::of(40).cpu(48, 50).settled(), tolerance(0.1, 0.01), 40, 39);
    // Where one direction says nothing, the controller's setting counts.
    let down = |e: &mut Extensions| e.tolerance = Some(Tolerance { up: None, down: Some(0.3) });
    differs(Fixture::of(10).cpu(40, 50).settled(), down, 8, 10);
    let risen = Fixture::of(10).cpu(60, 50).settled().extend(down);
    assert_eq!(desired(&risen), Some(12));
}
