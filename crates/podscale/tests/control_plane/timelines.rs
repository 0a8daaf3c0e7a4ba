//! The same timelines in two clusters, one with kube-controller-manager's own autoscaler and one with
//! Podscale. After every step both come to rest, and their sizes, statuses and events have to be the same
//! but for what upstream does by chance, which `timelines/chance.rs` lists.
//!
//! Some timelines are about one thing each; others are random, and any seed makes the same one again:
//! `PODSCALE_SEEDS=1..40 PODSCALE_STEPS=30`. A difference counts if it is there again when the timeline is
//! run a second and a third time.

#[path = "timelines/backend.rs"]
mod backend;
#[path = "timelines/chance.rs"]
mod chance;
#[path = "timelines/change.rs"]
mod change;
#[path = "timelines/cluster.rs"]
mod cluster;
#[path = "timelines/directed.rs"]
mod directed;
#[path = "timelines/driver.rs"]
mod driver;
#[path = "timelines/execute.rs"]
mod execute;
#[path = "timelines/generate.rs"]
mod generate;
#[path = "timelines/random.rs"]
pub mod random;
#[path = "timelines/report.rs"]
mod report;
#[path = "timelines/specs.rs"]
mod specs;
#[path = "timelines/state.rs"]
mod state;
#[path = "timelines/values.rs"]
mod values;
#[path = "timelines/workload.rs"]
mod workload;

use super::harness::Harness;
use anyhow::{Context, Result, bail, ensure};
use change::Timeline;
use cluster::Clusters;
use libtest_mimic::Trial;
use report::Report;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::Mutex;

/// How many random timelines there are, and how long they are, unless somebody asks for others.
const SEEDS: &str = "1..2";
const STEPS: usize = 6;

/// In how many runs of a timeline a difference must be to count.
const RUNS: usize = 3;

pub fn trials(harness: &Harness) -> Result<Vec<Trial>> {
    let clusters =
        Arc::new(Shared { folder: harness.folder().join("timelines"), clusters: Mutex::default() });
    let trial = |name: String, timeline: Timeline| {
        let clusters = Arc::clone(&clusters);
        harness.independent(&format!("timelines::{name}"), move |name| async move {
            compare(&clusters.folder, &*clusters.get().await?, &name, &timeline).await
        })
    };
    let mut trials: Vec<Trial> =
        directed::all().into_iter().map(|(name, steps)| trial(name.to_owned(), steps)).collect();
    trials.push(harness.independent("timelines::seeds_replay", |_| async { seeds_replay() }));
    let steps = match std::env::var("PODSCALE_STEPS") {
        Ok(text) => text.parse().with_context(|| format!("PODSCALE_STEPS={text}"))?,
        Err(_) => STEPS,
    };
    let seeds = std::env::var("PODSCALE_SEEDS").unwrap_or(SEEDS.to_owned());
    for seed in parse_seeds(&seeds).with_context(|| format!("PODSCALE_SEEDS={seeds}"))? {
        trials.push(trial(format!("seed_{seed}"), generate::generate(seed, steps)));
    }
    Ok(trials)
}

/// A seed makes the same timeline again, and a shorter one is the beginning of a longer one.
fn seeds_replay() -> Result<()> {
    let text = |seed: u64, steps: usize| -> Vec<String> {
        generate::generate(seed, steps).0.iter().map(ToString::to_string).collect()
    };
    for seed in 1..=50 {
        let (long, short) = (text(seed, 30), text(seed, 9));
        ensure!(long == text(seed, 30), "seed {seed} makes different timelines");
        ensure!(long[..10] == short[..], "seed {seed} depends on how many steps follow");
        ensure!(long != text(seed + 1, 30), "seeds {seed} and {} are the same", seed + 1);
    }
    Ok(())
}

/// Reads `7`, `1..40` (both included) or several of these with commas.
fn parse_seeds(text: &str) -> Result<Vec<u64>> {
    let mut seeds = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once("..").unwrap_or((part, part));
        let (first, last): (u64, u64) = (first.parse()?, last.parse()?);
        ensure!(first <= last && last - first < 10_000, "{part} is no range of seeds");
        seeds.extend(first..=last);
    }
    Ok(seeds)
}

/// Both clusters, started when the first timeline needs them, and ended with the last.
struct Shared {
    folder: PathBuf,
    clusters: Mutex<Option<Arc<Clusters>>>,
}

impl Shared {
    async fn get(&self) -> Result<Arc<Clusters>> {
        let mut clusters = self.clusters.lock().await;
        match &*clusters {
            Some(clusters) => Ok(Arc::clone(clusters)),
            None => {
                let started = Clusters::start(Path::new(&self.folder)).await?;
                Ok(Arc::clone(clusters.insert(Arc::new(started))))
            }
        }
    }
}

/// Runs a timeline, and again while there are differences that repeat. Those that repeat are also written to a file at
/// once, since the runner shows failures only when everything has ended.
async fn compare(
    folder: &Path,
    clusters: &Clusters,
    name: &str,
    timeline: &Timeline,
) -> Result<()> {
    let run = async |number: usize| {
        execute::execute(clusters, timeline, &format!("{name}-{number}")).await
    };
    let first = run(1).await?;
    if first.found.is_empty() {
        println!("{name}: {} autoscalers at rest compared, no difference", first.compared);
        return Ok(());
    }
    let mut others = Vec::new();
    for number in 2..=RUNS {
        others.push(run(number).await?.found);
        if !Report::new(timeline, &first.found, &others).has_repeated() {
            break;
        }
    }
    let report = Report::new(timeline, &first.found, &others);
    print!("{}", report.transient(name));
    match report.repeated() {
        Some(text) => {
            std::fs::write(folder.join(format!("{name}.txt")), &text)?;
            bail!("{name}: {text}")
        }
        None => Ok(()),
    }
}
