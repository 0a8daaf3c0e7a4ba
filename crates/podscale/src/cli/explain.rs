//! `podscale explain`: why a target has the size it has, from a running controller.

use super::ask::{self, AdminClient, AskError, AutoscalerDetail, AutoscalerList, ago};
use super::{conclude, print};
use clap::{Args, ValueEnum};
use podscale_controller::dashboard::{DecisionView, MetricState, OutcomeKind, Row};
use std::fmt::Write as _;
use std::process::ExitCode;

/// How many earlier changes are shown.
const CHANGES: usize = 5;
/// How many names are offered if there is none of the given one.
const OFFERS: usize = 3;

/// Explain why an autoscaler's target has its current size.
///
/// Queries a running `podscale run` or `podscale demo` through its admin port, and prints the latest decision
/// step by step: what each metric proposed, what held or limited the size, and what was done.
///
/// Exit codes: 0 explained, 1 no such autoscaler or no controller to query, 2 usage error.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The autoscaler, as NAMESPACE/NAME, followed by /RESOURCE if objects of several kinds share that name;
    /// the name alone is enough if it is unique.
    #[arg(value_name = "NAMESPACE/NAME")]
    autoscaler: String,

    #[command(flatten)]
    ask: ask::Arguments,

    /// The output format.
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Words.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

/// Runs the command.
#[must_use]
pub fn run(arguments: &Arguments) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let explained = match runtime {
        Ok(runtime) => runtime.block_on(explain(arguments)),
        Err(error) => Err(AskError::Unknown(format!("cannot start: {error}"))),
    };
    conclude(explained.map(|text| print(&text)))
}

async fn explain(arguments: &Arguments) -> Result<String, AskError> {
    let client = AdminClient::new(&arguments.ask);
    let detail = find(&client, &arguments.autoscaler).await?;
    match arguments.output {
        Output::Text => Ok(words(&detail)),
        Output::Json => serde_json::to_string_pretty(&detail)
            .map(|text| text + "\n")
            .map_err(|error| AskError::Unknown(error.to_string())),
    }
}

async fn find(client: &AdminClient, wanted: &str) -> Result<AutoscalerDetail, AskError> {
    if wanted.contains('/') {
        match client.detail(wanted).await {
            Err(AskError::Unknown(_)) => {}
            found => return found,
        }
    }
    let list = client.list().await?;
    let is_named = |row: &&Row| match wanted.split_once('/') {
        None => row.view.name == wanted,
        Some(name) => (&*row.view.namespace, &*row.view.name) == name,
    };
    let named: Vec<&Row> = list.autoscalers.iter().filter(is_named).collect();
    match named.as_slice() {
        [row] => client.detail(&row.view.key).await,
        _ => Err(AskError::Unknown(unknown(&list, wanted, &named))),
    }
}

/// Says that there is none, and which may have been meant.
fn unknown(list: &AutoscalerList, wanted: &str, named: &[&Row]) -> String {
    if list.autoscalers.is_empty() {
        return format!(
            "no autoscaler {wanted} is known: nothing has been decided there yet (of several \
             replicas only the leader decides)"
        );
    }
    if !named.is_empty() {
        let keys: Vec<String> = named.iter().map(|row| row.view.key.clone()).collect();
        return format!("several autoscalers are called {wanted}: {}", keys.join(", "));
    }
    let name = wanted.rsplit_once('/').map_or(wanted, |(_, name)| name);
    let mut near: Vec<(usize, String)> = list
        .autoscalers
        .iter()
        .map(|row| (strsim::damerau_levenshtein(&row.view.name, name), row))
        .filter(|(distance, row)| *distance <= 2 || row.view.name.contains(name))
        .map(|(distance, row)| (distance, row.view.key.clone()))
        .collect();
    near.sort();
    near.truncate(OFFERS);
    let near: Vec<String> = near.into_iter().map(|(_, key)| key).collect();
    match near.as_slice() {
        [] => format!(
            "no autoscaler {wanted} is known among {}; `podscale top` lists them",
            list.autoscalers.len()
        ),
        near => format!("no autoscaler {wanted} is known; did you mean {}?", near.join(" or ")),
    }
}

fn words(detail: &AutoscalerDetail) -> String {
    let (view, latest, now) = (&detail.autoscaler.view, &detail.past.latest, detail.now);
    let mut text = format!("{}: {} scales {}", view.key, view.kind, view.target);
    let _ = writeln!(text, " between {} and {}", view.min, view.max);
    let _ = writeln!(text, "It has {} and wants {}.", view.current, view.desired);
    if let Some(conflict) = &view.conflict {
        let _ = writeln!(text, "\nConflict: {conflict}.");
    }
    let _ = writeln!(text, "\nLatest decision, {} ago: {}", ago(now, latest.time), outcome(latest));
    for line in &latest.lines {
        let _ = writeln!(text, "  {line}");
    }
    let _ = writeln!(text, "\nMetrics");
    let width = view.metrics.iter().map(|m| m.name.chars().count()).max().unwrap_or(0);
    for metric in &view.metrics {
        let state = match metric.state {
            MetricState::Above => "asks for more",
            MetricState::Near => "near its target",
            MetricState::Below => "asks for less",
            MetricState::NoPods => "has no pods to be shared among",
            MetricState::Unread => "could not be read",
            MetricState::NotAsked => "was not asked",
        };
        let (name, current, target) = (&metric.name, &metric.current, &metric.target);
        let _ = writeln!(text, "  {name:<width$}  {current:>8} of {target:<8} {state}");
    }
    let _ = writeln!(text, "\nConditions");
    for condition in &view.conditions {
        let (kind, status) = (&condition.kind, &condition.status);
        let (reason, message) = (&condition.reason, &condition.message);
        let _ = writeln!(text, "  {kind:<15} {status:<6} {reason}: {message}");
    }
    let changes: Vec<&DecisionView> =
        detail.past.decisions.iter().rev().filter(|d| d.rescaled).take(CHANGES).collect();
    if !changes.is_empty() {
        let _ = writeln!(text, "\nChanges of size, latest first");
        for change in changes {
            let DecisionView { from, to, reason, time, .. } = change;
            let _ = writeln!(text, "  {:>4} ago  {from} → {to}  {reason}", ago(now, *time));
        }
    }
    text
}

fn outcome(decision: &DecisionView) -> String {
    let DecisionView { from, to, reason, .. } = decision;
    match decision.outcome {
        OutcomeKind::Up | OutcomeKind::Down => format!("{from} → {to}, {reason}"),
        OutcomeKind::Steady | OutcomeKind::Held | OutcomeKind::Limited | OutcomeKind::Paused => {
            format!("stays at {from}, {reason}")
        }
        OutcomeKind::Withheld => format!("would go from {from} to {to}, {reason}; not written"),
        OutcomeKind::Failed => format!("failed, {reason}"),
    }
}

#[cfg(test)]
mod tests;
