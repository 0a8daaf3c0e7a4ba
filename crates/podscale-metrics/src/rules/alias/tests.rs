use super::*;
use crate::rules::query::ObjectsQuery;
use crate::rules::{KnownResources, Resources};
use podscale_api::Selector;

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().copied().collect()
}

#[test]
fn labels_have_the_hashes_that_were_verified() {
    for (pairs, hash) in
        [(&[("view", "default"), ("module", "server")][..], "820193bd2d60"), (&[], "74234e98afe7")]
    {
        assert_eq!(label_hash(&labels(pairs)), hash);
    }
    // Go's JSON escapes what HTML could misread.
    assert_eq!(
        go_json(&labels(&[("a", "<&>\u{2028}\"")])),
        r#"{"a":"\u003c\u0026\u003e\u2028\""}"#
    );
}

const QPS: &str = "zdns_vanguard_qps_by_view";

fn alias(labels: &Labels) -> Alias<'_> {
    Alias { metric: QPS, labels, namespace: "default", autoscaler: "hpa-vg1-vanguard" }
}

#[test]
fn the_worked_example_comes_out() {
    let labels = labels(&[("view", "default"), ("module", "server")]);
    let alias = alias(&labels);
    let name = "zdns_vanguard_qps_by_view_820193bd2d60_default_hpa-vg1-vanguard";
    assert_eq!(alias.name(), name);
    assert_eq!(Alias::metric_of(name, &labels, "default", "hpa-vg1-vanguard"), Some(QPS));
    assert_eq!(Alias::metric_of(name, &labels, "default", "other"), None);
    let rule = alias.rule().expect("a rule");
    let text = |path: &[&str]| {
        path.iter().try_fold(&rule, |node, name| node.get(name)).and_then(Node::text).expect("text")
    };
    for (path, expected) in [
        (
            &["seriesQuery"][..],
            r#"{__name__=~"zdns_vanguard_qps_by_view",kubernetes_pod_name!="",kubernetes_namespace="default"}"#,
        ),
        (&["resources", "overrides", "kubernetes_pod_name", "resource"], "pod"),
        (&["name", "matches"], "^zdns_vanguard_qps_by_view$"),
        (&["name", "as"], name),
        (
            &["metricsQuery"],
            r#"sum(zdns_vanguard_qps_by_view{module="server",view="default"}) by (<<.GroupBy>>)"#,
        ),
    ] {
        assert_eq!(text(path), expected, "{path:?}");
    }
    let Tree::Map(entries) = &rule.tree else { panic!("a map") };
    let order: Vec<&str> = entries.iter().map(|(key, _)| key.name.as_str()).collect();
    assert_eq!(order, ["seriesQuery", "seriesFilters", "resources", "name", "metricsQuery"]);
}

#[test]
fn the_rule_can_be_served() {
    let labels = labels(&[("q", "a\"b\\")]);
    let alias = alias(&labels);
    let rules = rule_set(&[alias]).expect("rules");
    let rule = &rules.custom()[0];
    assert!(rule.accepts(QPS) && !rule.accepts("other"));
    assert_eq!(rule.metric_name(QPS), Some(alias.name()));
    let known = KnownResources::everyday();
    let pods = known.find("", "pods").expect("pods");
    let selector = Selector::everything();
    let asked = ObjectsQuery {
        resource: &pods,
        namespace: Some("default"),
        names: &["x"],
        series: QPS,
        selector: &selector,
    };
    let query = rule.objects_query(&asked, &known).expect("a query");
    assert_eq!(
        query.text,
        r#"sum(zdns_vanguard_qps_by_view{q="a\"b\\"}) by (kubernetes_pod_name)"#
    );
    assert_eq!(query.label, "kubernetes_pod_name");
}

#[test]
fn a_configuration_keeps_what_is_not_understood() {
    let before = "extra: {a: [1, 'b']}\nresourceRules:\n  window: 5m\nrules:\n- seriesQuery: up\n  odd: true\n";
    let (one, two) = (labels(&[("a", "1")]), labels(&[]));
    let (one, two) = (alias(&one), alias(&two));
    let with_both = change(before, &[], &[one, two]).expect("added");
    let rules = Node::read(&with_both).expect("YAML");
    let Some(Tree::List(list)) = rules.get("rules").map(|node| &node.tree) else {
        panic!("a list")
    };
    assert_eq!(list.len(), 3, "{with_both}");
    assert!(rules.get("extra").and_then(|extra| extra.get("a")).is_some(), "{with_both}");
    let without = change(&with_both, &[two, one], &[]).expect("removed");
    let lines_aside =
        |text: &str| serde_json::to_value(Node::read(text).expect("YAML")).expect("JSON");
    assert_eq!(lines_aside(&without), lines_aside(before));
    let swapped = change(&with_both, &[one], &[one]).expect("swapped");
    assert_eq!(lines_aside(&swapped)["rules"].as_array().map(Vec::len), Some(3));
    for empty in ["", "rules:", "{}", "externalRules: []"] {
        assert!(change(empty, &[], &[one]).expect(empty).contains(&one.name()), "{empty}");
    }
    assert_eq!(change("any: [text", &[], &[]).as_deref(), Ok("any: [text"));
}

#[test]
fn what_is_wrong_is_said() {
    let labels = labels(&[("a.b", "1")]);
    let wrong = alias(&labels);
    let none = Labels::default();
    let fine = alias(&none);
    let name = fine.name();
    let with = change("", &[], &[fine]).expect("added");
    let odd = Alias { metric: "a b", ..fine };
    for (result, expected) in [
        (
            change(&with, &[], &[fine]),
            format!(
                "duplicate hpa custom metric alias name {name} in prometheus-adapter configmap"
            ),
        ),
        (
            change("rules: []", &[fine], &[]),
            format!("no found hpa custom metric alias name {name} in prometheus-adapter configmap"),
        ),
        (
            change("", &[], &[wrong]),
            "\"a.b\" cannot be the name of a label in Prometheus".to_owned(),
        ),
        (
            change("", &[], &[odd]),
            "\"a b\" cannot be the name of a series in Prometheus".to_owned(),
        ),
        (
            change("rules: 7", &[], &[fine]),
            "the configuration cannot be changed: its rules are not a list".to_owned(),
        ),
        (
            change("- a", &[], &[fine]),
            "the configuration cannot be changed: it is not a map".to_owned(),
        ),
    ] {
        assert_eq!(result.expect_err(&expected).to_string(), expected);
    }
}
