//! Every field of a PodAutoscaler: what it may be, what it is for, its default and its rules. The schema
//! and the reference are made from this, and a test holds the types against it.

mod ahead;
mod behavior;
mod metric;
mod status;
mod trigger;

use super::schema::{Field, NAME, Object, SEGMENT, Shape, field, rule, rule_of};
use ahead::{HEADROOM, LEAD, PREDICT, PROFILES, QUEUE, WINDOW};
use behavior::{BEHAVIOR, SCHEDULE};
use metric::METRIC;
pub(super) use status::STATUS;

/// The most replicas that Kubernetes can count.
const REPLICAS: i64 = i32::MAX as i64;
/// The most metrics, schedules and so on of one object.
const MANY: u32 = 32;

pub(super) static SPEC: Object = Object {
    name: "Spec",
    about: "What is scaled, between which bounds, by which metrics and how fast. The spec of an autoscaling/v2 \
            HorizontalPodAutoscaler is valid as it stands.",
    fields: &[
        field("scaleTargetRef", Shape::Object(&TARGET_REF), TARGET_REF.about).required(),
        field("minReplicas", Shape::Integer(0, REPLICAS), "Never fewer than this. 0 needs a metric of type Object, External, Prometheus or Trigger.").default("1"),
        field("maxReplicas", Shape::Integer(1, REPLICAS), "Never more than this.").required(),
        METRICS,
        field(
            "combine",
            Shape::OneOf(&["Max", "Min", "Average", "Expression"]),
            "What is made of several metrics' proposals: the largest, the smallest, their average, or what `expression` says.",
        )
        .default("\"Max\""),
        field(
            "expression",
            Shape::Text(2000),
            "With combine: Expression, the replicas as an expression (CEL) over the metrics by name: each is the number of \
             replicas that the metric proposes, with `.value` and `.ratio` for its value and how far it is from the \
             target, and `.total` for the whole of what its source has, however many pods share it; `currentReplicas` is the target's size. Arithmetic, comparisons, `? :`, `&&`, `||`, `!`, `has`, `max`, `min`, \
             `ceil`, `floor`, `round` and `abs` can be used.",
        ),
        field("behavior", Shape::Object(&BEHAVIOR), BEHAVIOR.about),
        field("schedules", Shape::Named(MANY, "name", &Shape::Object(&SCHEDULE)), "Other bounds at certain times."),
        field("mode", Shape::OneOf(&["Active", "DryRun", "Paused"]), "Active scales the target; DryRun decides and reports, but scales nothing; Paused leaves the target as it is.").default("\"Active\""),
        field("modeUntil", Shape::Time, "Until when `mode` holds; Active after that."),
        field("pause", Shape::Object(&PAUSE), PAUSE.about),
        field("hold", Shape::Object(&HOLD), HOLD.about),
        field(
            "podSelection",
            Shape::OneOf(&["Owned", "Selector"]),
            "Which pods count: those that belong to the target by their ownerReferences, or all that its selector picks, as the HPA does.",
        )
        .default("\"Owned\""),
        field("scaleToZero", Shape::Object(&ZERO), ZERO.about),
        field("warmUp", Shape::Duration, "For so long after its start a pod's values do not count."),
        field("syncPeriod", Shape::Duration, "How often it is decided; the controller's setting by default.")
            .rules(&[rule("duration(self) >= duration('1s')", "must be at least 1s")]),
        field("fallback", Shape::Object(&FALLBACK), FALLBACK.about),
        field("podDeletionCost", Shape::Object(&DELETION_COST), DELETION_COST.about),
        field("queue", Shape::Object(&QUEUE), QUEUE.about),
        field("window", Shape::Object(&WINDOW), WINDOW.about),
        field(
            "profile",
            Shape::OneOf(PROFILES),
            "What `predict`, `headroom` and `behavior.scaleDown.tolerance` are where they are not given. Cheap: forecasts alone, \
             which keep no pods. Balanced: forecasts, room that is learned for an overload of 10 thousandths of the time, and a \
             tolerance of 0.3 before pods are removed. Safe: the same with a margin that covers 90 % of the demands, and room for \
             2 thousandths. Without a profile none of these is used unless it is given.",
        ),
        field(
            "startUpTime",
            Shape::Duration,
            "How long after a decision a new pod is ready, for `predict` and `lead`; measured on the pods if not given.",
        ),
        field("predict", Shape::Object(&PREDICT), PREDICT.about),
        field("lead", Shape::Object(&LEAD), LEAD.about),
        field("headroom", Shape::Object(&HEADROOM), HEADROOM.about),
    ],
    rules: &[
        rule_of(".minReplicas", "!has(self.minReplicas) || self.minReplicas <= self.maxReplicas", "must not be greater than maxReplicas"),
        rule_of(
            ".minReplicas",
            "!has(self.minReplicas) || self.minReplicas > 0 || (has(self.metrics) && self.metrics.exists(m, m.type in ['Object', 'External', 'Prometheus', 'Trigger']))",
            "0 needs a metric of type Object, External, Prometheus or Trigger: the others have no value without pods",
        ),
        rule_of(
            ".expression",
            "(has(self.combine) && self.combine == 'Expression') == has(self.expression)",
            "must be set exactly if combine is Expression",
        ),
        rule_of(
            ".metrics",
            "!has(self.expression) || (has(self.metrics) && self.metrics.all(m, has(m.name)))",
            "every metric must have a name that the expression can use",
        ),
        rule_of(
            ".metrics",
            "!has(self.metrics) || self.metrics.all(m, !has(m.name) || self.metrics.exists_one(n, has(n.name) && n.name == m.name))",
            "names must be unique",
        ),
        rule_of(
            ".schedules",
            "!has(self.schedules) || self.schedules.all(s, !has(s.minReplicas) || s.minReplicas <= (has(s.maxReplicas) ? s.maxReplicas : self.maxReplicas))",
            "minReplicas of a schedule must not be greater than maxReplicas, its own or that of the spec",
        ),
        rule_of(
            ".schedules",
            "!has(self.schedules) || self.schedules.all(s, !has(s.maxReplicas) || has(s.minReplicas) || !has(self.minReplicas) || s.maxReplicas >= self.minReplicas)",
            "maxReplicas of a schedule must not be less than minReplicas",
        ),
        rule_of(
            ".scaleToZero",
            "!has(self.scaleToZero) || !has(self.scaleToZero.idleReplicas) || self.scaleToZero.idleReplicas == 0 || !has(self.minReplicas) || self.scaleToZero.idleReplicas < self.minReplicas",
            "idleReplicas must be less than minReplicas",
        ),
        rule_of(
            ".scaleToZero",
            "!has(self.scaleToZero) || (has(self.scaleToZero.idleReplicas) && self.scaleToZero.idleReplicas > 0) || (has(self.metrics) && self.metrics.exists(m, m.type in ['Object', 'External', 'Prometheus', 'Trigger']))",
            "needs a metric of type Object, External, Prometheus or Trigger: the others have no value without pods",
        ),
        rule_of(
            ".podDeletionCost",
            "!has(self.podDeletionCost) || (has(self.metrics) && self.metrics.exists(m, has(m.name) && m.name == self.podDeletionCost.metric && m.type in ['Resource', 'ContainerResource', 'Pods']))",
            "metric must be the name of a metric of type Resource, ContainerResource or Pods: the others have no value for each pod",
        ),
        rule_of(
            ".podDeletionCost",
            "!has(self.podDeletionCost) || self.scaleTargetRef.kind != 'StatefulSet'",
            "a StatefulSet removes the pods with the highest ordinals, whatever their costs are",
        ),
    ],
};

static METRICS: Field = field(
    "metrics",
    Shape::List(MANY, &Shape::Object(&METRIC)),
    "What is measured. Without any, cpu at 80 % of what pods request.",
)
.default(
    r#"[{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]"#,
);

static TARGET_REF: Object = Object {
    name: "TargetRef",
    about: "The workload whose replicas are set: anything with a scale subresource.",
    fields: &[
        field("apiVersion", Shape::Text(253), "Its group and version, such as apps/v1."),
        field("kind", Shape::Pattern(63, SEGMENT), "Its kind.").required(),
        field("name", Shape::Pattern(253, SEGMENT), "Its name.").required(),
    ],
    rules: &[rule_of(
        ".apiVersion",
        "self.kind == 'ReplicationController' || (has(self.apiVersion) && self.apiVersion.contains('/'))",
        "must specify an API group, such as apps/v1",
    )],
};

static PAUSE: Object = Object {
    name: "Pause",
    about: "Directions in which nothing moves for now; a direction that is there is paused.",
    fields: &[
        field("scaleUp", Shape::Object(&UNTIL), "No pods are added."),
        field("scaleDown", Shape::Object(&UNTIL), "No pods are removed."),
    ],
    rules: &[],
};

static UNTIL: Object = Object {
    name: "Until",
    about: "How long it holds.",
    fields: &[field("until", Shape::Time, "Until when; for ever if not given.")],
    rules: &[],
};

static HOLD: Object = Object {
    name: "Hold",
    about: "The target has so many replicas, within the bounds in force, whatever the metrics say.",
    fields: &[
        field("replicas", Shape::Integer(0, REPLICAS), "How many.").required(),
        field("until", Shape::Time, "Until when; for ever if not given."),
    ],
    rules: &[],
};

static ZERO: Object = Object {
    name: "ScaleToZero",
    about: "The target goes to an idle size while no metric is above its activation, and back when one is.",
    fields: &[
        field(
            "idleReplicas",
            Shape::Integer(0, REPLICAS),
            "How many replicas stay while it is idle; below minReplicas.",
        )
        .default("0"),
        field(
            "coolDown",
            Shape::Duration,
            "For how long no metric may be above its activation before the target goes idle.",
        )
        .default("\"5m\""),
        field(
            "zeroByOthers",
            Shape::OneOf(&["LeaveAlone", "Wake"]),
            "What to do with a target that somebody else set to zero.",
        )
        .default("\"LeaveAlone\""),
    ],
    rules: &[],
};

static FALLBACK: Object = Object {
    name: "Fallback",
    about: "The size when no metric could be read for longer than a time.",
    fields: &[
        field("replicas", Shape::Integer(0, REPLICAS), "How many replicas.").required(),
        field("after", Shape::Duration, "After how long without any value.").default("\"3m\""),
    ],
    rules: &[],
};

static DELETION_COST: Object = Object {
    name: "PodDeletionCost",
    about: "Busy pods go last: before the size goes down, pods get the annotation controller.kubernetes.io/pod-deletion-cost by \
            a metric. Costs that others have set stay. Needs the right to patch pods: podscale install --pod-deletion-cost.",
    fields: &[field(
        "metric",
        Shape::Pattern(63, NAME),
        "The name of the metric that says how busy a pod is: of type Resource, ContainerResource or Pods. A pod without a value counts as busy.",
    )
    .required()],
    rules: &[],
};
