//! What an object says otherwise than the controller's flags, in its annotations.

use crate::settings::{amount, duration, span, sync_period};
use podscale_api::meta::ObjectMeta;
use podscale_core::Settings;
use std::time::Duration;

/// What these annotations begin with.
const PREFIX: &str = "podscale.dev/";
const SYNC_PERIOD: &str = "podscale.dev/sync-period";
const TOLERANCE: &str = "podscale.dev/tolerance";
const DOWNSCALE_STABILIZATION: &str = "podscale.dev/downscale-stabilization";
const CPU_INITIALIZATION_PERIOD: &str = "podscale.dev/cpu-initialization-period";
const INITIAL_READINESS_DELAY: &str = "podscale.dev/initial-readiness-delay";

/// The settings of one object.
#[derive(Debug, PartialEq)]
pub(super) struct Overrides {
    /// Its sync period, if it says one.
    pub(super) period: Option<Duration>,
    /// How it is decided.
    pub(super) settings: Settings,
    /// What is wrong with its annotations.
    pub(super) invalid_annotations: Vec<String>,
}

impl Overrides {
    /// What an object's annotations make of the controller's settings, if they say anything.
    pub(super) fn read(metadata: &ObjectMeta, settings: &Settings) -> Option<Overrides> {
        // Most objects say nothing.
        if !metadata.annotations.iter().any(|(name, _)| name.starts_with(PREFIX)) {
            return None;
        }
        let said = |name: &str| metadata.annotations.get(name);
        let (mut settings, mut invalid_annotations) = (*settings, Vec::new());
        let mut report = |name: &str, text: &str, wrong: &str, instead: &str| {
            invalid_annotations.push(format!(
                "annotation {name}: {text:?} is ignored: {wrong}; write it as in \"{instead}\""
            ));
        };
        let mut own_period = None;
        if let Some(text) = said(SYNC_PERIOD) {
            match sync_period(text) {
                Ok(period) => own_period = Some(period),
                Err(error) => report(SYNC_PERIOD, text, &error, "1s"),
            }
        }
        if let Some(text) = said(TOLERANCE) {
            match amount(text) {
                Ok(tolerance) => settings.tolerance = tolerance,
                Err(error) => report(TOLERANCE, text, &error, "0.1"),
            }
        }
        for (name, setting, instead) in [
            (DOWNSCALE_STABILIZATION, &mut settings.downscale_stabilization, "5m"),
            (CPU_INITIALIZATION_PERIOD, &mut settings.cpu_initialization_period, "5m"),
            (INITIAL_READINESS_DELAY, &mut settings.initial_readiness_delay, "30s"),
        ] {
            match said(name).map(|text| (text, duration(text))) {
                Some((_, Ok(duration))) => *setting = span(duration),
                Some((text, Err(error))) => report(name, text, &error, instead),
                None => {}
            }
        }
        let names = [
            SYNC_PERIOD,
            TOLERANCE,
            DOWNSCALE_STABILIZATION,
            CPU_INITIALIZATION_PERIOD,
            INITIAL_READINESS_DELAY,
        ];
        let says = names.iter().any(|name| said(name).is_some());
        says.then_some(Overrides { period: own_period, settings, invalid_annotations })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podscale_core::Span;

    fn metadata(annotations: &[(&str, &str)]) -> ObjectMeta {
        ObjectMeta { annotations: annotations.iter().copied().collect(), ..ObjectMeta::default() }
    }

    #[test]
    fn annotations_override_flags_and_bad_ones_are_ignored_and_reported() {
        let defaults = Settings::default();
        assert!(Overrides::read(&metadata(&[("other", "x")]), &defaults).is_none());
        let own = Overrides::read(
            &metadata(&[
                (SYNC_PERIOD, "1s"),
                (TOLERANCE, "0.05"),
                (DOWNSCALE_STABILIZATION, "0s"),
                (CPU_INITIALIZATION_PERIOD, "1m30s"),
                (INITIAL_READINESS_DELAY, "soon"),
            ]),
            &defaults,
        );
        let own = own.expect("it says something");
        assert_eq!(own.period, Some(Duration::from_secs(1)));
        let settings = Settings {
            tolerance: 0.05,
            downscale_stabilization: Span(0),
            cpu_initialization_period: Span::seconds(90),
            initial_readiness_delay: defaults.initial_readiness_delay,
        };
        assert_eq!(own.settings, settings);
        let invalid = "annotation podscale.dev/initial-readiness-delay: \"soon\" is ignored: \
            time: invalid duration \"soon\"; write it as in \"30s\"";
        assert_eq!(own.invalid_annotations, [invalid]);
        for bad in ["0s", "-1s", "5ms", "x"] {
            let own = Overrides::read(&metadata(&[(SYNC_PERIOD, bad)]), &defaults)
                .expect("it says something");
            assert_eq!((own.period, own.invalid_annotations.len()), (None, 1), "{bad}");
        }
    }
}
