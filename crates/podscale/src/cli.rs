//! The command line: one module per command, and how each of them reports its result.

use clap::{Parser, Subcommand};
use std::io::Write;
use std::process::ExitCode;

pub mod adopt;
pub mod ask;
pub mod convert;
pub mod demo;
pub mod explain;
pub mod install;
pub mod kubelet;
pub mod leader;
pub mod logs;
pub mod manifests;
pub mod pipeline;
pub mod prometheus;
pub mod recording;
pub mod replay;
pub mod run;
pub mod serve;
pub mod serving;
pub mod signal;
pub mod simulate;
pub mod singlecloud;
pub mod top;
pub mod triggers;
pub mod validate;

/// A horizontal pod autoscaler for Kubernetes that explains its decisions.
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
    Adopt(adopt::Arguments),
    Convert(convert::Arguments),
    Demo(demo::Arguments),
    Explain(explain::Arguments),
    Install(install::Arguments),
    Replay(replay::Arguments),
    Run(Box<run::Arguments>),
    Serve(Box<serve::Arguments>),
    Simulate(Box<simulate::Arguments>),
    Top(top::Arguments),
    Tune(Box<simulate::tune::Arguments>),
    Validate(validate::Arguments),
}

impl Cli {
    /// Does what was asked for. Exit codes: 0 done, 1 not as it should be, 2 usage error.
    #[must_use]
    pub fn run(self) -> ExitCode {
        match self.command {
            Command::Adopt(arguments) => adopt::run(&arguments),
            Command::Convert(arguments) => convert::run(&arguments),
            Command::Demo(arguments) => demo::run(&arguments),
            Command::Explain(arguments) => explain::run(&arguments),
            Command::Install(arguments) => install::run(&arguments),
            Command::Replay(arguments) => replay::run(&arguments),
            Command::Run(arguments) => run::run(&arguments),
            Command::Serve(arguments) => serve::run(&arguments),
            Command::Simulate(arguments) => simulate::run(&arguments),
            Command::Top(arguments) => top::run(&arguments),
            Command::Tune(arguments) => simulate::tune::run(&arguments),
            Command::Validate(arguments) => validate::run(&arguments),
        }
    }
}

/// Ends a command: done, or one line that says why not.
fn conclude(done: Result<(), impl std::fmt::Display>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            print_error(failure);
            ExitCode::FAILURE
        }
    }
}

/// Prints the output of a command; if nobody reads any more, nothing is lost.
fn print(text: &str) {
    let mut out = std::io::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// One line on standard error; if even that fails, nobody can read it.
fn print_error(message: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "podscale: {message}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use podscale_controller::controller::Config;
    use podscale_controller::controller::manage::{Manage, Which};
    use podscale_controller::controller::refresh::RefreshRate;
    use podscale_controller::settings::{amount, duration, span, sync_period};
    use podscale_core::Settings;

    #[test]
    fn flags_make_sense_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_help_of_run_begins_with_every_kind() {
        let command = Cli::command();
        let about = command.find_subcommand("run").and_then(clap::Command::get_long_about);
        let about = about.expect("a text").to_string();
        let begin = about.split(". ").next().unwrap_or_default();
        for dialect in podscale_controller::dialect::built_in() {
            assert!(begin.contains(dialect.kind().name), "{} in {begin}", dialect.kind().name);
        }
    }

    /// What `podscale run` does without flags is what a controller does with its default settings.
    #[test]
    fn defaults_of_flags_are_those_of_the_controller() {
        let command = Cli::command();
        let run = command.find_subcommand("run").expect("a command");
        let default = |id: &str| {
            let flag = run.get_arguments().find(|flag| flag.get_id() == id);
            let values = flag.unwrap_or_else(|| panic!("no flag {id}")).get_default_values();
            values.first().and_then(|value| value.to_str()).unwrap_or_default().to_owned()
        };
        let span_of = |id: &str| span(duration(&default(id)).expect("a duration"));
        let flags = Config {
            period: sync_period(&default("sync_period")).expect("a period"),
            concurrency: default("concurrency").parse().expect("a number"),
            settings: Settings {
                tolerance: amount(&default("tolerance")).expect("a number"),
                downscale_stabilization: span_of("downscale_stabilization"),
                cpu_initialization_period: span_of("cpu_initialization_period"),
                initial_readiness_delay: span_of("initial_readiness_delay"),
            },
            manage: Manage::default(),
            dry_run: false,
            refresh_rate: RefreshRate(
                amount(&default("status_refreshes_per_second")).expect("a number"),
            ),
        };
        assert_eq!(flags, Config::default());
        assert_eq!(default("manage"), Which::default().name());
    }
}
