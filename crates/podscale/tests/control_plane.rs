//! `podscale run` on a real control plane: etcd, kube-apiserver and kube-controller-manager, real
//! aggregation, and metrics of which each scenario says what they are.
//!
//! Takes minutes, so it runs only with `--include-ignored`; see `docs/development.md`.

#![allow(missing_docs, unreachable_pub, reason = "nothing here is used from elsewhere")]

#[path = "control_plane/adopted.rs"]
mod adopted;
#[path = "control_plane/aggregation.rs"]
mod aggregation;
#[path = "control_plane/behaviors.rs"]
mod behaviors;
#[path = "control_plane/beside_upstream.rs"]
mod beside_upstream;
#[path = "control_plane/binaries.rs"]
mod binaries;
#[path = "control_plane/certificates.rs"]
mod certificates;
#[path = "control_plane/chpa.rs"]
mod chpa;
#[path = "control_plane/dry_run.rs"]
mod dry_run;
#[path = "control_plane/faults.rs"]
mod faults;
#[path = "control_plane/fixture.rs"]
mod fixture;
#[path = "control_plane/harness.rs"]
mod harness;
#[path = "control_plane/installed.rs"]
mod installed;
#[path = "control_plane/jobs.rs"]
mod jobs;
#[path = "control_plane/keda.rs"]
mod keda;
#[path = "control_plane/keda_programs.rs"]
mod keda_programs;
#[path = "control_plane/kubelet.rs"]
mod kubelet;
#[path = "control_plane/many.rs"]
mod many;
#[path = "control_plane/metric_rights.rs"]
mod metric_rights;
#[path = "control_plane/metric_types.rs"]
mod metric_types;
#[path = "control_plane/metrics.rs"]
mod metrics;
#[path = "control_plane/node.rs"]
mod node;
#[path = "control_plane/objects.rs"]
mod objects;
#[path = "control_plane/outages.rs"]
mod outages;
#[path = "control_plane/pipeline.rs"]
mod pipeline;
#[path = "control_plane/plane.rs"]
mod plane;
#[path = "control_plane/pod_autoscaler.rs"]
mod pod_autoscaler;
#[path = "control_plane/process.rs"]
mod process;
#[path = "control_plane/program.rs"]
mod program;
#[path = "control_plane/proxy.rs"]
mod proxy;
#[path = "control_plane/rbac.rs"]
mod rbac;
#[path = "control_plane/serve.rs"]
mod serve;
#[path = "control_plane/singlecloud.rs"]
mod singlecloud;
#[path = "control_plane/sources.rs"]
mod sources;
#[path = "control_plane/targets.rs"]
mod targets;
#[path = "control_plane/timelines.rs"]
mod timelines;
#[path = "control_plane/transcript.rs"]
mod transcript;
#[path = "control_plane/unreliable_network.rs"]
mod unreliable_network;
#[path = "control_plane/versions.rs"]
mod versions;
#[path = "control_plane/webhook.rs"]
mod webhook;

use anyhow::Result;
use harness::Harness;
use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;

/// How many scenarios run at once; they wait for most of their time.
const AT_ONCE: usize = 12;

fn main() -> Result<ExitCode> {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = arguments.test_threads.or(Some(AT_ONCE));
    let asked = arguments.ignored || arguments.include_ignored;
    let in_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    if asked && !in_ci && !binaries::obtainable() {
        eprintln!(
            "\n!! LEFT OUT: all tests on a real control plane: there are neither etcd, kube-apiserver, \
             kube-controller-manager and kubectl in $KUBEBUILDER_ASSETS nor Go to build them\n"
        );
        return Ok(ExitCode::SUCCESS);
    }
    let harness = Harness::new()?;
    let mut trials = trials(&harness)?;
    match (asked && !in_ci).then(pipeline::possible) {
        Some(Err(reason)) => eprintln!("\n!! LEFT OUT: the tests with Prometheus: {reason}\n"),
        _ => trials.splice(0..0, pipeline::trials(&harness)).for_each(drop),
    }
    let on_node = node::trials(&harness);
    match (asked && !in_ci).then(node::possible) {
        Some(Err(reason)) => eprintln!("\n!! LEFT OUT: all tests on a real node: {reason}\n"),
        _ => trials.extend(on_node),
    }
    let trials = trials.into_iter().map(|trial| trial.with_ignored_flag(true));
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    harness.close();
    Ok(conclusion.exit_code())
}

/// Those that share the environment come first, the longest of them at the beginning; each of the others has
/// it for itself.
fn trials(harness: &Harness) -> Result<Vec<Trial>> {
    let mut trials = Vec::new();
    trials.extend(unreliable_network::trials(harness));
    trials.extend(chpa::trials(harness));
    trials.extend(objects::trials(harness));
    trials.extend(versions::trials(harness));
    trials.extend(metric_types::trials(harness));
    trials.extend(behaviors::trials(harness));
    trials.extend(targets::trials(harness));
    trials.extend(rbac::trials(harness));
    trials.extend(pod_autoscaler::trials(harness));
    trials.extend(adopted::trials(harness));
    trials.extend(jobs::trials(harness));
    trials.extend(keda::trials(harness));
    trials.extend(installed::trials(harness));
    trials.extend(sources::trials(harness));
    trials.extend(faults::trials(harness));
    trials.extend(serve::trials(harness));
    trials.extend(metric_rights::trials(harness));
    trials.extend(singlecloud::trials(harness));
    trials.extend(webhook::trials(harness));
    trials.extend(timelines::trials(harness)?);
    trials.extend(beside_upstream::trials(harness));
    trials.extend(many::trials(harness));
    trials.extend(outages::trials(harness));
    Ok(trials)
}
