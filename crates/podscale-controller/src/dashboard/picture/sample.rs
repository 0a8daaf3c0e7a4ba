//! Pictures for tests of what is done with them.

use super::*;
use crate::dialect::hpa::HPA;
use podscale_core::Rescale;
use podscale_core::decision::RescaleReason;
use podscale_core::model::TargetRef;
use podscale_core::steps::Steps;

/// The same of another kind of objects.
pub(crate) fn of_kind(kind: &'static Kind, picture: Picture) -> Picture {
    Picture { kind, ..picture }
}

/// The same, with a decided size that was not written.
pub(crate) fn wanting(to: i32, picture: Picture) -> Picture {
    let reason = RescaleReason::BelowTarget;
    let rescale = Some(Rescale { from: picture.current, to, reason });
    let made = match picture.made {
        Made::Size(made) => Made::Size(SizeMade { rescale, ..made }),
        other => other,
    };
    Picture { wanted: Some(to), made, ..picture }
}

/// `shop/NAME` after so many seconds, of this size, with this outcome.
pub(crate) fn picture(name: &str, seconds: i64, current: i32, outcome: OutcomeKind) -> Picture {
    let autoscaler = Autoscaler {
        namespace: "shop".into(),
        name: name.into(),
        generation: 1,
        target: TargetRef {
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            name: name.into(),
        },
        min_replicas: 1,
        max_replicas: 10,
        metrics: Vec::new(),
        behavior: None,
        extensions: None,
    };
    let bounds = autoscaler.bounds();
    Picture {
        kind: &HPA,
        namespace: Arc::clone(&autoscaler.namespace),
        name: Arc::clone(&autoscaler.name),
        time: Time(seconds * 1_000_000),
        outcome,
        rescaled: matches!(outcome, OutcomeKind::Up | OutcomeKind::Down),
        current,
        desired: current,
        bounds,
        found: Some(current),
        wanted: None,
        last_scale: Some(Time(5_000_000)),
        conflict: None,
        made: Made::Size(SizeMade {
            kind: &HPA,
            autoscaler: Arc::new(autoscaler),
            rescale: None,
            conditions: Box::default(),
            error: None,
            steps: Steps::default(),
        }),
    }
}
