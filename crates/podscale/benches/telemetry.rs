//! What telemetry costs a reconcile that makes one request: without its hooks, with them and nobody
//! listening, and with everything sent to a collector. Prints one table.
//!
//! `cargo bench -p podscale --bench telemetry`

#![allow(missing_docs, unreachable_pub, reason = "nothing here is used from elsewhere")]
#![allow(clippy::print_stdout, reason = "the table is what it is for")]
#![allow(dead_code, reason = "parts of the core's fixture are not needed here")]

#[path = "../../podscale-core/tests/support/fixture.rs"]
mod fixture;

use anyhow::{Context, Result};
use clap::Parser;
use fixture::Fixture;
use podscale::cli::logs;
use podscale_api::hpa::v2::HorizontalPodAutoscaler;
use podscale_client::instrument::RequestLayer;
use podscale_controller::controller::observer::{Decided, Log, Observer, Took};
use podscale_controller::dialect::hpa;
use podscale_controller::metrics::Metrics;
use podscale_controller::spans;
use podscale_controller::telemetry::{self, Telemetry};
use podscale_core::pass::Pass;
use std::hint::black_box;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;
use tower::{Layer, Service, service_fn};
use tracing::Instrument;

const RECONCILES: u32 = 50_000;
/// More than one, since others use the machine as well; the quickest counts.
const ROUNDS: usize = 5;
/// Tells the process what it is to measure.
const MODE: &str = "PODSCALE_BENCH_MODE";

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    log: logs::Arguments,
    #[command(flatten)]
    telemetry: telemetry::Arguments,
}

fn main() -> Result<()> {
    if let Ok(mode) = std::env::var(MODE) {
        return measure(&mode);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let url = runtime.block_on(collect())?;
    println!(
        "| hooks | µs per reconcile | CPU µs per reconcile, sending included |\n|---|---|---|"
    );
    for (mode, name) in [("none", "none"), ("off", "nobody listens"), ("on", "all is sent")] {
        let mut best = [f64::MAX; 2];
        for _ in 0..ROUNDS {
            let mut command = Command::new(std::env::current_exe()?);
            command.env(MODE, mode).env("OTEL_BSP_MAX_QUEUE_SIZE", "1048576");
            if mode == "on" {
                command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &url);
            }
            let text = String::from_utf8(command.output()?.stdout)?;
            let mut numbers = text.split_whitespace().map(str::parse::<f64>);
            for best in &mut best {
                *best = best.min(numbers.next().context("a number is missing")??);
            }
        }
        println!("| {name} | {:.3} | {:.3} |", best[0], best[1]);
    }
    Ok(())
}

/// A collector that takes everything and reads nothing.
async fn collect() -> Result<String> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let take = async |_: axum::body::Bytes| ();
    let limit = axum::extract::DefaultBodyLimit::disable();
    let router = axum::Router::new().fallback(take).layer(limit);
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(url)
}

fn measure(mode: &str) -> Result<()> {
    let flags = Flags::parse_from(["bench"]);
    let telemetry = Telemetry::start(&flags.telemetry, &Metrics::new())?;
    flags.log.start(&telemetry)?;
    let mut observers: Vec<Arc<dyn Observer>> = vec![Arc::new(Log)];
    observers.extend(telemetry.observer());
    let fixture = Fixture::of(2).cpu(50, 50).limits(1, 10);
    let object = hpa::managed(HorizontalPodAutoscaler::default());
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let took = Took::default();
    let reconcile = async || {
        let snapshot = black_box(fixture.snapshot());
        let outcome = Pass::begin(&snapshot).finish();
        let decided = Decided::new(&object, &snapshot, &outcome, &took);
        observers.iter().for_each(|observer| observer.decided(black_box(&decided)));
    };
    let answer =
        async |_: axum::http::Request<()>| Ok::<_, ()>(black_box(axum::http::Response::new(())));
    let request = || axum::http::Request::new(());
    let mut plain = service_fn(answer);
    let mut measured = RequestLayer::new(Arc::new(())).layer(service_fn(answer));
    let began = (Instant::now(), cpu_seconds());
    runtime.block_on(async {
        for _ in 0..RECONCILES {
            if mode == "none" {
                let _ = black_box(plain.call(request()).await);
                reconcile().await;
                continue;
            }
            async {
                let _ = black_box(measured.call(request()).await);
                reconcile().await;
            }
            .instrument(spans::reconcile(&object.key))
            .await;
        }
    });
    let took = began.0.elapsed().as_secs_f64();
    telemetry.finish();
    let micros = 1e6 / f64::from(RECONCILES);
    println!("{} {}", took * micros, (cpu_seconds() - began.1) * micros);
    Ok(())
}

/// What this process has taken so far, in seconds; hundredths are counted.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let numbers = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: Vec<f64> = numbers.skip(11).take(2).filter_map(|n| n.parse().ok()).collect();
    ticks.iter().sum::<f64>() / 100.0
}
