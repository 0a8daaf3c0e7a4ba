//! Times as the core counts them.

use podscale_client::clock::Clock;
use podscale_core::Time;

/// What time it is.
pub(crate) fn now(clock: &Clock) -> Time {
    Time(clock.now().as_microsecond())
}
