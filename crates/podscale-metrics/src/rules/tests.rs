use super::catalog::{Asked, SeriesByQuery};
use super::usage::Scope;
use super::*;
use crate::prometheus::answer::read_query;
use crate::prometheus::{SeriesShape, Vector};
use podscale_api::Selector;
use serde::Deserialize;
use std::sync::Arc;

/// One rule, one request, and what comes out.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Case {
    what: String,
    external: bool,
    usage: String,
    config: String,
    series: String,
    labels: Vec<String>,
    resource: String,
    group: String,
    namespace: String,
    names: Vec<String>,
    selector: String,
    departs: String,
    name: Option<String>,
    resources: Option<Vec<String>>,
    query: Option<String>,
    refused: Option<String>,
    unanswered: Option<String>,
}

fn known() -> KnownResources {
    let brand = Resource::new(["cheese.io", "v1", "brands", "brand", "Brand"], false);
    let mut all = vec![brand];
    let everyday = KnownResources::everyday();
    for name in [
        "pods",
        "services",
        "namespaces",
        "nodes",
        "deployments",
        "statefulsets",
        "replicasets",
        "daemonsets",
        "jobs",
        "ingresses",
    ] {
        all.extend(everyday.find("", name).map(|found| (*found).clone()));
    }
    KnownResources::new(all)
}

#[test]
fn rules_give_what_prometheus_adapter_gives() {
    let cases: Vec<Case> =
        serde_saphyr::from_str(include_str!("tests/table.yaml")).expect("a table");
    assert!(cases.len() >= 100, "only {} cases", cases.len());
    let wrong: Vec<String> = cases.iter().filter_map(|case| check(case).err()).collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

fn check(case: &Case) -> Result<(), String> {
    let what = &case.what;
    let rules = match (RuleSet::parse(&case.config), &case.refused) {
        (Ok(rules), None) => rules,
        (Err(errors), Some(expected)) => {
            let texts: Vec<String> = errors.iter().map(RuleError::to_string).collect();
            let found = texts.iter().any(|text| text.contains(expected.as_str()));
            return if found { Ok(()) } else { Err(format!("{what}: {texts:?}")) };
        }
        (Ok(_), Some(_)) => return Err(format!("{what}: is accepted")),
        (Err(errors), None) => return Err(format!("{what}: {errors:?}")),
    };
    let outcome = if case.usage.is_empty() { ask(case, &rules) } else { ask_usage(case, &rules) };
    let expected = Outcome {
        name: case.name.clone(),
        resources: case.resources.clone().filter(|list| !list.is_empty()),
        query: case.query.clone(),
    };
    match (outcome, &case.unanswered) {
        (Ok(found), None) if found == expected => Ok(()),
        (Err(text), Some(expected)) if text.contains(expected.as_str()) => Ok(()),
        (outcome, _) => Err(format!("{what}: {outcome:?}, not {expected:?} {}", case.departs)),
    }
}

#[derive(Debug, PartialEq)]
struct Outcome {
    name: Option<String>,
    resources: Option<Vec<String>>,
    query: Option<String>,
}

fn ask(case: &Case, rules: &RuleSet) -> Result<Outcome, String> {
    let known = known();
    let mut labels: Vec<Arc<str>> = case.labels.iter().map(|label| label.as_str().into()).collect();
    labels.sort();
    let shape = SeriesShape { name: case.series.as_str().into(), labels: labels.into() };
    let of = if case.external { rules.external() } else { rules.custom() };
    let series: SeriesByQuery =
        of.iter().map(|rule| (rule.series_query.clone(), [shape.clone()].into())).collect();
    let catalog = Catalog::new(rules, &series, &known);
    let selector = Selector::parse(&case.selector).map_err(|error| error.to_string())?;
    let rule = of.iter().find(|rule| rule.accepts(&case.series));
    let name = rule.and_then(|rule| rule.metric_name(&case.series));
    if case.external {
        let found: Vec<&str> = catalog.external_metrics().collect();
        assert_eq!(found, name.as_deref().into_iter().collect::<Vec<_>>(), "{}", case.what);
        let metric = name.as_deref().unwrap_or_default();
        let query =
            catalog.external_query(rules, metric, &case.namespace, &selector, &known).transpose();
        let query = query.map_err(|error| error.to_string())?.map(|query| query.text);
        return Ok(Outcome { name, resources: None, query });
    }
    let resource = known.find(&case.group, &case.resource).expect("a resource");
    let names: Vec<&str> = case.names.iter().map(String::as_str).collect();
    let namespace = Some(case.namespace.as_str()).filter(|namespace| !namespace.is_empty());
    let asked = Asked { resource: &resource, namespace, names: &names, selector: &selector };
    let metric = name.as_deref().unwrap_or_default();
    let mut resources: Vec<String> = catalog
        .custom_metrics()
        .map(|metric| {
            let dot = if metric.group.is_empty() { "" } else { "." };
            format!("{}{dot}{}", metric.resource, metric.group)
        })
        .collect();
    resources.sort();
    let query = match catalog.objects_query(rules, metric, asked, &known) {
        Some(query) => Some(query),
        // What no series has is not in the catalog; the rule can be asked all the same.
        None => rule.map(|rule| {
            let Asked { resource, namespace, names, selector } = asked;
            let series = &case.series;
            let asked = query::ObjectsQuery { resource, namespace, names, series, selector };
            rule.objects_query(&asked, &known)
        }),
    };
    let query = query.transpose().map_err(|error| error.to_string())?.map(|query| query.text);
    let resources = Some(resources).filter(|list| !list.is_empty());
    Ok(Outcome { name, resources, query })
}

fn ask_usage(case: &Case, rules: &RuleSet) -> Result<Outcome, String> {
    let names: Vec<&str> = case.names.iter().map(String::as_str).collect();
    let cpu = &rules.resource().expect("resourceRules").cpu;
    let query = match case.usage.as_str() {
        "node" => cpu.node_query(&names).expect("a query for nodes"),
        _ => cpu.container_query(Scope::Pods(&case.namespace, &names)),
    };
    let query = query.map_err(|error| error.to_string())?;
    Ok(Outcome { name: None, resources: None, query: Some(query.text) })
}

fn vector(samples: &[(&str, &str)]) -> Vector {
    let sample = |(labels, value): &(&str, &str)| {
        let labels: serde_json::Map<String, serde_json::Value> = labels
            .split(',')
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect();
        serde_json::json!({"metric": labels, "value": [1, value]})
    };
    let result: Vec<_> = samples.iter().map(sample).collect();
    let data = serde_json::json!({"resultType": "vector", "result": result});
    let body = serde_json::json!({"status": "success", "data": data}).to_string();
    read_query(200, body.as_bytes(), 100).expect("an answer").vector
}

#[test]
fn vectors_become_values_of_objects() {
    let names = ["a", "b", "c"];
    for (samples, expected) in [
        (&[("pod=a", "1.5"), ("pod=b", "2")][..], "a=1500m b=2"),
        (&[("pod=b", "2"), ("pod=a", "1")], "a=1 b=2"),
        (&[("pod=a", "NaN")], "a=0"),
        (&[("pod=a", "0.0019"), ("pod=b", "-0.0019")], "a=1m b=-1m"),
        (&[("pod=a", "+Inf"), ("pod=b", "-Inf")], "a=9223372036854775807m b=-9223372036854775808m"),
        (&[("pod=x", "1"), ("job=a", "1")], ""),
        (&[("pod=a,code=1", "1"), ("pod=a,code=2", "2")], "a=2"),
        (&[], ""),
    ] {
        let values = values::of_objects(&vector(samples), "pod", &names);
        let words: Vec<String> =
            values.iter().map(|value| format!("{}={}", value.name, value.value)).collect();
        assert_eq!(words.join(" "), expected);
    }
}

#[test]
fn vectors_become_values_of_series() {
    let values = values::of_series(&vector(&[("queue=a,__name__=depth", "7"), ("", "NaN")]));
    let words: Vec<String> = values
        .iter()
        .map(|value| format!("{}{}", value.labels.get("queue").unwrap_or("-"), value.value))
        .collect();
    assert_eq!(words, ["a7", "-0"]);
    assert_eq!(values[0].labels.get("__name__"), Some("depth"));
}

#[test]
fn the_whole_cluster_is_asked_at_once() {
    let rules = ResourceRules::everyday().expect("the built-in rules");
    let query = rules.cpu.container_query(Scope::Cluster).expect("a query");
    assert!(rules.cpu.serves_cluster());
    let expected = r#"sum by (namespace,pod,container) (irate(container_cpu_usage_seconds_total{namespace!="",pod!="",container!="",container!="POD"}[4m]))"#;
    assert_eq!(query.text, expected);
    let samples = [
        ("namespace=n,pod=a,container=c", "0.25"),
        ("namespace=n,pod=a,container=d", "-1"),
        ("namespace=n,pod=b", "NaN"),
        ("pod=lost,container=c", "1"),
    ];
    let used: Vec<String> = query
        .read(&vector(&samples))
        .iter()
        .map(|used| format!("{}/{}/{}={}", used.namespace, used.name, used.container, used.milli))
        .collect();
    assert_eq!(used, ["n/a/c=250", "n/a/d=0", "n/b/=0"]);
    let query = rules.memory.container_query(Scope::Namespace("n")).expect("a query");
    assert!(query.text.contains(r#"{namespace="n",pod!="","#) && query.namespace_label.is_empty());
    let nodes = rules.memory.node_query(&[]).expect("nodes").expect("a query");
    assert_eq!(nodes.text, r#"sum by (node) (node_memory_working_set_bytes{node!=""})"#);
}

#[test]
fn later_rules_and_names_count() {
    let text = r#"
rules:
- {seriesQuery: a, name: {as: m}, resources: {template: <<.Resource>>}, metricsQuery: "first(<<.Series>>)"}
- {seriesQuery: b, name: {as: m}, resources: {template: <<.Resource>>}, metricsQuery: "second(<<.Series>>)"}
"#;
    let rules = RuleSet::parse(text).expect("rules");
    let shape = |name: &str| SeriesShape {
        name: name.into(),
        labels: ["namespace".into(), "pod".into()].into(),
    };
    let series = SeriesByQuery::from([
        ("a".into(), [shape("a1"), shape("a2")].into()),
        ("b".into(), [shape("b2"), shape("b1")].into()),
    ]);
    let known = known();
    let catalog = Catalog::new(&rules, &series, &known);
    let pods = known.find("", "pod").expect("pods");
    let selector = Selector::everything();
    let asked = Asked { resource: &pods, namespace: Some("n"), names: &["x"], selector: &selector };
    let query =
        catalog.objects_query(&rules, "m", asked, &known).expect("a metric").expect("a query");
    assert_eq!(
        (query.text.as_str(), query.label.as_str(), catalog.len()),
        ("second(b2)", "pod", 2)
    );
    assert!(catalog.objects_query(&rules, "other", asked, &known).is_none());
    assert_eq!(rules.series_queries(), ["a", "b"]);
}

#[test]
fn everything_wrong_is_reported_at_once() {
    let text = r#"
rules:
- seriesQuery: ""
  metricsQuery: "<<.Serie>>"
  resources: {overrides: {"a-b": {resource: pod}, pod: {}, ns: {resouce: x, resource: namespace}}, template: "<<.Group>>"}
- seriesQuery: [up]
  name: {matches: "(a)", as: $1_b}
  seriesFilters: {is: a}
  metricsQuery: 7
- null
externalRules: none
resourceRules:
  cpu: {containerQuery: up}
  window: soon
extra: true
"#;
    let errors = RuleSet::parse(text).expect_err("errors");
    let texts: Vec<String> = errors.iter().map(RuleError::to_string).collect();
    let expected = [
        "line 15: extra: there is no such field; there are rules, externalRules, resourceRules",
        "line 3: rules[0].seriesQuery: must be set",
        "line 5: rules[0].resources.template: must contain <<.Resource>>",
        "line 5: rules[0].resources.overrides.a-b: \"a-b\" is not the name of a label in Prometheus",
        "line 5: rules[0].resources.overrides.pod.resource: must be set",
        "line 5: rules[0].resources.overrides.ns.resouce: there is no such field; did you mean resource?",
        "line 4: rules[0].metricsQuery: there is no field .Serie; there are .Series, .LabelMatchers, .LabelValuesByName, .GroupBy, .GroupBySlice (at \".Serie>>\")",
        "line 6: rules[1].seriesQuery: must be text, not a list",
        "line 8: rules[1].seriesFilters: must be a list, not a map",
        "line 7: rules[1].name.as: $1_b is not a group of matches; did you mean ${1}_b?",
        "line 10: rules[2]: is empty",
        "line 11: externalRules: must be a list, not text",
        "line 13: resourceRules.cpu.resources: must say which labels hold namespace, pod and node",
        "line 13: resourceRules.memory.containerQuery: must be set",
        "line 14: resourceRules.window: \"soon\" is not a duration such as 5m or 1h30m",
    ];
    for expected in expected {
        assert!(
            texts.iter().any(|text| text == expected),
            "{expected}\nnot in\n{}",
            texts.join("\n")
        );
    }
    for (text, problem) in [
        ("rules: [", "not YAML that can be read"),
        ("- a", "must be a map, not a list"),
        ("&a [*a]", "not YAML that can be read"),
    ] {
        let errors = RuleSet::parse(text).expect_err(text);
        assert!(errors.iter().any(|error| error.problem.contains(problem)), "{text}: {errors:?}");
    }
    assert_eq!(RuleSet::parse("").expect("nothing").warnings().len(), 1);
    let doubtful = "rules: [{seriesQuery: a, metricsQuery: a}]\nexternalRules: [{seriesQuery: a, metricsQuery: a}]";
    assert_eq!(RuleSet::parse(doubtful).expect("rules").warnings().len(), 2);
}

#[test]
fn an_empty_file_is_no_edit_and_unknown_resources_are_named() {
    for (text, expected) in [
        ("", Err("is empty; to drop all rules, say rules: []")),
        ("# nothing\n", Err("is empty; to drop all rules, say rules: []")),
        ("{}", Err("is empty; to drop all rules, say rules: []")),
        ("rules: []", Ok(())),
        ("rule: []", Err("line 1: rule: there is no such field; did you mean rules?")),
    ] {
        let read = RuleSet::parse_edit(text).map(drop);
        let errors = read.map_err(|errors| errors[0].to_string());
        assert_eq!(
            errors.as_ref().map_err(String::as_str),
            expected.as_ref().map_err(|e| *e),
            "{text}"
        );
    }
    let rules = RuleSet::parse(
        "rules:\n- seriesQuery: a\n  metricsQuery: a\n  resources: {overrides: {w: {group: example.com, \
         resource: fooz}, p: {resource: Pod}, x: {resource: cheese}}}\n",
    );
    let unknown = rules.expect("rules").unknown_resources(&KnownResources::everyday());
    let texts: Vec<String> = unknown.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "rules[0].resources.overrides.w: the cluster has no resource \"fooz\" in the group \"example.com\"",
            "rules[0].resources.overrides.x: the cluster has no resource \"cheese\"",
        ]
    );
}
