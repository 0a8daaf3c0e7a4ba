//! The fields of a metric.

use super::REPLICAS;
use super::trigger::TRIGGER;
use crate::pod_autoscaler::schema::{Field, NAME, Object, SEGMENT, Shape, field, rule, rule_of};

/// How often metrics are read anew at the very least; what they are kept for must be longer.
const AT_LEAST_A_SECOND: &str = "duration(self) >= duration('1s')";

pub(super) static METRIC: Object = Object {
    name: "Metric",
    about: "One metric and its target. The field that `type` names is set, and no other source.",
    fields: &[
        field(
            "type",
            Shape::OneOf(&[
                "Resource",
                "ContainerResource",
                "Pods",
                "Object",
                "External",
                "Prometheus",
                "Trigger",
            ]),
            "Where its values come from.",
        )
        .required(),
        field(
            "name",
            Shape::Pattern(63, NAME),
            "What an expression, and the decisions in the status, call it; unique among the metrics.",
        ),
        field("resource", Shape::Object(&RESOURCE), "What each pod uses of a resource."),
        field(
            "containerResource",
            Shape::Object(&CONTAINER_RESOURCE),
            "What one container of each pod uses of a resource.",
        ),
        field(
            "pods",
            Shape::Object(&PODS),
            "A value that each pod has, from the custom metrics API.",
        ),
        field(
            "object",
            Shape::Object(&OBJECT),
            "A value of one object, from the custom metrics API.",
        ),
        field(
            "external",
            Shape::Object(&EXTERNAL),
            "Values from the external metrics API, added up.",
        ),
        field(
            "prometheus",
            Shape::Object(&PROMETHEUS),
            "The result of a query, asked of Prometheus directly.",
        ),
        field(
            "trigger",
            Shape::Object(&TRIGGER),
            "A value of an event source, such as the length of a queue; read with podscale run --triggers.",
        ),
        MAX_AGE,
        ON_MISSING,
        field(
            "utilizationOf",
            Shape::OneOf(&["Requests", "Limits"]),
            "What a utilization is a percentage of.",
        )
        .default("\"Requests\""),
        field(
            "aggregate",
            Shape::OneOf(&["Average", "Max", "P50", "P75", "P90", "P95", "P99"]),
            "Which value stands for all pods: their average, the largest one, or a percentile.",
        )
        .default("\"Average\""),
        field(
            "activation",
            Shape::Quantity,
            "With scaleToZero: the workload is needed while the metric is above this; 0 by default, and what the metadata of an \
             event source say for a Trigger.",
        ),
        field("watermarks", Shape::Object(&WATERMARKS), WATERMARKS.about),
    ],
    rules: &[
        rule_of(
            ".resource",
            "(self.type == 'Resource') == has(self.resource)",
            "must be set exactly if type is Resource",
        ),
        rule_of(
            ".containerResource",
            "(self.type == 'ContainerResource') == has(self.containerResource)",
            "must be set exactly if type is ContainerResource",
        ),
        rule_of(
            ".pods",
            "(self.type == 'Pods') == has(self.pods)",
            "must be set exactly if type is Pods",
        ),
        rule_of(
            ".object",
            "(self.type == 'Object') == has(self.object)",
            "must be set exactly if type is Object",
        ),
        rule_of(
            ".external",
            "(self.type == 'External') == has(self.external)",
            "must be set exactly if type is External",
        ),
        rule_of(
            ".prometheus",
            "(self.type == 'Prometheus') == has(self.prometheus)",
            "must be set exactly if type is Prometheus",
        ),
        rule_of(
            ".trigger",
            "(self.type == 'Trigger') == has(self.trigger)",
            "must be set exactly if type is Trigger",
        ),
        rule_of(
            ".aggregate",
            "!has(self.aggregate) || self.aggregate == 'Average' || self.type in ['Resource', 'ContainerResource', 'Pods']",
            "only metrics with a value for each pod (Resource, ContainerResource, Pods) can be aggregated otherwise than by Average",
        ),
    ],
};

static MAX_AGE: Field = field(
    "maxAge",
    Shape::Duration,
    "Values older than this count as missing. Without it any age is believed, as the HPA does.",
)
.rules(&[rule(AT_LEAST_A_SECOND, "must be at least 1s")]);

static ON_MISSING: Field = field(
    "onMissing",
    Shape::ReplicasOr(&["Hold", "Ignore", "LastValue"]),
    "What to do while the metric has no value: Hold keeps the size from going down, Ignore decides by the other metrics, \
     LastValue uses the last value that was read, {replicas: 3} proposes three replicas. Hold is what the HPA \
     does: the others may scale up, but nothing scales down.",
)
.default("\"Hold\"");

static TARGET: Object = Object {
    name: "Target",
    about: "What a metric should be: the field that `type` names is set.",
    fields: &[
        field(
            "type",
            Shape::OneOf(&["Utilization", "Value", "AverageValue"]),
            "Which of the fields counts.",
        )
        .required(),
        field("value", Shape::PositiveQuantity, "The value as it is."),
        field("averageValue", Shape::PositiveQuantity, "The value for each pod."),
        field(
            "averageUtilization",
            Shape::Integer(1, REPLICAS),
            "The percentage of what pods request, or of their limits, that they use on average.",
        ),
    ],
    rules: &[],
};

const RESOURCE_TARGET_RULE: &str =
    "has(self.target.averageUtilization) != has(self.target.averageValue)";
const RESOURCE_TARGET_MESSAGE: &str = "must set either averageUtilization or averageValue";

static RESOURCE: Object = Object {
    name: "ResourceSource",
    about: "What each pod uses of a resource.",
    fields: &[
        field("name", Shape::Pattern(253, SEGMENT), "The resource: cpu, memory and so on.")
            .required(),
        field("target", Shape::Object(&TARGET), TARGET.about).required(),
    ],
    rules: &[rule_of(".target", RESOURCE_TARGET_RULE, RESOURCE_TARGET_MESSAGE)],
};

static CONTAINER_RESOURCE: Object = Object {
    name: "ContainerResourceSource",
    about: "What one container of each pod uses of a resource.",
    fields: &[
        field("name", Shape::Pattern(253, SEGMENT), "The resource: cpu, memory and so on.")
            .required(),
        field(
            "container",
            Shape::Pattern(63, "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"),
            "The container's name.",
        )
        .required(),
        field("target", Shape::Object(&TARGET), TARGET.about).required(),
    ],
    rules: &[rule_of(".target", RESOURCE_TARGET_RULE, RESOURCE_TARGET_MESSAGE)],
};

static PODS: Object = Object {
    name: "PodsSource",
    about: "A value that each pod has.",
    fields: &[
        field("metric", Shape::Object(&IDENTIFIER), IDENTIFIER.about).required(),
        field("target", Shape::Object(&TARGET), TARGET.about).required(),
    ],
    rules: &[rule_of(".target", "has(self.target.averageValue)", "must set averageValue")],
};

static OBJECT: Object = Object {
    name: "ObjectSource",
    about: "A value of one object of the namespace, or of the namespace itself.",
    fields: &[
        field("describedObject", Shape::Object(&DESCRIBED), DESCRIBED.about).required(),
        field("metric", Shape::Object(&IDENTIFIER), IDENTIFIER.about).required(),
        field("target", Shape::Object(&TARGET), TARGET.about).required(),
    ],
    rules: &[rule_of(
        ".target",
        "has(self.target.value) || has(self.target.averageValue)",
        "must set either value or averageValue",
    )],
};

static DESCRIBED: Object = Object {
    name: "DescribedObject",
    about: "The object that the metric is about. The kind Namespace means the autoscaler's own namespace and needs no name.",
    fields: &[
        field("apiVersion", Shape::Text(253), "Its group and version."),
        field("kind", Shape::Pattern(63, SEGMENT), "Its kind.").required(),
        field(
            "name",
            Shape::Pattern(253, "^[^/%]*$"),
            "Its name; not needed for the kind Namespace.",
        ),
    ],
    rules: &[rule_of(
        ".name",
        "self.kind == 'Namespace' || (has(self.name) && size(self.name) > 0)",
        "must be set, unless kind is Namespace",
    )],
};

static EXTERNAL: Object = Object {
    name: "ExternalSource",
    about: "Values from outside the cluster, added up.",
    fields: &[
        field("metric", Shape::Object(&IDENTIFIER), IDENTIFIER.about).required(),
        field("target", Shape::Object(&TARGET), TARGET.about).required(),
    ],
    rules: &[rule_of(
        ".target",
        "has(self.target.value) != has(self.target.averageValue)",
        "must set either value or averageValue",
    )],
};

static PROMETHEUS: Object = Object {
    name: "PrometheusSource",
    about: "The result of a query, which must be one number.",
    fields: &[
        field(
            "server",
            Shape::Pattern(253, "^https?://[^@?#]+$"),
            "The address of the Prometheus to ask, such as http://prometheus.monitoring:9090. Without it, the \
             one of the controller's --prometheus-url is asked, with its credentials; another is asked without \
             any, and only if the controller's --prometheus-allowed-server names it.",
        ),
        field("query", Shape::Text(4096), "The query.").required(),
        field("target", Shape::Object(&TARGET), TARGET.about).required(),
    ],
    rules: &[
        rule_of(
            ".target",
            "has(self.target.value) != has(self.target.averageValue)",
            "must set either value or averageValue",
        ),
        rule_of(".query", "size(self.query) > 0", "must not be empty"),
    ],
};

static IDENTIFIER: Object = Object {
    name: "MetricIdentifier",
    about: "The metric's name and which of its series are meant.",
    fields: &[
        field("name", Shape::Pattern(253, SEGMENT), "Its name.").required(),
        field("selector", Shape::Object(&SELECTOR), SELECTOR.about),
    ],
    rules: &[],
};

pub(super) static SELECTOR: Object = Object {
    name: "Selector",
    about: "Labels that series must have; all series if there is none.",
    fields: &[
        field("matchLabels", Shape::Labels, "Labels and the values that they must have."),
        field(
            "matchExpressions",
            Shape::List(32, &Shape::Object(&REQUIREMENT)),
            "Further conditions.",
        ),
    ],
    rules: &[],
};

static REQUIREMENT: Object = Object {
    name: "SelectorRequirement",
    about: "A condition on one label.",
    fields: &[
        field("key", Shape::Text(317), "The label.").required(),
        field(
            "operator",
            Shape::OneOf(&["In", "NotIn", "Exists", "DoesNotExist"]),
            "How it is compared.",
        )
        .required(),
        field("values", Shape::List(64, &Shape::Text(63)), "The values for In and NotIn."),
    ],
    rules: &[rule_of(
        ".values",
        "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
        "must be set exactly if operator is In or NotIn",
    )],
};

static WATERMARKS: Object = Object {
    name: "Watermarks",
    about: "Two values between which the metric asks for no change, in place of a tolerance; in the unit of the \
            target, percent for a utilization.",
    fields: &[
        field("low", Shape::PositiveQuantity, "Below it the metric asks for fewer replicas.")
            .required(),
        field("high", Shape::PositiveQuantity, "Above it the metric asks for more.").required(),
    ],
    rules: &[],
};
