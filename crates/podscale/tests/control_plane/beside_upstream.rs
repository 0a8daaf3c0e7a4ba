//! The same workloads twice in one cluster, one managed by kube-controller-manager's own autoscaler
//! and one by Podscale, with the same metrics: sizes, conditions and events have to be the same.
//!
//! Upstream's controller manages all autoscalers of a cluster. So that it has this namespace only, and
//! the one of the dry run, its account may read autoscalers and pods everywhere, as it needs to start,
//! but everything else in those alone: elsewhere it cannot even read a scale, and all that it would write is
//! refused. Podscale gets its namespace by a flag.

use super::dry_run;
use super::fixture::{Fixture, api, autoscaler, deployment, load};
use super::harness::Harness;
use super::kubelet::Life;
use super::metrics::{Metrics, Usage};
use super::plane::Autoscaler;
use super::program::Program;
use super::transcript::Transcript;
use anyhow::{Result, ensure};
use kube::api::{DeleteParams, Patch, PatchParams};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// For both; stabilization would make what is seen depend on the moment of a pass.
const FLAGS: [&str; 4] = [
    "--horizontal-pod-autoscaler-sync-period=2s",
    "--horizontal-pod-autoscaler-downscale-stabilization=0s",
    "--horizontal-pod-autoscaler-cpu-initialization-period=1s",
    "--horizontal-pod-autoscaler-initial-readiness-delay=1s",
];
/// How long nothing may happen before the next step; several passes.
const QUIET: Duration = Duration::from_secs(7);

pub fn trials(harness: &Harness) -> Vec<Trial> {
    vec![harness.alone("beside_upstream::same_decisions_and_no_false_alarms", beside)]
}

/// A step of the timeline, in one of the two namespaces.
type Step = (&'static str, fn(&Setting));

/// Where a step happens.
struct Setting<'a> {
    metrics: &'a Metrics,
    fixture: &'a Fixture,
}

impl Setting<'_> {
    fn cpu(&self, app: &str, total: i64) {
        self.metrics.set_usage(&self.fixture.namespace, app, "cpu", Usage::Total(total));
    }

    fn rps(&self, total: i64) {
        self.metrics.set_usage(&self.fixture.namespace, "rps", "rps", Usage::Total(total * 1000));
    }

    fn hits(&self, value: i64) {
        self.metrics.set_object(&self.fixture.namespace, "services/front", "hits", value * 1000);
    }

    fn pods(&self, life: Life) {
        self.fixture.environment.kubelet.set(&self.fixture.namespace, life);
    }
}

/// What happens; after each step everything comes to rest.
const TIMELINE: [Step; 12] = [
    ("at rest", |_| {}),
    ("up", |s| {
        s.cpu("cpu", 240);
        s.rps(50);
        s.hits(20);
        s.fixture.set_load("policies", 9.0);
        s.fixture.set_load("held", 5.0);
        s.fixture.set_load("zero", 3.0);
    }),
    ("down", |s| {
        s.cpu("cpu", 60);
        s.rps(20);
        s.hits(5);
        s.fixture.set_load("policies", 2.0);
        s.fixture.set_load("held", 1.0);
        s.fixture.set_load("zero", 0.0);
    }),
    ("within tolerance", |s| {
        s.cpu("cpu", 105);
        s.rps(21);
        s.fixture.set_load("zero", 0.0);
    }),
    ("from zero", |s| s.fixture.set_load("zero", 2.0)),
    ("beyond the bounds", |s| {
        s.cpu("cpu", 5000);
        s.fixture.set_load("several", 50.0);
    }),
    ("a gap", |s| s.metrics.unset_usage(&s.fixture.namespace, "cpu", "cpu")),
    ("one of several fails", |s| s.metrics.unset_usage(&s.fixture.namespace, "several", "cpu")),
    // One metric at a time: two sources are never read at quite the same moment.
    ("the gap ends", |s| {
        s.cpu("cpu", 200);
        s.cpu("several", 100);
    }),
    ("new pods are not ready", |s| {
        s.pods(Life::Unready);
        s.cpu("cpu", 480);
        s.rps(70);
    }),
    ("they are ready", |s| s.pods(Life::Ready)),
    ("down again", |s| {
        s.cpu("cpu", 50);
        s.rps(10);
        s.fixture.set_load("several", 2.0);
    }),
];

fn objects() -> Vec<Value> {
    let cpu = json!({"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": 50}}});
    let rps = json!({"type": "Pods", "pods": {"metric": {"name": "rps"},
        "target": {"type": "AverageValue", "averageValue": "10"}}});
    let hits = json!({"type": "Object", "object": {"metric": {"name": "hits"},
        "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "front"},
        "target": {"type": "Value", "value": "10"}}});
    let pods =
        |value: i32| json!({"policies": [{"type": "Pods", "value": value, "periodSeconds": 1800}]});
    let policies = json!({"scaleUp": pods(3), "scaleDown": pods(2)});
    let held = json!({"scaleDown": {"stabilizationWindowSeconds": 1800}});
    let several = json!([cpu, load("several")[0]]);
    vec![
        autoscaler("cpu", (1, 6), json!([cpu]), Value::Null),
        autoscaler("rps", (1, 8), json!([rps]), Value::Null),
        autoscaler("hits", (2, 4), json!([hits]), Value::Null),
        autoscaler("policies", (1, 9), load("policies"), policies),
        autoscaler("held", (1, 9), load("held"), held),
        autoscaler("zero", (0, 4), load("zero"), Value::Null),
        autoscaler("several", (1, 5), several, Value::Null),
        // Its target does not exist.
        autoscaler("lost", (1, 5), load("lost"), Value::Null),
    ]
}

/// The same start for both.
async fn set_up(fixture: &Fixture) -> Result<()> {
    let setting = Setting { metrics: fixture.metrics(), fixture };
    setting.cpu("cpu", 100);
    setting.cpu("several", 100);
    setting.rps(20);
    setting.hits(10);
    for name in ["policies", "held", "zero", "several"] {
        fixture.set_load(name, 2.0);
    }
    for name in ["cpu", "rps", "hits", "policies", "held", "zero", "several"] {
        fixture.create(deployment(name, 2, &["app"])).await?;
    }
    for name in ["cpu", "rps", "hits", "policies", "held", "zero", "several"] {
        fixture.until_pods(name, 2).await?;
    }
    // Samples count only when they are younger than the readiness of their pods.
    tokio::time::sleep(QUIET).await;
    Ok(())
}

async fn beside(fixture: Fixture) -> Result<()> {
    let plane = &fixture.environment.plane;
    let open = async |name: &str| Fixture::open(Arc::clone(&fixture.environment), name).await;
    let fixtures =
        [open("beside-theirs").await?, open("beside-ours").await?, open("beside-dry").await?];
    let [theirs, ours, dry] = &fixtures;
    confine_upstream(&[theirs, dry]).await?;
    plane.start_manager(Autoscaler::On, &FLAGS).await?;
    // Both take minutes, and neither disturbs the other.
    let (one, other) =
        tokio::join!(same(theirs, ours), dry_run::reports_no_false_alarm(dry, &FLAGS));
    for fixture in &fixtures {
        fixture.close().await;
    }
    plane.start_manager(Autoscaler::Off, &[]).await?;
    one.and(other)
}

async fn same(theirs: &Fixture, ours: &Fixture) -> Result<()> {
    let plane = &ours.environment.plane;
    for fixture in [theirs, ours] {
        set_up(fixture).await?;
    }
    let manage = format!("--namespaces={}", ours.namespace);
    let flags: Vec<&str> = FLAGS.into_iter().chain(["--leader-elect=false", &manage]).collect();
    let mut program = Program::start("beside", plane.folder(), &plane.kubeconfig, &flags)?;
    let transcripts = [Transcript::of(theirs), Transcript::of(ours)];
    for object in objects() {
        theirs.create(object.clone()).await?;
        ours.create(object).await?;
    }
    let mut differences = Vec::new();
    for (what, step) in TIMELINE {
        for fixture in [theirs, ours] {
            step(&Setting { metrics: fixture.metrics(), fixture });
        }
        until_quiet(&transcripts).await;
        let [theirs, ours] = transcripts.each_ref().map(Transcript::take);
        differences.extend(theirs.differences(&ours).map(|line| format!("{what}: {line}")));
    }
    program.stop().await?;
    let count = differences.len();
    ensure!(count == 0, "{count} differences:\n{}", differences.join("\n"));
    Ok(())
}

/// Waits until nothing has been written for a while, in neither place.
async fn until_quiet(transcripts: &[Transcript; 2]) {
    loop {
        let before = transcripts.each_ref().map(Transcript::length);
        tokio::time::sleep(QUIET).await;
        if transcripts.each_ref().map(Transcript::length) == before {
            return;
        }
    }
}

/// Leaves upstream's controller its rights in a few namespaces, and outside only what it needs to run.
async fn confine_upstream(fixtures: &[&Fixture; 2]) -> Result<()> {
    const VERSION: &str = "rbac.authorization.k8s.io/v1";
    const NAME: &str = "system:controller:horizontal-pod-autoscaler";
    let client = fixtures[0].client();
    let account = json!([{"kind": "ServiceAccount", "name": "horizontal-pod-autoscaler",
        "namespace": "kube-system"}]);
    let role = |name: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name});
    let bindings = api(&client, None, VERSION, "ClusterRoleBinding");
    bindings.delete(NAME, &DeleteParams::default()).await?;
    let reader = json!({"apiVersion": VERSION, "kind": "ClusterRole",
        "metadata": {"name": "upstream-reads"}, "rules": [
            {"apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"],
                "verbs": ["get", "list", "watch"]},
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}]});
    let everywhere = json!({"apiVersion": VERSION, "kind": "ClusterRoleBinding",
        "metadata": {"name": "upstream-reads"}, "roleRef": role("upstream-reads"),
        "subjects": account});
    let here = json!({"apiVersion": VERSION, "kind": "RoleBinding",
        "metadata": {"name": "upstream"}, "roleRef": role(NAME), "subjects": account});
    let params = PatchParams::apply("test").force();
    let roles = api(&client, None, VERSION, "ClusterRole");
    roles.patch("upstream-reads", &params, &Patch::Apply(&reader)).await?;
    bindings.patch("upstream-reads", &params, &Patch::Apply(&everywhere)).await?;
    for fixture in fixtures {
        fixture.create(here.clone()).await?;
    }
    Ok(())
}
