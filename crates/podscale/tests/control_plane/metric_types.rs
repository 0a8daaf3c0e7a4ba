//! Every type of metric scales up and down again.

use super::fixture::{Fixture, deployment};
use super::harness::Harness;
use super::metrics::{Metrics, Usage};
use anyhow::Result;
use libtest_mimic::Trial;
use serde_json::{Value, json};

/// A metric that holds the target at 2 replicas, then at 4, then at 2 again.
struct Case {
    name: &'static str,
    metric: Value,
    /// Sets the metric so that 2 or 4 replicas follow.
    set: fn(&Metrics, &str, i64),
    /// How the reason of the rescale calls the metric.
    title: &'static str,
}

/// What can be set so that it is shared by all pods.
fn usage(what: &'static str, each: i64) -> impl Fn(&Metrics, &str, i64) {
    move |metrics, namespace, replicas| {
        metrics.set_usage(namespace, "web", what, Usage::Total(each * replicas));
    }
}

fn cases() -> Vec<Case> {
    let service = json!({"apiVersion": "v1", "kind": "Service", "name": "web"});
    let queue = json!({"name": "queue", "selector": {"matchLabels": {"q": "a"}}});
    vec![
        Case {
            name: "resource_utilization",
            metric: json!({"type": "Resource", "resource": {"name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 50}}}),
            set: |metrics, namespace, replicas| usage("cpu", 50)(metrics, namespace, replicas),
            title: "cpu resource utilization (percentage of request)",
        },
        Case {
            name: "resource_average_value",
            metric: json!({"type": "Resource", "resource": {"name": "memory",
                "target": {"type": "AverageValue", "averageValue": "1k"}}}),
            set: |metrics, namespace, replicas| {
                usage("memory", 1_000_000)(metrics, namespace, replicas);
            },
            title: "memory resource",
        },
        Case {
            name: "container_utilization",
            metric: json!({"type": "ContainerResource", "containerResource": {"name": "cpu",
                "container": "app", "target": {"type": "Utilization", "averageUtilization": 50}}}),
            set: |metrics, namespace, replicas| {
                metrics.set_usage(namespace, "web", "cpu/proxy", Usage::Each(900));
                usage("cpu/app", 50)(metrics, namespace, replicas);
            },
            title: "cpu container resource utilization (percentage of request)",
        },
        Case {
            name: "container_average_value",
            metric: json!({"type": "ContainerResource", "containerResource": {"name": "cpu",
                "container": "app", "target": {"type": "AverageValue", "averageValue": "50m"}}}),
            set: |metrics, namespace, replicas| {
                metrics.set_usage(namespace, "web", "cpu/proxy", Usage::Each(900));
                usage("cpu/app", 50)(metrics, namespace, replicas);
            },
            title: "cpu resource",
        },
        Case {
            name: "pods",
            metric: json!({"type": "Pods", "pods": {"metric": {"name": "rps"},
                "target": {"type": "AverageValue", "averageValue": "10"}}}),
            set: |metrics, namespace, replicas| usage("rps", 10_000)(metrics, namespace, replicas),
            title: "pods metric rps",
        },
        Case {
            name: "object_value",
            metric: json!({"type": "Object", "object": {"metric": {"name": "hits"},
                "describedObject": service, "target": {"type": "Value", "value": "10"}}}),
            // Twice and half of the goal; the bounds end it.
            set: |metrics, namespace, replicas| {
                let value = if replicas == 4 { 20_000 } else { 5_000 };
                metrics.set_object(namespace, "services/web", "hits", value);
            },
            title: "Service metric hits",
        },
        Case {
            name: "object_average_value",
            metric: json!({"type": "Object", "object": {"metric": {"name": "hits"},
                "describedObject": service,
                "target": {"type": "AverageValue", "averageValue": "10"}}}),
            set: |metrics, namespace, replicas| {
                metrics.set_object(namespace, "services/web", "hits", 10_000 * replicas);
            },
            title: "external metric hits(nil)",
        },
        Case {
            name: "object_namespace",
            metric: json!({"type": "Object", "object": {"metric": {"name": "hits"},
                "describedObject": {"apiVersion": "v1", "kind": "Namespace", "name": "any"},
                "target": {"type": "AverageValue", "averageValue": "10"}}}),
            set: |metrics, namespace, replicas| {
                metrics.set_object(namespace, "metrics", "hits", 10_000 * replicas);
            },
            title: "external metric hits(nil)",
        },
        Case {
            name: "external_value",
            metric: json!({"type": "External", "external": {"metric": queue,
                "target": {"type": "Value", "value": "10"}}}),
            set: |metrics, namespace, replicas| {
                let value = if replicas == 4 { 20_000 } else { 5_000 };
                let series = [(&[("q", "a")][..], value), (&[("q", "b")], 99_000)];
                metrics.set_external(namespace, "queue", &series);
            },
            title: "external metric queue(&LabelSelector{MatchLabels:map[string]string{q: a,},\
                MatchExpressions:[]LabelSelectorRequirement{},})",
        },
        Case {
            name: "external_average_value",
            metric: json!({"type": "External", "external": {"metric": queue,
                "target": {"type": "AverageValue", "averageValue": "10"}}}),
            // Several series count together.
            set: |metrics, namespace, replicas| {
                let half = 5_000 * replicas;
                let of_a = [("q", "a")];
                let series = [(&of_a[..], half), (&of_a, half), (&[("q", "b")], 99_000)];
                metrics.set_external(namespace, "queue", &series);
            },
            title: "external metric queue(&LabelSelector{MatchLabels:map[string]string{q: a,},\
                MatchExpressions:[]LabelSelectorRequirement{},})",
        },
    ]
}

pub fn trials(harness: &Harness) -> Vec<Trial> {
    let trial = |case: Case| {
        harness.shared(&format!("metric_types::{}", case.name), move |fixture| {
            up_and_down(fixture, case)
        })
    };
    let mut trials: Vec<Trial> = cases().into_iter().map(trial).collect();
    trials.push(harness.shared("metric_types::largest_of_several", largest_of_several));
    trials.push(harness.shared("metric_types::gap_of_one_metric", gap_of_one_metric));
    trials
}

async fn up_and_down(fixture: Fixture, case: Case) -> Result<()> {
    let (metrics, namespace) = (fixture.metrics(), &fixture.namespace);
    (case.set)(metrics, namespace, 2);
    fixture
        .create(deployment(
            "web",
            2,
            &["app", "proxy"][..if case.name.starts_with("container") { 2 } else { 1 }],
        ))
        .await?;
    fixture.until_pods("web", 2).await?;
    fixture.autoscaler("web", (2, 4), json!([case.metric]), Value::Null).await?;
    fixture.until_message("web", "ScalingActive", "True ValidMetricFound", case.title).await?;
    (case.set)(metrics, namespace, 4);
    fixture.until_replicas("web", 4).await?;
    let title = case.title;
    let up = format!("Normal SuccessfulRescale New size: 4; reason: {title} above target");
    fixture.until_event("web", &up).await?;
    fixture.until_pods("web", 4).await?;
    (case.set)(metrics, namespace, 2);
    fixture.until_replicas("web", 2).await?;
    let down = "Normal SuccessfulRescale New size: 2; reason: All metrics below target";
    fixture.until_event("web", down).await?;
    fixture.until_verdict("web", "AbleToScale", "True ReadyForNewScale").await
}

/// Three metrics, of which each wants something else.
async fn largest_of_several(fixture: Fixture) -> Result<()> {
    let (metrics, namespace) = (fixture.metrics(), &fixture.namespace);
    fixture.set_load("one", 2.0);
    fixture.set_load("other", 3.0);
    metrics.set_usage(namespace, "web", "cpu", Usage::Total(100));
    let external = |name: &str| {
        json!({"type": "External", "external": {"metric": {"name": name},
            "target": {"type": "AverageValue", "averageValue": "1"}}})
    };
    let cpu = json!({"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": 50}}});
    fixture.deployment("web", 2).await?;
    let all = json!([external("one"), cpu, external("other")]);
    fixture.autoscaler("web", (1, 10), all, Value::Null).await?;
    fixture.until_replicas("web", 3).await?;
    metrics.set_usage(namespace, "web", "cpu", Usage::Total(300));
    fixture.until_replicas("web", 6).await?;
    fixture.set_load("one", 7.0);
    fixture.until_replicas("web", 7).await?;
    fixture
        .until_message("web", "ScalingActive", "True ValidMetricFound", "external metric one(nil)")
        .await
}

/// A metric without a value holds nothing up, but keeps the target from shrinking.
async fn gap_of_one_metric(fixture: Fixture) -> Result<()> {
    let (metrics, namespace) = (fixture.metrics(), &fixture.namespace);
    fixture.set_load("load", 4.0);
    fixture.deployment("web", 3).await?;
    let cpu = json!({"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": 50}}});
    let external = super::fixture::load("load")[0].clone();
    fixture.autoscaler("web", (1, 10), json!([cpu, external]), Value::Null).await?;
    fixture.until_replicas("web", 4).await?;
    fixture.until_event("web", "Warning FailedGetResourceMetric ").await?;
    fixture.set_load("load", 1.0);
    fixture
        .until_message(
            "web",
            "ScalingActive",
            "False FailedGetResourceMetric",
            "no metrics returned from resource metrics API",
        )
        .await?;
    anyhow::ensure!(fixture.replicas("web").await? == 4, "it shrank without knowing");
    metrics.set_usage(namespace, "web", "cpu", Usage::Total(100));
    fixture.until_replicas("web", 2).await
}
