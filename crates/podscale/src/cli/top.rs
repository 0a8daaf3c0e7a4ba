//! `podscale top`: all autoscalers in the terminal, live.

mod app;
mod screen;
mod table;

use super::ask::{self, AdminClient, AskError, AutoscalerList};
use super::{conclude, print};
use app::{App, Sort};
use clap::{Args, ValueEnum};
use parking_lot::Mutex;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Show all autoscalers in the terminal, live.
///
/// Queries a running `podscale run` or `podscale demo` through its admin port. Keys: q quits, / filters, arrows
/// and page keys move, and n, r, m, l and t sort by name, replicas, metric, last scale and trouble. If the
/// output is not a terminal, or with --output, it prints the table once.
///
/// Exit codes: 0 shown, 1 no controller to query, 2 usage error.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    ask: ask::Arguments,

    /// Only autoscalers whose namespace/name or target contains this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,

    /// The sort order.
    #[arg(long, value_enum, default_value_t)]
    sort: Sort,

    /// How often to refresh, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 2, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,

    /// Print once, in this format.
    #[arg(long, short, value_enum)]
    output: Option<Output>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// The table.
    Text,
    /// The table with the latest decision and its reason.
    Wide,
    /// One JSON object.
    Json,
}

/// Why there is nothing to see.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error("cannot start: {0}")]
    Runtime(io::Error),
    #[error("cannot use the terminal: {0}")]
    Terminal(io::Error),
}

/// Runs the command.
#[must_use]
pub fn run(arguments: &Arguments) -> ExitCode {
    conclude(show(arguments))
}

fn show(arguments: &Arguments) -> Result<(), Failure> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().build().map_err(Failure::Runtime)?;
    let client = AdminClient::new(&arguments.ask);
    // That nothing is there is better an error than an empty screen.
    let first = runtime.block_on(client.list())?;
    let mut app = App::new(client.admin().to_owned(), arguments.sort, arguments.filter.clone());
    app.take(Ok(first));
    let output = match arguments.output {
        None if io::stdout().is_terminal() && io::stdin().is_terminal() => {
            let interval = Duration::from_secs(arguments.interval);
            let latest = Latest::default();
            runtime.spawn(refresh(client, interval, Arc::clone(&latest)));
            let shown = screen::show(&mut app, &latest).map_err(Failure::Terminal);
            runtime.shutdown_background();
            return shown;
        }
        output => output.unwrap_or(Output::Text),
    };
    let text = match output {
        Output::Text => table::text(&app, false),
        Output::Wide => table::text(&app, true),
        Output::Json => app.json(),
    };
    print(&text);
    Ok(())
}

/// The latest answer that has not been shown yet.
type Latest = Arc<Mutex<Option<Result<AutoscalerList, AskError>>>>;

async fn refresh(client: AdminClient, interval: Duration, latest: Latest) {
    loop {
        tokio::time::sleep(interval).await;
        let answer = client.list().await;
        *latest.lock() = Some(answer);
    }
}

#[cfg(test)]
mod tests;
