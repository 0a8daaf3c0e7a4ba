use super::*;
use crate::controller::observer::{Decided, Observer, Took};
use crate::world::Key;
use podscale_api::recording::RecordingReader;
use podscale_api::replay::Replayer;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use tower::{Layer, Service, service_fn};

fn sample<'a>(text: &'a str, series: &str) -> &'a str {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series} in\n{text}"))
}

/// Decisions on recorded inputs must be counted as Kubernetes' controller counts its own.
#[test]
fn decisions_are_counted_under_the_names_of_kubernetes() {
    let metrics = Metrics::new();
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../podscale-api/testdata/named-1.37.jsonl");
    let (mut steps, mut ups, mut downs, mut failures) = (0u64, 0u64, 0u64, 0u64);
    for recording in RecordingReader::new(File::open(path).expect("a file")).expect("lines") {
        let recording = recording.expect("a recording");
        let key = Key::of(&recording.autoscaler);
        let mut replayer = Replayer::new(&recording);
        for step in &recording.steps {
            replayer.step(step, |replayed| {
                let (snapshot, decision) = (replayed.snapshot, replayed.decision);
                let took = Took { whole: Duration::from_millis(3), ..Took::default() };
                let hpa = &recording.autoscaler;
                metrics.decided(&Decided {
                    key: &key,
                    hpa,
                    autoscaler: &Arc::new(snapshot.autoscaler.clone()),
                    snapshot,
                    decision,
                    took: &took,
                    inputs: None,
                });
                steps += 1;
                failures += u64::from(decision.error.is_some());
                if let (Some(rescale), Some(_)) = (&decision.rescale, decision.rescaled_at) {
                    ups += u64::from(rescale.to > rescale.from);
                    downs += u64::from(rescale.to < rescale.from);
                }
            });
        }
    }
    let text = metrics.text();
    let name = "horizontal_pod_autoscaler_controller_reconciliations_total";
    let count = |wanted: &str| -> u64 {
        let lines = text.lines().filter(|line| line.starts_with(name) && line.contains(wanted));
        lines.map(|line| line.rsplit_once(' ').expect("a value").1.parse::<u64>().expect("n")).sum()
    };
    assert_eq!(count("action=\"scale_up\""), ups);
    assert_eq!(count("action=\"scale_down\""), downs);
    assert_eq!(count("error=\"spec\"") + count("error=\"internal\""), failures);
    assert_eq!(count(""), steps);
    assert!(failures > 0 && ups > 0 && downs > 0, "{text}");
    let seconds = "horizontal_pod_autoscaler_controller_reconciliation_duration_seconds";
    let bucket = format!("{seconds}_bucket{{le=\"0.004\",action=\"none\",error=\"none\"}}");
    let whole = format!("{seconds}_count{{action=\"none\",error=\"none\"}}");
    assert_eq!(sample(&text, &bucket), sample(&text, &whole));
    for kind in ["Resource", "ContainerResource", "Pods", "Object", "External"] {
        let name = "horizontal_pod_autoscaler_controller_metric_computation_total";
        let labels = format!("metric_type=\"{kind}\"}}");
        let counted = text.lines().filter(|line| line.starts_with(name) && line.contains(&labels));
        assert!(counted.count() > 0, "{kind}");
    }
}

#[test]
fn sizes_are_asked_for_when_somebody_looks() {
    let metrics = Metrics::new();
    metrics.show_queue(|| 7);
    metrics.show_cache("pods", || 20_000);
    metrics.looks_after(3);
    metrics.leads(true);
    metrics.due(Duration::from_millis(20));
    metrics.watch_ended("pods", WatchEnd::Expired);
    metrics.source_answered(Source::Custom, false, Duration::from_secs(2));
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
    let mut service = metrics.call_layer().layer(service_fn(answer));
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
