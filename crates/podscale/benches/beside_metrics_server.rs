//! What it costs to collect the metrics of many nodes: programs run at the same time on the same real
//! control plane and the same simulated kubelets, each of which has thirty pods. Prints what each costs,
//! and whether they say the same.
//!
//! `cargo bench -p podscale --bench beside_metrics_server -- [FLAG…] [COUNT…]`; about three
//! minutes for each number of nodes, of which 100, 1,000 and 5,000 are taken if none is given. Flags:
//!
//! - `--seconds N`: for how long each is measured; 60 unless given
//! - `--only NAME`: only the program of that name
//! - `--latency`: measures instead how long a change at a kubelet takes to reach the scale of the target,
//!   with so many autoscalers (1,000 if not given); about six minutes

#![allow(missing_docs, unreachable_pub, reason = "nothing here is used from elsewhere")]
#![allow(dead_code, reason = "parts of the tests' control plane are not needed here")]
#![allow(clippy::print_stdout, reason = "the table is what it is for")]

#[path = "../tests/control_plane/aggregation.rs"]
mod aggregation;
#[path = "beside_metrics_server/agreement.rs"]
mod agreement;
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
#[path = "beside_metrics_server/kubelets.rs"]
mod kubelets;
#[path = "beside_upstream/latency.rs"]
mod latency;
#[path = "beside_metrics_server/objects.rs"]
mod objects;
#[path = "../tests/control_plane/plane.rs"]
mod plane;
#[path = "../tests/control_plane/process.rs"]
mod process;
#[path = "../tests/control_plane/program.rs"]
mod program;
#[path = "beside_metrics_server/programs.rs"]
mod programs;
#[path = "beside_metrics_server/reaction.rs"]
mod reaction;
#[path = "beside_metrics_server/usage.rs"]
mod usage;

use agreement::Answer;
use anyhow::{Context, Result, bail, ensure};
use cost::{cpu_seconds, resident_mib};
use kubelets::Kubelets;
use plane::ControlPlane;
use programs::{CONTENDERS, Serving};
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// How often each kubelet is asked.
const RESOLUTION: Duration = Duration::from_secs(15);
/// How often each kubelet must have been asked before anything is measured.
const ROUNDS_BEFORE: u64 = 3;
/// How long that may take.
const WARM_UP: Duration = Duration::from_secs(180);
const HEAD: &str = "| nodes | program | scrapes/s | mcores | mcores per node | µs per scrape \
     | RSS MiB, most | MiB per node |\n|---|---|---|---|---|---|---|---|";

struct Options {
    seconds: u64,
    only: Option<String>,
    latency: bool,
    counts: Vec<usize>,
}

impl Options {
    fn read(arguments: impl IntoIterator<Item = String>) -> Result<Options> {
        let mut options = Options { seconds: 60, only: None, latency: false, counts: Vec::new() };
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--seconds" => {
                    let seconds = arguments.next().context("--seconds needs a number")?;
                    options.seconds = seconds.parse().context("--seconds needs a number")?;
                }
                "--only" => options.only = arguments.next(),
                "--latency" => options.latency = true,
                // Cargo's own.
                "--bench" => {}
                count => match count.parse() {
                    Ok(count) => options.counts.push(count),
                    Err(_) => bail!("{count}: neither a flag nor a number"),
                },
            }
        }
        if options.counts.is_empty() {
            options.counts = if options.latency { vec![1000] } else { vec![100, 1000, 5000] };
        }
        Ok(options)
    }
}

fn main() -> Result<()> {
    let options = Options::read(std::env::args().skip(1))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    println!("{}", if options.latency { latency::HEAD } else { HEAD });
    let mut answers = Vec::new();
    for count in &options.counts {
        let folder = std::env::temp_dir().join(format!("podscale-bench-{}", std::process::id()));
        if options.latency {
            let only = options.only.as_deref();
            runtime.block_on(reaction::compare(*count, only, &folder))?;
        } else {
            answers.push((*count, runtime.block_on(compare(*count, &options, &folder))?));
        }
        // What the programs wrote is of no use any more.
        let _ = std::fs::remove_dir_all(&folder);
    }
    if answers.iter().any(|(_, answers)| answers.len() > 1) {
        println!("\n{}", agreement::HEAD);
    }
    for (count, answers) in &answers {
        if let [one, other] = answers.as_slice() {
            one.compare(other, *count)?;
        }
    }
    Ok(())
}

/// All programs beside each other on one cluster; what each of them says in the end.
async fn compare(count: usize, options: &Options, folder: &Path) -> Result<Vec<Answer>> {
    let plane = ControlPlane::start(folder).await?;
    let kubelets = Kubelets::start(&plane.authority, usage::steady()).await?;
    objects::create_nodes(&plane, count, kubelets.port).await?;
    objects::put_pods(&plane, count).await?;
    let mut running = Vec::new();
    for contender in &CONTENDERS {
        if options.only.as_ref().is_none_or(|only| contender.name == only) {
            let serving = (contender.start)(&plane, RESOLUTION)?;
            // One after the other, so that their first connections do not come at the same time.
            until_asked(&kubelets, contender.name, count as u64 * ROUNDS_BEFORE)
                .await
                .with_context(|| serving.process.log_tail())?;
            running.push((contender.name, serving));
        }
    }
    measure(count, &running, &kubelets, options.seconds).await?;
    let mut answers = Vec::new();
    for (name, serving) in &running {
        let answer = Answer::ask(&serving.client(&plane).await?).await;
        answers.push(answer.with_context(|| format!("{name}: {}", serving.process.log_tail()))?);
    }
    Ok(answers)
}

/// Waits until a program has asked so often.
async fn until_asked(kubelets: &Kubelets, name: &str, times: u64) -> Result<()> {
    let deadline = Instant::now() + WARM_UP;
    while kubelets.answered(name) < times {
        let asked = kubelets.answered(name);
        ensure!(Instant::now() < deadline, "{name} asked only {asked} times, not {times}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(())
}

/// Prints what each costs while so many seconds pass.
async fn measure(
    count: usize,
    running: &[(&str, Serving)],
    kubelets: &Kubelets,
    seconds: u64,
) -> Result<()> {
    let id = |serving: &Serving| serving.process.id();
    let costs = |(name, serving): &(&str, Serving)| {
        anyhow::Ok((cpu_seconds(id(serving))?, kubelets.answered(name)))
    };
    let before = running.iter().map(costs).collect::<Result<Vec<_>>>()?;
    let mut resident = vec![0.0; running.len()];
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(seconds) {
        tokio::time::sleep(Duration::from_secs(1)).await;
        for (most, (_, serving)) in resident.iter_mut().zip(running) {
            *most = resident_mib(id(serving))?.max(*most);
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    for ((one, (cpu, scrapes)), resident) in running.iter().zip(before).zip(resident) {
        let after = costs(one)?;
        let (name, scrapes, cpu) = (one.0, after.1 - scrapes, after.0 - cpu);
        ensure!(scrapes > 0, "{name} asks no kubelet");
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let (nodes, scrapes) = (count as f64, scrapes as f64);
        let mcores = cpu * 1000.0 / seconds;
        println!(
            "| {count} | {name} | {:.1} | {mcores:.0} | {:.3} | {:.0} | {resident:.0} | {:.3} |",
            scrapes / seconds,
            mcores / nodes,
            cpu * 1e6 / scrapes,
            resident / nodes,
        );
    }
    Ok(())
}
