//! Runs one timeline on both clusters, and compares them at rest after every step.

use super::super::fixture::api;
use super::change::{Step, Timeline};
use super::cluster::{Clusters, PERIOD};
use super::driver::Driver;
use super::state::{Difference, State};
use anyhow::Result;
use kube::api::ListParams;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

/// How often states are read while they are waited for.
const POLL: Duration = Duration::from_millis(400);
/// How many times each autoscaler must have been reconciled without a change.
const PASSES_AT_REST: f64 = 2.0;
/// How many times each is reconciled before it counts as one that never comes to rest.
const PASSES_RESTLESS: f64 = 12.0;
/// For how long the values of one that never comes to rest are gathered.
const RESTLESS_WINDOW: Duration = PERIOD.saturating_mul(4);
/// How long a new difference is given to vanish: a write that was on its way while its controller was
/// stopped may have missed its deadline, and is repeated after ten seconds.
const LAG: Duration = Duration::from_secs(30);
/// How long a step may take on a busy machine, whatever the passes.
const DEADLINE: Duration = Duration::from_secs(180);

/// A difference after a step.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    pub step: usize,
    pub difference: Difference,
}

/// What a run has to say.
#[derive(Default)]
pub struct Outcome {
    pub found: Vec<Found>,
    /// How many autoscalers were compared, each after every step.
    pub compared: usize,
}

/// Runs a timeline in a namespace of its own.
pub async fn execute(clusters: &Clusters, timeline: &Timeline, namespace: &str) -> Result<Outcome> {
    let [upstream, podscale] = clusters.both();
    let mut drivers =
        [Driver::new(upstream, namespace).await?, Driver::new(podscale, namespace).await?];
    let outcome = steps(clusters, timeline, &mut drivers).await;
    for driver in &drivers {
        driver.close().await;
    }
    outcome
}

async fn steps(
    clusters: &Clusters,
    timeline: &Timeline,
    drivers: &mut [Driver<'_>; 2],
) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut before = [State::default(), State::default()];
    let (mut restless, mut known) = (BTreeSet::new(), BTreeSet::new());
    for (number, step) in timeline.0.iter().enumerate() {
        let mut found = |difference| outcome.found.push(Found { step: number, difference });
        change(clusters, drivers, step, &restless).await?.into_iter().for_each(&mut found);
        let (mut states, at_rest) = settle(clusters, drivers).await?;
        let began = Instant::now();
        let differences = loop {
            let differences = differences(&mut states, &before);
            let news = differences.iter().any(|new| !known.contains(&new.subject));
            if !news || !at_rest || began.elapsed() > LAG {
                break differences;
            }
            tokio::time::sleep(POLL).await;
            states = read(drivers, true).await?;
        };
        known = differences.iter().map(|difference| difference.subject.clone()).collect();
        differences.into_iter().for_each(&mut found);
        let [upstream, podscale] = states;
        outcome.compared += upstream.autoscalers();
        restless = upstream.restless_targets().chain(podscale.restless_targets()).collect();
        before = [upstream, podscale];
    }
    Ok(outcome)
}

/// How the states differ, the times that moved since the last step included.
fn differences(states: &mut [State; 2], before: &[State; 2]) -> Vec<Difference> {
    for (state, before) in states.iter_mut().zip(before) {
        state.note_moved_times(before);
    }
    states[0].differences(&states[1])
}

/// Makes all changes of a step while nothing is reconciled; how they went must not differ.
async fn change(
    clusters: &Clusters,
    drivers: &mut [Driver<'_>; 2],
    step: &Step,
    restless: &BTreeSet<String>,
) -> Result<Vec<Difference>> {
    let [upstream, podscale] = drivers;
    let mut differences = Vec::new();
    let _stopped = clusters.stop_controllers().await?;
    for change in &step.changes {
        let (upstream, podscale) = tokio::join!(upstream.apply(change), podscale.apply(change));
        if upstream != podscale {
            differences.push(Difference { subject: change.to_string(), upstream, podscale });
        }
    }
    let synced = tokio::join!(upstream.sync_workloads(restless), podscale.sync_workloads(restless));
    synced.0.and(synced.1)?;
    Ok(differences)
}

/// Waits until nothing has changed in either cluster while every autoscaler was reconciled several times.
/// Whether they have come to rest is the second answer.
async fn settle(clusters: &Clusters, drivers: &[Driver<'_>; 2]) -> Result<([State; 2], bool)> {
    let began = Instant::now();
    let autoscalers = autoscalers(clusters).await?;
    let passes_at_first = passes(clusters).await?;
    let passed = |since: [f64; 2], now: [f64; 2], times: f64| {
        (0..2).all(|side| now[side] - since[side] >= times * autoscalers[side])
    };
    let (mut rested, mut since) = (Instant::now(), passes_at_first);
    let mut last = read(drivers, false).await?;
    loop {
        tokio::time::sleep(POLL).await;
        let states = read(drivers, false).await?;
        let at_rest = (0..2).all(|side| states[side].is_at_rest_since(&last[side]));
        last = states;
        if !at_rest {
            (rested, since) = (Instant::now(), passes(clusters).await?);
        } else if rested.elapsed() >= PERIOD.mul_f64(PASSES_AT_REST)
            && passed(since, passes(clusters).await?, PASSES_AT_REST)
        {
            return Ok((read(drivers, true).await?, true));
        }
        let restless = began.elapsed() >= PERIOD.mul_f64(PASSES_RESTLESS)
            && passed(passes_at_first, passes(clusters).await?, PASSES_RESTLESS);
        if restless || began.elapsed() > DEADLINE {
            return Ok((gather(drivers).await?, false));
        }
    }
}

/// Everything that is seen for a while.
async fn gather(drivers: &[Driver<'_>; 2]) -> Result<[State; 2]> {
    let began = Instant::now();
    let mut merged = read(drivers, true).await?;
    while began.elapsed() < RESTLESS_WINDOW {
        tokio::time::sleep(POLL / 4).await;
        let states = read(drivers, true).await?;
        for (merged, state) in merged.iter_mut().zip(&states) {
            merged.merge(state);
        }
    }
    Ok(merged)
}

async fn read(drivers: &[Driver<'_>; 2], with_sizes: bool) -> Result<[State; 2]> {
    let [upstream, podscale] = drivers;
    let (upstream, podscale) =
        tokio::join!(State::read(upstream, with_sizes), State::read(podscale, with_sizes));
    Ok([upstream?, podscale?])
}

async fn passes(clusters: &Clusters) -> Result<[f64; 2]> {
    let [upstream, podscale] = clusters.both();
    let (upstream, podscale) = tokio::join!(upstream.passes(), podscale.passes());
    Ok([upstream?, podscale?])
}

/// How many autoscalers each controller has to reconcile, those of other timelines included.
async fn autoscalers(clusters: &Clusters) -> Result<[f64; 2]> {
    let mut counts = [0.0; 2];
    for (cluster, count) in clusters.both().into_iter().zip(&mut counts) {
        let all = api(&cluster.plane.client, None, "autoscaling/v2", "HorizontalPodAutoscaler");
        let list = all.list_metadata(&ListParams::default()).await?;
        *count = list.items.iter().fold(0.0, |count, _| count + 1.0);
    }
    Ok(counts)
}
