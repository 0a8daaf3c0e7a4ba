//! Where telemetry goes and how, from the flag and from OpenTelemetry's own environment variables.

use super::TelemetryError;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use std::path::PathBuf;
use std::time::Duration;

/// The flag that names the collector.
const FLAG: &str = "--otlp-endpoint";
/// The variable that counts if the flag is not given.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// More spans than other programs queue, since thousands of objects may be reconciled in a second.
const SPAN_BATCHES: BatchSettings =
    BatchSettings { queue_items: 8192, batch_items: 512, delay: Duration::from_secs(5) };
const LOG_BATCHES: BatchSettings =
    BatchSettings { queue_items: 2048, batch_items: 512, delay: Duration::from_secs(1) };
const METRICS_INTERVAL: Duration = Duration::from_secs(60);
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// No queue, batch or delay may be larger than this, in items or milliseconds.
const LARGEST_NUMBER: u64 = 1 << 20;
const SAMPLER: &str = "OTEL_TRACES_SAMPLER";
const SAMPLER_ARGUMENT: &str = "OTEL_TRACES_SAMPLER_ARG";

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// Spans.
    Traces,
    /// Lines of the log.
    Logs,
    /// Metrics.
    Metrics,
}

impl Signal {
    /// Its name in paths, texts and metrics.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Signal::Traces => "traces",
            Signal::Logs => "logs",
            Signal::Metrics => "metrics",
        }
    }
}

/// How items are batched before they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BatchSettings {
    /// How many items are queued at most.
    pub queue_items: usize,
    /// How many items are sent in one request.
    pub batch_items: usize,
    /// How long an item waits at most until its batch is sent.
    pub delay: Duration,
}

/// Which traces are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sampling {
    /// Whether a trace that began elsewhere is sent if and only if its beginning was.
    pub is_parent_based: bool,
    /// The share of all other traces, from 0 to 1.
    pub ratio: f64,
}

impl Default for Sampling {
    fn default() -> Sampling {
        Sampling { is_parent_based: true, ratio: 1.0 }
    }
}

/// Where one signal goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Destination {
    pub signal: Signal,
    pub url: Uri,
    pub headers: HeaderMap,
    /// How long sending one batch may take, retries included.
    pub timeout: Duration,
    pub gzip: bool,
    /// A file of certificates to trust instead of the system's.
    pub roots: Option<PathBuf>,
    /// Files of a certificate and its key to show.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// What goes where.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Settings {
    pub traces: Option<(Destination, BatchSettings)>,
    /// Which traces are sent, if any.
    pub sampling: Sampling,
    pub logs: Option<(Destination, BatchSettings)>,
    pub metrics: Option<(Destination, Duration)>,
}

fn wrong(origin: &str, problem: impl Into<String>) -> TelemetryError {
    TelemetryError { origin: origin.to_owned(), problem: problem.into() }
}

/// Reads all settings; `variable` is the environment.
pub(super) fn settings(
    flag: Option<&str>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Settings, TelemetryError> {
    let environment = Environment { flag, variable };
    let disabled = environment.get("OTEL_SDK_DISABLED");
    if flag.is_none() && disabled.is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(Settings::default());
    }
    let to = |signal| environment.destination(signal);
    let batched = |to: Option<Destination>, prefix: &str, default| {
        to.map(|to| Ok((to, environment.batches(prefix, default)?))).transpose()
    };
    let every = |to| Ok((to, environment.millis("OTEL_METRIC_EXPORT_INTERVAL", METRICS_INTERVAL)?));
    let traces = batched(to(Signal::Traces)?, "OTEL_BSP", SPAN_BATCHES)?;
    let sampling = match &traces {
        Some(_) => environment.sampling()?,
        None => Sampling::default(),
    };
    Ok(Settings {
        traces,
        sampling,
        logs: batched(to(Signal::Logs)?, "OTEL_BLRP", LOG_BATCHES)?,
        metrics: to(Signal::Metrics)?.map(every).transpose()?,
    })
}

struct Environment<'a, F> {
    flag: Option<&'a str>,
    variable: F,
}

impl<F: Fn(&str) -> Option<String>> Environment<'_, F> {
    /// What is empty counts as not set, as OpenTelemetry wants it.
    fn get(&self, name: &str) -> Option<String> {
        (self.variable)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    /// A setting of one signal, or else of all of them, with its name.
    fn of(&self, signal: Signal, name: &str) -> Option<(String, String)> {
        let own = format!("OTEL_EXPORTER_OTLP_{}_{name}", signal.name().to_uppercase());
        let names = [own, format!("OTEL_EXPORTER_OTLP_{name}")];
        names.into_iter().find_map(|name| self.get(&name).map(|value| (name, value)))
    }

    fn destination(&self, signal: Signal) -> Result<Option<Destination>, TelemetryError> {
        let Some(url) = self.url(signal)? else { return Ok(None) };
        if !self.is_wanted(signal)? {
            return Ok(None);
        }
        self.check_protocol(signal)?;
        let file = |name| self.of(signal, name).map(|(_, path)| PathBuf::from(path));
        let identity = match (file("CLIENT_CERTIFICATE"), file("CLIENT_KEY")) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => {
                let problem = "the certificate and its key must be given together";
                return Err(wrong("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", problem));
            }
        };
        let timeout = match self.of(signal, "TIMEOUT") {
            Some((name, _)) => self.millis(&name, SEND_TIMEOUT)?,
            None => SEND_TIMEOUT,
        };
        let gzip = match self.of(signal, "COMPRESSION") {
            None => false,
            Some((_, value)) if value == "none" => false,
            Some((_, value)) if value == "gzip" => true,
            Some((name, value)) => {
                return Err(wrong(&name, format!("{value:?} is neither gzip nor none")));
            }
        };
        let headers = match self.of(signal, "HEADERS") {
            Some((name, value)) => headers(&value).map_err(|problem| wrong(&name, problem))?,
            None => HeaderMap::new(),
        };
        let roots = file("CERTIFICATE");
        Ok(Some(Destination { signal, url, headers, timeout, gzip, roots, identity }))
    }

    /// The flag counts most, then the signal's own address, then that for all.
    fn url(&self, signal: Signal) -> Result<Option<Uri>, TelemetryError> {
        let base = |name: &str, base: &str| {
            if base.contains(['?', '#']) {
                return Err(wrong(name, "the collector's URL must end with its path"));
            }
            url(name, base)?;
            url(name, &format!("{}/v1/{}", base.trim_end_matches('/'), signal.name()))
        };
        if let Some(flag) = self.flag {
            return base(FLAG, flag).map(Some);
        }
        match self.of(signal, "ENDPOINT") {
            None => Ok(None),
            Some((name, value)) if name == ENDPOINT => base(&name, &value).map(Some),
            Some((name, value)) => url(&name, &value).map(Some),
        }
    }

    fn is_wanted(&self, signal: Signal) -> Result<bool, TelemetryError> {
        let exporter = format!("OTEL_{}_EXPORTER", signal.name().to_uppercase());
        match self.get(&exporter).as_deref() {
            None | Some("otlp") => Ok(true),
            Some("none") => Ok(false),
            Some(other) => Err(wrong(&exporter, format!("{other:?} is neither otlp nor none"))),
        }
    }

    fn check_protocol(&self, signal: Signal) -> Result<(), TelemetryError> {
        match self.of(signal, "PROTOCOL") {
            Some((name, value)) if value != "http/protobuf" => {
                let problem = format!(
                    "{value:?} is not supported; only http/protobuf is, which collectors serve on \
                     port 4318"
                );
                Err(wrong(&name, problem))
            }
            _ => Ok(()),
        }
    }

    /// The SDK takes an unknown sampler for its default one, which sends everything.
    fn sampling(&self) -> Result<Sampling, TelemetryError> {
        let Some(name) = self.get(SAMPLER) else { return Ok(Sampling::default()) };
        let (is_parent_based, root) = match name.strip_prefix("parentbased_") {
            Some(root) => (true, root),
            None => (false, name.as_str()),
        };
        let ratio = match root {
            "always_on" => 1.0,
            "always_off" => 0.0,
            "traceidratio" => self.sampling_ratio()?,
            _ => {
                let problem = format!(
                    "{name:?} is not one of always_on, always_off, traceidratio, \
                     parentbased_always_on, parentbased_always_off and parentbased_traceidratio"
                );
                return Err(wrong(SAMPLER, problem));
            }
        };
        Ok(Sampling { is_parent_based, ratio })
    }

    fn sampling_ratio(&self) -> Result<f64, TelemetryError> {
        let Some(value) = self.get(SAMPLER_ARGUMENT) else { return Ok(1.0) };
        match value.parse::<f64>() {
            Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(ratio),
            _ => Err(wrong(SAMPLER_ARGUMENT, format!("{value:?} is not a number from 0 to 1"))),
        }
    }

    fn batches(
        &self,
        prefix: &str,
        default: BatchSettings,
    ) -> Result<BatchSettings, TelemetryError> {
        let count = |name: &str, default: usize| {
            let count = self.number(&format!("{prefix}_{name}"))?;
            Ok(count.map_or(default, |count| usize::try_from(count).unwrap_or(default)))
        };
        let queue_items = count("MAX_QUEUE_SIZE", default.queue_items)?;
        Ok(BatchSettings {
            queue_items,
            batch_items: count("MAX_EXPORT_BATCH_SIZE", default.batch_items)?.min(queue_items),
            delay: self.millis(&format!("{prefix}_SCHEDULE_DELAY"), default.delay)?,
        })
    }

    fn millis(&self, name: &str, default: Duration) -> Result<Duration, TelemetryError> {
        Ok(self.number(name)?.map_or(default, Duration::from_millis))
    }

    fn number(&self, name: &str) -> Result<Option<u64>, TelemetryError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match value.parse() {
            Ok(number @ 1..=LARGEST_NUMBER) => Ok(Some(number)),
            _ => {
                let problem = format!("{value:?} is not a whole number from 1 to {LARGEST_NUMBER}");
                Err(wrong(name, problem))
            }
        }
    }
}

/// An address that something can be sent to. What could hold a password is not repeated.
fn url(origin: &str, text: &str) -> Result<Uri, TelemetryError> {
    const EXAMPLE: &str = "such as http://127.0.0.1:4318";
    let shown = if text.contains('@') { "this" } else { text };
    let problem = |what: &str| wrong(origin, format!("{shown} {what}, {EXAMPLE}"));
    let url: Uri = text.parse().map_err(|_| problem("is not the URL of a collector"))?;
    if !matches!(url.scheme_str(), Some("http" | "https")) {
        return Err(problem("does not begin with http:// or https://"));
    }
    match url.authority() {
        Some(authority) if authority.as_str().contains('@') => {
            let problem = "credentials do not belong into the URL; OTEL_EXPORTER_OTLP_HEADERS takes \
                           them, such as authorization=Bearer%20TOKEN";
            Err(wrong(origin, problem))
        }
        Some(authority) if !authority.host().is_empty() => Ok(url),
        _ => Err(problem("names no host")),
    }
}

/// Headers as `name=value,name=value`, with values as in URLs. They are secret and never repeated.
fn headers(text: &str) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (place, pair) in text.split(',').map(str::trim).enumerate().filter(|(_, p)| !p.is_empty()) {
        let number = place + 1;
        let (name, value) =
            pair.split_once('=').ok_or_else(|| format!("header {number} is not name=value"))?;
        let name = HeaderName::try_from(name.trim())
            .map_err(|_| format!("header {number} has a name that cannot be sent"))?;
        let mut value = HeaderValue::from_bytes(&decode(value.trim()))
            .map_err(|_| format!("header {number} has a value that cannot be sent"))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Percent-decoding; what is no escape stays as it is.
fn decode(text: &str) -> Vec<u8> {
    let hex =
        |byte: Option<&u8>| char::from(*byte?).to_digit(16).and_then(|d| u8::try_from(d).ok());
    let (bytes, mut decoded, mut at) = (text.as_bytes(), Vec::with_capacity(text.len()), 0);
    while let Some(byte) = bytes.get(at) {
        match (byte, hex(bytes.get(at + 1)), hex(bytes.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                decoded.push(high << 4 | low);
                at += 3;
            }
            _ => {
                decoded.push(*byte);
                at += 1;
            }
        }
    }
    decoded
}

#[cfg(test)]
mod tests;
