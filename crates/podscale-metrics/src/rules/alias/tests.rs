use super::*;
use crate::rules::query::ObjectsQuery;
use crate::rules::{KnownResources, Resources};
use podscale_api::{Labels, Selector};

const QPS: &str = "zdns_vanguard_qps_by_view";

fn alias(labels: &[(&str, &str)]) -> Alias {
    Alias {
        metric: QPS.to_owned(),
        labels: labels.iter().copied().collect(),
        namespace: "default".to_owned(),
        autoscaler: "hpa-vg1-vanguard".to_owned(),
    }
}

#[test]
fn the_worked_example_comes_out() {
    let alias = alias(&[("view", "default"), ("module", "server")]);
    let name = "zdns_vanguard_qps_by_view_820193bd2d60_default_hpa-vg1-vanguard";
    assert_eq!(alias.name(), name);
    let rule = rule(&alias).expect("a rule");
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
fn the_rule_can_be_served_for_its_own_namespace() {
    let alias = alias(&[("q", "a\"b\\")]);
    let rules = rule_set([&alias]).expect("rules");
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
        r#"sum(zdns_vanguard_qps_by_view{q="a\"b\\",kubernetes_namespace="default"}) by (kubernetes_pod_name)"#
    );
    assert_eq!(query.label, "kubernetes_pod_name");
    assert!(rule_set([]).expect("no rules").custom().is_empty());
}

fn changed(text: &str, old: &[Alias], new: &[Alias]) -> String {
    change(text, old, new).expect("a change").text.expect("a difference")
}

#[test]
fn a_configuration_keeps_what_is_not_understood() {
    let before = "extra: {a: [1, 'b']}\nresourceRules:\n  window: 5m\nrules:\n- seriesQuery: up\n  odd: true\n";
    let (one, two) = (alias(&[("a", "1")]), alias(&[]));
    let both = [one.clone(), two.clone()];
    let with_both = changed(before, &[], &both);
    let rules = Node::read(&with_both).expect("YAML");
    let Some(Tree::List(list)) = rules.get("rules").map(|node| &node.tree) else {
        panic!("a list")
    };
    assert_eq!(list.len(), 3, "{with_both}");
    assert!(rules.get("extra").and_then(|extra| extra.get("a")).is_some(), "{with_both}");
    let lines_aside =
        |text: &str| serde_json::to_value(Node::read(text).expect("YAML")).expect("JSON");
    let without = changed(&with_both, &both, &[]);
    assert_eq!(lines_aside(&without), lines_aside(before));
    for empty in ["", "rules:", "{}", "externalRules: []"] {
        assert!(changed(empty, &[], &both[..1]).contains(&one.name()), "{empty}");
    }
}

#[test]
fn what_is_as_it_should_be_stays() {
    let (one, two) = (alias(&[("a", "1")]), alias(&[]));
    let with_one = changed("", &[], std::slice::from_ref(&one));
    let none = Changed { text: None, missing: Vec::new() };
    assert_eq!(change("any: [text", &[], &[]), Ok(none.clone()), "nothing to do");
    assert_eq!(
        change(&with_one, &[], std::slice::from_ref(&one)),
        Ok(none.clone()),
        "the rest of a change"
    );
    assert_eq!(
        change(&with_one, std::slice::from_ref(&one), std::slice::from_ref(&one)),
        Ok(none),
        "nothing differs"
    );
    let gone = change(&with_one, std::slice::from_ref(&two), &[]).expect("no reason to stop");
    assert_eq!((gone.text, gone.missing), (None, vec![AliasError::Missing(two.name())]));
    let healed = changed("rules: []", std::slice::from_ref(&one), std::slice::from_ref(&one));
    assert!(healed.contains(&one.name()), "{healed}");
}

#[test]
fn what_is_wrong_is_said() {
    let (wrong, fine) = (alias(&[("a.b", "1")]), alias(&[]));
    let name = fine.name();
    let other = changed("", &[], std::slice::from_ref(&fine)).replace("sum(", "max(");
    let odd = Alias { metric: "a b".to_owned(), labels: Labels::default(), ..fine.clone() };
    let duplicate =
        format!("duplicate hpa custom metric alias name {name} in prometheus-adapter configmap");
    for (text, new, expected) in [
        (other.as_str(), vec![fine.clone()], duplicate.as_str()),
        ("", vec![fine.clone(), fine.clone()], duplicate.as_str()),
        ("", vec![wrong], "\"a.b\" cannot be the name of a label in Prometheus"),
        ("", vec![odd], "\"a b\" cannot be the name of a series in Prometheus"),
        (
            "rules: 7",
            vec![fine.clone()],
            "the configuration cannot be changed: its rules are not a list",
        ),
        ("- a", vec![fine], "the configuration cannot be changed: it is not a map"),
    ] {
        assert_eq!(change(text, &[], &new).expect_err(expected).to_string(), expected);
    }
    let missing = AliasError::Missing("x".to_owned()).to_string();
    assert_eq!(missing, "no found hpa custom metric alias name x in prometheus-adapter configmap");
}
