//! Runs the steps of a scenario, and waits after each until everything has come to rest.

use super::super::super::fixture::{Workspace, deployment};
use super::super::super::kubelet::Life;
use super::compare::{Recorded, differences};
use super::scenario::{OBJECT, Scenario, Step, TARGET};
use super::seen::{Seen, Watcher};
use super::side::Side;
use anyhow::{Context, Result, bail};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// At rest is where nothing has changed for as long: longer than a smaller size is held back, and two passes more.
const REST: Duration = Duration::from_secs(9);
/// One who is judged is at rest where he is as he should be for as long: three polls.
const AS_EXPECTED: Duration = Duration::from_secs(3);
/// One who is not yet as he should be may be late.
const LATE: Duration = Duration::from_secs(20);
/// How long a step may take.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(200);

/// What was seen of one step.
pub struct Outcome {
    pub step: String,
    pub seen: Seen,
}

/// Runs a scenario. With what is expected, a step ends as soon as that is there.
pub async fn drive(
    side: &Side,
    scenario: &Scenario,
    expected: Option<&Recorded>,
) -> Result<Vec<Outcome>> {
    let run = Run::start(side, scenario).await?;
    let mut outcomes = Vec::new();
    for step in &scenario.steps {
        run.watcher.begin();
        let name = &step.step;
        run.change(step, outcomes.is_empty())
            .await
            .with_context(|| format!("{}: {name}", scenario.name))?;
        let wanted = expected.and_then(|recorded| recorded.step(&scenario.name, name));
        let seen = match wanted {
            Some(wanted) => run.until_as(&scenario.name, name, wanted).await,
            None => run.until_rest().await,
        };
        outcomes.push(Outcome { step: step.step.clone(), seen });
    }
    run.end().await;
    Ok(outcomes)
}

struct Run<'a> {
    side: &'a Side,
    scenario: &'a Scenario,
    workspace: Workspace,
    watcher: Watcher,
    address: String,
}

impl<'a> Run<'a> {
    async fn start(side: &'a Side, scenario: &'a Scenario) -> Result<Run<'a>> {
        side.server.forget(&scenario.name);
        let client = side.plane.client.clone();
        let workspace = Workspace::open(client, &scenario.namespace()).await?;
        let address = side.server.address.to_string();
        if let Some(replicas) = scenario.target {
            let replicas = i32::try_from(replicas)?;
            workspace.create(deployment(TARGET, replicas, &["app"])).await?;
            workspace.until_pods(TARGET, replicas).await?;
        }
        let watcher = Watcher::start(&workspace, scenario, &address);
        Ok(Run { side, scenario, workspace, watcher, address })
    }

    /// Does what a step says; the object is made in the first one.
    async fn change(&self, step: &Step, first: bool) -> Result<()> {
        for (name, value) in &step.values {
            self.side.server.set(&self.scenario.name, name, value)?;
        }
        match step.pods.as_deref() {
            None => {}
            Some("pending") => self.side.kubelet.set(&self.workspace.namespace, Life::Pending),
            Some("ready") => self.side.kubelet.set(&self.workspace.namespace, Life::Ready),
            Some(other) => bail!("pods are never {other:?}"),
        }
        if first {
            self.workspace.create(self.scenario.object(&self.address)?).await?;
        }
        let (kind, space) = (self.scenario.kind(), &self.workspace);
        if let Some(patch) = &step.patch {
            let patch = self.scenario.addressed(patch, &self.address)?;
            space.patch(super::super::VERSION, kind, OBJECT, patch).await?;
        }
        if let Some(replicas) = step.scale {
            let patch = json!({"spec": {"replicas": replicas}});
            space.patch("apps/v1", "Deployment", TARGET, patch).await?;
        }
        if let Some(replicas) = step.make_target {
            space.create(deployment(TARGET, i32::try_from(replicas)?, &["app"])).await?;
        }
        match step.delete.as_deref() {
            None => {}
            Some("target") => self.delete("apps/v1", "Deployment", TARGET).await?,
            Some("object") => self.delete(super::super::VERSION, kind, OBJECT).await?,
            Some(other) => bail!("{other:?} cannot be deleted"),
        }
        self.succeed(step.succeed).await
    }

    async fn delete(&self, version: &str, kind: &str, name: &str) -> Result<()> {
        let api = self.workspace.api(version, kind);
        api.delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// The first running Jobs succeed, as their pods do.
    async fn succeed(&self, count: usize) -> Result<()> {
        let pods = self.workspace.api("v1", "Pod");
        for job in self.watcher.running_jobs().iter().take(count) {
            let of_job = ListParams::default().labels(&format!("job-name={job}"));
            for pod in pods.list(&of_job).await? {
                let name = pod.metadata.name.context("a name")?;
                let status = json!({"status": {"phase": "Succeeded"}});
                let params = PatchParams::default();
                pods.patch_status(&name, &params, &Patch::Merge(&status)).await?;
            }
        }
        Ok(())
    }

    /// Waits until nothing changes, and tells what is seen then.
    async fn until_rest(&self) -> Seen {
        let begun = Instant::now();
        let (mut last, mut since) = (self.watcher.seen(), begun);
        while since.elapsed() < REST && begun.elapsed() < PATIENCE {
            tokio::time::sleep(LOOK).await;
            let seen = self.watcher.seen();
            if seen != last {
                (last, since) = (seen, Instant::now());
            }
        }
        last
    }

    /// Waits until what is seen is as expected, but for what is known to be different, and stays so; or until nothing
    /// changes any more.
    async fn until_as(&self, scenario: &str, step: &str, wanted: &Seen) -> Seen {
        let begun = Instant::now();
        let (mut last, mut since) = (self.watcher.seen(), begun);
        loop {
            let rest = match differences(scenario, step, wanted, &last).is_empty() {
                true => AS_EXPECTED,
                false => LATE,
            };
            if since.elapsed() >= rest || begun.elapsed() >= PATIENCE {
                return last;
            }
            tokio::time::sleep(LOOK).await;
            let seen = self.watcher.seen();
            if seen != last {
                (last, since) = (seen, Instant::now());
            }
        }
    }

    /// Leaves nothing that anybody would go on scaling.
    async fn end(&self) {
        let api = self.workspace.api(super::super::VERSION, self.scenario.kind());
        // It may be gone already.
        let _ = api.delete(OBJECT, &DeleteParams::default()).await;
        let free: Value = json!({"metadata": {"finalizers": null}});
        let _ = api.patch(OBJECT, &PatchParams::default(), &Patch::Merge(&free)).await;
        self.workspace.close().await;
    }
}
