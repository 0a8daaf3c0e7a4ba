//! Podscale and kube-controller-manager's autoscaler, one after the other on the same real control
//! plane, with the same autoscalers, pods and metrics: what each costs. Prints one table.
//!
//! `cargo bench --profile quick -p podscale --bench beside_upstream -- [--steady] [COUNT…]`; takes
//! about five minutes for each count. With `--steady` the metrics do not change.

#![allow(dead_code, reason = "parts of the tests' control plane are not needed here")]
#![allow(clippy::print_stdout, reason = "the table is what it is for")]

#[path = "../tests/control_plane/keys.rs"]
mod keys;
#[path = "../tests/control_plane/kubelet.rs"]
mod kubelet;
#[path = "../tests/control_plane/metrics.rs"]
mod metrics;
#[path = "../tests/control_plane/parts.rs"]
mod parts;
#[path = "../tests/control_plane/plane.rs"]
mod plane;
#[path = "../tests/control_plane/process.rs"]
mod process;
#[path = "../tests/control_plane/program.rs"]
mod program;

use anyhow::{Context, Result, ensure};
use axum::http::Request;
use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use kubelet::Kubelet;
use metrics::{Metrics, Usage};
use plane::{Autoscaler, ControlPlane};
use program::{Program, sum};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// How many autoscalers share a namespace.
const PER_NAMESPACE: usize = 20;
/// How many objects are created at the same time.
const CREATED_AT_ONCE: usize = 32;
/// What each pod requests and uses on average, in thousandths of a core.
const REQUEST: i64 = 1000;
const USED: i64 = 500;
/// How long a controller runs before it is measured, and for how long it is.
const WARM_UP: Duration = Duration::from_secs(45);
const MEASURED: Duration = Duration::from_secs(60);
/// How often the metrics change.
const CHANGE: Duration = Duration::from_secs(5);

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let steady = arguments.iter().any(|argument| argument == "--steady");
    let counts = arguments.iter().filter_map(|argument| argument.parse::<usize>().ok());
    let mut counts: Vec<usize> = counts.collect();
    if counts.is_empty() {
        counts.push(1000);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    println!(
        "| autoscalers | controller | decisions/s | its CPU s per 1,000 \
         | API server CPU s per 1,000 | requests per decision | status writes per decision \
         | RSS MiB | late, 99 % |\n|---|---|---|---|---|---|---|---|---|"
    );
    for count in counts {
        runtime.block_on(compare(count, steady))?;
    }
    Ok(())
}

/// Both controllers on one cluster.
async fn compare(count: usize, steady: bool) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("podscale-bench-{}", std::process::id()));
    let plane = ControlPlane::start(&folder).await?;
    let kubelet = Kubelet::start(&plane.client);
    let metrics = Metrics::start(&plane.client, &plane.authority, kubelet.clone()).await?;
    let places: Vec<Place> = (0..count).map(Place::of).collect();
    for first in (0..count).step_by(PER_NAMESPACE) {
        let object = json!({"metadata": {"name": Place::of(first).namespace}});
        send(&plane.client, "POST", "/api/v1/namespaces", &object).await?;
    }
    let creations = stream::iter(&places).map(|place| create(&plane.client, place));
    creations.buffer_unordered(CREATED_AT_ONCE).try_collect::<()>().await?;
    while kubelet.running(None).len() < 2 * count {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let changing = tokio::spawn(change(metrics.clone(), places, steady));
    let stage = Stage { plane: &plane, metrics: &metrics, count };

    let flags = [
        "--controllers=horizontal-pod-autoscaler-controller",
        "--use-service-account-credentials=false",
        "--kube-api-qps=100000",
        "--kube-api-burst=100000",
        "--concurrent-horizontal-pod-autoscaler-syncs=50",
    ];
    plane.start_manager(Autoscaler::On, &flags).await?;
    let id = plane.manager_id().context("kube-controller-manager has ended")?;
    stage.measure("kube-controller-manager, tuned", id, None).await?;
    plane.stop_manager();

    let mut program =
        Program::start("podscale", &folder, &plane.kubeconfig, &["--leader-elect=false"])?;
    stage.measure("podscale", program.id(), Some(&program)).await?;
    program.stop().await?;
    changing.abort();
    drop(plane);
    // What the programs wrote is of no use any more.
    let _ = std::fs::remove_dir_all(&folder);
    Ok(())
}

/// Where an autoscaler is, and the name of it, its target and its application.
#[derive(Clone)]
struct Place {
    namespace: String,
    name: String,
}

impl Place {
    fn of(number: usize) -> Place {
        let namespace = format!("load-{}", number / PER_NAMESPACE);
        Place { namespace, name: format!("web-{number}") }
    }
}

/// A set that nobody looks after, its two pods, and its autoscaler.
async fn create(client: &Client, place: &Place) -> Result<()> {
    let Place { namespace, name } = place;
    let labels = json!({"app": name});
    let spec = json!({"containers": [{"name": "app", "image": "none",
        "resources": {"requests": {"cpu": format!("{REQUEST}m")}}}]});
    let sets = format!("/apis/apps/v1/namespaces/{namespace}/replicasets");
    let set = json!({"metadata": {"name": name}, "spec": {"replicas": 2,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": spec}}});
    let mut set = send(client, "POST", &sets, &set).await?;
    set["status"] = json!({"replicas": 2});
    send(client, "PUT", &format!("{sets}/{name}/status"), &set).await?;
    for number in 0..2 {
        let metadata = json!({"name": format!("{name}-{number}"), "labels": labels});
        let pod = json!({"metadata": metadata, "spec": spec});
        send(client, "POST", &format!("/api/v1/namespaces/{namespace}/pods"), &pod).await?;
    }
    let hpa = json!({"metadata": {"name": name}, "spec": {"minReplicas": 2, "maxReplicas": 10,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name},
        "metrics": [{"type": "Resource", "resource": {"name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": 50}}}]}});
    let path = format!("/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers");
    send(client, "POST", &path, &hpa).await?;
    Ok(())
}

async fn send(client: &Client, verb: &str, path: &str, object: &Value) -> Result<Value> {
    let request = Request::builder().method(verb).uri(path);
    let request = request.header("content-type", "application/json");
    Ok(client.request(request.body(serde_json::to_vec(object)?)?).await?)
}

/// Moves the usage of all pods to and fro by up to three percent, which nobody scales for.
async fn change(metrics: Metrics, places: Vec<Place>, steady: bool) {
    for round in 0i64.. {
        for (number, place) in (0i64..).zip(&places) {
            let wave = if steady { 0 } else { (number * 7 + round * 11) % 31 - 15 };
            let used = Usage::Each(USED + wave);
            metrics.set_usage(&place.namespace, &place.name, "cpu", used);
        }
        tokio::time::sleep(CHANGE).await;
    }
}

struct Stage<'a> {
    plane: &'a ControlPlane,
    metrics: &'a Metrics,
    count: usize,
}

/// What has been counted so far.
struct Counts {
    own_cpu: f64,
    server_cpu: f64,
    requests: f64,
    status_writes: f64,
    decisions: f64,
}

impl Stage<'_> {
    /// Lets a controller run, and prints what it costs.
    async fn measure(&self, name: &str, id: u32, program: Option<&Program>) -> Result<()> {
        tokio::time::sleep(WARM_UP).await;
        let (began, before) = (Instant::now(), self.counts(id, program).await?);
        tokio::time::sleep(MEASURED).await;
        let (seconds, after) = (began.elapsed().as_secs_f64(), self.counts(id, program).await?);
        let decisions = after.decisions - before.decisions;
        ensure!(decisions > 0.0, "{name} decides nothing");
        let per_thousand = |cpu: f64| cpu * 1000.0 / decisions;
        let late = match program {
            Some(program) => late(program).await?,
            None => "-".to_owned(),
        };
        println!(
            "| {} | {name} | {:.1} | {:.2} | {:.2} | {:.3} | {:.2} | {:.0} | {late} |",
            self.count,
            decisions / seconds,
            per_thousand(after.own_cpu - before.own_cpu),
            per_thousand(after.server_cpu - before.server_cpu),
            (after.requests - before.requests) / decisions,
            (after.status_writes - before.status_writes) / decisions,
            resident_mib(id)?,
        );
        Ok(())
    }

    async fn counts(&self, id: u32, program: Option<&Program>) -> Result<Counts> {
        let request = Request::get("/metrics").body(Vec::new())?;
        let text = self.plane.client.request_text(request).await?;
        let of = |labels: &[&str]| -> f64 {
            let lines = text.lines().filter(|line| line.starts_with("apiserver_request_total{"));
            let meant = lines.filter(|line| labels.iter().all(|label| line.contains(label)));
            meant.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
        };
        let resources = [
            "horizontalpodautoscalers",
            "replicasets",
            "pods",
            "events",
            "leases",
            "configmaps",
            "deployments",
        ];
        let requests = resources.iter().map(|resource| {
            let resource = format!("resource=\"{resource}\"");
            let all = of(&["group=\"", &resource]);
            let metrics = of(&["group=\"metrics.k8s.io\"", &resource]);
            // Those for metrics are counted where they arrive.
            all - metrics - of(&[&resource, "verb=\"WATCH\""])
        });
        #[expect(clippy::cast_precision_loss, reason = "thousands")]
        let asked = self.metrics.asked() as f64;
        let server = self.plane.server_id().context("kube-apiserver has ended")?;
        let decisions = match program {
            Some(program) => program.decisions().await?,
            // Upstream reads the scale of the target once for each decision.
            None => of(&["resource=\"replicasets\"", "subresource=\"scale\"", "verb=\"GET\""]),
        };
        Ok(Counts {
            own_cpu: cpu_seconds(id)?,
            server_cpu: cpu_seconds(server)?,
            requests: requests.sum::<f64>() + asked,
            status_writes: of(&[
                "resource=\"horizontalpodautoscalers\"",
                "subresource=\"status\"",
                "verb=\"PUT\"",
            ]),
            decisions,
        })
    }
}

/// By how much the decisions of a program were late at most, but for one in a hundred.
async fn late(program: &Program) -> Result<String> {
    let text = program.meters().await?;
    let name = "podscale_due_lag_seconds";
    let all = sum(&text, &format!("{name}_count"), "");
    let start = format!("{name}_bucket{{le=\"");
    for line in text.lines() {
        let Some((bound, count)) = line.strip_prefix(&start).and_then(|l| l.split_once("\"} "))
        else {
            continue;
        };
        if count.parse::<f64>()? >= all * 0.99 {
            return Ok(format!("≤ {bound} s"));
        }
    }
    Ok("?".to_owned())
}

/// The time that a process has spent on processors.
fn cpu_seconds(id: u32) -> Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
    let after_name = text.rsplit_once(')').context("no name in /proc")?.1;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = |place: usize| fields.get(place).and_then(|field| field.parse::<f64>().ok());
    // User and system time, in hundredths of a second on every Linux there is.
    let (user, system) = (ticks(11).context("utime")?, ticks(12).context("stime")?);
    Ok((user + system) / 100.0)
}

fn resident_mib(id: u32) -> Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
    let kib: f64 = line.trim().trim_end_matches(" kB").trim().parse()?;
    Ok(kib / 1024.0)
}
