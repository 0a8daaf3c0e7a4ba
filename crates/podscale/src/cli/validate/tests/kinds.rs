//! Kinds of autoscalers that are not Kubernetes' own.

use super::*;

const PA: &str = "\
apiVersion: podscale.dev/v1alpha1
kind: PodAutoscaler
metadata:
  name: web
spec:
  minReplicas: 1
  maxReplicas: 5
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: web
  metrics:
  - type: Prometheus
    name: rate
    prometheus:
      query: sum(rate(hits[1m]))
      target: {type: AverageValue, averageValue: \"50\"}
  schedules:
  - name: day
    start: 0 8 * * *
    duration: 10h
    maxReplicas: 9
";

const CHPA: &str = "\
apiVersion: autoscalers.postmates.com/v1beta1
kind: CHPA
metadata:
  name: web
spec:
  maxReplicas: 5
  scaleTargetRef:
    kind: Deployment
    name: web
  metrics:
  - type: Resource
    resource: {name: cpu, targetAverageUtilization: 80}
";

const SINGLECLOUD: &str = r#"{"name": "web", "scaleTargetKind": "deployment", "scaleTargetName": "web",
  "minReplicas": 1, "maxReplicas": 5,
  "resourceMetrics": [
    {"resourceName": "cpu", "targetType": "Utilization", "averageUtilization": 50}],
  "customMetrics": [
    {"metricName": "qps", "labels": {"view": "a"}, "averageValue": "10"}]}
"#;

pub(super) const NONE: &str = "1 document, 0 errors, 0 warnings\n";

/// What is found in a document after a change.
pub(super) fn changed(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from}");
    let found = checked(&text.replacen(from, to, 1));
    let (findings, _) = found.trim_end().rsplit_once('\n').unwrap_or_default();
    findings.to_owned()
}

#[test]
fn good_ones_are_good() {
    for text in [PA, CHPA, SINGLECLOUD] {
        assert_eq!(checked(text), NONE, "{text}");
    }
}

#[test]
fn pod_autoscalers_are_refused_as_their_definition_says_it() {
    for (from, to, expected) in [
        (
            "maxReplicas: 5",
            "maxReplicas: 0",
            "f:6:3: spec.minReplicas: Invalid value: must not be greater than maxReplicas\n\
             f:7:3: spec.maxReplicas: Invalid value: 0: spec.maxReplicas in body should be greater than or equal to 1",
        ),
        (
            "minReplicas: 1",
            "minReplicas: 7",
            "f:6:3: spec.minReplicas: Invalid value: must not be greater than maxReplicas",
        ),
        (
            "  maxReplicas: 5\n",
            "  maxReplicas: 5\n  mode: Stopped\n",
            "f:1:1: more may be wrong: what must hold between fields is checked once the other errors are gone\n\
             f:8:3: spec.mode: Unsupported value: \"Stopped\": supported values: \"Active\", \"DryRun\", \"Paused\"",
        ),
        (
            "    name: web\n  metrics",
            "    name: web\n    nam: web\n  metrics",
            "f:12:5: spec.scaleTargetRef.nam: unknown field \"spec.scaleTargetRef.nam\"",
        ),
        (
            "metadata:\n  name: web",
            "metadata:\n  name: Web!",
            "f:4:3: metadata.name: Invalid value: \"Web!\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        ),
    ] {
        assert_eq!(changed(PA, from, to), expected);
    }
    let found = changed(PA, "metadata:\n  name: web", "metadata:\n  name: 5");
    let expected = "f:4:3: metadata.name: json: cannot unmarshal number into Go struct field";
    assert!(found.starts_with(expected), "{found}");
}

#[test]
fn what_only_the_controller_can_say_is_said_as_well() {
    for (from, to, expected) in [
        (
            "start: 0 8 * * *",
            "start: 8 o'clock",
            "f:20:5: spec.schedules[0].start: Invalid value: \"8 o'clock\": a cron expression has 5 fields, not 2",
        ),
        (
            "  maxReplicas: 5\n",
            "  maxReplicas: 5\n  combine: Expression\n  expression: rates + 1\n",
            "f:9:3: spec.expression: Invalid value: \"rates + 1\": line 1, column 1: unknown metric \"rates\"; known are rate",
        ),
    ] {
        assert_eq!(changed(PA, from, to), expected);
    }
    let found =
        report(&[("f", &PA.replace("duration: 10h", "timeZone: Nowhere\n    duration: 10h"))], &[]);
    assert_eq!(found.findings[0].rule, "invalid-spec");
}

#[test]
fn everything_is_said_at_once() {
    let found = changed(
        PA,
        "    start: 0 8 * * *\n    duration: 10h\n    maxReplicas: 9\n",
        "    start: 8 o'clock\n    timeZone: Nowhere\n    duration: long\n    maxReplicas: 9\n  \
         - name: night\n    start: 0 25 * * *\n    duration: 1h\n    minReplicas: 1\n  mode: Stopped\n  \
         combine: Expression\n  expression: rate + (rate > 2)\n",
    );
    let said: Vec<&str> = found.lines().collect();
    let starts = [
        "f:1:1: more may be wrong",
        "f:20:5: spec.schedules[0].start: Invalid value: \"8 o'clock\": a cron expression",
        "f:21:5: spec.schedules[0].timeZone: Invalid value: \"Nowhere\": unknown time zone",
        "f:22:5: spec.schedules[0].duration: Invalid value: \"long\": must be a length of time such as 90s or 1h30m",
        "f:25:5: spec.schedules[1].start: Invalid value: \"0 25 * * *\":",
        "f:28:3: spec.mode: Unsupported value: \"Stopped\"",
        "f:30:3: spec.expression: Invalid value: \"rate + (rate > 2)\": line 1, column 8: each side of + must be a number, not a bool",
    ];
    assert_eq!(said.len(), starts.len(), "{found}");
    for (line, start) in said.iter().zip(starts) {
        assert!(line.starts_with(start), "{line}");
    }
    let singlecloud = SINGLECLOUD
        .replace("\"name\": \"web\", ", "")
        .replace("\"deployment\"", "\"job\"")
        .replace("\"maxReplicas\": 5", "\"maxReplicas\": \"many\"")
        .replace("\"averageUtilization\": 50", "\"averageUtilization\": 0")
        .replace("\"qps\"", "\"a b\"");
    let found = checked(&singlecloud);
    for field in [
        "name",
        "scaleTargetKind",
        "maxReplicas",
        "resourceMetrics[0].averageUtilization",
        "customMetrics[0].metricName",
    ] {
        assert!(found.contains(&format!(": {field}: ")), "{field}: {found}");
    }
    assert!(found.ends_with("1 document, 5 errors, 0 warnings\n"), "{found}");
    let hpa = GOOD
        .replace("maxReplicas: 5", "maxReplicas: many")
        .replace("minReplicas: 1", "minReplicas: [1]");
    let found = checked(&hpa.replace("kind: Deployment", "kind: ''"));
    for field in [
        "f:6:3: spec.minReplicas: json",
        "f:7:3: spec.maxReplicas: json",
        "f:10:5: spec.scaleTargetRef.kind: Required",
    ] {
        assert!(found.contains(field), "{field}: {found}");
    }
    assert!(found.ends_with("1 document, 3 errors, 0 warnings\n"), "{found}");
}

#[test]
fn what_a_metric_may_do_without_a_value_is_said() {
    let expected = "must be Hold, Ignore, LastValue or {replicas: N} with an N from 0 on";
    for given in [
        "-3",
        "2.5",
        "Panic",
        "true",
        "[]",
        "[1]",
        "{}",
        "{replicas: -1}",
        "{replicas: 1, x: 2}",
        "{replica: 3}",
    ] {
        let metric = format!("name: rate\n    onMissing: {given}");
        let found = changed(PA, "name: rate", &metric);
        let lines = found.lines().filter(|line| line.starts_with("f:15:"));
        let mut lines = lines.filter(|line| line.contains(": spec.metrics[0].onMissing"));
        assert!(lines.any(|line| line.ends_with(expected)), "{given}: {found}");
        assert!(!found.contains("in body"), "{given}: {found}");
    }
    for given in ["Hold", "Ignore", "LastValue", "{replicas: 3}", "0", "3"] {
        let text = PA.replace("name: rate", &format!("name: rate\n    onMissing: {given}"));
        assert!(checked(&text).contains("1 document, 0 errors"), "{}", checked(&text));
    }
}

#[test]
fn misspelt_kinds_are_errors() {
    let found = changed(PA, "kind: PodAutoscaler", "kind: PodAutoscalr");
    assert_eq!(
        found,
        "f:2:1: kind: no matches for kind \"PodAutoscalr\" in version \"podscale.dev/v1alpha1\"; did you mean PodAutoscaler?"
    );
}

#[test]
fn chpas_are_refused_by_either() {
    for (from, to, expected) in [
        (
            "maxReplicas: 5",
            "maxReplicas: 5000",
            "f:6:3: spec.maxReplicas: Invalid value: 5000: spec.maxReplicas in body should be less than or equal to 1000",
        ),
        (
            "kind: Deployment",
            "kind: StatefulSet",
            "f:8:5: spec.scaleTargetRef.kind: configurable chpa doesn't support StatefulSet kind, use Deployment instead",
        ),
        (
            "targetAverageUtilization: 80",
            "targetAverageUtilization: 0",
            "f:12:27: spec.metrics[0].resource.targetAverageUtilization: Invalid value: 0: must be greater than 0",
        ),
        (
            "targetAverageUtilization: 80",
            "targetAverageUtilization: 80, target: {}, averageValue: 3",
            "f:12:69: warning: spec.metrics[0].resource.averageValue: nobody reads \"spec.metrics[0].resource.averageValue\" [unread-field]",
        ),
        (
            "- type: Resource",
            "- type: Resources",
            "f:11:5: spec.metrics[0].type: incorrect metric.Type: 'Resources'",
        ),
    ] {
        assert_eq!(changed(CHPA, from, to), expected);
    }
}

#[test]
fn singleclouds_are_refused_in_its_words_or_the_api_servers() {
    for (from, to, expected) in [
        (
            "\"deployment\"",
            "\"job\"",
            "f:1:17: scaleTargetKind: job isn't included in options [deployment statefulset]",
        ),
        (
            "\"maxReplicas\": 5",
            "\"maxReplicas\": -5",
            "f:2:21: maxReplicas: Invalid value: -5: must be greater than or equal to `minReplicas`\n\
             f:2:21: maxReplicas: Invalid value: -5: must be greater than or equal to 1",
        ),
        (
            "\"minReplicas\": 1,",
            "",
            "f:1:1: minReplicas: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas",
        ),
        (
            "\"averageUtilization\": 50",
            "\"averageUtilization\": -1",
            "f:4:58: resourceMetrics[0].averageUtilization: Invalid value: -1: must be greater than 0",
        ),
        (
            "\"minReplicas\": 1",
            "\"minReplicas\": 5",
            "f:2:21: warning: maxReplicas: minReplicas and maxReplicas are both 5: nothing can be scaled [min-equals-max]",
        ),
        (
            "\"minReplicas\": 1",
            "\"minReplicas\": 1, \"min\": 1",
            "f:2:21: warning: min: unknown field \"min\" [ignored-field]",
        ),
    ] {
        assert_eq!(changed(SINGLECLOUD, from, to), expected);
    }
    let collection = format!(
        r#"{{"type": "collection", "resourceType": "horizontalpodautoscaler", "data": [{}]}}"#,
        SINGLECLOUD.replace("\"web\"", "\"Web\"")
    );
    assert!(
        checked(&collection).contains(": data[0].name: subdomain must consist"),
        "{}",
        checked(&collection)
    );
}

#[test]
fn versions_that_are_not_known_are_no_matches() {
    for (text, from) in [(PA, "v1alpha1"), (CHPA, "v1beta1")] {
        let found = changed(text, from, "v9");
        assert!(found.contains("apiVersion: no matches for kind \""), "{found}");
    }
    // Others may have kinds of that name.
    let other = PA.replace("podscale.dev", "example.com");
    assert_eq!(checked(&other), "1 document (1 of other kinds), 0 errors, 0 warnings\n");
}

#[test]
fn any_two_kinds_of_one_target_are_noticed() {
    let singlecloud = SINGLECLOUD.replace("\"name\": \"web\"", "\"name\": \"front\"");
    let all = [("hpa", GOOD), ("pa", PA), ("chpa", CHPA), ("sc", singlecloud.as_str())];
    for (at, one) in all.iter().enumerate() {
        for other in &all[at + 1..] {
            let found = report(&[*one, *other], &[]);
            let twice = found.findings.iter().filter(|one| one.rule == "two-autoscalers").count();
            assert_eq!((found.errors, twice), (0, 2), "{} and {}", one.0, other.0);
        }
    }
    let annotated = PA.replacen(
        "  name: web\n",
        "  name: web\n  annotations: {podscale.dev/ignore-lints: two-autoscalers}\n",
        1,
    );
    let found = report(&[("hpa", GOOD), ("pa", &annotated)], &[]);
    assert_eq!(found.warnings, 1, "{}", found.render(OutputFormat::Text));
}
