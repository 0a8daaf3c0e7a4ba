//! The `podscale` program.

use clap::Parser;
use podscale::cli::Cli;
use std::process::ExitCode;

/// Decisions allocate little but often, which this one does in less time and space than the system's,
/// and in static images much less.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    Cli::parse().run()
}
