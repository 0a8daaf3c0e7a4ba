//! Podscale and the real KEDA, one after the other on the same real control plane, with the same ScaledObjects, each with
//! one trigger of a server that has nothing to do: what it costs to go on asking, and how late that is. Prints one table.
//!
//! `cargo bench -p podscale --bench beside_keda -- [FLAG…] [OBJECTS:SECONDS…]`; without any, 1,000 objects that are polled
//! every 30 and every 5 seconds, which takes a quarter of an hour. `e2e/keda/build` has to be run before. Flags:
//!
//! - `--only NAME`: only `podscale` or `keda`
//! - `--one-core`: whoever is measured may use one core only

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

/// What to compare.
#[derive(Default)]
struct Options {
    one_core: bool,
    only: Option<String>,
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
        polled.forget();
        let flags = ["--triggers", "--leader-elect=false"];
        let mut program = Program::start("podscale", &folder, &plane.kubeconfig, &flags)?;
        options.bind(program.id())?;
        measurement("podscale").measure(&[program.id()]).await?;
        program.stop().await?;
    }
    if options.wants("keda") {
        polled.forget();
        let keda = Keda::start(&plane).await?;
        let ids = [keda.operator.id(), keda.server.id()];
        ids.into_iter().try_for_each(|id| options.bind(id))?;
        measurement("keda").measure(&ids).await?;
    }
    drop(plane);
    // What the programs wrote is of no use any more.
    let _ = std::fs::remove_dir_all(&folder);
    Ok(())
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
