//! `podscale run` on a real control plane: etcd, kube-apiserver and kube-controller-manager, real
//! aggregation, and metrics of which each scenario says what they are.
//!
//! Takes minutes, so it runs only with `--include-ignored`; `docs/development.md` tells more.

#[path = "control_plane/aggregation.rs"]
mod aggregation;
#[path = "control_plane/behaviours.rs"]
mod behaviours;
#[path = "control_plane/beside.rs"]
mod beside;
#[path = "control_plane/between.rs"]
mod between;
#[path = "control_plane/diary.rs"]
mod diary;
#[path = "control_plane/dry.rs"]
mod dry;
#[path = "control_plane/installed.rs"]
mod installed;
#[path = "control_plane/keys.rs"]
mod keys;
#[path = "control_plane/kubelet.rs"]
mod kubelet;
#[path = "control_plane/many.rs"]
mod many;
#[path = "control_plane/metric_types.rs"]
mod metric_types;
#[path = "control_plane/metrics.rs"]
mod metrics;
#[path = "control_plane/objects.rs"]
mod objects;
#[path = "control_plane/outages.rs"]
mod outages;
#[path = "control_plane/parts.rs"]
mod parts;
#[path = "control_plane/plane.rs"]
mod plane;
#[path = "control_plane/process.rs"]
mod process;
#[path = "control_plane/program.rs"]
mod program;
#[path = "control_plane/rights.rs"]
mod rights;
#[path = "control_plane/room.rs"]
mod room;
#[path = "control_plane/sources.rs"]
mod sources;
#[path = "control_plane/stage.rs"]
mod stage;
#[path = "control_plane/targets.rs"]
mod targets;
#[path = "control_plane/timelines.rs"]
mod timelines;
#[path = "control_plane/troubles.rs"]
mod troubles;

use anyhow::Result;
use libtest_mimic::{Arguments, Trial};
use stage::Theatre;
use std::process::ExitCode;

/// How many scenarios run at once; they wait for most of their time.
const AT_ONCE: usize = 12;

fn main() -> Result<ExitCode> {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = arguments.test_threads.or(Some(AT_ONCE));
    let asked = arguments.ignored || arguments.include_ignored;
    let in_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    if asked && !in_ci && !parts::obtainable() {
        eprintln!(
            "\n!! LEFT OUT: all tests on a real control plane: there are neither etcd, kube-apiserver \
             and kube-controller-manager in $KUBEBUILDER_ASSETS nor Go to build them\n"
        );
        return Ok(ExitCode::SUCCESS);
    }
    let theatre = Theatre::new()?;
    let trials = trials(&theatre)?.into_iter().map(|trial| trial.with_ignored_flag(true));
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    theatre.close();
    Ok(conclusion.exit_code())
}

/// Those that share the stage come first, the longest of them at the beginning; each of the others has
/// it for itself.
fn trials(theatre: &Theatre) -> Result<Vec<Trial>> {
    let mut trials = Vec::new();
    trials.extend(troubles::trials(theatre));
    trials.extend(objects::trials(theatre));
    trials.extend(metric_types::trials(theatre));
    trials.extend(behaviours::trials(theatre));
    trials.extend(targets::trials(theatre));
    trials.extend(rights::trials(theatre));
    trials.extend(installed::trials(theatre));
    trials.extend(sources::trials(theatre));
    trials.extend(timelines::trials(theatre)?);
    trials.extend(beside::trials(theatre));
    trials.extend(many::trials(theatre));
    trials.extend(outages::trials(theatre));
    Ok(trials)
}
