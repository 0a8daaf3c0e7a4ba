//! The fields of an event source.

use crate::pod_autoscaler::schema::{Object, SEGMENT, Shape, field, rule_of};

pub(super) static TRIGGER: Object = Object {
    name: "TriggerSource",
    about: "An event source, in the words of KEDA's triggers. The target is a field of the metadata.",
    fields: &[
        field("type", Shape::Pattern(63, SEGMENT), "Which kind of event source it is, such as redis or kafka.")
            .required(),
        field(
            "metadata",
            Shape::Texts,
            "Its settings as KEDA's trigger of that type has them: where it is, what is measured, the target, and above \
             which value the workload is needed.",
        ),
        field(
            "authenticationRef",
            Shape::Object(&AUTHENTICATION),
            AUTHENTICATION.about,
        ),
        field(
            "envSourceContainerName",
            Shape::Text(63),
            "The container of the target whose environment variables the fields of the metadata name that end in FromEnv; the first \
             one by default.",
        ),
        field(
            "metricType",
            Shape::OneOf(&["AverageValue", "Value"]),
            "Whether the target is a value for each pod, or for all of them together.",
        )
        .default("\"AverageValue\""),
        field(
            "useCachedMetrics",
            Shape::Truth,
            "Whether the source is asked once in each sync period at most: what is decided in between goes by its last answer.",
        )
        .default("false"),
    ],
    rules: &[rule_of(
        ".type",
        "!(self.type in ['cpu', 'memory'])",
        "is a metric of pods: use a metric of type Resource or ContainerResource",
    )],
};

static AUTHENTICATION: Object = Object {
    name: "AuthenticationRef",
    about: "The object of keda.sh/v1alpha1 that says where the credentials are.",
    fields: &[
        field("name", Shape::Pattern(253, SEGMENT), "Its name.").required(),
        field(
            "kind",
            Shape::OneOf(&["TriggerAuthentication", "ClusterTriggerAuthentication"]),
            "One of the autoscaler's namespace, or one of the whole cluster.",
        )
        .default("\"TriggerAuthentication\""),
    ],
    rules: &[],
};
