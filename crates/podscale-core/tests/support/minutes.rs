//! A calendar without cron expressions.

use podscale_core::Time;
use podscale_core::model::{Bounds, Calendar, Scheduled};

/// Other bounds in every second minute.
#[derive(Clone, Debug)]
pub(crate) struct Minutes(pub(crate) Bounds);

impl Calendar for Minutes {
    fn at(&self, now: Time, _: Bounds) -> Option<Scheduled> {
        let minute = now.0.div_euclid(60_000_000);
        let since = Time(minute.saturating_mul(60_000_000));
        let (schedule, ramp_percent) = ("on".into(), 100);
        let on = Scheduled { bounds: self.0, schedule, since, or_longer: false, ramp_percent };
        (minute % 2 == 0).then_some(on)
    }

    fn text(&self) -> &str {
        "minutes"
    }
}
