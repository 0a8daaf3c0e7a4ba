//! The real KEDA as judge: one timeline of many scenarios, each an object in a namespace of its own, and what was seen
//! of KEDA's operator in each step, recorded. Podscale has to be seen the same: sizes in the same order, conditions,
//! status and events, but for what `e2e/keda/differences.yaml` lists with its reasons.
//!
//! `PODSCALE_KEDA=judge` compares, `record` records KEDA anew, `live` runs both beside each other; without it nothing is run,
//! see `e2e/keda/README.md`.

#[path = "judge/compare.rs"]
mod compare;
#[path = "judge/drive.rs"]
mod drive;
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
use compare::{KNOWN, Recorded, all_differences, differences, no_longer_different};
use drive::drive;
use futures::future::join_all;
use libtest_mimic::Trial;
use scenario::Scenario;
use side::{Side, Who};
use std::path::Path;

/// Asks for a comparison with KEDA: `judge`, `record` or `live`.
const ASKED: &str = "PODSCALE_KEDA";

pub fn trials(harness: &Harness) -> Vec<Trial> {
    let asked = std::env::var(ASKED).unwrap_or_default();
    let folder = harness.folder().join("keda-judge");
    let trial = match asked.as_str() {
        "record" => {
            harness.independent("keda::is_recorded", |_| async move { record(&folder).await })
        }
        "live" => {
            harness.independent("keda::beside_podscale", |_| async move { live(&folder).await })
        }
        "judge" => {
            harness.independent("keda::as_the_operator", |_| async move { judge(&folder).await })
        }
        _ => return Vec::new(),
    };
    vec![trial]
}

/// The kinds that Podscale is judged by; KEDA is recorded with the others, too.
const JUDGED: [&str; 1] = ["ScaledObject"];

/// The scenarios that Podscale is judged by, and whether these are all that there are.
fn judged() -> Result<(Vec<Scenario>, bool)> {
    let is_judged = |one: &Scenario| JUDGED.contains(&one.kind());
    let some: Vec<Scenario> = scenarios()?.into_iter().filter(is_judged).collect();
    let all = Scenario::all()?.iter().filter(|one| is_judged(one)).count();
    let whole = some.len() == all;
    Ok((some, whole))
}

/// The scenarios that are asked for by name, or all.
fn scenarios() -> Result<Vec<Scenario>> {
    let mut all = Scenario::all()?;
    if let Ok(names) = std::env::var("PODSCALE_KEDA_SCENARIOS") {
        all.retain(|one| names.split(',').any(|name| one.name.starts_with(name)));
    }
    Ok(all)
}

/// Runs scenarios at the same time.
async fn run(side: &Side, scenarios: &[Scenario], expected: Option<&Recorded>) -> Result<Recorded> {
    let all =
        scenarios.iter().map(async |scenario| (scenario, drive(side, scenario, expected).await));
    let mut recorded = Recorded::default();
    for (scenario, outcomes) in join_all(all).await {
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
    let (recorded, (scenarios, whole)) = (Recorded::read()?, judged()?);
    let side = Side::start(Who::Podscale, &folder.join("podscale")).await?;
    let seen = run(&side, &scenarios, Some(&recorded)).await?;
    side.stop().await?;
    verdict(&recorded, &seen, whole)
}

/// Podscale as KEDA is now, both at the same time.
async fn live(folder: &Path) -> Result<()> {
    let [theirs, ours] = [folder.join("keda"), folder.join("podscale")];
    let (theirs, ours) =
        tokio::join!(Side::start(Who::Keda, &theirs), Side::start(Who::Podscale, &ours));
    let (theirs, ours, (scenarios, whole)) = (theirs?, ours?, judged()?);
    let (recorded, seen) =
        tokio::join!(run(&theirs, &scenarios, None), run(&ours, &scenarios, None));
    theirs.stop().await?;
    ours.stop().await?;
    verdict(&recorded?, &seen?, whole)
}

/// Whether nothing is different but what is known, and all that is known to be different still is.
fn verdict(recorded: &Recorded, seen: &Recorded, whole: bool) -> Result<()> {
    let (mut unknown, mut all) = (Vec::new(), Vec::new());
    for (scenario, step, seen) in seen.steps() {
        let keda = recorded.step(scenario, step);
        let keda = keda.with_context(|| format!("{scenario}, {step} was never recorded"))?;
        unknown.extend(differences(scenario, step, keda, seen).iter().map(ToString::to_string));
        all.extend(all_differences(scenario, step, keda, seen));
    }
    let count = unknown.len();
    ensure!(count == 0, "{count} differences:\n{}", unknown.join("\n"));
    let same = no_longer_different(&all);
    ensure!(!whole || same.is_empty(), "no longer different: {same:#?}");
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
