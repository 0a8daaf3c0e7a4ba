//! The fields by which sizes follow a queue, the demand of a window, and the demand to come.

use crate::pod_autoscaler::schema::{NAME, Object, Shape, field, rule};

/// The words of `profile`.
pub(super) const PROFILES: &[&str] = &["Balanced", "Cheap", "Safe"];

pub(super) static QUEUE: Object = Object {
    name: "Queue",
    about: "There are never fewer pods than serve what arrives in a queue and, within a time, what waits in it (Little's law). The \
            metrics still ask for what their targets say, and the larger size counts. While one of the two metrics has no usable \
            value, they decide alone.",
    fields: &[
        field("length", METRIC_NAME, "The name of the metric that is how much waits: of type Object, External, Prometheus or Trigger.")
            .required(),
        field("arrivals", METRIC_NAME, "The name of the metric that is how much arrives in a second: of one of these types, too.")
            .required(),
        field("itemsPerSecond", Shape::PositiveQuantity, "How much one pod gets through in a second.").required(),
        field("within", Shape::Duration, "Within which time what waits is to be served.")
            .default("\"60s\"")
            .rules(&[rule("duration(self) >= duration('1s')", "must be at least 1s")]),
    ],
    rules: &[],
};

/// What a metric may be called.
const METRIC_NAME: Shape = Shape::Pattern(63, NAME);

pub(super) static WINDOW: Object = Object {
    name: "Window",
    about: "The size follows the mean demand of a window and, while a burst is on, that of a shorter one without going down: the \
            rules of Knative's autoscaler.",
    fields: &[
        field("stable", Shape::Duration, "Over how long the demand is averaged; an hour at most.")
            .default("\"60s\"")
            .rules(&[rule(
                "duration(self) >= duration('1s') && duration(self) <= duration('1h')",
                "must be from 1s to 1h",
            )]),
        field(
            "panic",
            Shape::Duration,
            "Over how long it is averaged to see a burst; less than the sync period is the last demand.",
        )
        .default("\"6s\""),
        field(
            "panicThresholdPercent",
            Shape::Integer(100, 1000),
            "From how many percent of the ready pods on such a mean is a burst. It is on until a whole window has passed without \
             one.",
        )
        .default("200"),
    ],
    rules: &[],
};

pub(super) static PREDICT: Object = Object {
    name: "Predict",
    about: "The demand is forecast for the time at which a pod that is added now is ready, by the time of the day or of the \
            week or by its trend, and the size is raised to it. A forecast is used only while its backtest is good; it never \
            lowers a size.",
    fields: &[
        field(
            "confidence",
            Shape::Integer(1, 99),
            "How many percent of the demands that came after a forecast are covered by a margin for bursts; 50 without a profile.",
        ),
        field(
            "scaleInGuard",
            Shape::Duration,
            "Pods that the season says will be needed again within this time are not removed; 10m without a profile.",
        ),
    ],
    rules: &[],
};

pub(super) static LEAD: Object = Object {
    name: "Lead",
    about: "The size follows the demand as if it went on as it has in the last minutes, until a pod that is added now is ready.",
    fields: &[field(
        "limitPercent",
        Shape::Integer(0, 1000),
        "How many percent of the demand are added at most; 25 without a profile, 0 is no lead.",
    )],
    rules: &[],
};

pub(super) static HEADROOM: Object = Object {
    name: "Headroom",
    about: "There is room for what the demand has gained in the past until a pod that was added was ready: little where it is \
            steady, more where it is restless.",
    fields: &[
        field(
            "confidence",
            Shape::Integer(1, 99),
            "How many percent of past gains there is room for; 90 without a profile.",
        ),
        field(
            "limitPercent",
            Shape::Integer(0, 1000),
            "How many percent of the demand it is at most; 50 without a profile, 0 is none.",
        ),
        field(
            "overloadPermille",
            Shape::Integer(1, 500),
            "In how many thousandths of the time the demand may be more than the ready pods are for by the targets. The room is \
             learned so that it is: it grows whenever the demand is above the ready pods and shrinks slowly all the other time. \
             confidence has no effect then.",
        ),
    ],
    rules: &[],
};
