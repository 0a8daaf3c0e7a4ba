mod admission;
mod kinds;
mod live;
mod mutations;

use super::*;
use podscale_api::lint::IGNORE_ANNOTATION;

fn report(files: &[(&str, &str)], ignored: &[&str]) -> Report {
    let mut check = Check::default();
    for (name, text) in files {
        check.read(&Manifest { name: (*name).to_owned(), text: (*text).to_owned() });
    }
    let ignored: Vec<String> = ignored.iter().map(|name| (*name).to_owned()).collect();
    check.finish(&ignored, None)
}

fn checked(text: &str) -> String {
    report(&[("f", text)], &[]).render(OutputFormat::Text)
}

#[test]
fn rules_for_metrics_are_checked() {
    let good = "rules:\n- seriesQuery: up\n  resources: {template: <<.Resource>>}\n  metricsQuery: <<.Series>>\n";
    let wrong = "rules:\n- seriesQuery: up\n  metricQuery: up\n";
    let map = |text: &str| {
        let block: String = text.lines().map(|line| format!("    {line}\n")).collect();
        format!("apiVersion: v1\nkind: ConfigMap\ndata:\n  config.yaml: |\n{block}")
    };
    let quoted = "kind: ConfigMap\ndata: {config.yaml: \"rules: [{seriesQuery: up}]\"}\n";
    let missing = "rules[0].metricsQuery: must be set";
    let unknown = "rules[0].metricQuery: there is no such field; did you mean metricsQuery?";
    for (text, expected) in [
        (good.to_owned(), "1 document, 0 errors, 0 warnings\n".to_owned()),
        (map(good), "1 document, 0 errors, 0 warnings\n".to_owned()),
        (
            wrong.to_owned(),
            format!("f:2: {missing}\nf:3: {unknown}\n1 document, 2 errors, 0 warnings\n"),
        ),
        (
            map(wrong),
            format!(
                "f:6: data.config.yaml: {missing}\nf:7: data.config.yaml: {unknown}\n1 document, 2 errors, 0 warnings\n"
            ),
        ),
        (
            format!("# two\n---\n{good}---\n{wrong}"),
            format!("f:9: {missing}\nf:10: {unknown}\n2 documents, 2 errors, 0 warnings\n"),
        ),
        (
            quoted.to_owned(),
            format!("f: data.config.yaml: {missing}\n1 document, 1 error, 0 warnings\n"),
        ),
        (
            good.replace("up", "up{").replace("<<.Series>>", "rate(<<.Series>>[5q])"),
            "f:2: rules[0].seriesQuery: has no '}' for \"{\"\nf:4: rules[0].metricsQuery: [5q] is not a range such as [5m]\n1 document, 2 errors, 0 warnings\n".to_owned(),
        ),
        (
            map(wrong).replace("config.yaml", "rules.yaml"),
            format!(
                "f:6: data.rules.yaml: {missing}\nf:7: data.rules.yaml: {unknown}\n1 document, 2 errors, 0 warnings\n"
            ),
        ),
        (
            "kind: ConfigMap\ndata: {config.yaml: [1]}\n".to_owned(),
            "f:1: data.config.yaml: must be text\n1 document, 1 error, 0 warnings\n".to_owned(),
        ),
    ] {
        assert_eq!(checked(&text), expected, "{text}");
    }
    let doubtful = "externalRules: [{seriesQuery: a, metricsQuery: a}]\n";
    assert!(
        checked(doubtful).starts_with("f:1: warning: externalRules[0].resources: nothing says")
    );
}

#[test]
fn other_documents_are_passed_over() {
    for (text, expected) in [
        ("", "0 documents, 0 errors, 0 warnings\n"),
        ("# nothing\n---\n", "0 documents, 0 errors, 0 warnings\n"),
        ("kind: ConfigMap\n", "1 document (1 of other kinds), 0 errors, 0 warnings\n"),
        // Other programs have such a key, and others have rules.
        (
            "kind: ConfigMap\ndata: {config.yaml: \"server: {http_port: 3100}\"}\n",
            "1 document (1 of other kinds), 0 errors, 0 warnings\n",
        ),
        (
            "kind: ConfigMap\ndata: {falco.yaml: \"rules: [{name: a}]\"}\n",
            "1 document (1 of other kinds), 0 errors, 0 warnings\n",
        ),
        // Roles have rules as well.
        ("kind: Role\nrules: []\n", "1 document (1 of other kinds), 0 errors, 0 warnings\n"),
        (
            "\na: 1\n",
            "f:2:1: not a document that can be checked: a HorizontalPodAutoscaler, a PodAutoscaler, a CHPA, a ScaledObject, an autoscaler of singlecloud's, a configuration of prometheus-adapter, a ConfigMap with one under config.yaml\n1 document, 1 error, 0 warnings\n",
        ),
        (
            "apiVersion: autoscaling/v3\nkind: HorizontalPodAutoscaler\n",
            "f:1:1: apiVersion: no matches for kind \"HorizontalPodAutoscaler\" in version \"autoscaling/v3\"\n1 document, 1 error, 0 warnings\n",
        ),
    ] {
        assert_eq!(checked(text), expected);
    }
    assert!(checked("a: [").contains(": not YAML that can be read: "), "{}", checked("a: ["));
}

const GOOD: &str = "\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: web
spec:
  minReplicas: 1
  maxReplicas: 5
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: web
";

#[test]
fn errors_are_those_of_an_api_server_at_their_places() {
    let none = "1 document, 0 errors, 0 warnings\n";
    assert_eq!(checked(GOOD), none);
    let one = |finding: &str| format!("{finding}\n1 document, 1 error, 0 warnings\n");
    for (from, to, expected) in [
        (
            "maxReplicas: 5",
            "maxReplicas: many",
            "f:7:3: spec.maxReplicas: json: cannot unmarshal string into Go struct field HorizontalPodAutoscalerSpec.spec.maxReplicas of type int32",
        ),
        (
            "minReplicas: 1",
            "minReplicas: 9",
            "f:7:3: spec.maxReplicas: Invalid value: 5: must be greater than or equal to `minReplicas`",
        ),
        (
            "    name: web",
            "    nam: web\n    name: web",
            "f:11:5: spec.scaleTargetRef.nam: unknown field \"spec.scaleTargetRef.nam\"",
        ),
        ("    name: web", "", "f:8:3: spec.scaleTargetRef.name: Required value"),
        (
            "  name: web\nspec",
            "  name: Web!\nspec",
            "f:4:3: metadata.name: Invalid value: \"Web!\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        ),
    ] {
        assert_eq!(checked(&GOOD.replace(from, to)), one(expected));
    }
    let json = r#"{"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"},
  "spec": {"maxReplicas": -1, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}}"#;
    assert!(
        checked(json).starts_with("f:2:12: spec.maxReplicas: Invalid value: -1: "),
        "{}",
        checked(json)
    );
}

#[test]
fn older_versions_have_their_fields_elsewhere() {
    let beta = GOOD.replace("autoscaling/v2", "autoscaling/v2beta1")
        + "  metrics:\n  - type: Pods\n    pods: {metricName: qps, targetAverageValue: '0'}\n";
    let found = checked(&beta);
    assert!(found.starts_with("f:14:29: spec.metrics[0].pods.target.averageValue: Invalid value: \"0\": must be positive\nf:1:1: warning: apiVersion: autoscaling/v2beta1 is gone since Kubernetes 1.25 [removed-version]\n"), "{found}");
    let v1 =
        GOOD.replace("autoscaling/v2", "autoscaling/v1") + "  targetCPUUtilizationPercentage: 0\n";
    let found = checked(&v1);
    assert!(found.starts_with("f:12:3: spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0\n"), "{found}");
}

#[test]
fn lints_look_at_everything_that_is_given() {
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 3\n  template:\n    spec:\n      containers: [{name: app, image: app}]\n";
    let files = [("hpa.yaml", GOOD), ("web.yaml", deployment)];
    let found = report(&files, &[]).render(OutputFormat::Text);
    assert_eq!(
        found,
        "hpa.yaml:5:1: warning: spec.metrics[0].resource: container \"app\" of Deployment web requests no cpu [no-requests]\n\
         hpa.yaml:8:3: warning: spec.scaleTargetRef: the manifest of Deployment web sets spec.replicas to 3; leave it out [replicas-in-manifest]\n\
         2 documents (1 of other kinds), 0 errors, 2 warnings\n"
    );
    let found = report(&files, &["no-requests", "replicas-in-manifest"]);
    assert_eq!(found.warnings, 0);
    let annotation =
        format!("  name: web\n  annotations: {{{IGNORE_ANNOTATION}: no-requests}}\nspec");
    let silent = GOOD.replace("  name: web\nspec", &annotation);
    let found = report(&[("hpa.yaml", &silent), ("web.yaml", deployment)], &[]);
    assert_eq!(found.warnings, 1);
}

#[test]
fn objects_in_lists_are_checked() {
    let indented: String = GOOD.lines().map(|line| format!("    {line}\n")).collect();
    let list = format!("apiVersion: v1\nkind: List\nitems:\n-{}", &indented[1..])
        .replace("maxReplicas: 5", "maxReplicas: 0");
    let found = checked(&list);
    assert!(found.starts_with("f:10:7: items[0].spec.maxReplicas: Invalid value: 0: "), "{found}");
}

#[test]
fn programs_get_json() {
    let text = GOOD.replace("maxReplicas: 5", "maxReplicas: 1");
    let json: Value =
        serde_json::from_str(&report(&[("f", &text)], &[]).render(OutputFormat::Json))
            .expect("JSON");
    assert_eq!(
        (&json["errors"], &json["warnings"], &json["documents"]),
        (&0.into(), &1.into(), &1.into())
    );
    assert_eq!(
        json["findings"][0],
        serde_json::json!({"file": "f", "line": 7, "column": 3, "severity": "warning",
            "rule": "min-equals-max", "field": "spec.maxReplicas",
            "problem": "minReplicas and maxReplicas are both 1: nothing can be scaled"})
    );
}

#[test]
fn code_review_tools_get_sarif() {
    let text = GOOD.replace("maxReplicas: 5", "maxReplicas: 1").replace("    name: web", "");
    let log: Value =
        serde_json::from_str(&report(&[("a/f.yaml", &text)], &[]).render(OutputFormat::Sarif))
            .expect("JSON");
    assert_eq!(log["version"], "2.1.0");
    for (name, uri) in [
        ("a b/ü#1.yaml", "a%20b/%C3%BC%231.yaml"),
        ("/tmp/50%.yaml", "file:///tmp/50%25.yaml"),
        ("../x-1_2.yaml", "../x-1_2.yaml"),
    ] {
        let log = report(&[(name, &text)], &[]).render(OutputFormat::Sarif);
        let log: Value = serde_json::from_str(&log).expect("JSON");
        let place = &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], uri);
    }
    // A link would have to lead somewhere from any machine.
    assert!(log["runs"][0]["tool"]["driver"]["rules"][0].get("helpUri").is_none());
    let run = &log["runs"][0];
    let rules: Vec<&str> = run["tool"]["driver"]["rules"]
        .as_array()
        .expect("rules")
        .iter()
        .filter_map(|rule| rule["id"].as_str())
        .collect();
    let results = run["results"].as_array().expect("results");
    assert_eq!(results.len(), 2);
    for result in results {
        assert!(rules.contains(&result["ruleId"].as_str().expect("a rule")), "{result}");
    }
    assert_eq!(results[0]["level"], "error");
    assert_eq!(
        results[1]["locations"][0]["physicalLocation"],
        serde_json::json!({"artifactLocation": {"uri": "a/f.yaml"},
            "region": {"startLine": 7, "startColumn": 3}})
    );
}
