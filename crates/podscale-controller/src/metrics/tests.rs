use super::*;
use podscale_client::instrument::{Instrument, RequestLayer, WatchEnd};
use std::sync::Arc;
use tower::{Layer, Service, service_fn};

fn sample<'a>(text: &'a str, series: &str) -> &'a str {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series} in\n{text}"))
}

#[test]
fn sizes_are_asked_for_when_metrics_are_read() {
    let metrics = Metrics::new();
    metrics.show_queue(|| 7);
    metrics.show_cache("pods", || 20_000);
    metrics.managed(3);
    metrics.leads(true);
    metrics.due(Duration::from_millis(20));
    metrics.watch_ended("pods", WatchEnd::Expired);
    metrics.source_answered("custom", false, Duration::from_secs(2));
    let text = metrics.text();
    for (series, expected) in [
        ("podscale_queue_depth", "7"),
        ("podscale_cache_objects{cache=\"pods\"}", "20000"),
        ("horizontal_pod_autoscaler_controller_num_horizontal_pod_autoscalers", "3"),
        ("podscale_leader", "1"),
        ("podscale_due_lag_seconds_bucket{le=\"0.01\"}", "0"),
        ("podscale_due_lag_seconds_bucket{le=\"0.05\"}", "1"),
        ("podscale_watch_restarts_total{resource=\"pods\",reason=\"expired\"}", "1"),
        ("podscale_source_requests_total{source=\"custom\",outcome=\"error\"}", "1"),
        ("podscale_source_request_duration_seconds_sum{source=\"custom\"}", "2.0"),
        ("podscale_disagreements_total", "0"),
    ] {
        assert_eq!(sample(&text, series), expected, "{series}");
    }
    if cfg!(target_os = "linux") {
        let resident = sample(&text, "process_resident_memory_bytes").parse::<f64>();
        assert!(resident.expect("a number") > 1e6, "{text}");
    }
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn metrics_are_written_as_openmetrics_text() {
    let mut registry = Registry::default();
    let hits = registry.family("hits", "Hits", Counter::default);
    hits.with(&[("path", "a\"b\\c\nd"), ("code", "1")]).add(3);
    let gone = [("path", "gone"), ("code", "2")];
    hits.with(&gone).increment();
    hits.remove(&gone);
    registry.metric("depth", "Depth", Gauge::default()).set(-2);
    let _: Family<Labels<1>, Gauge> = registry.family("empty", "Nothing", Gauge::default);
    let seconds = registry.metric("wait_seconds", "Waits", Histogram::new(&[0.5, 2.0]));
    for millis in [500, 501, 9_000] {
        seconds.observe(Duration::from_millis(millis));
    }
    registry.info("build", "The program", ("version", "1"));
    let description =
        |name| registry::Description { name, help: "Computed", kind: registry::Kind::Counter };
    registry.computed(description("found"), || Some(f64::INFINITY));
    registry.computed(description("unknown"), || None);
    let mut text = Text::default();
    registry.visit(&mut text);
    let expected = r#"# HELP hits Hits.
# TYPE hits counter
hits_total{path="a\"b\\c\nd",code="1"} 3
# HELP depth Depth.
# TYPE depth gauge
depth -2
# HELP wait_seconds Waits.
# TYPE wait_seconds histogram
wait_seconds_sum 10.001
wait_seconds_count 3
wait_seconds_bucket{le="0.5"} 1
wait_seconds_bucket{le="2.0"} 2
wait_seconds_bucket{le="+Inf"} 3
# HELP build The program.
# TYPE build info
build_info{version="1"} 1
# HELP found Computed.
# TYPE found counter
found_total +Inf
# EOF
"#;
    assert_eq!(text.finish(), expected);
}

#[tokio::test]
async fn calls_are_counted_by_verb_and_code() {
    use axum::http::{Request, Response};
    let metrics = Metrics::new();
    let answer = async |request: Request<()>| match request.uri().path() {
        "/lost" => Err("no answer"),
        path => {
            let code = if path.ends_with("/status") { 409 } else { 200 };
            Response::builder().status(code).body(()).map_err(|_| "no response")
        }
    };
    let mut service = RequestLayer::new(Arc::new(metrics.clone())).layer(service_fn(answer));
    for (verb, path) in [
        ("GET", "/api/v1/pods?watch=true"),
        ("PUT", "/apis/autoscaling/v2/namespaces/a/horizontalpodautoscalers/b/status"),
        ("GET", "/lost"),
    ] {
        let request = Request::builder().method(verb).uri(path).body(()).expect("a request");
        let _ = service.call(request).await;
    }
    let text = metrics.text();
    for labels in [
        "verb=\"watch\",resource=\"pods\",code=\"200\"",
        "verb=\"update\",resource=\"status\",code=\"409\"",
        "verb=\"get\",resource=\"other\",code=\"none\"",
    ] {
        assert_eq!(sample(&text, &format!("podscale_api_requests_total{{{labels}}}")), "1");
    }
}
