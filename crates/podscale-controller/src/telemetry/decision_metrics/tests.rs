use super::*;
use crate::controller::observer::Took;
use crate::dialect::hpa;
use podscale_api::recording::RecordingReader;
use podscale_api::replay::Replayer;
use std::fs::File;
use std::path::Path;

fn sample<'a>(text: &'a str, series: &str) -> &'a str {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series} in\n{text}"))
}

/// Decisions on recorded inputs must be counted as Kubernetes' controller counts its own.
#[test]
fn decisions_are_counted_under_the_names_of_kubernetes() {
    let metrics = Metrics::new();
    let counting = DecisionMetrics(metrics.clone());
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../podscale-api/testdata/named-1.37.jsonl");
    let (mut steps, mut ups, mut downs, mut failures) = (0u64, 0u64, 0u64, 0u64);
    for recording in RecordingReader::new(File::open(path).expect("a file")).expect("lines") {
        let recording = recording.expect("a recording");
        let object = hpa::managed(recording.autoscaler.clone());
        let mut replayer = Replayer::new(&recording);
        for step in &recording.steps {
            replayer.step(step, |replayed| {
                let (snapshot, outcome) = (replayed.snapshot, replayed.pass);
                let decision = &outcome.decision;
                let took = Took { whole: Duration::from_millis(3), ..Took::default() };
                let (object, took) = (&object, &took);
                counting.decided(&Decided::new(object, snapshot, outcome, took));
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
