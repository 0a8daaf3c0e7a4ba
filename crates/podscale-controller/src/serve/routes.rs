//! Several providers of external metrics in one cluster: metrics with certain names are asked of other
//! servers, the rest is answered here.
//!
//! Whoever asks was judged here, by their own rights. The other server is asked with our own token, as
//! only the API server's front proxy can ask for others.

mod file;

use crate::metrics::Metrics;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use file::{Contents, Follower};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use parking_lot::RwLock;
use podscale_metrics::answer::{Answering, Refusal};
use podscale_metrics::external::{ExternalMetrics, ExternalRequest, ExternalValue};
use regex::Regex;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::fmt;
use std::future::ready;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub use file::RoutesError;

#[cfg(test)]
mod tests;

/// How long another server may take; wall-clock.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The largest answer of another server.
const ANSWER_LIMIT_BYTES: usize = 16 * 1024 * 1024;

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

type RouteList = Vec<Arc<Route>>;

/// Who is asked for which metrics; the first route that fits counts. Clones share the routes, which may
/// change at any time.
#[derive(Clone, Default)]
pub struct Routes {
    current: Arc<RwLock<Arc<RouteList>>>,
    file: Option<Arc<(PathBuf, Contents)>>,
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.now().iter().map(|route| &route.url)).finish()
    }
}

impl Routes {
    /// Reads a file of routes, and the authorities that it names.
    ///
    /// # Errors
    /// It cannot be read or makes no sense.
    pub fn read(path: &Path) -> Result<Routes, RoutesError> {
        let contents = Contents::read(path)?;
        let routes = Routes::of(contents.routes()?);
        Ok(Routes { file: Some(Arc::new((path.to_owned(), contents))), ..routes })
    }

    #[cfg(test)]
    fn parse(text: &str) -> Result<Routes, RoutesError> {
        Ok(Routes::of(Contents::of(text.to_owned())?.routes()?))
    }

    fn of(routes: RouteList) -> Routes {
        Routes { current: Arc::new(RwLock::new(Arc::new(routes))), file: None }
    }

    fn now(&self) -> Arc<RouteList> {
        Arc::clone(&self.current.read())
    }

    fn replace(&self, routes: RouteList) {
        *self.current.write() = Arc::new(routes);
    }

    /// Whether everything is answered here, and always will be.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.file.is_none() && self.now().is_empty()
    }

    /// Reads the file again when it changes, until dropped.
    pub(super) async fn follow(self, metrics: Metrics) {
        let Some(file) = self.file.clone() else { return };
        let (path, contents) = &*file;
        Follower::new(path.clone(), contents.clone(), self, metrics).follow().await;
    }

    /// Puts the routes before a router of external metrics.
    pub(super) fn around(&self, router: Router) -> Router {
        if self.is_empty() {
            router
        } else {
            router.layer(from_fn_with_state(self.clone(), forward))
        }
    }

    fn find(&self, path: &str) -> Option<Arc<Route>> {
        let rest = path.strip_prefix("/apis/external.metrics.k8s.io/v1beta1/namespaces/")?;
        let (_, metric) = rest.split_once('/')?;
        self.now().iter().find(|route| route.names.fit(metric)).cloned()
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
    fn new(
        names: Names,
        url: String,
        token: PathBuf,
        authority: &Authority<'_>,
    ) -> Result<Route, String> {
        Ok(Route { names, url, token, http: http_client(authority)? })
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

/// Whoever signed the certificates of another server.
struct Authority<'a> {
    file: &'a str,
    pem: &'a [u8],
}

fn http_client(
    authority: &Authority<'_>,
) -> Result<HttpClient<HttpsConnector<HttpConnector>, Empty<Bytes>>, String> {
    let name = authority.file;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authority.pem) {
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
