//! A way to the API server on which much goes wrong: the controller waits, tries again, and goes on.

use super::fixture::{Fixture, api, load};
use super::harness::Harness;
use super::program::{Program, QUICK};
use super::proxy::{Failure, Proxy};
use anyhow::{Result, ensure};
use kube::api::{Patch, PatchParams};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

pub fn trials(harness: &Harness) -> Vec<Trial> {
    vec![
        harness.apart("unreliable_network::token_rotated", token_rotated),
        harness.apart("unreliable_network::watch_goes_silent", watch_goes_silent),
        harness.apart("unreliable_network::busy_broken_and_slow", busy_broken_and_slow),
        harness.apart("unreliable_network::watches_dropped", watches_dropped),
        harness.apart("unreliable_network::calls_limited", calls_limited),
    ]
}

/// Starts a controller for this namespace alone.
fn start(fixture: &Fixture, kubeconfig: &Path) -> Result<Program> {
    let only = format!("--namespaces={}", fixture.namespace);
    let flags: Vec<&str> = QUICK.into_iter().chain(["--leader-elect=false", &only]).collect();
    Program::start(&fixture.namespace, fixture.environment.plane.folder(), kubeconfig, &flags)
}

/// A controller that reaches the API server through a proxy, and an autoscaler `web`.
async fn behind_a_proxy(fixture: &Fixture) -> Result<(Program, Proxy)> {
    let plane = &fixture.environment.plane;
    let proxy = Proxy::start(plane.client.clone(), &plane.authority).await?;
    let kubeconfig = plane.kubeconfig_at(&fixture.namespace, proxy.port)?;
    let program = start(fixture, &kubeconfig)?;
    fixture.deployment("web", 2).await?;
    fixture.set_load("web", 3.0);
    fixture.autoscaler("web", (1, 9), load("web"), Value::Null).await?;
    fixture.until_replicas("web", 3).await?;
    Ok((program, proxy))
}

/// Whether an autoscaler that is new is found, and scales.
async fn sees_another(fixture: &Fixture, name: &str) -> Result<()> {
    fixture.deployment(name, 1).await?;
    fixture.set_load(name, 4.0);
    fixture.autoscaler(name, (1, 9), load(name), Value::Null).await?;
    fixture.until_replicas(name, 4).await
}

async fn busy_broken_and_slow(fixture: Fixture) -> Result<()> {
    let (mut program, proxy) = behind_a_proxy(&fixture).await?;
    proxy.set(Some(Failure::Busy));
    fixture.set_load("web", 5.0);
    fixture.until_replicas("web", 5).await?;
    let again = program.metric("podscale_api_requests_total", "code=\"429\"").await?;
    ensure!(again >= 1.0, "nobody was asked to come back");

    proxy.set(Some(Failure::Broken));
    fixture.set_load("web", 7.0);
    fixture.until("whether requests failed", &true, async || Ok(proxy.failed() >= 6)).await?;
    ensure!(fixture.replicas("web").await? == 5, "it scaled without a working API server");
    proxy.set(None);
    fixture.until_replicas("web", 7).await?;

    proxy.set(Some(Failure::Late(Duration::from_secs(2))));
    fixture.set_load("web", 4.0);
    fixture.until_replicas("web", 4).await?;
    proxy.set(None);
    sees_another(&fixture, "late").await?;
    program.stop().await
}

async fn watches_dropped(fixture: Fixture) -> Result<()> {
    let (mut program, proxy) = behind_a_proxy(&fixture).await?;
    for number in 0..3 {
        proxy.cut();
        sees_another(&fixture, &format!("after-{number}")).await?;
    }
    // Nobody is there to open a watch anew.
    proxy.set(Some(Failure::Broken));
    proxy.cut();
    fixture.until("whether requests failed", &true, async || Ok(proxy.failed() >= 6)).await?;
    proxy.set(None);
    sees_another(&fixture, "at-last").await?;
    let failed = program.metric("podscale_watch_restarts_total", "reason=\"failed\"").await?;
    ensure!(failed >= 4.0, "{failed} watches failed");
    program.stop().await
}

/// Watches whose connections stay open, but on which nothing comes any more.
async fn watch_goes_silent(fixture: Fixture) -> Result<()> {
    let (mut program, proxy) = behind_a_proxy(&fixture).await?;
    proxy.silence();
    sees_another(&fixture, "unheard").await?;
    let failed = "resource=\"horizontalpodautoscalers.autoscaling\",reason=\"failed\"";
    let failed = program.metric("podscale_watch_restarts_total", failed).await?;
    ensure!(failed >= 1.0, "it was told by a watch that is silent");
    program.stop().await
}

/// The account behind the token is replaced, so that its old token is worth nothing any more; the
/// file has a new one.
async fn token_rotated(fixture: Fixture) -> Result<()> {
    const VERSION: &str = "rbac.authorization.k8s.io/v1";
    let (plane, name) = (&fixture.environment.plane, &fixture.namespace);
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "rotated"}});
    fixture.create(account.clone()).await?;
    let binding = json!({"apiVersion": VERSION, "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "rotated", "namespace": name}]});
    let bindings = api(&fixture.client(), None, VERSION, "ClusterRoleBinding");
    let params = PatchParams::apply("test").force();
    bindings.patch(name, &params, &Patch::Apply(&binding)).await?;
    let token = plane.folder().join(format!("{name}.token"));
    std::fs::write(&token, plane.token_of(name, "rotated").await?)?;
    let mut program = start(&fixture, &plane.kubeconfig_with(name, &token)?)?;
    fixture.deployment("web", 2).await?;
    fixture.set_load("web", 3.0);
    fixture.autoscaler("web", (1, 9), load("web"), Value::Null).await?;
    fixture.until_replicas("web", 3).await?;

    fixture.delete("v1", "ServiceAccount", "rotated").await?;
    fixture.create(account).await?;
    fixture
        .until("whether the old token is refused", &true, async || {
            Ok(program.metric("podscale_api_requests_total", "code=\"401\"").await? >= 1.0)
        })
        .await?;
    std::fs::write(&token, plane.token_of(name, "rotated").await?)?;
    fixture.set_load("web", 5.0);
    fixture.until_replicas("web", 5).await?;
    sees_another(&fixture, "late").await?;
    let log = program.log();
    ensure!(!log.contains("Bearer") && !log.contains("eyJ"), "a token is in the log");
    program.stop().await
}

/// With a limit of calls everything still works, and the limit holds; the lease is not held back.
async fn calls_limited(fixture: Fixture) -> Result<()> {
    const PER_SECOND: f64 = 4.0;
    let (plane, name) = (&fixture.environment.plane, &fixture.namespace);
    let own = [
        format!("--kube-api-qps={PER_SECOND}"),
        format!("--kube-api-burst={PER_SECOND}"),
        format!("--namespaces={name}"),
        format!("--leader-elect-resource-namespace={name}"),
        "--leader-elect-lease-duration=3s".to_owned(),
        "--leader-elect-renew-deadline=2s".to_owned(),
        "--leader-elect-retry-period=500ms".to_owned(),
    ];
    let flags: Vec<&str> = QUICK.into_iter().chain(own.iter().map(String::as_str)).collect();
    let began = std::time::Instant::now();
    let mut program = Program::start(name, plane.folder(), &plane.kubeconfig, &flags)?;
    for app in ["a", "b", "c", "d"] {
        fixture.deployment(app, 2).await?;
        fixture.set_load(app, 3.0);
        fixture.autoscaler(app, (1, 9), load(app), Value::Null).await?;
    }
    for replicas in [3, 5] {
        for app in ["a", "b", "c", "d"] {
            #[expect(clippy::cast_precision_loss, reason = "small numbers")]
            fixture.set_load(app, replicas as f64);
        }
        for app in ["a", "b", "c", "d"] {
            fixture.until_replicas(app, replicas).await?;
        }
    }
    let metrics = program.metrics().await?;
    let most = PER_SECOND + PER_SECOND * began.elapsed().as_secs_f64();
    let count = |name: &str, labels: &str| super::program::sum(&metrics, name, labels);
    let total = "podscale_api_requests_total";
    let (watches, leases) = (count(total, "verb=\"watch\""), count(total, "resource=\"leases\""));
    // One watch is that of leases.
    let counted = count(total, "") - watches - leases + 1.0;
    ensure!(counted <= most, "{counted} calls, {most} are allowed");
    let waited = count("podscale_api_requests_throttled_total", "");
    ensure!(waited >= 1.0, "nobody had to wait");
    ensure!(!program.log().contains("no longer the leader"), "{}", program.log_tail());
    program.stop().await
}
