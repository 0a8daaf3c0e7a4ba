//! A kubelet's `/stats/summary`: the same use as JSON, with rates.

use super::http::{Kubelet, Measured};
use super::status::seconds;
use super::usage::{Pair, Rate, Used};
use jiff::Timestamp;
use serde_json::{Value, json};

/// The summary of one node.
#[must_use]
pub fn summary(kubelet: &Kubelet, pods: &[Measured], pair: &Pair) -> Value {
    let time = pair.newest.time;
    let name = &kubelet.node.name;
    let mut node = json!({"nodeName": &**name, "startTime": seconds(kubelet.started)});
    if let Some(used) = pair.newest.nodes.get(name) {
        add_stats(&mut node, *used, pair.node(name), time);
        let total = kubelet.node.size.memory_bytes;
        let available = total.saturating_sub(used.memory_bytes.round() as u64);
        node["memory"]["availableBytes"] = available.into();
    }
    let pods: Vec<Value> = pods.iter().map(|measured| pod(measured, pair, time)).collect();
    json!({"node": node, "pods": pods})
}

fn pod(measured: &Measured, pair: &Pair, time: Timestamp) -> Value {
    let facts = &measured.view.facts;
    let rates = pair.pod(&facts.uid);
    let started = seconds(measured.started());
    let mut sum = Used::default();
    let mut containers = Vec::new();
    for (index, (name, used)) in measured.containers().enumerate() {
        let mut container = json!({"name": name, "startTime": &started});
        let rate = rates.as_ref().and_then(|rates| rates.get(index)).copied();
        add_stats(&mut container, used, rate, time);
        containers.push(container);
        sum.cpu_seconds_total += used.cpu_seconds_total;
        sum.memory_bytes += used.memory_bytes;
    }
    let rate = rates.map(|rates| Rate {
        cpu_millis: rates.iter().map(|rate| rate.cpu_millis).sum(),
        memory_bytes: rates.iter().map(|rate| rate.memory_bytes).sum(),
    });
    let mut pod = json!({
        "podRef": {"name": &*facts.name, "namespace": &*facts.namespace, "uid": &*facts.uid},
        "startTime": seconds(measured.view.life.taken),
        "containers": containers,
    });
    add_stats(&mut pod, sum, rate, time);
    pod
}

fn add_stats(to: &mut Value, used: Used, rate: Option<Rate>, time: Timestamp) {
    let time = seconds(time);
    let bytes = used.memory_bytes.round() as u64;
    let nanos = (used.cpu_seconds_total * 1e9).round() as u64;
    to["cpu"] = json!({"time": &time, "usageCoreNanoSeconds": nanos});
    if let Some(rate) = rate {
        to["cpu"]["usageNanoCores"] = ((rate.cpu_millis * 1e6).round() as u64).into();
    }
    to["memory"] = json!({
        "time": &time, "usageBytes": bytes, "workingSetBytes": bytes, "rssBytes": bytes,
    });
}
