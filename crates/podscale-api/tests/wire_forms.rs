//! Objects printed by Kubernetes' own types come out of ours as they went in.

use podscale_api::hpa::v2::HorizontalPodAutoscaler;
use podscale_api::scale::Scale;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

fn rewritten<T: DeserializeOwned + Serialize>(line: &str) -> serde_json::Result<String> {
    serde_json::to_string(&serde_json::from_str::<T>(line)?)
}

#[test]
fn objects_are_written_as_kubernetes_does() {
    for line in include_str!("../testdata/wire-forms.jsonl").lines() {
        let before: Value = serde_json::from_str(line).expect("JSON");
        let written = if before["kind"] == "HorizontalPodAutoscaler" {
            rewritten::<HorizontalPodAutoscaler>(line)
        } else {
            rewritten::<Scale>(line)
        };
        let written = written.expect(line);
        let after: Value = serde_json::from_str(&written).expect("JSON");
        assert_eq!(after, before);
        // What is only passed through may change the order of its fields.
        if before["metadata"].get("managedFields").is_none() {
            assert_eq!(written, line);
        }
    }
}

#[test]
fn nulls_and_unknown_fields_are_taken() {
    for (given, written) in [
        (
            r#"{"metadata":null,"spec":null,"status":null,"extra":1}"#,
            r#"{"metadata":{},"spec":{"scaleTargetRef":{"kind":"","name":""},"maxReplicas":0}}"#,
        ),
        (
            r#"{"metadata":{"labels":null,"x":{"y":1}},
                "spec":{"metrics":null,"behavior":null,"minReplicas":null,"new":[]}}"#,
            r#"{"metadata":{"x":{"y":1}},"spec":{"scaleTargetRef":{"kind":"","name":""},"maxReplicas":0}}"#,
        ),
        (
            r#"{"spec":{"behavior":{"scaleUp":{"policies":null},"scaleDown":null}},
                "status":{"currentMetrics":[],"conditions":null}}"#,
            r#"{"metadata":{},"spec":{"scaleTargetRef":{"kind":"","name":""},"maxReplicas":0,"behavior":{"scaleUp":{}}},"status":{"desiredReplicas":0,"currentMetrics":[]}}"#,
        ),
    ] {
        assert_eq!(rewritten::<HorizontalPodAutoscaler>(given).expect(given), written);
    }
}
