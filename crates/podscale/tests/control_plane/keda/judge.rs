//! The real KEDA as judge: one timeline of many scenarios, each an object in a namespace of its own, and what was seen
//! of KEDA's operator in each step, recorded. Podscale has to be seen the same: sizes in the same order, conditions,
//! status and events, but for what `e2e/keda/differences.yaml` lists with its reasons.
//!
//! Podscale is compared with what was recorded. `PODSCALE_KEDA=record` records KEDA anew, `live` runs both beside each
//! other, see `e2e/keda/README.md`.

#[path = "judge/compare.rs"]
mod compare;
#[path = "judge/drive.rs"]
mod drive;
#[path = "judge/migration.rs"]
mod migration;
#[path = "judge/scenario.rs"]
mod scenario;
#[path = "judge/seen.rs"]
mod seen;
#[path = "judge/server.rs"]
mod server;
#[path = "judge/side.rs"]
mod side;

use super::super::harness::Harness;
use anyhow::{Context, Result, ensure};
use compare::{Difference, KNOWN, Recorded, all_differences, differences, no_longer_different};
use drive::drive;
use futures::{StreamExt, stream};
use libtest_mimic::Trial;
use scenario::Scenario;
use side::{Side, Who};
use std::path::Path;

/// Asks for the real KEDA: `record` or `live`.
const ASKED: &str = "PODSCALE_KEDA";
/// How many scenarios run at the same time: with more, KEDA does not keep up with polls of a second on two cores.
const AT_ONCE: usize = 15;

pub fn trials(harness: &Harness) -> Vec<Trial> {
    let asked = std::env::var(ASKED).unwrap_or_default();
    let folder = harness.folder().join("keda-judge");
    match asked.as_str() {
        "record" => {
            vec![harness.independent("keda::is_recorded", |_| async move { record(&folder).await })]
        }
        "live" => {
            let moved = folder.join("migration");
            vec![
                harness.independent("keda::live::beside_podscale", |_| async move {
                    live(&folder).await
                }),
                harness.independent("keda::live::from_keda_and_back", |_| async move {
                    migration::from_keda_and_back(&moved).await
                }),
            ]
        }
        _ => vec![
            harness.independent("keda::as_the_operator", |_| async move { judge(&folder).await }),
        ],
    }
}

/// The scenarios that are asked for by name, or all.
fn scenarios() -> Result<Vec<Scenario>> {
    let mut all = Scenario::all()?;
    if let Ok(names) = std::env::var("PODSCALE_KEDA_SCENARIOS") {
        all.retain(|one| names.split(',').any(|name| one.name.starts_with(name)));
    }
    Ok(all)
}

/// Runs scenarios, some at the same time.
async fn run(side: &Side, scenarios: &[Scenario], expected: Option<&Recorded>) -> Result<Recorded> {
    let all = stream::iter(scenarios)
        .map(async |scenario| (scenario, drive(side, scenario, expected).await))
        .buffer_unordered(AT_ONCE);
    let mut recorded = Recorded::default();
    for (scenario, outcomes) in all.collect::<Vec<_>>().await {
        let outcomes =
            outcomes.with_context(|| format!("{}\n{}", scenario.name, side.log_tail()))?;
        recorded.add(&scenario.name, outcomes);
    }
    Ok(recorded)
}

/// Records KEDA; what is not run stays as it was recorded before.
async fn record(folder: &Path) -> Result<()> {
    let side = Side::start(Who::Keda, &folder.join("keda")).await?;
    let (all, some) = (Scenario::all()?, scenarios()?);
    let mut recorded = if some.len() < all.len() { Recorded::read()? } else { Recorded::default() };
    let again = run(&side, &some, None).await?;
    recorded.replace(again);
    recorded.write(&all)?;
    side.stop().await
}

/// Podscale as KEDA was recorded.
async fn judge(folder: &Path) -> Result<()> {
    documented()?;
    let (recorded, scenarios) = (Recorded::read()?, scenarios()?);
    let side = Side::start(Who::Podscale, &folder.join("podscale")).await?;
    let seen = run(&side, &scenarios, Some(&recorded)).await?;
    let seen = again(&side, &scenarios, &recorded, seen).await?;
    side.stop().await?;
    verdict(&recorded, &seen)
}

/// Podscale as KEDA is now, both at the same time.
async fn live(folder: &Path) -> Result<()> {
    let [theirs, ours] = [folder.join("keda"), folder.join("podscale")];
    let (theirs, ours) =
        tokio::join!(Side::start(Who::Keda, &theirs), Side::start(Who::Podscale, &ours));
    let (theirs, ours, scenarios) = (theirs?, ours?, scenarios()?);
    let (recorded, seen) =
        tokio::join!(run(&theirs, &scenarios, None), run(&ours, &scenarios, None));
    let (recorded, seen) = (recorded?, seen?);
    theirs.stop().await?;
    let seen = again(&ours, &scenarios, &recorded, seen).await?;
    ours.stop().await?;
    verdict(&recorded, &seen)
}

/// A scenario that was different is run a second time, and that counts: on a busy machine something may come too late.
async fn again(
    side: &Side,
    scenarios: &[Scenario],
    recorded: &Recorded,
    mut seen: Recorded,
) -> Result<Recorded> {
    let different = unknown(recorded, &seen)?;
    let is_different =
        |one: &Scenario| different.iter().any(|difference| difference.scenario == one.name);
    let some: Vec<Scenario> = scenarios
        .iter()
        .filter(|one| is_different(one))
        .map(|one| Scenario { again: true, ..one.clone() })
        .collect();
    for difference in &different {
        eprintln!("different, so that its scenario is run again: {difference}");
    }
    seen.replace(run(side, &some, Some(recorded)).await?);
    Ok(seen)
}

/// What is different and not known to be.
fn unknown(recorded: &Recorded, seen: &Recorded) -> Result<Vec<Difference>> {
    let mut unknown = Vec::new();
    for (scenario, step, seen) in seen.steps() {
        let keda = recorded.step(scenario, step);
        let keda = keda.with_context(|| format!("{scenario}, {step} was never recorded"))?;
        unknown.extend(differences(scenario, step, keda, seen));
    }
    Ok(unknown)
}

/// Whether nothing is different but what is known, and all that is known to be different still is.
fn verdict(recorded: &Recorded, seen: &Recorded) -> Result<()> {
    let unknown: Vec<String> = unknown(recorded, seen)?.iter().map(ToString::to_string).collect();
    ensure!(unknown.is_empty(), "{} differences:\n{}", unknown.len(), unknown.join("\n"));
    let steps = seen.steps().filter_map(|(scenario, step, seen)| {
        Some(all_differences(scenario, step, recorded.step(scenario, step)?, seen))
    });
    let all: Vec<Difference> = steps.flatten().collect();
    let is_whole =
        Scenario::all()?.iter().all(|one| seen.steps().any(|(name, ..)| name == one.name));
    let same = no_longer_different(&all);
    ensure!(!is_whole || same.is_empty(), "no longer different: {same:#?}");
    Ok(())
}

/// Whether the documentation has every difference, with its reason.
fn documented() -> Result<()> {
    let page = include_str!("../../../../../docs/keda.md").split_whitespace();
    let page = page.collect::<Vec<_>>().join(" ");
    for known in KNOWN.iter() {
        let why = known.why.split_whitespace().collect::<Vec<_>>().join(" ");
        ensure!(page.contains(&why), "docs/keda.md does not say: {why}");
    }
    Ok(())
}
