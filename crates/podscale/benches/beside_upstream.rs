//! Podscale and kube-controller-manager's autoscaler, one after the other on the same real control
//! plane, with the same autoscalers, pods and metrics: what each costs. Prints one table.
//!
//! `cargo bench -p podscale --bench beside_upstream -- [FLAG…] [COUNT…]`; takes about
//! eight minutes for a thousand autoscalers. Flags:
//!
//! - `--steady`: the metrics do not change, so that nobody has a status to write
//! - `--one-namespace`: all in one namespace rather than twenty in each
//! - `--latency`: measures only how long a change of a metric takes to reach the target
//! - `--only NAME`: only the controller of that name
//! - `--one-core`: Podscale may use one core only

#![allow(missing_docs, unreachable_pub, reason = "nothing here is used from elsewhere")]
#![allow(dead_code, reason = "parts of the tests' control plane are not needed here")]
#![allow(clippy::print_stdout, reason = "the table is what it is for")]

#[path = "../tests/control_plane/aggregation.rs"]
mod aggregation;
#[path = "autoscalers.rs"]
mod autoscalers;
#[path = "../tests/control_plane/binaries.rs"]
mod binaries;
#[path = "../tests/control_plane/certificates.rs"]
mod certificates;
#[path = "cost.rs"]
mod cost;
#[path = "../tests/control_plane/kubelet.rs"]
mod kubelet;
#[path = "beside_upstream/latency.rs"]
mod latency;
#[path = "beside_upstream/load.rs"]
mod load;
#[path = "beside_upstream/measure.rs"]
mod measure;
#[path = "../tests/control_plane/metrics.rs"]
mod metrics;
#[path = "../tests/control_plane/plane.rs"]
mod plane;
#[path = "../tests/control_plane/process.rs"]
mod process;
#[path = "../tests/control_plane/program.rs"]
mod program;

use anyhow::{Context, Result, bail};
use autoscalers::{Places, USED};
use load::Load;
use measure::Measurement;
use plane::{Autoscaler, ControlPlane};
use program::Program;
use std::path::Path;

/// What to compare.
#[derive(Default)]
struct Options {
    steady: bool,
    one_namespace: bool,
    latency: bool,
    one_core: bool,
    only: Option<String>,
    counts: Vec<usize>,
}

impl Options {
    fn read(arguments: impl IntoIterator<Item = String>) -> Result<Options> {
        let mut options = Options::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--steady" => options.steady = true,
                "--one-namespace" => options.one_namespace = true,
                "--latency" => options.latency = true,
                "--one-core" => options.one_core = true,
                "--only" => options.only = arguments.next(),
                // Cargo's own.
                "--bench" => {}
                count => match count.parse() {
                    Ok(count) => options.counts.push(count),
                    Err(_) => bail!("{count}: neither a flag nor a number of autoscalers"),
                },
            }
        }
        if options.counts.is_empty() {
            options.counts.push(1000);
        }
        Ok(options)
    }
}

/// A controller and how it is set.
struct Contender {
    name: &'static str,
    flags: &'static [&'static str],
}

const UPSTREAM: Contender = Contender {
    name: "kube-controller-manager, tuned",
    flags: &[
        "--controllers=horizontal-pod-autoscaler-controller",
        "--use-service-account-credentials=false",
        "--kube-api-qps=100000",
        "--kube-api-burst=100000",
        "--concurrent-horizontal-pod-autoscaler-syncs=50",
    ],
};
const PODSCALE: Contender = Contender { name: "podscale", flags: &["--leader-elect=false"] };
/// As upstream does.
const EVERY_STATUS: Contender = Contender {
    name: "podscale, every status",
    flags: &["--leader-elect=false", "--status-refreshes-per-second=1000000"],
};
/// Reconciles, and so reads its sources, often.
const EVERY_SECOND: Contender = Contender {
    name: "podscale, every second",
    flags: &["--leader-elect=false", "--horizontal-pod-autoscaler-sync-period=1s"],
};

fn main() -> Result<()> {
    let options = Options::read(std::env::args().skip(1))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    println!("{}", if options.latency { latency::HEAD } else { measure::HEAD });
    for count in &options.counts {
        runtime.block_on(compare(*count, &options))?;
    }
    Ok(())
}

/// All controllers on one cluster.
async fn compare(count: usize, options: &Options) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("podscale-bench-{}", std::process::id()));
    let plane = ControlPlane::start(&folder).await?;
    let places = Places { count, one_namespace: options.one_namespace };
    let load = Load::start(&plane, places, options.steady).await?;
    let contenders: &[Contender] = if options.latency {
        &[UPSTREAM, PODSCALE, EVERY_SECOND]
    } else {
        &[UPSTREAM, PODSCALE, EVERY_STATUS]
    };
    for (turn, contender) in contenders.iter().enumerate() {
        if options.only.as_ref().is_none_or(|only| contender.name == only) {
            run(contender, turn, &plane, &load, &folder, options).await?;
        }
    }
    drop(load);
    drop(plane);
    // What the programs wrote is of no use any more.
    let _ = std::fs::remove_dir_all(&folder);
    Ok(())
}

async fn run(
    contender: &Contender,
    turn: usize,
    plane: &ControlPlane,
    load: &Load,
    folder: &Path,
    options: &Options,
) -> Result<()> {
    let Contender { name, flags } = contender;
    let double = |number: usize| load.set(number, 2 * USED);
    if *name == UPSTREAM.name {
        plane.start_manager(Autoscaler::On, flags).await?;
        let id = plane.manager_id().context("kube-controller-manager has ended")?;
        if options.latency {
            latency::measure(name, turn, plane, load.places, double).await?;
        } else {
            Measurement { plane, load, name, id, program: None }.measure().await?;
        }
        plane.stop_manager();
        return Ok(());
    }
    let mut program = Program::start("podscale", folder, &plane.kubeconfig, flags)?;
    if options.one_core {
        let id = program.id().to_string();
        let bound = std::process::Command::new("taskset").args(["-apc", "0", &id]).output()?;
        anyhow::ensure!(bound.status.success(), "taskset: {bound:?}");
    }
    if options.latency {
        latency::measure(name, turn, plane, load.places, double).await?;
    } else {
        let id = program.id();
        Measurement { plane, load, name, id, program: Some(&program) }.measure().await?;
    }
    program.stop().await
}
