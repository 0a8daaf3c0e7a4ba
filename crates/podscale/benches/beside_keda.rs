//! Podscale and the real KEDA, one after the other on the same real control plane, with the same ScaledObjects, each with
//! one trigger of a server that has nothing to do: what it costs to go on asking, and how late that is. Prints one table.
//!
//! `cargo bench -p podscale --bench beside_keda -- [FLAG…] [OBJECTS:SECONDS…]`; without any, 1,000 objects that are polled
//! every 30 and every 5 seconds, which takes ten minutes. `e2e/keda/build` has to be run before. Flags:
//!
//! - `--only NAME`: only `podscale` or `keda`
//! - `--one-core`: whoever is measured may use one core only
//! - `--program FILE`: an optimised `podscale` in the place of the one that is built with this

#![allow(missing_docs, unreachable_pub, reason = "nothing here is used from elsewhere")]
#![allow(dead_code, reason = "parts of the tests' control plane are not needed here")]
#![allow(clippy::print_stdout, reason = "the table is what it is for")]

#[path = "../tests/control_plane/aggregation.rs"]
mod aggregation;
#[path = "../tests/control_plane/binaries.rs"]
mod binaries;
#[path = "../tests/control_plane/certificates.rs"]
mod certificates;
#[path = "cost.rs"]
mod cost;
#[path = "../tests/control_plane/keda_programs.rs"]
mod keda_programs;
#[path = "beside_keda/measure.rs"]
mod measure;
#[path = "beside_keda/objects.rs"]
mod objects;
#[path = "../tests/control_plane/plane.rs"]
mod plane;
#[path = "beside_keda/polled.rs"]
mod polled;
#[path = "../tests/control_plane/process.rs"]
mod process;
#[path = "../tests/control_plane/program.rs"]
mod program;

use anyhow::{Context, Result, bail, ensure};
use keda_programs::{Keda, define, definitions};
use measure::Measurement;
use plane::ControlPlane;
use polled::Polled;
use program::Program;
use std::path::PathBuf;
use tokio::time::Instant;

/// What to compare.
#[derive(Default)]
struct Options {
    one_core: bool,
    only: Option<String>,
    program: Option<PathBuf>,
    /// How many objects, and how often each is polled in seconds.
    loads: Vec<(usize, u32)>,
}

impl Options {
    fn read(arguments: impl IntoIterator<Item = String>) -> Result<Options> {
        let mut options = Options::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--one-core" => options.one_core = true,
                "--only" => options.only = arguments.next(),
                "--program" => options.program = arguments.next().map(PathBuf::from),
                // Cargo's own.
                "--bench" => {}
                load => match load.split_once(':') {
                    Some((count, seconds)) => {
                        options.loads.push((count.parse()?, seconds.parse()?));
                    }
                    None => bail!("{load}: neither a flag nor OBJECTS:SECONDS"),
                },
            }
        }
        if options.loads.is_empty() {
            options.loads = vec![(1000, 30), (1000, 5)];
        }
        Ok(options)
    }

    fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only == name)
    }
}

fn main() -> Result<()> {
    let options = Options::read(std::env::args().skip(1))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    println!("{}", measure::HEAD);
    for (count, seconds) in &options.loads {
        runtime.block_on(compare(*count, *seconds, &options))?;
    }
    Ok(())
}

/// Both on one cluster. Podscale is first, as it makes no HPAs, and those of KEDA would have to go before it.
async fn compare(count: usize, seconds: u32, options: &Options) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("podscale-bench-{}", std::process::id()));
    let plane = ControlPlane::start(&folder).await?;
    define(&plane, &definitions())?;
    let polled = Polled::start(count).await?;
    objects::create(&plane.client, count, seconds, polled.address).await?;
    let measurement = |name| Measurement { plane: &plane, polled: &polled, name, seconds };
    if options.wants("podscale") {
        podscale(&plane, &measurement("podscale"), options).await?;
    }
    if options.wants("keda") {
        keda(&plane, &measurement("keda"), options).await?;
    }
    drop(plane);
    // What the programs wrote is of no use any more.
    let _ = std::fs::remove_dir_all(&folder);
    Ok(())
}

async fn podscale(
    plane: &ControlPlane,
    measurement: &Measurement<'_>,
    options: &Options,
) -> Result<()> {
    let built = PathBuf::from(env!("CARGO_BIN_EXE_podscale"));
    let file = options.program.as_ref().unwrap_or(&built);
    let start = || -> Result<Program> {
        measurement.polled.forget();
        let flags = ["--triggers", "--leader-elect=false"];
        let (folder, kubeconfig) = (plane.folder(), &plane.kubeconfig);
        let program = Program::start_from(file, "podscale", folder, kubeconfig, &flags)?;
        options.bind(program.id())?;
        Ok(program)
    };
    let begun = Instant::now();
    let mut program = start()?;
    let first = measurement.until_all(begun).await?;
    program.stop().await?;
    let begun = Instant::now();
    let mut program = start()?;
    let again = measurement.until_all(begun).await?;
    measurement.measure(&[program.id()], [first, again]).await?;
    program.stop().await
}

async fn keda(
    plane: &ControlPlane,
    measurement: &Measurement<'_>,
    options: &Options,
) -> Result<()> {
    let start = async || -> Result<Keda> {
        measurement.polled.forget();
        let keda = Keda::start(plane).await?;
        options.bind(keda.operator.id())?;
        options.bind(keda.server.id())?;
        Ok(keda)
    };
    let begun = Instant::now();
    let keda = start().await?;
    let first = measurement.until_all(begun).await?;
    drop(keda);
    let begun = Instant::now();
    let keda = start().await?;
    let again = measurement.until_all(begun).await?;
    let ids = [keda.operator.id(), keda.server.id()];
    measurement.measure(&ids, [first, again]).await
}

impl Options {
    fn bind(&self, id: u32) -> Result<()> {
        if self.one_core {
            let arguments = ["-apc".to_owned(), "0".to_owned(), id.to_string()];
            let bound = std::process::Command::new("taskset").args(arguments).output();
            let bound = bound.context("cannot run taskset")?;
            ensure!(bound.status.success(), "taskset: {bound:?}");
        }
        Ok(())
    }
}
