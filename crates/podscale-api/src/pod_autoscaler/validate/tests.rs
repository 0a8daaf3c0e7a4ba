use super::*;
use crate::pod_autoscaler::default::default_spec;
use serde_json::{Value, json};

/// The errors of a good object with these fields of its spec.
fn errors(change: Value) -> String {
    let mut spec = json!({"maxReplicas": 10,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "metrics": [{"type": "Resource", "name": "cpu", "resource": {"name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": 50}}}]});
    for (name, value) in change.as_object().expect("fields") {
        spec[name] = value.clone();
    }
    let object =
        json!({"metadata": {"name": "web", "namespace": "shop", "uid": "u"}, "spec": spec});
    let mut pa: PodAutoscaler = serde_json::from_value(object).expect("an autoscaler");
    default_spec(&mut pa.spec);
    let texts: Vec<String> = check(&pa).iter().map(ToString::to_string).collect();
    texts.join("; ")
}

fn metric(change: Value) -> Value {
    let mut metric = json!({"type": "Pods", "pods": {"metric": {"name": "queue"},
        "target": {"type": "AverageValue", "averageValue": "5"}}});
    for (name, value) in change.as_object().expect("fields") {
        metric[name] = value.clone();
    }
    json!({"metrics": [metric]})
}

fn trigger(source: Value) -> Value {
    json!({"metrics": [{"type": "Trigger", "trigger": source}]})
}

fn prometheus(source: Value) -> Value {
    json!({"metrics": [{"type": "Prometheus", "prometheus": source}]})
}

/// A queue of two metrics that are there, with these fields.
fn served(change: Value) -> Value {
    let external = |name: &str| {
        json!({"type": "External", "name": name, "external": {"metric": {"name": name},
            "target": {"type": "AverageValue", "averageValue": "5"}}})
    };
    let mut queue = json!({"length": "waiting", "arrivals": "coming"});
    for (name, value) in change.as_object().expect("fields") {
        queue[name] = value.clone();
    }
    json!({"metrics": [external("waiting"), external("coming")], "queue": queue})
}

fn schedule(change: Value) -> Value {
    let mut schedule =
        json!({"name": "day", "start": "0 8 * * *", "end": "0 18 * * *", "minReplicas": 2});
    for (name, value) in change.as_object().expect("fields") {
        schedule[name] = value.clone();
    }
    json!({"schedules": [schedule]})
}

#[test]
fn good_objects_have_no_errors() {
    let target = json!({"type": "AverageValue", "averageValue": "5"});
    for change in [
        json!({}),
        metric(
            json!({"maxAge": "30s", "onMissing": {"replicas": 3}, "aggregate": "P95", "watermarks": {"low": "2", "high": "8"}}),
        ),
        prometheus(
            json!({"query": "sum(up)", "server": "https://prometheus:9090/prom", "target": target}),
        ),
        trigger(json!({"type": "redis", "metadata": {"listName": "jobs"}, "metricType": "Value",
            "authenticationRef": {"name": "keys", "kind": "ClusterTriggerAuthentication"}})),
        json!({"minReplicas": 0, "metrics": [{"type": "Trigger", "activation": "3",
            "trigger": {"type": "kafka", "metadata": {}}}], "scaleToZero": {"coolDown": "1m"}}),
        json!({"combine": "Expression", "expression": "cpu + 1"}),
        json!({"podDeletionCost": {"metric": "cpu"}}),
        json!({"window": {"stable": "1h", "panic": "0s"}}),
        served(json!({"itemsPerSecond": "2.5", "within": "1s"})),
        json!({"profile": "Safe", "startUpTime": "1m", "predict": {"confidence": 99, "scaleInGuard": "0s"}, "lead": {"limitPercent": 0}, "headroom": {"confidence": 1, "limitPercent": 1000, "overloadPermille": 500}}),
        schedule(json!({"timeZone": "Europe/Zurich", "ramp": "15m"})),
        json!({"mode": "Paused", "modeUntil": "2026-01-01T00:00:00Z", "hold": {"replicas": 0}, "pause": {"scaleUp": {}}}),
        json!({"minReplicas": 3, "scaleToZero": {"idleReplicas": 1, "coolDown": "1m"}, "warmUp": "30s", "syncPeriod": "1s", "fallback": {"replicas": 3}}),
        json!({"behavior": {"scaleUp": {"limit": {"factor": "1500m", "minimum": 4}, "forbiddenWindowSeconds": 60}}}),
        json!({"metrics": [{"type": "Object", "object": {"describedObject": {"kind": "Namespace"},
            "metric": {"name": "rps"}, "target": {"type": "Value", "value": "5"}}}]}),
    ] {
        assert_eq!(errors(change.clone()), "", "{change}");
    }
}

#[test]
fn bad_ones_name_the_field() {
    for (change, expected) in [
        (
            json!({"minReplicas": 11}),
            "spec.maxReplicas: Invalid value: 10: must be greater than or equal to `minReplicas`",
        ),
        (
            json!({"combine": "Median"}),
            "spec.combine: Unsupported value: \"Median\": supported values: \"Max\", \"Min\", \"Average\", \"Expression\"",
        ),
        (json!({"expression": "cpu"}), "spec.expression: Forbidden: needs combine: Expression"),
        (
            json!({"combine": "Expression"}),
            "spec.expression: Required value: must say how the metrics are combined",
        ),
        (
            json!({"combine": "Expression", "expression": "memory"}),
            "spec.expression: Invalid value: \"memory\": line 1, column 1: unknown metric \"memory\"; known are cpu",
        ),
        (
            json!({"profile": "Wild"}),
            "spec.profile: Unsupported value: \"Wild\": supported values: \"Balanced\", \"Cheap\", \"Safe\"",
        ),
        (
            served(json!({"length": "cpu", "arrivals": "", "itemsPerSecond": "0", "within": "0s"})),
            "spec.queue.length: Invalid value: \"cpu\": must be the name of a metric of type Object, External, Prometheus or Trigger; spec.queue.arrivals: Invalid value: \"\": must be the name of a metric of type Object, External, Prometheus or Trigger; spec.queue.itemsPerSecond: Invalid value: \"0\": must be positive; spec.queue.within: Invalid value: \"0s\": must be at least 1s",
        ),
        (served(json!({})), "spec.queue.itemsPerSecond: Required value"),
        (
            json!({"window": {"stable": "2h", "panicThresholdPercent": 99}}),
            "spec.window.stable: Invalid value: \"2h\": must be from 1s to 1h; spec.window.panicThresholdPercent: Invalid value: 99: must be from 100 to 1000",
        ),
        (
            json!({"startUpTime": "-1s"}),
            "spec.startUpTime: Invalid value: \"-1s\": must not be negative",
        ),
        (
            json!({"predict": {"confidence": 100, "scaleInGuard": "-1m"}}),
            "spec.predict.confidence: Invalid value: 100: must be from 1 to 99; spec.predict.scaleInGuard: Invalid value: \"-1m\": must not be negative",
        ),
        (
            json!({"headroom": {"confidence": 0, "limitPercent": -1, "overloadPermille": 0}}),
            "spec.headroom.confidence: Invalid value: 0: must be from 1 to 99; spec.headroom.limitPercent: Invalid value: -1: must be from 0 to 1000; spec.headroom.overloadPermille: Invalid value: 0: must be from 1 to 500",
        ),
        (
            json!({"lead": {"limitPercent": 1001}}),
            "spec.lead.limitPercent: Invalid value: 1001: must be from 0 to 1000",
        ),
        (
            metric(json!({"name": "9"})),
            "spec.metrics[0].name: Invalid value: \"9\": must have letters, digits and underscores, begin with no digit, and be no longer than 63",
        ),
        (
            metric(json!({"name": "currentReplicas"})),
            "spec.metrics[0].name: Invalid value: \"currentReplicas\": means something else in expressions",
        ),
        (
            metric(json!({"maxAge": "10ms"})),
            "spec.metrics[0].maxAge: Invalid value: \"10ms\": must be at least 1s",
        ),
        (
            metric(json!({"onMissing": "Panic"})),
            "spec.metrics[0].onMissing: Invalid value: \"Panic\": must be Hold, Ignore, LastValue or {replicas: N} with an N from 0 on",
        ),
        (
            metric(json!({"onMissing": {"replicas": -1}})),
            "spec.metrics[0].onMissing: Invalid value: -1: must be Hold, Ignore, LastValue or {replicas: N} with an N from 0 on",
        ),
        (
            metric(json!({"watermarks": {"low": "9", "high": "8"}})),
            "spec.metrics[0].watermarks.low: Invalid value: \"9\": must not be greater than high, which is 8",
        ),
        (
            metric(json!({"prometheus": {}})),
            "spec.metrics[0].prometheus: Forbidden: must populate the given metric source only",
        ),
        (
            metric(json!({"trigger": {}})),
            "spec.metrics[0].trigger: Forbidden: must populate the given metric source only",
        ),
        (
            json!({"metrics": [{"type": "Trigger"}]}),
            "spec.metrics[0].trigger: Required value: must say which event source is asked",
        ),
        (
            trigger(json!({"metadata": {}})),
            "spec.metrics[0].trigger.type: Required value: must be the type of an event source, such as redis",
        ),
        (
            trigger(json!({"type": "cpu", "metricType": "Utilization"})),
            "spec.metrics[0].trigger.type: Invalid value: \"cpu\": is a metric of pods: use a metric of type Resource or ContainerResource; spec.metrics[0].trigger.metricType: Unsupported value: \"Utilization\": supported values: \"AverageValue\", \"Value\"",
        ),
        (
            trigger(json!({"type": "redis", "authenticationRef": {"kind": "Secret"}})),
            "spec.metrics[0].trigger.authenticationRef.name: Required value; spec.metrics[0].trigger.authenticationRef.kind: Unsupported value: \"Secret\": supported values: \"TriggerAuthentication\", \"ClusterTriggerAuthentication\"",
        ),
        (
            prometheus(json!({"query": "up", "target": {"type": "Value"}})),
            "spec.metrics[0].prometheus.target.averageValue: Required value: must set either a target value for metric or a per-pod target",
        ),
        (
            prometheus(
                json!({"query": "up", "server": "ftp://x", "target": {"type": "Value", "value": "1"}}),
            ),
            "spec.metrics[0].prometheus.server: Invalid value: \"ftp://x\": must be an address such as http://prometheus.monitoring:9090",
        ),
        (
            schedule(json!({"start": "8 o'clock"})),
            "spec.schedules[0].start: Invalid value: \"8 o'clock\": a cron expression has 5 fields, not 2",
        ),
        (
            schedule(json!({"timeZone": "Nowhere"})),
            "spec.schedules[0].timeZone: Invalid value: \"Nowhere\": unknown time zone \"Nowhere\"",
        ),
        (
            schedule(json!({"duration": "8h"})),
            "spec.schedules[0].end: Invalid value: \"0 18 * * *\": must set either end or duration",
        ),
        (
            schedule(
                json!({"start": "x", "timeZone": "Nowhere", "ramp": "soon", "minReplicas": 11}),
            ),
            "spec.schedules[0].minReplicas: Invalid value: 11: must not be greater than maxReplicas, which is 10; \
             spec.schedules[0].start: Invalid value: \"x\": a cron expression has 5 fields, not 1; \
             spec.schedules[0].ramp: Invalid value: \"soon\": time: invalid duration \"soon\"; \
             spec.schedules[0].timeZone: Invalid value: \"Nowhere\": unknown time zone \"Nowhere\"",
        ),
        (
            schedule(json!({"minReplicas": 11})),
            "spec.schedules[0].minReplicas: Invalid value: 11: must not be greater than maxReplicas, which is 10",
        ),
        (
            json!({"mode": "Off"}),
            "spec.mode: Unsupported value: \"Off\": supported values: \"Active\", \"DryRun\", \"Paused\"",
        ),
        (
            json!({"podSelection": "All"}),
            "spec.podSelection: Unsupported value: \"All\": supported values: \"Owned\", \"Selector\"",
        ),
        (
            json!({"scaleToZero": {"idleReplicas": 1}}),
            "spec.scaleToZero.idleReplicas: Invalid value: 1: must be less than minReplicas, which is 1",
        ),
        (
            json!({"scaleToZero": {}}),
            "spec.scaleToZero: Forbidden: needs a metric of type Object, External, Prometheus or Trigger",
        ),
        (
            json!({"syncPeriod": "500ms"}),
            "spec.syncPeriod: Invalid value: \"500ms\": must be at least 1s",
        ),
        (
            json!({"warmUp": "soon"}),
            "spec.warmUp: Invalid value: \"soon\": time: invalid duration \"soon\"",
        ),
        (
            json!({"fallback": {"replicas": -1}}),
            "spec.fallback.replicas: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            json!({"podDeletionCost": {"metric": "memory"}}),
            "spec.podDeletionCost.metric: Invalid value: \"memory\": must be the name of a metric of type Resource, ContainerResource or Pods",
        ),
        (
            json!({"podDeletionCost": {"metric": "rate"}, "metrics": [{"type": "Prometheus", "name": "rate",
                "prometheus": {"query": "up", "target": {"type": "Value", "value": "1"}}}]}),
            "spec.podDeletionCost.metric: Invalid value: \"rate\": must be the name of a metric of type Resource, ContainerResource or Pods",
        ),
        (
            json!({"podDeletionCost": {"metric": "cpu"},
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"}}),
            "spec.podDeletionCost: Forbidden: a StatefulSet removes the pods with the highest ordinals, whatever their costs are",
        ),
        (
            json!({"hold": {"replicas": -1}}),
            "spec.hold.replicas: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            json!({"behavior": {"scaleUp": {"limit": {"factor": "500m"}}}}),
            "spec.behavior.scaleUp.limit.factor: Invalid value: \"500m\": must be at least 1",
        ),
        (
            json!({"behavior": {"scaleDown": {"forbiddenWindowSeconds": 9999}}}),
            "spec.behavior.scaleDown.forbiddenWindowSeconds: Invalid value: 9999: must be from 0 to 3600",
        ),
        (
            json!({"scaleTargetRef": {"kind": "Deployment", "name": "web"}}),
            "spec.scaleTargetRef.apiVersion: Invalid value: \"\": apiVersion must specify API group",
        ),
    ] {
        assert_eq!(errors(change.clone()), expected, "{change}");
    }
}
