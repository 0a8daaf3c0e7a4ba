//! The schemas of what the metrics APIs answer with.

use serde_json::{Map, Value, json};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const REFERENCE: &str = "io.k8s.api.core.v1.ObjectReference";

type Schemas = Map<String, Value>;

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn whole(description: &str) -> Value {
    json!({"type": "integer", "format": "int64", "description": description})
}

fn one(schema: &str, description: &str) -> Value {
    json!({"$ref": format!("#/definitions/{schema}"), "description": description})
}

fn many(schema: &str, description: &str) -> Value {
    let items = json!({"$ref": format!("#/definitions/{schema}"), "default": {}});
    json!({"type": "array", "items": items, "description": description})
}

fn texts(description: &str) -> Value {
    json!({"type": "array", "items": {"type": "string", "default": ""}, "description": description})
}

fn text_map(description: &str) -> Value {
    let values = json!({"type": "string", "default": ""});
    json!({"type": "object", "additionalProperties": values, "description": description})
}

/// An object with fields, some of which it always has.
fn object(description: &str, required: &[&str], fields: &[(&str, Value)]) -> Value {
    let properties: Schemas =
        fields.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    let mut schema =
        json!({"type": "object", "description": description, "properties": properties});
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema
}

/// An object of a kind: it says which, and has metadata.
fn kind(
    (group, version, kind): (&str, &str, &str),
    metadata: &str,
    description: &str,
    required: &[&str],
    fields: Vec<(&str, Value)>,
) -> Value {
    let mut all = vec![
        ("apiVersion", text("The version of the schema of this object.")),
        ("kind", text("The kind of this object.")),
        ("metadata", one(&format!("{META}.{metadata}"), "Standard metadata.")),
    ];
    all.extend(fields);
    let mut schema = object(description, required, &all);
    schema["x-kubernetes-group-version-kind"] =
        json!([{"group": group, "version": version, "kind": kind}]);
    schema
}

/// Metadata, times and quantities, as Kubernetes' own documents have them.
fn shared() -> Schemas {
    let object_meta = object(
        "ObjectMeta is metadata that objects have.",
        &[],
        &[
            ("name", text("The name, unique in its namespace.")),
            ("namespace", text("The namespace.")),
            ("creationTimestamp", one(&format!("{META}.Time"), "When these metrics were made.")),
            ("labels", text_map("The labels of the pod or node that the metrics are of.")),
            ("annotations", text_map("Annotations; metrics have none.")),
        ],
    );
    let list_meta = object(
        "ListMeta is metadata that lists have.",
        &[],
        &[
            ("continue", text("Metrics are listed at once, so this is never set.")),
            ("remainingItemCount", whole("Metrics are listed at once, so this is never set.")),
            ("resourceVersion", text("Metrics have no versions, so this is never set.")),
            ("selfLink", text("Never set.")),
        ],
    );
    let duration = "A duration as Go writes it, such as 15s or 1m30s.";
    let quantity = "An amount with an optional suffix, such as 250m or 64Mi.";
    [
        (format!("{META}.ObjectMeta"), object_meta),
        (format!("{META}.ListMeta"), list_meta),
        (
            format!("{META}.Time"),
            json!({"type": "string", "format": "date-time", "description": "A time in RFC 3339."}),
        ),
        (format!("{META}.Duration"), text(duration)),
        (QUANTITY.to_owned(), text(quantity)),
    ]
    .into_iter()
    .collect()
}

fn selectors() -> Schemas {
    let requirement = object(
        "LabelSelectorRequirement is one condition on one label.",
        &["key", "operator"],
        &[
            ("key", text("The key of the label.")),
            ("operator", text("In, NotIn, Exists or DoesNotExist.")),
            ("values", texts("The values that it is compared with.")),
        ],
    );
    let name = format!("{META}.LabelSelectorRequirement");
    let selector = object(
        "LabelSelector is conditions on labels that must all hold.",
        &[],
        &[
            ("matchExpressions", many(&name, "Conditions on labels.")),
            ("matchLabels", text_map("Labels and the values that they must have.")),
        ],
    );
    [(name, requirement), (format!("{META}.LabelSelector"), selector)].into_iter().collect()
}

fn usage() -> Value {
    let values = json!({"$ref": format!("#/definitions/{QUANTITY}")});
    json!({
        "type": "object", "additionalProperties": values,
        "description": "How much cpu was used in the window on average, and how much memory at its end.",
    })
}

fn time() -> (&'static str, Value) {
    ("timestamp", one(&format!("{META}.Time"), "The end of the window."))
}

/// Those of `metrics.k8s.io/v1beta1`.
pub(super) fn resource() -> Schemas {
    const PACKAGE: &str = "io.k8s.metrics.pkg.apis.metrics.v1beta1";
    let named = |name| ("metrics.k8s.io", "v1beta1", name);
    let window = ("window", one(&format!("{META}.Duration"), "How long the window is."));
    let container = object(
        "ContainerMetrics is what a container uses.",
        &["name", "usage"],
        &[("name", text("The name of the container.")), ("usage", usage())],
    );
    let containers =
        many(&format!("{PACKAGE}.ContainerMetrics"), "What each container of the pod uses.");
    let pod = kind(
        named("PodMetrics"),
        "ObjectMeta",
        "PodMetrics is what the containers of a pod use.",
        &["timestamp", "window", "containers"],
        vec![time(), window.clone(), ("containers", containers)],
    );
    let node = kind(
        named("NodeMetrics"),
        "ObjectMeta",
        "NodeMetrics is what a node uses.",
        &["timestamp", "window", "usage"],
        vec![time(), window, ("usage", usage())],
    );
    let list = |name: &'static str, of: &str, description: &str| {
        let items = many(&format!("{PACKAGE}.{of}"), "The metrics.");
        kind(named(name), "ListMeta", description, &["items"], vec![("items", items)])
    };
    let mut schemas = shared();
    for (name, schema) in [
        ("ContainerMetrics", container),
        ("PodMetrics", pod),
        (
            "PodMetricsList",
            list("PodMetricsList", "PodMetrics", "PodMetricsList is what pods use."),
        ),
        ("NodeMetrics", node),
        (
            "NodeMetricsList",
            list("NodeMetricsList", "NodeMetrics", "NodeMetricsList is what nodes use."),
        ),
    ] {
        schemas.insert(format!("{PACKAGE}.{name}"), schema);
    }
    schemas
}

fn reference() -> Value {
    object(
        "ObjectReference names an object.",
        &[],
        &[
            ("apiVersion", text("The API version of the object.")),
            ("kind", text("The kind of the object.")),
            ("name", text("The name of the object.")),
            ("namespace", text("The namespace of the object.")),
        ],
    )
}

fn value() -> (&'static str, Value) {
    ("value", one(QUANTITY, "The value of the metric."))
}

fn metric_values(version: &str, required: &[&str], fields: Vec<(&str, Value)>) -> Schemas {
    let package = format!("io.k8s.metrics.pkg.apis.custom_metrics.{version}");
    let mut all = vec![
        ("apiVersion", text("The version of the schema of this object.")),
        ("kind", text("The kind of this object.")),
        ("describedObject", one(REFERENCE, "The object that the value belongs to.")),
        ("timestamp", one(&format!("{META}.Time"), "When the value was measured.")),
        value(),
    ];
    all.extend(fields);
    let metric_value = object("MetricValue is a metric of an object.", required, &all);
    let items = many(&format!("{package}.MetricValue"), "The values.");
    let list = kind(
        ("custom.metrics.k8s.io", version, "MetricValueList"),
        "ListMeta",
        "MetricValueList is values of a metric for objects.",
        &["items"],
        vec![("items", items)],
    );
    let mut schemas = shared();
    schemas.extend(selectors());
    schemas.insert(REFERENCE.to_owned(), reference());
    schemas.insert(format!("{package}.MetricValue"), metric_value);
    schemas.insert(format!("{package}.MetricValueList"), list);
    schemas
}

/// Those of `custom.metrics.k8s.io/v1beta1`.
pub(super) fn custom_v1beta1() -> Schemas {
    let selector = one(&format!("{META}.LabelSelector"), "Which series of the metric.");
    let fields = vec![
        ("metricName", text("The name of the metric.")),
        ("window", whole("Over how many seconds the value was measured.")),
        ("selector", selector),
    ];
    let required = ["describedObject", "metricName", "timestamp", "value", "selector"];
    metric_values("v1beta1", &required, fields)
}

/// Those of `custom.metrics.k8s.io/v1beta2`.
pub(super) fn custom_v1beta2() -> Schemas {
    const IDENTIFIER: &str = "io.k8s.metrics.pkg.apis.custom_metrics.v1beta2.MetricIdentifier";
    let selector = one(&format!("{META}.LabelSelector"), "Which series of the metric.");
    let identifier = object(
        "MetricIdentifier names a metric and which of its series.",
        &["name"],
        &[("name", text("The name of the metric.")), ("selector", selector)],
    );
    let fields = vec![
        ("metric", one(IDENTIFIER, "Which metric.")),
        ("windowSeconds", whole("Over how many seconds the value was measured.")),
    ];
    let required = ["describedObject", "metric", "timestamp", "value"];
    let mut schemas = metric_values("v1beta2", &required, fields);
    schemas.insert(IDENTIFIER.to_owned(), identifier);
    schemas
}

/// Those of `external.metrics.k8s.io/v1beta1`.
pub(super) fn external() -> Schemas {
    const PACKAGE: &str = "io.k8s.metrics.pkg.apis.external_metrics.v1beta1";
    let metric_value = object(
        "ExternalMetricValue is a value of a metric that belongs to no object.",
        &["metricName", "metricLabels", "timestamp", "value"],
        &[
            ("metricName", text("The name of the metric.")),
            ("metricLabels", text_map("The labels of the series.")),
            ("timestamp", one(&format!("{META}.Time"), "When the value was measured.")),
            ("window", whole("Over how many seconds the value was measured.")),
            value(),
        ],
    );
    let items = many(&format!("{PACKAGE}.ExternalMetricValue"), "The values.");
    let list = kind(
        ("external.metrics.k8s.io", "v1beta1", "ExternalMetricValueList"),
        "ListMeta",
        "ExternalMetricValueList is values of an external metric.",
        &["items"],
        vec![("items", items)],
    );
    let mut schemas = shared();
    schemas.insert(format!("{PACKAGE}.ExternalMetricValue"), metric_value);
    schemas.insert(format!("{PACKAGE}.ExternalMetricValueList"), list);
    schemas
}
