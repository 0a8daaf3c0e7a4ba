//! The flags about Prometheus and the rules for metrics.

mod warnings;

use clap::Args;
use podscale_controller::controller::PrometheusServers;
use podscale_controller::metrics::Metrics;
use podscale_controller::serve::rule_reports::RuleReports;
use podscale_controller::serve::rules::file::{RuleFile, RulesFileError};
use podscale_controller::settings::period;
use podscale_metrics::prometheus::{Client, Config, Credentials, SetupError, Tls};
use podscale_metrics::rules::engine::{Engine, Timings};
use podscale_metrics::rules::{Resources, RuleSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use warnings::Warnings;

/// Flags about Prometheus and the rules.
#[derive(Clone, Debug, Default, Args)]
#[group(id = "prometheus")]
#[command(next_help_heading = "Prometheus")]
pub struct Arguments {
    #[command(flatten)]
    connection: Connection,

    /// The metric rules: prometheus-adapter's configuration file, unchanged. It is watched: changes take effect
    /// within seconds.
    #[arg(long, value_name = "FILE", env = "PODSCALE_METRIC_RULES")]
    metric_rules: Option<PathBuf>,
}

/// Flags about where Prometheus is, and how to reach it.
#[derive(Clone, Debug, Default, Args)]
#[group(id = "prometheus_connection")]
#[command(next_help_heading = "Prometheus")]
pub struct Connection {
    /// The URL of Prometheus, such as http://prometheus.monitoring:9090, with a path if its API is below one.
    #[arg(long, value_name = "URL", env = "PODSCALE_PROMETHEUS_URL")]
    prometheus_url: Option<String>,

    /// A file with the CA certificates to trust; the system's if not given.
    #[arg(long, value_name = "FILE", env = "PODSCALE_PROMETHEUS_CA_FILE")]
    prometheus_ca_file: Option<PathBuf>,

    /// A file with the client certificate to present to Prometheus.
    #[arg(
        long,
        value_name = "FILE",
        requires = "prometheus_client_key",
        env = "PODSCALE_PROMETHEUS_CLIENT_CERTIFICATE"
    )]
    prometheus_client_certificate: Option<PathBuf>,

    /// A file with the key of that certificate.
    #[arg(
        long,
        value_name = "FILE",
        requires = "prometheus_client_certificate",
        env = "PODSCALE_PROMETHEUS_CLIENT_KEY"
    )]
    prometheus_client_key: Option<PathBuf>,

    /// Accept any certificate. An attacker in between can then read the token and forge every value.
    #[arg(long, env = "PODSCALE_PROMETHEUS_INSECURE_TLS")]
    prometheus_insecure_tls: bool,

    /// A file with a bearer token; it is re-read when it changes.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "prometheus_username",
        env = "PODSCALE_PROMETHEUS_TOKEN_FILE"
    )]
    prometheus_token_file: Option<PathBuf>,

    /// A user name for basic authentication.
    #[arg(
        long,
        value_name = "NAME",
        requires = "prometheus_password_file",
        env = "PODSCALE_PROMETHEUS_USERNAME"
    )]
    prometheus_username: Option<String>,

    /// A file with the password; it is re-read when it changes.
    #[arg(
        long,
        value_name = "FILE",
        requires = "prometheus_username",
        env = "PODSCALE_PROMETHEUS_PASSWORD_FILE"
    )]
    prometheus_password_file: Option<PathBuf>,

    /// A header for every request, such as "X-Scope-OrgID: team"; repeatable.
    #[arg(long = "prometheus-header", value_name = "NAME: VALUE")]
    prometheus_headers: Vec<String>,

    /// How long a query may take.
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = period,
        default_value = "10s",
        env = "PODSCALE_PROMETHEUS_TIMEOUT"
    )]
    prometheus_timeout: Duration,

    /// How old the newest sample of a series may be for a selector such as queue_depth to find it; if not
    /// given, the server's look-back applies, usually 5m. It has no effect on selectors with a range, such as
    /// in rate(requests[5m]), and servers that do not know lookback_delta ignore it.
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = period,
        env = "PODSCALE_PROMETHEUS_MAX_AGE"
    )]
    prometheus_max_age: Option<Duration>,

    /// Another Prometheus that autoscaler specs may query, without credentials; repeatable.
    #[arg(long = "prometheus-allowed-server", value_name = "URL")]
    prometheus_allowed_servers: Vec<String>,
}

/// Why Prometheus cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PrometheusFailure {
    /// Nothing says where it is.
    #[error("--prometheus-url must say where Prometheus is")]
    NoUrl,
    /// Its address, a file or a header cannot be used.
    #[error("Prometheus: {0}")]
    Setup(#[from] SetupError),
    /// A file of credentials cannot be read.
    #[error("{flag}: {}: {cause}", path.display())]
    File {
        /// The flag that names it.
        flag: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        cause: std::io::Error,
    },
    /// The rules cannot be used.
    #[error("--metric-rules: {0}")]
    Rules(#[from] RulesFileError),
}

impl Connection {
    /// Whether it is said where Prometheus is.
    #[must_use]
    pub fn is_given(&self) -> bool {
        self.prometheus_url.is_some()
    }

    /// Whether the flags make sense; reads no files, which may be on another machine.
    ///
    /// # Errors
    /// Nothing says where Prometheus is, or the address or a header cannot be used.
    pub fn check(&self) -> Result<(), PrometheusFailure> {
        let url = self.prometheus_url.as_ref().ok_or(PrometheusFailure::NoUrl)?;
        let headers = self.prometheus_headers.clone();
        let config = Config {
            // Certificates to trust would be read.
            tls: Tls { insecure: true, ..Tls::default() },
            credentials: Credentials { headers, ..Credentials::default() },
            ..Config::new(url)
        };
        Ok(Client::new(config).map(drop)?)
    }

    /// A client of Prometheus; connects to nothing yet.
    ///
    /// # Errors
    /// Nothing says where it is, or the flags cannot be used.
    pub fn client(&self) -> Result<Client, PrometheusFailure> {
        let url = self.prometheus_url.as_ref().ok_or(PrometheusFailure::NoUrl)?;
        for (flag, path) in [
            ("--prometheus-token-file", &self.prometheus_token_file),
            ("--prometheus-password-file", &self.prometheus_password_file),
        ] {
            if let Some(path) = path
                && let Err(cause) = std::fs::File::open(path)
            {
                return Err(PrometheusFailure::File { flag, path: path.clone(), cause });
            }
        }
        let identity =
            self.prometheus_client_certificate.clone().zip(self.prometheus_client_key.clone());
        let config = Config {
            tls: Tls {
                ca_file: self.prometheus_ca_file.clone(),
                identity,
                insecure: self.prometheus_insecure_tls,
            },
            credentials: Credentials {
                token_file: self.prometheus_token_file.clone(),
                username: self.prometheus_username.clone(),
                password_file: self.prometheus_password_file.clone(),
                headers: self.prometheus_headers.clone(),
            },
            timeout: self.prometheus_timeout,
            max_age: self.prometheus_max_age,
            ..Config::new(url)
        };
        Ok(Client::new(config)?)
    }

    /// The servers that specs may ask: the one of the flags, if they name one, and those that are allowed.
    ///
    /// # Errors
    /// As [`Connection::client`], or an allowed address cannot be used.
    pub fn servers(&self) -> Result<Arc<PrometheusServers>, PrometheusFailure> {
        let own = self.is_given().then(|| self.client().map(Arc::new)).transpose()?;
        let others = &self.prometheus_allowed_servers;
        Ok(Arc::new(PrometheusServers::new(own, others, self.prometheus_max_age)?))
    }
}

impl Arguments {
    /// How Prometheus is reached.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The file with the rules.
    #[must_use]
    pub fn rules_file(&self) -> Option<&Path> {
        self.metric_rules.as_deref()
    }

    /// An engine without rules. What Prometheus warns of is counted and logged.
    ///
    /// # Errors
    /// As [`Connection::client`].
    pub fn engine(
        &self,
        resources: Arc<dyn Resources>,
        metrics: &Metrics,
    ) -> Result<Arc<Engine>, PrometheusFailure> {
        let warnings = Warnings::new(metrics.clone());
        let client = self.connection.client()?;
        let client = client.on_warnings(move |query, all| warnings.hear(query, all));
        let (client, rules) = (Arc::new(client), RuleSet::default());
        Ok(Arc::new(Engine::new(client, rules, resources, Timings::default())))
    }

    /// Gives an engine the rules of the file, if one is named.
    ///
    /// # Errors
    /// The file cannot be used.
    pub fn open_rules(
        &self,
        engine: &Arc<Engine>,
        reports: &Arc<RuleReports>,
    ) -> Result<Option<RuleFile>, PrometheusFailure> {
        let open = |path| RuleFile::open(path, Arc::clone(engine), Arc::clone(reports));
        Ok(self.rules_file().map(open).transpose()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use podscale_metrics::rules::KnownResources;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        prometheus: Arguments,
    }

    fn outcome(line: &str) -> String {
        let words = line.split(' ').filter(|word| !word.is_empty());
        match Line::try_parse_from(["podscale"].into_iter().chain(words)) {
            Err(error) => error.to_string().lines().next().unwrap_or_default().to_owned(),
            Ok(parsed) => {
                let (known, metrics) = (Arc::new(KnownResources::everyday()), Metrics::new());
                let reports = Arc::new(RuleReports::new(metrics.clone(), None));
                let engine = parsed.prometheus.engine(known, &metrics).and_then(|engine| {
                    parsed.prometheus.open_rules(&engine, &reports).map(|_| engine)
                });
                match engine {
                    Ok(engine) => engine.queries().client().url().to_owned(),
                    Err(error) => error.to_string(),
                }
            }
        }
    }

    #[test]
    fn flags_make_a_client_or_say_what_is_wrong() {
        for (line, expected) in [
            ("--prometheus-url http://p:9090/", "http://p:9090"),
            (
                "--prometheus-url http://p/prom --prometheus-header X-Scope:a --prometheus-timeout 2s",
                "http://p/prom",
            ),
            ("", "--prometheus-url must say where"),
            ("--prometheus-url p:9090", "must begin with http:// or https://"),
            (
                "--prometheus-url http://u:p@host",
                "Prometheus: http://***@host: must have no user name",
            ),
            ("--prometheus-url ftp://u:p@host", "Prometheus: ftp://***@host: must begin with"),
            ("--prometheus-url u:secret@host:9090", "Prometheus: ***@host:9090: "),
            ("--prometheus-url http://u:a/secret@host/p", "Prometheus: http://***@host/p: "),
            ("--prometheus-url u:secret://secret@host", "Prometheus: ***@host: "),
            ("--prometheus-url http://u:secret@@host", "Prometheus: http://***@host: "),
            ("--prometheus-url http://p --prometheus-max-age 0s", "error: invalid value '0s'"),
            (
                "--prometheus-url http://p --prometheus-token-file /none/token",
                "--prometheus-token-file: /none/token: No such file",
            ),
            (
                "--prometheus-url http://p --prometheus-username a --prometheus-password-file /none/p",
                "--prometheus-password-file: /none/p: No such file",
            ),
            ("--prometheus-username a", "error: the following required arguments"),
            ("--prometheus-url http://p?x=1", "must end before the question mark"),
            (
                "--prometheus-url http://p --prometheus-header nonsense",
                "must have a name and a value",
            ),
            ("--prometheus-url https://p --prometheus-ca-file /none/ca", "/none/ca: No such file"),
            (
                "--prometheus-url http://p --metric-rules /none/rules",
                "--metric-rules: /none/rules: No such file",
            ),
            ("--prometheus-url http://p --prometheus-timeout 0s", "error: invalid value '0s'"),
            ("--prometheus-password-file x", "error: the following required arguments"),
            (
                "--prometheus-username a --prometheus-token-file b",
                "error: the argument '--prometheus-",
            ),
            ("--prometheus-client-key a", "error: the following required arguments"),
        ] {
            let found = outcome(line);
            assert!(found.contains(expected) && !found.contains("secret"), "{line}: {found}");
        }
    }
}
