//! What the program logs, and in which form. The log goes to standard error; nothing in it
//! is secret: neither tokens nor bodies of requests are ever logged.

use clap::{Args, ValueEnum};
use podscale_client::instrument::SPAN_TARGET;
use podscale_controller::telemetry::{BoxedLayer, Telemetry};
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

/// Where log levels are read from if no flag says them, as with other Rust programs.
const VARIABLE: &str = "RUST_LOG";
/// Libraries that log much, and little that matters.
const QUIET: &str = "hyper=warn,h2=warn,tower=warn,kube=warn,rustls=warn";

/// The form of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Human-readable lines.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Flags about the log.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Log")]
#[group(id = "log")]
pub struct Arguments {
    /// The format of the log on standard error.
    #[arg(long, value_enum, default_value_t, env = "PODSCALE_LOG_FORMAT")]
    log_format: Format,

    /// What to log: error, warn, info, debug or trace, also per module, as in
    /// info,podscale_client::watch=debug. If not given, RUST_LOG applies, and otherwise info.
    #[arg(long, value_name = "LEVEL", env = "PODSCALE_LOG_LEVEL", value_parser = levels)]
    log_level: Option<String>,
}

/// The log cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The environment asks for levels that make no sense.
    #[error("{VARIABLE}: {0}")]
    Variable(String),
    /// Something else has set up a log already.
    #[error("the log cannot be set up: {0}")]
    Twice(#[from] TryInitError),
}

fn filter(text: &str) -> Result<String, String> {
    EnvFilter::try_new(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// Levels of a flag. A single word that is no level would be taken for the name of a part, and nothing
/// else would be logged.
fn levels(text: &str) -> Result<String, String> {
    let word = |part: &&str| !part.contains(['=', '[', ':']);
    let unknown = text
        .split(',')
        .filter(word)
        .find(|part| part.is_empty() || part.parse::<LevelFilter>().is_err());
    match unknown {
        Some(part) => Err(format!(
            "{part:?} is not a level: error, warn, info, debug or trace, or PART=LEVEL"
        )),
        None => filter(text),
    }
}

impl Arguments {
    /// Begins to log, to be called once; telemetry gets what the log gets.
    ///
    /// # Errors
    /// The environment asks for nonsense, or there is a log already.
    pub fn start(&self, telemetry: &Telemetry) -> Result<(), LogError> {
        let levels = self.levels()?;
        // What is asked for comes last and so counts more.
        let filter = || EnvFilter::new(format!("{QUIET},{SPAN_TARGET}=off,{levels}"));
        let mut layers = vec![self.layer(filter())];
        layers.extend(telemetry.layers(filter));
        tracing_subscriber::registry().with(layers).try_init()?;
        Ok(())
    }

    fn levels(&self) -> Result<String, LogError> {
        let variable = std::env::var(VARIABLE).ok().filter(|text| !text.is_empty());
        Ok(match (&self.log_level, variable) {
            (Some(levels), _) => levels.clone(),
            (None, Some(levels)) => filter(&levels).map_err(LogError::Variable)?,
            (None, None) => "info".to_owned(),
        })
    }

    fn layer(&self, filter: EnvFilter) -> BoxedLayer {
        let out = std::io::stderr;
        let layer = tracing_subscriber::fmt::layer().with_writer(out).with_target(false);
        // If nobody reads the log any more, that is no reason to fail.
        let layer = layer.log_internal_errors(false);
        match self.log_format {
            Format::Text => layer.with_ansi(out().is_terminal()).with_filter(filter).boxed(),
            Format::Json => layer.json().flatten_event(true).with_filter(filter).boxed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_no_levels_are_refused() {
        for good in [
            "info",
            "WARN",
            "off",
            "info,podscale_client::watch=debug",
            "podscale_client::watch,warn",
        ] {
            assert_eq!(levels(good).as_deref(), Ok(good));
        }
        for wrong in ["", "loud", "warning", "info,verbose", "info,x=loud"] {
            assert!(levels(wrong).is_err(), "{wrong}");
        }
        let error = levels("warning").expect_err("refused");
        assert!(error.starts_with("\"warning\" is not a level: error, warn"), "{error}");
    }
}
