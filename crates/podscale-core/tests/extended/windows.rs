//! Rates, stabilization and forbidden windows through any sequence of loads, held against a log that the
//! test keeps of what was asked for and what was done.

use super::fixture::Fixture;
use podscale_core::decision::RescaleReason;
use podscale_core::model::{
    Behavior, Bounds, Calendar, ForbiddenWindows, Policy, PolicyAmount, PolicySelect, ScalingRules,
    Scheduled, Schedules,
};
use podscale_core::snapshot::Scale;
use podscale_core::{Decision, Span, Step, Time};
use proptest::prelude::*;

/// Other bounds in every third minute, reached gradually.
#[derive(Clone, Debug)]
struct Thirds(Bounds);

impl Calendar for Thirds {
    fn at(&self, now: Time, base: Bounds) -> Option<Scheduled> {
        let minute = now.0.div_euclid(60_000_000);
        let since = Time(minute * 60_000_000);
        let percent = i32::try_from(now.since(since).0 / 600_000).ok()?;
        let between = |from: i32, to: i32| from + (to - from) * percent / 100;
        let bounds =
            Bounds { min: between(base.min, self.0.min), max: between(base.max, self.0.max) };
        let ramp_percent = u8::try_from(percent).ok()?;
        let schedule = "thirds".into();
        let on = Scheduled { bounds, schedule, since, or_longer: false, ramp_percent };
        (minute % 3 == 0).then_some(on)
    }

    fn text(&self) -> &str {
        "thirds"
    }
}

/// The rules of one direction: so many pods within a period, a stabilization window, a forbidden window.
#[derive(Clone, Copy, Debug)]
struct Direction {
    pods: i32,
    period: i64,
    window: i64,
    forbidden: Option<i64>,
}

impl Direction {
    fn rules(self) -> ScalingRules {
        let amount = PolicyAmount::Pods(self.pods);
        ScalingRules {
            stabilization_window: Some(Span::seconds(self.window)),
            select: PolicySelect::Max,
            policies: vec![Policy { amount, period: Span::seconds(self.period) }],
            tolerance: None,
        }
    }
}

fn direction() -> impl Strategy<Value = Direction> {
    (1..8i32, 15..300i64, 0..300i64, proptest::option::of(1..200i64))
        .prop_map(|(pods, period, window, forbidden)| Direction { pods, period, window, forbidden })
}

/// What happened so far: what the metrics asked for, and the changes that were made.
#[derive(Default)]
struct Log {
    asked: Vec<(Time, i32)>,
    changed: Vec<(Time, i32)>,
}

impl Log {
    /// Takes in a decision, and says what it broke.
    fn take_in(
        &mut self,
        now: Time,
        decision: &Decision,
        up: Direction,
        down: Direction,
        bounds: Bounds,
    ) -> Result<(), TestCaseError> {
        let asked = decision.steps.iter().find_map(|step| match step {
            Step::Winner { replicas, .. } => Some(replicas),
            _ => None,
        });
        self.asked.extend(asked.map(|replicas| (now, replicas)));
        let Some(rescale) = decision.rescale else { return Ok(()) };
        let change = rescale.to - rescale.from;
        prop_assert!((bounds.min..=bounds.max).contains(&rescale.to), "{rescale:?} {bounds:?}");
        let by_bounds = matches!(rescale.reason, RescaleReason::AboveMax | RescaleReason::BelowMin);
        let rules = if change > 0 { up } else { down };
        if !by_bounds {
            self.check(now, rescale.to, change, rules, bounds)?;
        }
        self.changed.push((now, change));
        Ok(())
    }

    fn check(
        &self,
        now: Time,
        to: i32,
        change: i32,
        rules: Direction,
        bounds: Bounds,
    ) -> Result<(), TestCaseError> {
        let within = |seconds: i64| {
            let cutoff = now.before(Span::seconds(seconds));
            move |at: Time| at > cutoff
        };
        // What went the other way meanwhile may come back.
        let young = within(rules.period);
        let moved = self.changed.iter().filter(|(at, _)| young(*at)).map(|(_, change)| change);
        let moved = moved.sum::<i32>() * change.signum();
        prop_assert!(
            moved + change.abs() <= rules.pods,
            "{moved} and {change} more within {rules:?}"
        );
        let recent = within(rules.window);
        let asked = self.asked.iter().filter(|(at, _)| recent(*at)).map(|(_, replicas)| *replicas);
        if change > 0 {
            let least = asked.min().unwrap_or(to);
            prop_assert!(to <= least.max(bounds.min), "{to} is more than {least}, {rules:?}");
        } else {
            let most = asked.max().unwrap_or(to);
            prop_assert!(to >= most.min(bounds.max), "{to} is less than {most}, {rules:?}");
        }
        if let (Some(window), Some((last, _))) = (rules.forbidden, self.changed.last()) {
            prop_assert!(now.since(*last) > Span::seconds(window), "too soon after {last:?}");
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rates_and_windows_hold(
        up in direction(),
        down in direction(),
        scheduled in proptest::option::of((1..6i32, 6..60i32)),
        loads in proptest::collection::vec((0..500i64, 1..60i64, 0..40u8), 80),
    ) {
        let mut fixture = Fixture::of(3).queue(30, 10).limits(1, 50).extend(|e| {
            let span = |seconds: Option<i64>| seconds.map(Span::seconds);
            e.forbidden_windows =
                ForbiddenWindows { up: span(up.forbidden), down: span(down.forbidden) };
            e.schedules =
                scheduled.map(|(min, max)| Schedules::new(Thirds(Bounds { min, max })));
        });
        fixture.autoscaler.behavior =
            Some(Behavior { scale_up: up.rules(), scale_down: down.rules() });
        let mut log = Log::default();
        for (load, seconds, luck) in loads {
            fixture.readings = Fixture::of(0).queue(load, 10).readings;
            if luck == 0 {
                // Somebody else sets a size, which is nobody's rate.
                fixture.scale = Ok(Scale { spec_replicas: 7, status_replicas: 7 });
            }
            let base = fixture.autoscaler.bounds();
            let extensions = fixture.autoscaler.extensions.as_deref().expect("extensions");
            let in_force = extensions.schedules.as_ref().and_then(|s| s.at(fixture.now, base));
            let bounds = in_force.map_or(base, |scheduled| scheduled.bounds);
            let outcome = fixture.pass();
            log.take_in(fixture.now, &outcome.decision, up, down, bounds)?;
            fixture.now = fixture.now.after(Span::seconds(seconds));
        }
    }
}
