//! What people see of an autoscaler that cannot act: columns, conditions, `explain` and `top`.

use super::*;
use crate::controller::observer::{Decided, Observer};
use crate::dashboard::{AutoscalerView, MetricState, Picture};
use std::collections::HashMap;

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

/// Keeps what `explain` and `top` would show of each object.
#[derive(Default)]
struct Views(Mutex<HashMap<String, AutoscalerView>>);

impl Observer for Views {
    fn decided(&self, decided: &Decided<'_>) {
        let view = Picture::of(decided).view();
        self.0.lock().insert(view.name.clone(), view);
    }
}

impl Views {
    fn of(&self, name: &str) -> Option<AutoscalerView> {
        self.0.lock().get(name).cloned()
    }

    async fn until(&self, name: &str, holds: impl Fn(&AutoscalerView) -> bool) -> AutoscalerView {
        until(name, async || self.of(name).is_some_and(|view| holds(&view))).await;
        self.of(name).expect("a view")
    }
}

impl Cluster {
    fn control_shown(&self, load: &Arc<Load>) -> (Controller, Arc<Views>) {
        let views = Arc::new(Views::default());
        let observers: Vec<Arc<dyn Observer>> = vec![Arc::clone(&views) as Arc<dyn Observer>];
        (self.control_observed(load, observers), views)
    }

    /// What `kubectl get pa` shows of one object: each column's name and text.
    async fn columns(&self, name: &str) -> HashMap<String, String> {
        let (names, rows) = self.whole_table().await;
        let row = rows.iter().find(|cells| cells[0] == *name).cloned().unwrap_or_default();
        let text = |cell: Value| match cell {
            Value::String(text) => text,
            Value::Null => String::new(),
            other => other.to_string(),
        };
        names.into_iter().zip(row.into_iter().map(text)).collect()
    }
}

fn target(name: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name})
}

#[tokio::test(start_paused = true)]
async fn columns_tell_why_nothing_is_done() {
    let cluster = Cluster::with(json!({})).await;
    cluster.send("POST", CRDS, &crd::definition()).await;
    let mut other = cluster.get(&format!("{DEPLOYMENTS}/web")).await;
    other["metadata"] = json!({"name": "other"});
    cluster.send("POST", DEPLOYMENTS, &other).await;
    let load = Arc::new(Load::default());
    *load.replicas.lock() = 5;
    let (controller, views) = cluster.control_shown(&load);
    let schedule = json!({"name": "a", "start": "8 o'clock", "duration": "1h", "minReplicas": 5});
    let always =
        json!({"name": "always", "start": "* * * * *", "duration": "2m", "minReplicas": 4});
    for (name, change) in [
        ("taken", json!({"schedules": [always]})),
        ("bad", json!({"schedules": [schedule], "scaleTargetRef": target("other")})),
        ("lost", json!({"scaleTargetRef": target("nowhere")})),
    ] {
        cluster.send("POST", PAS, &pa(name, change)).await;
    }
    for (name, expected) in [
        ("taken", "Deployment/web, load: <unknown>/1 (avg), 4, 9, 3, Conflict, TargetTaken"),
        ("bad", "Deployment/other, load: <unknown>/1 (avg), 1, 9, 1, Invalid, InvalidSpec"),
        ("lost", "Deployment/nowhere, load: <unknown>/1 (avg), 1, 9, 0, Active, FailedGetScale"),
    ] {
        let shown = async || {
            let columns = cluster.columns(name).await;
            let cells = ["Reference", "Targets", "Min", "Max", "Replicas", "Mode", "Reason"];
            cells.map(|cell| columns.get(cell).cloned().unwrap_or_default()).join(", ")
        };
        for _ in 0..2000 {
            if shown().await == expected {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(shown().await, expected, "{name}");
    }
    let waits = cluster.condition("taken", "ScalingActive").await.expect("a condition");
    assert_eq!(waits[..2], ["False", TARGET_TAKEN], "nobody should wait for it");
    let taken = views.until("taken", |view| view.conflict.is_some()).await;
    let conflict = taken.conflict.expect("a conflict");
    assert!(
        conflict.starts_with("HorizontalPodAutoscaler \"web\" scales Deployment"),
        "{conflict}"
    );
    assert_eq!((taken.min, taken.max), (4, 9), "the bounds of the schedule");
    for name in ["bad", "lost"] {
        let view = views.until(name, |_| true).await;
        assert_eq!(view.conflict, None);
        assert_eq!(view.metrics[0].state, MetricState::NotAsked, "{name}");
    }
    cluster.send("DELETE", &format!("{HPA}/web"), &json!({})).await;
    let free = views.until("taken", |view| view.conflict.is_none()).await;
    assert!(!free.conditions.iter().any(|c| c.kind == CONFLICT_CONDITION), "{free:?}");
    until("it acts", async || cluster.columns("taken").await["Mode"] == "Active").await;
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_wrong_expression_is_reported_by_the_first_reconcile() {
    let cluster = Cluster::with_definition().await;
    let load = Arc::new(Load::default());
    let controller = cluster.control_by(&load);
    let mut wrong = pa("web", json!({"combine": "Expression", "expression": "load +\n 2 * * 3"}));
    wrong["spec"]["metrics"][0]["name"] = json!("load");
    cluster.send("POST", PAS, &wrong).await;
    let status = async || cluster.pa("web").await["status"].take();
    until("the first status", async || status().await.is_object()).await;
    let [holds, reason, message] = cluster.condition("web", "Valid").await.expect("it is there");
    assert_eq!((&*holds, &*reason), ("False", "Invalid"));
    assert!(message.starts_with("spec.expression: Invalid value: "), "{message}");
    assert!(message.contains("line 2, column 6: "), "{message}");
    assert_eq!(status().await["reason"], "InvalidSpec");
    let right = json!({"spec": {"expression": "load + 2"}});
    cluster.send("PATCH", &format!("{PAS}/web"), &right).await;
    until("it is mended", async || {
        let valid = cluster.condition("web", "Valid").await;
        valid.is_some_and(|[holds, ..]| holds == "True")
    })
    .await;
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_shown_follows_orders_schedules_and_names() {
    let cluster = Cluster::with_definition().await;
    let load = Arc::new(Load::default());
    *load.replicas.lock() = 2;
    let (controller, views) = cluster.control_shown(&load);
    let at = cluster.clock.now() + jiff::SignedDuration::from_mins(3);
    let minute = at.strftime("%-M %-H * * *").to_string();
    let soon = json!({"name": "soon", "start": minute, "duration": "10m", "maxReplicas": 8});
    let mut web = pa("web", json!({"schedules": [soon], "podSelection": "Selector"}));
    web["spec"]["metrics"][0]["name"] = json!("orders");
    cluster.send("POST", PAS, &web).await;
    let view = views.until("web", |view| view.metrics[0].state != MetricState::NotAsked).await;
    assert_eq!((&*view.metrics[0].name, view.max), ("orders", 9));
    let texts = view.conditions.iter().map(|c| c.message.as_str());
    assert!(texts.clone().any(|text| text.starts_with("the PodAutoscaler ")), "{view:?}");
    assert!(!texts.clone().any(|text| text.contains("HPA")), "{view:?}");
    let stored = cluster.pa("web").await["status"]["conditions"].to_string();
    assert!(!stored.contains("HPA") && stored.contains("the PodAutoscaler "), "{stored}");
    // It begins two to three minutes after the test. Nothing else about it changes then.
    tokio::time::sleep(Duration::from_secs(120)).await;
    until("its columns follow the clock", async || {
        let columns = cluster.columns("web").await;
        (&*columns["Max"], &*columns["Schedule"]) == ("8", "soon")
    })
    .await;
    views.until("web", |view| view.max == 8).await;
    let paused = json!({"spec": {"mode": "Paused"}});
    cluster.send("PATCH", &format!("{PAS}/web"), &paused).await;
    views.until("web", |view| view.metrics[0].state == MetricState::NotAsked).await;
    controller.stop().await;
}

/// Says another value each time, and always one that leads to the same size.
#[derive(Default)]
struct Drift(Mutex<u32>);

impl MetricSource for Drift {
    fn ask<'a>(&'a self, _question: Question<'a>) -> BoxFuture<'a, Answer> {
        let mut asked = self.0.lock();
        *asked += 1;
        let value = json!([{"metricName": "load", "metricLabels": {},
            "value": format!("{}m", 2000 + *asked), "timestamp": "2026-01-01T00:00:00Z"}]);
        let values: Vec<_> = serde_json::from_value(value).expect("values");
        async move { Answer::External(values.into()) }.boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn columns_follow_the_clock_also_where_values_are_not_written() {
    let cluster = Cluster::with_definition().await;
    cluster.resize(2).await;
    let config = Config { refresh_rate: RefreshRate(0.0), ..Config::default() };
    let controller = cluster.control_set(Arc::new(Drift::default()), config, Vec::new());
    let at = cluster.clock.now() + jiff::SignedDuration::from_mins(3);
    let minute = at.strftime("%-M %-H * * *").to_string();
    let soon = json!({"name": "soon", "start": minute, "duration": "10m", "maxReplicas": 8});
    cluster.send("POST", PAS, &pa("web", json!({"schedules": [soon]}))).await;
    let value = async || cluster.pa("web").await["status"]["currentMetrics"].to_string();
    until("it is shown", async || cluster.columns("web").await["Max"] == "9").await;
    let before = value().await;
    // It begins two to three minutes after the test.
    tokio::time::sleep(MINUTE).await;
    assert_eq!(value().await, before, "a value alone is not worth a write");
    tokio::time::sleep(MINUTE).await;
    until("the schedule is shown", async || cluster.columns("web").await["Max"] == "8").await;
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_autoscaler_that_gave_way_shows_its_spec_as_it_is() {
    let cluster = Cluster::with(json!({})).await;
    cluster.send("POST", CRDS, &crd::definition()).await;
    let controller = cluster.control_by(&Arc::new(Load::default()));
    cluster.send("POST", PAS, &pa("taken", json!({}))).await;
    until("it gives way", async || cluster.columns("taken").await["Mode"] == "Conflict").await;
    until("the HPA acts", async || cluster.columns("taken").await["Replicas"] == "3").await;
    let wider = json!({"spec": {"maxReplicas": 12}});
    let changed = cluster.send("PATCH", &format!("{PAS}/taken"), &wider).await;
    until("its bounds are shown", async || cluster.columns("taken").await["Max"] == "12").await;
    let status = cluster.pa("taken").await["status"].take();
    assert_eq!(status["observedGeneration"], changed["metadata"]["generation"]);
    assert_eq!(status["mode"], "Conflict");
    let version = async || cluster.pa("taken").await["metadata"]["resourceVersion"].take();
    let stored = version().await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!(version().await, stored, "nothing more is written");
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn autoscalers_that_select_the_same_pods_are_named_with_their_kinds() {
    let cluster = Cluster::with(json!({})).await;
    cluster.send("POST", CRDS, &crd::definition()).await;
    cluster.resize(3).await;
    let mut other = cluster.get(&format!("{DEPLOYMENTS}/web")).await;
    other["metadata"] = json!({"name": "other"});
    cluster.send("POST", DEPLOYMENTS, &other).await;
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "web-1", "labels": {"app": "web"}},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}});
    cluster.send("POST", "/api/v1/namespaces/default/pods", &pod).await;
    let load = Arc::new(Load::default());
    *load.replicas.lock() = 3;
    let controller = cluster.control_by(&load);
    let change = json!({"podSelection": "Selector", "scaleTargetRef": target("other")});
    cluster.send("POST", PAS, &pa("mine", change)).await;
    let expected = "pods by selector app=web are controlled by more than one autoscaler (e.g. \
                    [HorizontalPodAutoscaler default/web, PodAutoscaler default/mine])";
    until("both are named", async || {
        let active = cluster.condition("mine", "ScalingActive").await;
        active.is_some_and(|[_, reason, message]| {
            reason == "AmbiguousSelector" && message == expected
        })
    })
    .await;
    controller.stop().await;
}
