use super::*;
use serde_json::{Value, json};

fn row(namespace: &str, name: &str) -> Value {
    json!({
        "key": format!("{namespace}/{name}"),
        "namespace": namespace, "name": name, "kind": "HorizontalPodAutoscaler",
        "target": "Deployment/web", "min": 1, "max": 10, "current": 2, "desired": 4,
        "metrics": [{
            "name": "cpu", "unit": "percent", "value": 90.0, "goal": 50.0, "current": "90%",
            "target": "50%", "ratio": 1.8, "state": "above",
        }],
        "conditions": [{
            "type": "AbleToScale", "status": "True", "reason": "SucceededRescale",
            "message": "it was able to", "since": 5,
        }],
        "lastScale": 1_000, "outcome": "up", "reason": "cpu above target", "trend": [],
    })
}

fn list(names: &[(&str, &str)]) -> AutoscalerList {
    let rows: Vec<Value> = names.iter().map(|(namespace, name)| row(namespace, name)).collect();
    serde_json::from_value(json!({"now": 0, "autoscalers": rows})).expect("rows")
}

#[test]
fn near_names_are_offered() {
    let known = list(&[("shop", "web"), ("shop", "checkout"), ("test", "web")]);
    for (wanted, expected) in [
        ("shop/wbe", "no autoscaler shop/wbe is known; did you mean shop/web or test/web?"),
        ("prod/checkout", "no autoscaler prod/checkout is known; did you mean shop/checkout?"),
        ("check", "no autoscaler check is known; did you mean shop/checkout?"),
        ("shop/zzz", "no autoscaler shop/zzz is known among 3; `podscale top` lists them"),
    ] {
        assert_eq!(unknown(&known, wanted, &[]), expected);
    }
    let named: Vec<&Row> = known.autoscalers.iter().filter(|r| r.view.name == "web").collect();
    let several = unknown(&known, "web", &named);
    assert_eq!(several, "several autoscalers are called web: shop/web, test/web");
    assert!(unknown(&list(&[]), "a/b", &[]).contains("only the leader decides"));
}

#[test]
fn the_latest_decision_is_explained_in_words() {
    let latest = json!({
        "time": 60_000, "from": 2, "to": 4, "rescaled": true, "outcome": "up",
        "reason": "cpu above target", "lines": ["cpu asks for 4", "so it becomes 4"],
    });
    let detail: AutoscalerDetail = serde_json::from_value(json!({
        "now": 75_000, "autoscaler": row("shop", "web"),
        "past": {"latest": latest, "decisions": [latest]},
    }))
    .expect("detail");
    let expected = "\
shop/web: HorizontalPodAutoscaler scales Deployment/web between 1 and 10
It has 2 and wants 4.

Latest decision, 15s ago: 2 → 4, cpu above target
  cpu asks for 4
  so it becomes 4

Metrics
  cpu       90% of 50%      asks for more

Conditions
  AbleToScale     True   SucceededRescale: it was able to

Changes of size, latest first
   15s ago  2 → 4  cpu above target
";
    assert_eq!(words(&detail), expected);
}

#[test]
fn a_withheld_size_and_a_metric_without_pods_are_explained() {
    let latest = json!({
        "time": 60_000, "from": 2, "to": 4, "rescaled": false, "outcome": "withheld",
        "reason": "cpu above target", "lines": ["but this is a dry run"],
    });
    let mut row = row("shop", "web");
    row["outcome"] = json!("withheld");
    row["metrics"][0]["state"] = json!("noPods");
    row["metrics"][0]["value"] = json!(null);
    row["metrics"][0]["current"] = json!("no pods");
    let detail: AutoscalerDetail = serde_json::from_value(json!({
        "now": 75_000, "autoscaler": row, "past": {"latest": latest, "decisions": [latest]},
    }))
    .expect("detail");
    let text = words(&detail);
    for part in [
        "15s ago: would go from 2 to 4, cpu above target; not written\n  but this is a dry run",
        "cpu   no pods of 50%      has no pods to be shared among",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    assert!(!text.contains("failed"), "{text}");
}

#[test]
fn a_conflict_and_a_metric_that_was_not_asked_are_explained() {
    let latest = json!({
        "time": 60_000, "from": 2, "to": 2, "rescaled": false, "outcome": "paused",
        "reason": "it is paused; metrics are not read", "lines": ["it is paused; metrics are not read"],
    });
    let mut row = row("shop", "web");
    row["kind"] = json!("PodAutoscaler");
    row["metrics"][0]["state"] = json!("notAsked");
    row["metrics"][0]["current"] = json!("unknown");
    row["conflict"] = json!("HorizontalPodAutoscaler \"old\" scales Deployment \"web\" as well");
    let detail: AutoscalerDetail = serde_json::from_value(json!({
        "now": 75_000, "autoscaler": row, "past": {"latest": latest, "decisions": [latest]},
    }))
    .expect("detail");
    let text = words(&detail);
    for part in [
        "wants 4.\n\nConflict: HorizontalPodAutoscaler \"old\" scales Deployment \"web\" as well.\n\nLatest",
        "cpu   unknown of 50%      was not asked",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    assert!(!text.contains("could not be read"), "{text}");
}

#[tokio::test]
async fn an_unreachable_controller_is_a_clear_error() {
    use clap::Parser;
    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        arguments: Arguments,
    }
    // Nothing listens on the port of a listener that is gone.
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr();
    let admin = format!("http://{}", free.expect("an address"));
    let flags = Flags::try_parse_from(["x", "a/b", "--admin", &admin]).expect("flags");
    let error = explain(&flags.arguments).await.expect_err("nobody is there").to_string();
    assert!(error.starts_with(&format!("cannot reach {admin}: ")), "{error}");
    assert!(error.contains("port-forward"), "{error}");
}
