//! From KEDA to Podscale and back, as `docs/keda.md` tells people to: no size moves by it, no Job is made twice, and the
//! objects, their finalizers and KEDA's definitions stay.

use super::super::super::fixture::{Workspace, deployment};
use super::super::super::keda_programs::Keda;
use super::super::super::serve::kubectl;
use super::super::VERSION;
use super::super::modes::start_installed;
use super::scenario::{OBJECT, Scenario, TARGET};
use super::seen::{Seen, Watcher};
use super::side::{Side, Who};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// What people are told to type, in this order.
const STOP_KEDA: &str = "kubectl scale deployment keda-operator -n keda --replicas 0";
const INSTALL: &str = "podscale install --triggers --manage annotated | kubectl apply -f -";
const TAKE_OVER: &str =
    "kubectl annotate scaledobject,scaledjob --all -A podscale.dev/managed=true";
const DELETE_HPAS: &str = "kubectl delete hpa -l app.kubernetes.io/managed-by=keda-operator -A";
/// What nobody may move is watched for as long: a few periods of everybody.
const HELD: Duration = Duration::from_secs(12);
const PATIENCE: Duration = Duration::from_secs(90);

/// An object, and what is seen of it.
struct Moved {
    scenario: Scenario,
    space: Workspace,
    watcher: Watcher,
}

impl Moved {
    async fn start(side: &Side, name: &str, job: Option<Value>, value: i64) -> Result<Moved> {
        let target = job.is_none().then_some(0);
        let scenario = Scenario { name: name.to_owned(), target, job, ..Scenario::default() };
        let space = Workspace::open(side.plane.client.clone(), &scenario.namespace()).await?;
        if target.is_some() {
            space.create(deployment(TARGET, 0, &["app"])).await?;
        }
        let address = side.server.address.to_string();
        let watcher = Watcher::start(&space, &scenario, &address);
        side.server.set(name, "a", &json!(value))?;
        space.create(scenario.object(&address)?).await?;
        Ok(Moved { scenario, space, watcher })
    }

    /// Waits until something is seen as it is expected.
    async fn until(&self, about: &str, expected: impl Fn(Option<&str>) -> bool) -> Result<()> {
        let begun = Instant::now();
        loop {
            let seen = self.watcher.seen();
            if expected(seen.get(about).map(String::as_str)) {
                return Ok(());
            }
            ensure!(begun.elapsed() < PATIENCE, "{}: {about}: {seen:#?}", self.scenario.name);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Whether everything of a kind is as it was since the last time.
    fn is_held(&self, at: &str) -> Result<Seen> {
        let seen = self.watcher.seen();
        let about = if self.scenario.job.is_some() { "jobs" } else { "replicas" };
        let found = seen.get(about).map(String::as_str);
        ensure!(found == Some(at), "{} moved from {at}: {seen:#?}", self.scenario.name);
        ensure!(seen["finalizers"] == "[\"finalizer.keda.sh\"]", "{seen:#?}");
        Ok(seen)
    }

    async fn uid(&self) -> Result<Option<String>> {
        let api = self.space.api(VERSION, self.scenario.kind());
        Ok(api.get(OBJECT).await?.metadata.uid)
    }
}

/// Objects that are awake and asleep, and one with Jobs that run.
struct Objects {
    awake: Moved,
    asleep: Moved,
    jobs: Moved,
}

impl Objects {
    async fn start(side: &Side) -> Result<Objects> {
        let objects = Objects {
            awake: Moved::start(side, "awake", None, 25).await?,
            asleep: Moved::start(side, "asleep", None, 0).await?,
            jobs: Moved::start(side, "jobs", Some(json!({})), 25).await?,
        };
        objects.awake.until("replicas", |sizes| sizes == Some("0 1 3")).await?;
        let is_idle = |active: Option<&str>| active.is_some_and(|it| it.contains("NotActive"));
        objects.asleep.until("condition Active", is_idle).await?;
        let all = |jobs: Option<&str>| jobs == Some("3 made, 3 running, 0 ended");
        objects.jobs.until("jobs", all).await?;
        objects.all().into_iter().for_each(|object| object.watcher.begin());
        Ok(objects)
    }

    fn all(&self) -> [&Moved; 3] {
        [&self.awake, &self.asleep, &self.jobs]
    }

    /// Whether nothing moves for a while.
    async fn are_held(&self, awake: &str, when: &str) -> Result<()> {
        tokio::time::sleep(HELD).await;
        let held = || {
            self.awake.is_held(awake)?;
            self.asleep.is_held("0")?;
            self.jobs.is_held("3 made, 3 running, 0 ended")
        };
        held().with_context(|| when.to_owned())?;
        self.all().into_iter().for_each(|object| object.watcher.begin());
        Ok(())
    }

    async fn uids(&self) -> Result<Vec<Option<String>>> {
        let mut uids = Vec::new();
        for object in self.all() {
            uids.push(object.uid().await?);
        }
        Ok(uids)
    }
}

/// Follows the guide.
pub async fn from_keda_and_back(folder: &Path) -> Result<()> {
    is_as_written()?;
    let mut side = Side::start(Who::Keda, folder).await?;
    let objects = Objects::start(&side).await?;
    let (uids, definitions) = (objects.uids().await?, definitions(&side)?);

    // What the command is about; its pods are a process here.
    typed(&side, "kubectl create deployment keda-operator -n keda --image none")?;
    typed(&side, STOP_KEDA)?;
    side.keda()?.operator.kill();
    objects.are_held("3", "KEDA's operator is stopped").await?;
    let mut podscale = start_installed(&side.plane, &["--triggers", "--manage=annotated"]).await?;
    typed(&side, TAKE_OVER)?;
    let conflict = "condition podscale.dev/Conflict";
    for object in [&objects.awake, &objects.asleep] {
        let is_taken = |it: Option<&str>| it.is_some_and(|it| it.contains("TargetTaken"));
        object.until(conflict, is_taken).await.with_context(|| podscale.log_tail())?;
    }
    objects.are_held("3", "the HPAs are still there").await?;
    let deleted = typed(&side, DELETE_HPAS)?;
    ensure!(deleted.matches("keda-hpa-so").count() == 2, "{deleted}");
    for object in [&objects.awake, &objects.asleep] {
        object.until(conflict, |it| it.is_none()).await.with_context(|| podscale.log_tail())?;
    }
    side.keda()?.server.kill();
    objects.are_held("3", "Podscale decides").await.with_context(|| podscale.log_tail())?;
    moves(&side, &objects, 45, "3 5").await.with_context(|| podscale.log_tail())?;

    podscale.stop().await?;
    side.again(Keda::start(&side.plane).await?);
    let is_made = |it: Option<&str>| it == Some("\"keda-hpa-so\"");
    objects.awake.until("status hpaName", is_made).await.with_context(|| side.log_tail())?;
    objects.are_held("5", "KEDA decides again").await?;
    moves(&side, &objects, 35, "5 4").await.with_context(|| side.log_tail())?;
    ensure!(objects.uids().await? == uids, "an object was made anew");
    ensure!(self::definitions(&side)? == definitions, "a definition was made anew");
    Ok(())
}

/// Whoever decides follows the value.
async fn moves(side: &Side, objects: &Objects, value: i64, sizes: &str) -> Result<()> {
    side.server.set("awake", "a", &json!(value))?;
    objects.awake.until("replicas", |seen| seen == Some(sizes)).await?;
    objects.awake.watcher.begin();
    Ok(())
}

/// The definitions of KEDA's kinds, by which they would be known if they were made anew.
fn definitions(side: &Side) -> Result<String> {
    let uids = "jsonpath={range .items[*]}{.metadata.name} {.metadata.uid}{\"\\n\"}{end}";
    let (ok, said) = kubectl(&side.plane, &["get", "crd", "--output", uids])?;
    ensure!(ok && said.contains("scaledobjects.keda.sh"), "{said}");
    Ok(said)
}

/// Types a command of kubectl.
fn typed(side: &Side, command: &str) -> Result<String> {
    let words: Vec<&str> = command.split_whitespace().skip(1).collect();
    let (ok, said) = kubectl(&side.plane, &words)?;
    ensure!(ok, "{command}: {said}");
    Ok(said)
}

/// Whether the guide has the commands.
fn is_as_written() -> Result<()> {
    let page = include_str!("../../../../../../docs/keda.md");
    for command in [STOP_KEDA, INSTALL, TAKE_OVER, DELETE_HPAS] {
        ensure!(page.contains(command), "docs/keda.md does not have: {command}");
    }
    Ok(())
}
