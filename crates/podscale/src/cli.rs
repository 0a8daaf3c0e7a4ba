//! The command line: what can be asked for, and how the answer ends.

use clap::{Parser, Subcommand};
use std::io::Write;
use std::process::ExitCode;

pub mod ask;
pub mod demo;
pub mod explain;
pub mod install;
pub mod logs;
pub mod prometheus;
pub mod recording;
pub mod replay;
pub mod run;
pub mod signal;
pub mod top;
pub mod validate;

/// The horizontal pod autoscaler for Kubernetes that explains itself.
#[derive(Debug, Parser)]
#[command(
    name = "podscale",
    version,
    propagate_version = true,
    max_term_width = 100,
    // As with the programs of Kubernetes, the last one of the same flag counts.
    args_override_self = true
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Arguments),
    Explain(explain::Arguments),
    Install(install::Arguments),
    Replay(replay::Arguments),
    Run(Box<run::Arguments>),
    Top(top::Arguments),
    Validate(validate::Arguments),
}

impl Cli {
    /// Does what was asked for. Exit codes: 0 done, 1 not as it should be, 2 usage error.
    #[must_use]
    pub fn run(self) -> ExitCode {
        match self.command {
            Command::Demo(arguments) => demo::run(&arguments),
            Command::Explain(arguments) => explain::run(&arguments),
            Command::Install(arguments) => install::run(&arguments),
            Command::Replay(arguments) => replay::run(&arguments),
            Command::Run(arguments) => run::run(&arguments),
            Command::Top(arguments) => top::run(&arguments),
            Command::Validate(arguments) => validate::run(&arguments),
        }
    }
}

/// Ends a command: done, or one line that says why not.
fn conclude(done: Result<(), impl std::fmt::Display>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            complain(failure);
            ExitCode::FAILURE
        }
    }
}

/// Prints the output of a command; if nobody reads any more, nothing is lost.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// One line on standard error; if even that fails, nobody can read it.
fn complain(message: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "podscale: {message}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn flags_make_sense_together() {
        Cli::command().debug_assert();
    }
}
