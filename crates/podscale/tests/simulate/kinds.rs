//! Objects of other kinds than HPAs.

use super::{SPIKE, folder, podscale};
use serde_json::Value;

pub const OWN_KIND: &str = "
apiVersion: podscale.dev/v1alpha1
kind: PodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 20
  metrics:
  - type: Resource
    name: cpu
    resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}
  - type: Prometheus
    name: rate
    prometheus: {query: 'sum(rate(http_requests_total[1m]))', target: {type: AverageValue, averageValue: '30'}}
  combine: Expression
  expression: max(cpu, rate)
  schedules:
  - {name: morning, start: '0 8 * * *', duration: 2h, minReplicas: 7}
";
const CHPA: &str = "
apiVersion: autoscalers.postmates.com/v1beta1
kind: CHPA
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 20
  upscaleForbiddenWindowSeconds: 60
  metrics:
  - {type: Resource, resource: {name: cpu, targetAverageUtilization: 60}}
";

#[test]
fn objects_of_every_kind_are_tried_and_recorded() {
    let folder = folder("simulate-kinds");
    for (name, objects) in [("pa", OWN_KIND), ("chpa", CHPA)] {
        let file = folder.join(format!("{name}.jsonl"));
        let file = file.to_str().expect("UTF-8");
        let arguments = ["simulate", "-f", "-", "--load", SPIKE, "--start", "2026-11-16T07:50:00Z"];
        let more = ["--policy", "none", "--seeds", "1", "-o", "json", "--record", file];
        let all: Vec<&str> = arguments.into_iter().chain(more).collect();
        let output = podscale(&all, objects);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{name}: {error}");
        let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let scores = &json["trials"][0]["policies"][0]["runs"][0];
        assert!(scores["changes"].as_u64() > Some(2), "{name}: {json}");
        let replayed = podscale(&["replay", file], "");
        let text = String::from_utf8_lossy(&replayed.stdout).into_owned();
        assert_eq!(replayed.status.code(), Some(0), "{name}: {text}");
    }
    // At eight the schedule takes effect.
    for (at, expected) in [("5m", "2"), ("15m", "7")] {
        let arguments = ["simulate", "-f", "-", "--load", "constant:20", "--explain", at];
        let start = ["--start", "2026-11-16T07:50:00Z"];
        let all: Vec<&str> = arguments.into_iter().chain(start).collect();
        let output = podscale(&all, OWN_KIND);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let last = text.lines().last().unwrap_or_default();
        assert!(last.contains(expected), "{at}: {text}");
    }
}
