use super::*;
use crate::convert::{convert, form};

fn object() -> Value {
    json!({"apiVersion": API_VERSION, "kind": KIND,
        "metadata": {"name": "web", "finalizers": [FINALIZER], "labels": {NAME_LABEL: "web"},
            "annotations": {"autoscaling.keda.sh/paused-scale-in": "true", "team": "shop"}},
        "spec": {"scaleTargetRef": {"name": "web"}, "minReplicaCount": 0, "maxReplicaCount": 9,
            "cooldownPeriod": 60, "pollingInterval": 10,
            "fallback": {"failureThreshold": 3, "replicas": 2},
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior":
                {"scaleDown": {"stabilizationWindowSeconds": 60}}}},
            "triggers": [
                {"type": "cpu", "metricType": "Utilization", "metadata": {"value": "60"}},
                {"type": "prometheus", "name": "rate", "metadata": {"serverAddress": "http://p:9090",
                    "query": "sum(up)", "threshold": "10", "activationThreshold": "2"}},
                {"type": "cron", "metadata": {"timezone": "Europe/Berlin", "start": "0 8 * * *",
                    "end": "0 18 * * *", "desiredReplicas": "4"}},
                {"type": "redis", "name": "jobs", "metricType": "Value", "useCachedMetrics": true,
                    "authenticationRef": {"name": "keys"},
                    "metadata": {"listName": "jobs", "activationListLength": "3"}}]}})
}

fn to(object: &Value, name: &str) -> (Value, Vec<String>) {
    let written = convert(object, form(name).expect("a form")).expect("an autoscaler");
    let written = written.expect("another form");
    (written.object, written.losses.iter().map(|loss| loss.field.clone()).collect())
}

#[test]
fn a_pod_autoscaler_can_say_most_of_it() {
    let (pa, lost) = to(&object(), "pa");
    assert_eq!(lost, [""; 0]);
    assert_eq!(pa["metadata"], json!({"name": "web", "annotations": {"team": "shop"}}));
    let query = json!({"server": "http://p:9090", "query": "(sum(up)) or vector(0)",
        "target": {"type": "AverageValue", "averageValue": "10"}});
    let expected = json!({
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 1, "maxReplicas": 9, "syncPeriod": "10s", "podSelection": "Selector",
        "metrics": [
            {"type": "Resource", "resource": {"name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 60}}},
            {"type": "Prometheus", "name": "rate", "activation": "2", "prometheus": query},
            {"type": "Trigger", "name": "jobs", "trigger": {"type": "redis", "metricType": "Value",
                "useCachedMetrics": true, "authenticationRef": {"name": "keys"},
                "metadata": {"listName": "jobs", "activationListLength": "3"}}}],
        "schedules": [{"name": "cron-0", "timeZone": "Europe/Berlin", "start": "0 8 * * *",
            "end": "0 18 * * *", "minReplicas": 4}],
        "scaleToZero": {"idleReplicas": 0, "coolDown": "1m", "zeroByOthers": "Wake"},
        "fallback": {"replicas": 2, "after": "30s"},
        "pause": {"scaleDown": {}},
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}},
    });
    assert_eq!(pa["spec"], expected);
    let (back, lost) = to(&pa, "so");
    assert_eq!(lost, [""; 0]);
    let spec = &back["spec"];
    for (field, expected) in [
        ("minReplicaCount", json!(0)),
        ("maxReplicaCount", json!(9)),
        ("cooldownPeriod", json!(60)),
        ("pollingInterval", json!(10)),
        ("scaleTargetRef", json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"})),
    ] {
        assert_eq!(spec[field], expected, "{field}");
    }
    let types: Vec<&Value> =
        spec["triggers"].as_array().expect("triggers").iter().map(|one| &one["type"]).collect();
    assert_eq!(types, ["cpu", "prometheus", "redis", "cron"]);
    assert_eq!(spec["triggers"][1]["metadata"]["query"], "sum(up)");
    assert_eq!(spec["triggers"][2], object()["spec"]["triggers"][3]);
    let fallback = json!({"failureThreshold": 3, "replicas": 2, "behavior": "static"});
    assert_eq!(spec["fallback"], fallback);
    let paused = &back["metadata"]["annotations"]["autoscaling.keda.sh/paused-scale-in"];
    assert_eq!(paused, "true");
}

#[test]
fn an_hpa_can_say_less() {
    let (hpa, lost) = to(&object(), "hpa.v2");
    assert_eq!(hpa["spec"]["metrics"].as_array().map(Vec::len), Some(1));
    // As the object names them.
    for field in [
        "spec.triggers[1]",
        "spec.triggers[2]",
        "spec.triggers[3]",
        "spec.minReplicaCount",
        "spec.cooldownPeriod",
        "spec.pollingInterval",
        "spec.fallback.replicas",
        "spec.fallback.failureThreshold",
        "metadata.annotations[autoscaling.keda.sh/paused-scale-in]",
    ] {
        assert!(lost.contains(&field.to_owned()), "{field}: {lost:?}");
    }
    assert_eq!(lost.len(), 9, "{lost:?}");
    let (back, lost) = to(&hpa, "so");
    assert_eq!(lost, [""; 0]);
    assert_eq!(back["spec"]["triggers"][0]["metadata"]["value"], "60");
    assert_eq!(back["spec"]["minReplicaCount"], 1);
}

#[test]
fn what_has_nothing_to_go_by_is_refused() {
    let mut queue = object();
    queue["spec"]["triggers"] = json!([{"type": "cpu", "metadata": {}}]);
    let error = convert(&queue, form("pa").expect("a form")).expect_err("no metric");
    assert_eq!(error.to_string(), "none of its triggers can be a metric of another kind: cpu");
    let pods = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"}, "spec": {"maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "metrics": [{"type": "Pods", "pods": {"metric": {"name": "rps"},
                "target": {"type": "AverageValue", "averageValue": "1"}}}]}});
    assert!(convert(&pods, &ScaledObjects).is_err());
}

/// A ScaledObject with these triggers and these fields besides.
fn of(triggers: Value, more: Value) -> Value {
    let mut object = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
        "metadata": {"name": "web"}, "spec": {"minReplicaCount": 1, "maxReplicaCount": 9, "triggers": triggers,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}});
    for (field, value) in more.as_object().expect("fields") {
        object["spec"][field] = value.clone();
    }
    object
}

#[test]
fn every_trigger_comes_back_as_it_was() {
    let environment = json!({"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment",
        "name": "web", "envSourceContainerName": "app"}});
    for (trigger, more) in [
        (json!({"type": "kafka", "metadata": {"topic": "t", "lagThreshold": "7"}}), json!({})),
        (
            json!({"type": "rabbitmq", "name": "mails", "metadata": {"queueName": "q", "hostFromEnv": "H"}}),
            environment,
        ),
        (
            json!({"type": "prometheus", "metadata": {"serverAddress": "http://p", "query": "up",
                "threshold": "1", "authModes": "bearer"}, "authenticationRef":
                    {"name": "all", "kind": "ClusterTriggerAuthentication"}}),
            json!({"idleReplicaCount": 0, "minReplicaCount": 2, "cooldownPeriod": 30}),
        ),
        (
            json!({"type": "cpu", "name": "cpu", "metricType": "Utilization", "metadata": {"value": "60"}}),
            json!({"pollingInterval": 5}),
        ),
    ] {
        let given = of(json!([trigger]), more);
        let (pa, lost) = to(&given, "pa");
        assert_eq!(lost, [""; 0], "{given}");
        let (back, lost) = to(&pa, "so");
        assert_eq!(lost, [""; 0], "{pa}");
        assert_eq!(back["spec"], given["spec"]);
    }
}

#[test]
fn formulas_are_expressions() {
    let list = |name: &str| json!({"type": "redis", "name": name, "metadata": {"listName": name}});
    let cpu = json!({"type": "cpu", "metricType": "Utilization", "metadata": {"value": "60"}});
    let formula = |modifiers: Value| json!({"advanced": {"scalingModifiers": modifiers}});
    let both = json!([list("jobs"), list("mails")]);
    let given = of(both.clone(), formula(json!({"formula": "jobs + mails", "target": "20"})));
    let (pa, lost) = to(&given, "pa");
    assert_eq!(lost, [""; 0]);
    assert_eq!(pa["spec"]["combine"], "Expression");
    assert_eq!(pa["spec"]["expression"], "(jobs.total + mails.total) / 20");
    let (back, lost) = to(&pa, "so");
    assert_eq!((lost, &back["spec"]), (Vec::new(), &given["spec"]));
    // What pods use decides beside it, under a name.
    let triggers = json!([cpu, list("jobs")]);
    let given =
        of(triggers, formula(json!({"formula": "jobs * 2", "target": "5", "metricType": "Value"})));
    let (pa, lost) = to(&given, "pa");
    assert_eq!(lost, [""; 0]);
    assert_eq!(pa["spec"]["expression"], "max(currentReplicas * (jobs.total * 2) / 5, cpu)");
    let (back, lost) = to(&pa, "so");
    assert_eq!(lost, [""; 0]);
    assert_eq!(back["spec"]["advanced"], given["spec"]["advanced"]);
    let container = json!({"type": "cpu", "metricType": "Utilization",
        "metadata": {"value": "70", "containerName": "app"}});
    let twice = json!([cpu, container, list("jobs"), list("cpu_2")]);
    let given = of(twice, formula(json!({"formula": "jobs", "target": "5"})));
    assert_eq!(to(&given, "pa").0["spec"]["expression"], "max(jobs.total / 5, cpu, cpu_3)");
    // What no expression can say is lost, and so is above which value a formula is active.
    let power = of(both.clone(), formula(json!({"formula": "jobs ** 2", "target": "20"})));
    assert_eq!(to(&power, "pa").1, ["spec.advanced.scalingModifiers"]);
    let active = json!({"formula": "jobs", "target": "20", "activationTarget": "3"});
    let lost = to(&of(both, formula(active)), "pa").1;
    assert_eq!(lost, ["spec.advanced.scalingModifiers.activationTarget"]);
    // The other way round: a size that a metric asks for is nothing that a formula knows.
    let mut pa = pa;
    pa["spec"]["expression"] = json!("min(jobs, cpu)");
    assert_eq!(to(&pa, "so").1, ["spec.expression"]);
}

#[test]
fn what_a_trigger_has_no_field_for_is_lost() {
    let (mut pa, _) =
        to(&of(json!([{"type": "redis", "metadata": {"listName": "l"}}]), json!({})), "pa");
    let metric = &mut pa["spec"]["metrics"][0];
    for (field, value) in
        [("maxAge", json!("1m")), ("onMissing", json!("Hold")), ("activation", json!("3"))]
    {
        metric[field] = value;
    }
    let (so, lost) = to(&pa, "so");
    assert_eq!(lost, ["spec.metrics[0].activation", "spec.metrics[0].maxAge"]);
    assert_eq!(so["spec"]["triggers"][0]["metadata"]["listName"], "l");
    // Names that metrics cannot have.
    let (pa, lost) =
        to(&of(json!([{"type": "redis", "name": "my-list", "metadata": {}}]), json!({})), "pa");
    assert_eq!(lost, ["spec.triggers[0].name"]);
    assert_eq!(pa["spec"]["metrics"][0]["name"], Value::Null);
}
