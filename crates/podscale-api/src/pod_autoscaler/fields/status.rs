//! The fields of the status.

use super::metric::SELECTOR;
use super::{MANY, REPLICAS};
use crate::pod_autoscaler::schema::{Object, Shape, field};
use crate::pod_autoscaler::status::MOST_NAME_CHARS;

pub(in crate::pod_autoscaler) static STATUS: Object = Object {
    name: "Status",
    about: "What the controller last found and did.",
    fields: &[
        field("observedGeneration", Shape::Long, "The generation of the spec that this is about."),
        field("lastScaleTime", Shape::Time, "When the size was last changed."),
        field("currentReplicas", Shape::Integer(0, REPLICAS), "The size that was found."),
        field("desiredReplicas", Shape::Integer(0, REPLICAS), "The size that was asked for."),
        field("reference", Shape::Text(512), "The target as kind and name, for kubectl get."),
        field("targets", Shape::Text(512), "Each metric's value and target, for kubectl get."),
        field(
            "mode",
            Shape::Text(64),
            "What it does now: Active, DryRun, Paused, a direction that is paused, the size that is held, \
             Conflict if another autoscaler or controller has the target, or Invalid.",
        ),
        field(
            "reason",
            Shape::Text(1024),
            "The reason of the condition that matters most now, for kubectl get: what keeps it from scaling, \
             what limits it, or that all is well.",
        ),
        field(
            "activeSchedule",
            Shape::Text(63),
            "The schedule that is in force now; of several, the one that set a bound last.",
        ),
        field(
            "minReplicas",
            Shape::Integer(0, REPLICAS),
            "The fewest replicas now, with the active schedules.",
        ),
        field(
            "maxReplicas",
            Shape::Integer(0, REPLICAS),
            "The most replicas now, with the active schedules.",
        ),
        field(
            "currentMetrics",
            Shape::List(MANY, &Shape::Object(&METRIC_STATUS)),
            "What each metric said.",
        ),
        field(
            "decisions",
            Shape::List(16, &Shape::Object(&DECISION)),
            "The last changes of size, the newest first.",
        ),
        field(
            "conditions",
            Shape::Named(MANY, "type", &Shape::Object(&CONDITION)),
            "Whether it can scale, does scale and is limited.",
        ),
    ],
    rules: &[],
};

static CONDITION: Object = Object {
    name: "Condition",
    about: "One aspect of the autoscaler's state, in the form of all of Kubernetes' conditions.",
    fields: &[
        field("type", Shape::Text(316), "Which one.").required(),
        field("status", Shape::OneOf(&["True", "False", "Unknown"]), "Whether it holds.")
            .required(),
        field("observedGeneration", Shape::Long, "The generation of the spec that this is about."),
        field("lastTransitionTime", Shape::Time, "When the status last changed.").required(),
        field("reason", Shape::Text(1024), "Why, for programs.").required(),
        field("message", Shape::Text(32768), "Why, for people.").required(),
    ],
    rules: &[],
};

static DECISION: Object = Object {
    name: "Decision",
    about: "A change of size.",
    fields: &[
        field("time", Shape::Time, "When.").required(),
        field("from", Shape::Integer(0, REPLICAS), "The size before.").required(),
        field("to", Shape::Integer(0, REPLICAS), "The size after.").required(),
        field("reason", Shape::Text(1024), "Why."),
    ],
    rules: &[],
};

static METRIC_STATUS: Object = Object {
    name: "MetricStatus",
    about: "What one metric said: the field that `type` names is set; an empty type is a metric that could not be read.",
    fields: &[
        field("type", Shape::Text(63), "As in the spec.").required(),
        field("name", Shape::Text(63), "As in the spec."),
        field("resource", Shape::Object(&RESOURCE), "What pods use of a resource."),
        field(
            "containerResource",
            Shape::Object(&CONTAINER),
            "What one container of each pod uses.",
        ),
        field("pods", Shape::Object(&NAMED), "A value that each pod has."),
        field("object", Shape::Object(&OBJECT), "A value of one object."),
        field("external", Shape::Object(&NAMED), "Values from outside the cluster."),
        field("prometheus", Shape::Object(&QUERY), "The result of a query."),
        field("trigger", Shape::Object(&TRIGGER), "A value of an event source."),
    ],
    rules: &[],
};

static CURRENT: Object = Object {
    name: "Current",
    about: "The value, in the forms that are known.",
    fields: &[
        field("value", Shape::Quantity, "As it is."),
        field("averageValue", Shape::Quantity, "For each pod."),
        field(
            "averageUtilization",
            Shape::Integer(i32::MIN as i64, REPLICAS),
            "In percent of what pods request, or of their limits.",
        ),
    ],
    rules: &[],
};

static RESOURCE: Object = Object {
    name: "ResourceStatus",
    about: "What pods use of a resource.",
    fields: &[
        field("name", Shape::Text(253), "The resource.").required(),
        field("current", Shape::Object(&CURRENT), CURRENT.about).required(),
    ],
    rules: &[],
};

static CONTAINER: Object = Object {
    name: "ContainerResourceStatus",
    about: "What one container of each pod uses of a resource.",
    fields: &[
        field("name", Shape::Text(253), "The resource.").required(),
        field("container", Shape::Text(63), "The container's name.").required(),
        field("current", Shape::Object(&CURRENT), CURRENT.about).required(),
    ],
    rules: &[],
};

static NAMED: Object = Object {
    name: "NamedStatus",
    about: "The value of a metric that has a name.",
    fields: &[
        field("metric", Shape::Object(&IDENTIFIER), IDENTIFIER.about).required(),
        field("current", Shape::Object(&CURRENT), CURRENT.about).required(),
    ],
    rules: &[],
};

static OBJECT: Object = Object {
    name: "ObjectStatus",
    about: "The value of a metric of one object.",
    fields: &[
        field("describedObject", Shape::Object(&DESCRIBED), DESCRIBED.about).required(),
        field("metric", Shape::Object(&IDENTIFIER), IDENTIFIER.about).required(),
        field("current", Shape::Object(&CURRENT), CURRENT.about).required(),
    ],
    rules: &[],
};

static QUERY: Object = Object {
    name: "PrometheusStatus",
    about: "The result of a query.",
    fields: &[
        field(
            "server",
            Shape::Text(253),
            "The address of another Prometheus than the controller's.",
        ),
        field("query", Shape::Text(4096), "The query."),
        field("current", Shape::Object(&CURRENT), CURRENT.about).required(),
    ],
    rules: &[],
};

static TRIGGER: Object = Object {
    name: "TriggerStatus",
    about: "The value of an event source.",
    fields: &[
        field("type", Shape::Text(63), "Which kind of event source it is."),
        field(
            "metric",
            Shape::Text(MOST_NAME_CHARS),
            "The name of its metric, such as s0-redis-jobs.",
        )
        .required(),
        field("current", Shape::Object(&CURRENT), CURRENT.about).required(),
    ],
    rules: &[],
};

static IDENTIFIER: Object = Object {
    name: "IdentifierStatus",
    about: "The metric's name and which of its series are meant.",
    fields: &[
        field("name", Shape::Text(253), "Its name.").required(),
        field("selector", Shape::Object(&SELECTOR), SELECTOR.about),
    ],
    rules: &[],
};

static DESCRIBED: Object = Object {
    name: "DescribedStatus",
    about: "The object that the metric is about.",
    fields: &[
        field("apiVersion", Shape::Text(253), "Its group and version."),
        field("kind", Shape::Text(63), "Its kind."),
        field("name", Shape::Text(253), "Its name."),
    ],
    rules: &[],
};
