//! The fields of behavior.

use super::REPLICAS;
use crate::pod_autoscaler::schema::{Field, Object, Shape, field, rule, rule_of};

pub(super) static BEHAVIOR: Object = Object {
    name: "Behavior",
    about: "How fast and how steadily, for each direction.",
    fields: &[
        field("scaleUp", Shape::Object(&SCALE_UP), "When adding pods.").default("{}"),
        field("scaleDown", Shape::Object(&SCALE_DOWN), "When removing pods.").default("{}"),
    ],
    rules: &[],
};

static WINDOW: Field = field(
    "stabilizationWindowSeconds",
    Shape::Integer(0, 3600),
    "How far back recommendations count: the lowest of the window when adding pods, the highest when removing.",
);
static SELECT: Field = field(
    "selectPolicy",
    Shape::OneOf(&["Max", "Min", "Disabled"]),
    "Which policy counts: the one that allows most, the one that allows least, or nothing moves this way.",
)
.default("\"Max\"");
static POLICIES: Field = field(
    "policies",
    Shape::List(16, &Shape::Object(&POLICY)),
    "Limits of change within a period.",
)
.rules(&[rule("size(self) > 0", "must specify at least one policy")]);
static TOLERANCE: Field = field(
    "tolerance",
    Shape::Quantity,
    "How far from the target, as a share of it, is still on target; the controller's setting (0.1) by default.",
);
static FORBIDDEN: Field = field(
    "forbiddenWindowSeconds",
    Shape::Integer(0, 3600),
    "Nothing moves this way for so long after the last change of size in either direction.",
);

static SCALE_UP: Object = Object {
    name: "ScaleUp",
    about: "How fast and how steadily pods are added.",
    fields: &[
        WINDOW.default("0"),
        SELECT,
        POLICIES.default(
            r#"[{"type": "Pods", "value": 4, "periodSeconds": 15}, {"type": "Percent", "value": 100, "periodSeconds": 15}]"#,
        ),
        TOLERANCE,
        FORBIDDEN,
        field("limit", Shape::Object(&LIMIT), LIMIT.about),
    ],
    rules: &[],
};

static SCALE_DOWN: Object = Object {
    name: "ScaleDown",
    about: "How fast and how steadily pods are removed.",
    fields: &[
        WINDOW,
        SELECT,
        POLICIES.default(r#"[{"type": "Percent", "value": 100, "periodSeconds": 15}]"#),
        TOLERANCE,
        FORBIDDEN,
    ],
    rules: &[],
};

static POLICY: Object = Object {
    name: "Policy",
    about: "A limit of change within a period.",
    fields: &[
        field("type", Shape::OneOf(&["Pods", "Percent"]), "What `value` counts.").required(),
        field("value", Shape::Integer(1, REPLICAS), "How many pods, or how many percent of them.")
            .required(),
        field("periodSeconds", Shape::Integer(1, 1800), "Within how long.").required(),
    ],
    rules: &[],
};

static LIMIT: Object = Object {
    name: "UpLimit",
    about: "One step never leads beyond the larger of factor × current replicas and minimum.",
    fields: &[
        field("factor", Shape::PositiveQuantity, "How many times as many pods as there are.")
            .default("\"2\""),
        field("minimum", Shape::Integer(1, REPLICAS), "So many are always allowed.").default("4"),
    ],
    rules: &[],
};

pub(super) static SCHEDULE: Object = Object {
    name: "Schedule",
    about: "Other bounds for a time. Where several are in force, they apply in the order of the list: a later one wins, \
            for the minimum and the maximum separately.",
    fields: &[
        field(
            "name",
            Shape::Pattern(63, "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"),
            "What the status calls it; unique among the schedules.",
        )
        .required(),
        field(
            "timeZone",
            Shape::Text(64),
            "The IANA time zone of the expressions, such as Europe/Zurich.",
        )
        .default("\"UTC\""),
        field(
            "start",
            Shape::Text(128),
            "When it begins: a cron expression of five fields, such as `0 8 * * 1-5`.",
        )
        .required(),
        field(
            "end",
            Shape::Text(128),
            "When it ends: a cron expression; or else `duration` says it.",
        ),
        field("duration", Shape::Duration, "How long it lasts, in place of `end`."),
        field(
            "minReplicas",
            Shape::Integer(0, REPLICAS),
            "The fewest replicas while it is active; unchanged if not given.",
        ),
        field(
            "maxReplicas",
            Shape::Integer(1, REPLICAS),
            "The most replicas while it is active; unchanged if not given.",
        ),
        field(
            "ramp",
            Shape::Duration,
            "For so long after its start the bounds move gradually from those outside to those of the schedule.",
        ),
    ],
    rules: &[
        rule("has(self.end) != has(self.duration)", "must set either end or duration"),
        rule(
            "has(self.minReplicas) || has(self.maxReplicas)",
            "must set minReplicas, maxReplicas or both",
        ),
        rule_of(
            ".minReplicas",
            "!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",
            "must not be greater than maxReplicas",
        ),
    ],
};
