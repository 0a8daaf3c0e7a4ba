//! The file of routes: what it says, and that it is read again when it changes. A version that is wrong is
//! reported, and the last good one stays in use.

use super::{Authority, Names, Route, RouteList, Routes};
use crate::metrics::Metrics;
use axum::http::Uri;
use regex::Regex;
use serde::Deserialize;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How often the file and the authorities that it names are read; wall-clock. Contents are compared and not
/// times: a mounted ConfigMap changes by exchanging links.
const EVERY: Duration = Duration::from_secs(2);
/// The largest file.
const MOST_BYTES: u64 = 1 << 20;
/// The token of the service account that the program runs as.
const OWN_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";
/// How many routes there may be.
const MAX_ROUTES: usize = 1000;

/// What is wrong with a file of routes.
#[derive(Debug, thiserror::Error)]
pub enum RoutesError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It makes no sense.
    #[error("{0}")]
    Yaml(String),
    /// One route makes no sense.
    #[error("route {number}: {problem}")]
    Route {
        /// Which one, counted from 1.
        number: usize,
        /// What is wrong.
        problem: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    routes: Vec<RouteConfig>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RouteConfig {
    prefix: Option<String>,
    matches: Option<String>,
    service: Option<ServiceConfig>,
    url: Option<String>,
    ca_file: PathBuf,
    token_file: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServiceConfig {
    namespace: String,
    name: String,
    #[serde(default = "https_port")]
    port: u16,
}

fn https_port() -> u16 {
    443
}

/// The text of a file of routes, and what is in the files of authorities that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Contents {
    text: String,
    authorities: Vec<Result<Vec<u8>, String>>,
}

fn bounded(path: &Path) -> io::Result<Vec<u8>> {
    if std::fs::metadata(path)?.len() > MOST_BYTES {
        return Err(io::Error::other(format!("larger than {MOST_BYTES} bytes")));
    }
    std::fs::read(path)
}

impl Contents {
    pub(super) fn read(path: &Path) -> Result<Contents, RoutesError> {
        let fail = |source| RoutesError::Read { path: path.to_owned(), source };
        let text = String::from_utf8(bounded(path).map_err(fail)?);
        Contents::of(text.map_err(|error| fail(io::Error::other(error)))?)
    }

    pub(super) fn of(text: String) -> Result<Contents, RoutesError> {
        let authority = |route: &RouteConfig| {
            let fail = |error| format!("{}: {error}", route.ca_file.display());
            bounded(&route.ca_file).map_err(fail)
        };
        let authorities = parse(&text)?.iter().map(authority).collect();
        Ok(Contents { text, authorities })
    }

    pub(super) fn routes(&self) -> Result<RouteList, RoutesError> {
        let configs = parse(&self.text)?.into_iter().zip(&self.authorities).enumerate();
        let route =
            |(index, (config, authority)): (usize, (RouteConfig, &Result<Vec<u8>, String>))| {
                let made = make(config, authority);
                made.map_err(|problem| RoutesError::Route { number: index + 1, problem })
                    .map(Arc::new)
            };
        configs.map(route).collect()
    }
}

fn parse(text: &str) -> Result<Vec<RouteConfig>, RoutesError> {
    let file: File = serde_saphyr::from_str(text)
        .map_err(|error| RoutesError::Yaml(podscale_client::cause::one_line(&error)))?;
    if file.routes.len() > MAX_ROUTES {
        return Err(RoutesError::Yaml(format!("there are more than {MAX_ROUTES} routes")));
    }
    Ok(file.routes)
}

fn make(config: RouteConfig, authority: &Result<Vec<u8>, String>) -> Result<Route, String> {
    let names = match (config.prefix, config.matches) {
        (Some(prefix), None) if !prefix.is_empty() => Names::Prefix(prefix),
        (None, Some(text)) => Names::Matches(Regex::new(&text).map_err(|e| e.to_string())?),
        _ => return Err("give one of prefix and matches".to_owned()),
    };
    let url = match (config.service, config.url) {
        (Some(ServiceConfig { namespace, name, port }), None) => {
            format!("https://{name}.{namespace}.svc:{port}")
        }
        (None, Some(url)) if url.starts_with("https://") => url,
        (None, Some(url)) => return Err(format!("{url} does not begin with https://")),
        _ => return Err("give one of service and url".to_owned()),
    };
    let url = url.trim_end_matches('/').to_owned();
    let parsed: Result<Uri, _> = url.parse();
    if parsed.is_err() {
        return Err(format!("{url} is no address"));
    }
    let file = config.ca_file.display().to_string();
    let authority = Authority { file: &file, pem: authority.as_ref().map_err(String::clone)? };
    let token = config.token_file.unwrap_or_else(|| OWN_TOKEN.into());
    Route::new(names, url, token, &authority)
}

/// A file that is read again and again.
pub(super) struct Follower {
    path: PathBuf,
    routes: Routes,
    metrics: Metrics,
    /// What was read last, or why it could not be; each is reported once.
    known: Result<Contents, String>,
}

impl Follower {
    /// Goes on from what is in use.
    pub(super) fn new(
        path: PathBuf,
        known: Contents,
        routes: Routes,
        metrics: Metrics,
    ) -> Follower {
        metrics.routes_loaded(true);
        Follower { path, routes, metrics, known: Ok(known) }
    }

    /// Follows the file until dropped.
    pub(super) async fn follow(mut self) {
        loop {
            tokio::time::sleep(EVERY).await;
            self.look().await;
        }
    }

    pub(super) async fn look(&mut self) {
        let path = self.path.clone();
        let read = tokio::task::spawn_blocking(move || {
            Contents::read(&path).map_err(|error| error.to_string())
        });
        let read = read.await.unwrap_or_else(|error| Err(error.to_string()));
        if read == self.known {
            return;
        }
        self.known = read;
        let made = match &self.known {
            Ok(contents) => contents.routes().map_err(|error| error.to_string()),
            Err(error) => Err(error.clone()),
        };
        let file = self.path.display();
        self.metrics.routes_loaded(made.is_ok());
        match made {
            Ok(routes) => {
                tracing::info!(%file, routes = routes.len(), "the routes of external metrics are in use");
                self.routes.replace(routes);
            }
            Err(error) => {
                tracing::error!(%file, error, "the routes of external metrics are wrong; the last good ones stay in use");
            }
        }
    }
}
