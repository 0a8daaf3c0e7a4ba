//! Several providers of external metrics in one cluster: metrics with certain names are asked of other
//! servers, the rest is answered here.
//!
//! Whoever asks was judged here, by their own rights. The other server is asked with our own token, as
//! only the API server's front proxy can ask for others.

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use podscale_metrics::answer::{Answering, Refusal};
use podscale_metrics::external::{ExternalMetrics, ExternalRequest, ExternalValue};
use regex::Regex;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use serde::Deserialize;
use std::fmt;
use std::future::ready;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// How long another server may take; wall-clock.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The largest answer of another server.
const ANSWER_LIMIT_BYTES: usize = 16 * 1024 * 1024;
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
        source: std::io::Error,
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

/// The file.
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

/// Which names a route is for.
enum Names {
    Prefix(String),
    Matches(Regex),
}

impl Names {
    fn fit(&self, name: &str) -> bool {
        match self {
            Names::Prefix(prefix) => name.starts_with(prefix.as_str()),
            Names::Matches(regex) => regex.is_match(name),
        }
    }
}

struct Route {
    names: Names,
    url: String,
    token: PathBuf,
    http: HttpClient<HttpsConnector<HttpConnector>, Empty<Bytes>>,
}

/// Who is asked for which metrics; the first route that fits counts.
#[derive(Clone, Default)]
pub struct Routes(Arc<[Route]>);

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|route| &route.url)).finish()
    }
}

impl Routes {
    /// Reads a file of routes, and the authorities that it names.
    ///
    /// # Errors
    /// It cannot be read or makes no sense.
    pub fn read(path: &Path) -> Result<Routes, RoutesError> {
        let fail = |source| RoutesError::Read { path: path.to_owned(), source };
        Routes::parse(&std::fs::read_to_string(path).map_err(fail)?)
    }

    fn parse(text: &str) -> Result<Routes, RoutesError> {
        let file: File = serde_saphyr::from_str(text)
            .map_err(|error| RoutesError::Yaml(podscale_client::cause::one_line(&error)))?;
        if file.routes.len() > MAX_ROUTES {
            let problem = format!("there are more than {MAX_ROUTES} routes");
            return Err(RoutesError::Yaml(problem));
        }
        let route = |(index, config): (usize, RouteConfig)| {
            Route::new(config).map_err(|problem| RoutesError::Route { number: index + 1, problem })
        };
        let routes: Result<Vec<Route>, RoutesError> =
            file.routes.into_iter().enumerate().map(route).collect();
        Ok(Routes(routes?.into()))
    }

    /// Whether everything is answered here.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts the routes before a router of external metrics.
    pub(super) fn around(&self, router: Router) -> Router {
        if self.is_empty() {
            router
        } else {
            router.layer(from_fn_with_state(self.clone(), forward))
        }
    }

    fn find(&self, path: &str) -> Option<&Route> {
        let rest = path.strip_prefix("/apis/external.metrics.k8s.io/v1beta1/namespaces/")?;
        let (_, metric) = rest.split_once('/')?;
        self.0.iter().find(|route| route.names.fit(metric))
    }
}

async fn forward(State(routes): State<Routes>, request: Request, next: Next) -> Response {
    let Some(route) = routes.find(request.uri().path()) else { return next.run(request).await };
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
    match tokio::time::timeout(TIMEOUT, route.ask(&path)).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(problem)) => {
            tracing::warn!(server = route.url, problem, "a provider of external metrics failed");
            let text = format!("the provider of this metric cannot be asked: {problem}");
            Refusal::unavailable(text).into_response()
        }
        Err(_) => {
            let seconds = TIMEOUT.as_secs();
            let text = format!("the provider of this metric gave no answer within {seconds} s");
            Refusal::timeout(text).into_response()
        }
    }
}

impl Route {
    fn new(config: RouteConfig) -> Result<Route, String> {
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
        let http = http_client(&config.ca_file)?;
        let token = config.token_file.unwrap_or_else(|| OWN_TOKEN.into());
        Ok(Route { names, url, token, http })
    }

    async fn ask(&self, path: &str) -> Result<Response, String> {
        let token = tokio::fs::read_to_string(&self.token).await;
        let token = token.map_err(|error| format!("{}: {error}", self.token.display()))?;
        let mut token = HeaderValue::from_str(&format!("Bearer {}", token.trim()))
            .map_err(|_| format!("{} holds no token", self.token.display()))?;
        token.set_sensitive(true);
        let asked = axum::http::Request::get(format!("{}{path}", self.url))
            .header(header::AUTHORIZATION, token)
            .header(header::ACCEPT, "application/json")
            .body(Empty::new())
            .map_err(|error| error.to_string())?;
        let answer = self.http.request(asked).await;
        let answer = answer.map_err(|error| podscale_client::cause::innermost(&error))?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, ANSWER_LIMIT_BYTES).collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = head.status;
        if let Some(form) = head.headers.get(header::CONTENT_TYPE) {
            response.headers_mut().insert(header::CONTENT_TYPE, form.clone());
        }
        Ok(response)
    }
}

fn http_client(
    authorities: &Path,
) -> Result<HttpClient<HttpsConnector<HttpConnector>, Empty<Bytes>>, String> {
    let name = authorities.display();
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(authorities);
    for certificate in certificates.map_err(|error| format!("{name}: {error}"))? {
        let certificate = certificate.map_err(|error| format!("{name}: {error}"))?;
        roots.add(certificate).map_err(|error| format!("{name}: {error}"))?;
    }
    if roots.is_empty() {
        return Err(format!("{name} has no certificate"));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_only()
        .enable_all_versions()
        .build();
    Ok(HttpClient::builder(TokioExecutor::new()).build(connector))
}

/// Has no metrics: where all of them are asked of others.
pub(super) struct NoMetrics;

impl ExternalMetrics for NoMetrics {
    fn metrics(&self) -> Vec<String> {
        Vec::new()
    }

    fn values<'a>(&'a self, request: &'a ExternalRequest) -> Answering<'a, Vec<ExternalValue>> {
        Box::pin(ready(Err(request.not_found())))
    }
}
