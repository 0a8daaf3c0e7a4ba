//! The `podscale` program.

use clap::Parser;
use podscale::cli::Cli;
use std::process::ExitCode;

fn main() -> ExitCode {
    Cli::parse().run()
}
