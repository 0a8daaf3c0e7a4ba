//! Ways of metrics that only kinds have which ask the sources themselves.

use super::kinds::OWN_KIND;
use super::scaled_objects::WAITING;
use super::{SPIKE, folder, podscale};
use serde_json::Value;

/// The violated parts of an object and of a peer, where custom metrics come late.
fn violated(objects: &str, direct: &str) -> [f64; 2] {
    let scenario = format!(
        "name: late
manifests: []
workloads:
- name: web
  namespace: shop
  model: {{rpsPerPod: 50, cpuMsPerRequest: 1, jitter: 0}}
  load: {{constant: {{rps: 1}}}}
simulation:
  environment:
    customMetrics: {{delaySeconds: 240}}
{direct}"
    );
    let file = folder(&format!("simulate-direct-{}", direct.len())).join("late.yaml");
    std::fs::write(&file, scenario).expect("a file");
    let file = file.to_str().expect("UTF-8");
    let flags = ["simulate", "-f", "-", "--scenario", file, "--load", SPIKE, "--seeds", "1"];
    let more = ["--policy", "hpa-rps", "--start", "2026-11-16T11:00:00Z", "-o", "json"];
    let all: Vec<&str> = flags.into_iter().chain(more).collect();
    let output = podscale(&all, objects);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{error}");
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let policies = &json["trials"][0]["policies"];
    [0, 1].map(|place| policies[place]["runs"][0]["violations"].as_f64().expect("a part"))
}

#[test]
fn who_asks_sources_directly_sees_a_spike_before_its_peers() {
    // Its cpu says nothing, so that it goes by the rate alone.
    let rate = r#"{serverAddress: "http://prometheus", query: "sum(rate(requests[1m]))", threshold: "30"}"#;
    let (start, _) = WAITING.split_once("  - type").expect("a trigger");
    let scaled = format!("{start}  - type: prometheus\n    metadata: {rate}\n");
    for objects in
        [OWN_KIND, &scaled.replace("cooldownPeriod", "minReplicaCount: 1\n  cooldownPeriod")]
    {
        let [late, peer] = violated(objects, "");
        let [early, same] = violated(objects, "    directMetrics: {delaySeconds: 1}\n");
        assert!(early < late * 0.8, "{early} {late}");
        assert_eq!(peer, same, "a peer reads what it read before");
    }
}
