use super::*;

fn checked(text: &str) -> String {
    let mut report = Report::default();
    report.check_file("f", text);
    report.render(OutputFormat::Text)
}

#[test]
fn every_problem_has_its_place() {
    let good = "rules:\n- seriesQuery: up\n  resources: {template: <<.Resource>>}\n  metricsQuery: <<.Series>>\n";
    let wrong = "rules:\n- seriesQuery: up\n  metricQuery: up\n";
    let doubtful = "externalRules: [{seriesQuery: a, metricsQuery: a}]\n";
    let map = |text: &str| {
        let block: String = text.lines().map(|line| format!("    {line}\n")).collect();
        format!("apiVersion: v1\nkind: ConfigMap\ndata:\n  config.yaml: |\n{block}")
    };
    let quoted = "kind: ConfigMap\ndata: {config.yaml: \"rules: [{seriesQuery: up}]\"}\n";
    let missing = "rules[0].metricsQuery: must be set";
    let unknown = "rules[0].metricQuery: there is no such field; did you mean metricsQuery?";
    for (text, expected) in [
        (good.to_owned(), "1 documents, 0 errors, 0 warnings\n".to_owned()),
        (map(good), "1 documents, 0 errors, 0 warnings\n".to_owned()),
        (wrong.to_owned(), format!("f:3: {unknown}\nf:2: {missing}\n1 documents, 2 errors, 0 warnings\n")),
        (map(wrong), format!("f:7: data.config.yaml: {unknown}\nf:6: data.config.yaml: {missing}\n1 documents, 2 errors, 0 warnings\n")),
        (format!("# two\n---\n{good}---\n{wrong}"), format!("f:10: {unknown}\nf:9: {missing}\n2 documents, 2 errors, 0 warnings\n")),
        (quoted.to_owned(), format!("f: data.config.yaml: {missing}\n1 documents, 1 errors, 0 warnings\n")),
        ("a: [".to_owned(), String::new()),
        ("kind: ConfigMap\n".to_owned(), "f:1: not a document that can be checked: a configuration of prometheus-adapter, a ConfigMap with one under config.yaml\n1 documents, 1 errors, 0 warnings\n".to_owned()),
        ("kind: ConfigMap\ndata: {config.yaml: [1]}\n".to_owned(), "f:1: data.config.yaml: must be text\n1 documents, 1 errors, 0 warnings\n".to_owned()),
        (String::new(), "0 documents, 0 errors, 0 warnings\n".to_owned()),
    ] {
        let found = checked(&text);
        if expected.is_empty() {
            assert!(found.contains("not YAML that can be read"), "{found}");
        } else {
            assert_eq!(found, expected, "{text}");
        }
    }
    assert!(
        checked(doubtful).starts_with("f:1: warning: externalRules[0].resources: nothing says")
    );
}

#[test]
fn programs_get_json() {
    let mut report = Report::default();
    report.check_file("f", "rules: [{}]");
    let json: serde_json::Value =
        serde_json::from_str(&report.render(OutputFormat::Json)).expect("JSON");
    assert_eq!(json["errors"], 2);
    let first = &json["findings"][0];
    assert_eq!(
        (&first["file"], &first["line"], &first["severity"]),
        (&"f".into(), &1.into(), &"error".into())
    );
    assert_eq!(first["field"], "rules[0].seriesQuery");
}
