//! The flags about kubelets that are scraped directly.

use clap::{ArgAction, Args, ValueEnum};
use podscale_api::selector::Selector;
use podscale_client::connect::{BearerToken, Cluster, ConnectError};
use podscale_controller::kubelets::Config;
use podscale_controller::settings::{duration, period};
use podscale_metrics::kubelet::tls::{self, TlsError};
use podscale_metrics::kubelet::{Access, Scheme, Token};
use podscale_metrics::scraper::address::Addressing;
use podscale_metrics::store::Limits;
use std::path::PathBuf;
use std::time::Duration;

/// How long a sample is used if nothing is said: so long, but at least for so many rounds.
const USUAL_MAX_AGE: Duration = Duration::from_secs(60);
const ROUNDS_KEPT: u32 = 4;

/// Flags about kubelets that are scraped directly.
#[derive(Clone, Debug, Args)]
#[group(id = "kubelet")]
#[command(next_help_heading = "Resource metrics")]
pub struct Arguments {
    /// How often each kubelet is scraped, and the Prometheus queries of autoscalers are repeated; at least 1s,
    /// for Prometheus 5s.
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = resolution,
        allow_hyphen_values = true,
        default_value = "15s",
        env = "PODSCALE_METRIC_RESOLUTION"
    )]
    metric_resolution: Duration,

    /// How long a kubelet's sample is used after it arrived; must be longer than --metric-resolution. If not
    /// given, 1m, or four times --metric-resolution if that is longer.
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = period,
        allow_hyphen_values = true,
        env = "PODSCALE_METRIC_MAX_AGE"
    )]
    metric_max_age: Option<Duration>,

    /// A PEM file with the CAs that sign the kubelets' certificates; it is re-read when it changes. If not
    /// given, those of the API server.
    #[arg(long, value_name = "FILE", env = "PODSCALE_KUBELET_CERTIFICATE_AUTHORITY")]
    kubelet_certificate_authority: Option<PathBuf>,

    /// Accept any certificate from a kubelet. For tests only.
    #[arg(
        long,
        value_name = "BOOL",
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        default_value_t = false,
        conflicts_with = "kubelet_certificate_authority",
        env = "PODSCALE_KUBELET_INSECURE_TLS"
    )]
    kubelet_insecure_tls: bool,

    /// Which node addresses to use to reach kubelets, in order of preference.
    #[arg(
        long,
        value_name = "TYPE,...",
        value_delimiter = ',',
        value_parser = ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"],
        default_value = "InternalIP,ExternalIP,Hostname",
        env = "PODSCALE_KUBELET_PREFERRED_ADDRESS_TYPES"
    )]
    kubelet_preferred_address_types: Vec<String>,

    /// Scrape only nodes with these labels.
    #[arg(long, value_name = "SELECTOR", value_parser = selector, env = "PODSCALE_NODE_SELECTOR")]
    node_selector: Option<String>,

    /// The port of all kubelets; if not given, the one each node reports, or else 10250.
    #[arg(
        long,
        value_name = "PORT",
        value_parser = clap::value_parser!(u16).range(1..),
        env = "PODSCALE_KUBELET_PORT"
    )]
    kubelet_port: Option<u16>,

    /// The protocol for kubelets; without TLS, the token is not sent.
    #[arg(
        long,
        value_name = "SCHEME",
        value_enum,
        default_value_t,
        env = "PODSCALE_KUBELET_SCHEME"
    )]
    kubelet_scheme: KubeletScheme,

    /// How long a kubelet may take to respond.
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = period,
        allow_hyphen_values = true,
        default_value = "10s",
        env = "PODSCALE_KUBELET_REQUEST_TIMEOUT"
    )]
    kubelet_request_timeout: Duration,
}

/// How kubelets are spoken to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum KubeletScheme {
    /// Over TLS.
    #[default]
    Https,
    /// Without TLS.
    Http,
}

fn resolution(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        resolution if resolution < Duration::from_secs(1) => Err("shorter than 1s".to_owned()),
        resolution => Ok(resolution),
    }
}

fn selector(text: &str) -> Result<String, String> {
    Selector::parse(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// Why kubelets cannot be scraped.
#[derive(Debug, thiserror::Error)]
pub enum KubeletError {
    /// The age limit would drop every sample.
    #[error("--metric-max-age must be longer than --metric-resolution")]
    MaxAge,
    /// The authorities cannot be read or make no sense.
    #[error("--kubelet-certificate-authority: {}: {source}", path.display())]
    Authority {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: TlsError,
    },
    /// The cluster's own credentials make no sense.
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

impl Arguments {
    /// How often kubelets are scraped, and Prometheus is asked again.
    #[must_use]
    pub fn resolution(&self) -> Duration {
        self.metric_resolution
    }

    /// How long a sample of a kubelet is used.
    fn max_age(&self) -> Duration {
        let usual = || USUAL_MAX_AGE.max(self.metric_resolution.saturating_mul(ROUNDS_KEPT));
        self.metric_max_age.unwrap_or_else(usual)
    }

    /// Whether the flags make sense together.
    ///
    /// # Errors
    /// They do not.
    pub fn check(&self) -> Result<(), KubeletError> {
        if self.max_age() > self.metric_resolution { Ok(()) } else { Err(KubeletError::MaxAge) }
    }

    /// How kubelets are found and read.
    ///
    /// # Errors
    /// Says which file makes no sense.
    pub fn config(&self, cluster: &Cluster) -> Result<Config, KubeletError> {
        let scheme = match self.kubelet_scheme {
            KubeletScheme::Https => Scheme::Https,
            KubeletScheme::Http => Scheme::Http,
        };
        let types = self.kubelet_preferred_address_types.clone();
        let (resolution, max_age) = (self.metric_resolution, self.max_age());
        Ok(Config {
            access: self.access(cluster)?,
            addressing: Addressing { types, port: self.kubelet_port, scheme },
            node_selector: self.node_selector.clone(),
            limits: Limits { resolution, max_age },
        })
    }

    fn access(&self, cluster: &Cluster) -> Result<Access, KubeletError> {
        let credentials = cluster.credentials()?;
        let mut tls = credentials.tls;
        if self.kubelet_insecure_tls {
            tls::trust_anybody(&mut tls);
        } else if let Some(path) = self.kubelet_certificate_authority.clone() {
            tls::trust_file(&mut tls, path.clone())
                .map_err(|source| KubeletError::Authority { path, source })?;
        }
        let token = match credentials.token {
            Some(BearerToken::File(path)) => Token::file(path),
            Some(BearerToken::Text(text)) => Token::fixed(&text).unwrap_or_else(Token::none),
            None => Token::none(),
        };
        Ok(Access { tls, token, timeout: self.kubelet_request_timeout })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        kubelet: Arguments,
    }

    fn read(flags: &str) -> Result<Arguments, String> {
        let words = std::iter::once("x").chain(flags.split_whitespace());
        let command = Command::try_parse_from(words).map_err(|error| error.to_string())?;
        command.kubelet.check().map_err(|error| error.to_string())?;
        Ok(command.kubelet)
    }

    #[test]
    fn flags_are_as_metrics_server_has_them() {
        let usual = read("").expect("the defaults");
        assert_eq!(usual.kubelet_preferred_address_types, ["InternalIP", "ExternalIP", "Hostname"]);
        assert_eq!(usual.max_age(), Duration::from_secs(60));
        let slow = read("--metric-resolution 1m").expect("slow scrapes");
        assert_eq!(slow.max_age(), Duration::from_secs(240));
        let all = read(
            "--metric-resolution 1s --metric-max-age 5s --kubelet-insecure-tls \
             --kubelet-preferred-address-types=Hostname,InternalIP --node-selector a=b,c --kubelet-port 10255 \
             --kubelet-scheme http --kubelet-request-timeout 2s",
        )
        .expect("all flags");
        assert_eq!(all.metric_resolution, Duration::from_secs(1));
        assert_eq!((all.kubelet_port, all.kubelet_scheme), (Some(10255), KubeletScheme::Http));
        for (flags, words) in [
            ("--metric-resolution 500ms", "shorter than 1s"),
            (
                "--metric-resolution 1m --metric-max-age 1m",
                "--metric-max-age must be longer than --metric-resolution",
            ),
            ("--kubelet-port 0", "0 is not in 1..=65535"),
            ("--node-selector a=,=b", "--node-selector"),
            ("--kubelet-preferred-address-types=Street", "Street"),
            ("--kubelet-insecure-tls --kubelet-certificate-authority x", "cannot be used with"),
        ] {
            let error = read(flags).expect_err(flags);
            assert!(error.contains(words), "{flags}: {error}");
        }
    }
}
