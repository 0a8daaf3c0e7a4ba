//! What every request passes: who asks, whether they may, and how long it takes.

use super::attributes::{Attributes, Target};
use super::authenticate::{AuthenticateError, Authenticator};
use super::authorize::Authorizer;
use super::judge::Peer;
use crate::metrics::Metrics;
use axum::extract::{Request, State};
use axum::http::{Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use podscale_metrics::answer::Refusal;
use std::time::{Duration, Instant};

/// How long an answer may take, wall-clock.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// What everybody may ask, as probes do.
const OPEN: [&str; 3] = ["/healthz", "/livez", "/readyz"];

/// Judges requests. Clones share what they remember.
#[derive(Clone)]
pub(super) struct Guard {
    authenticator: Authenticator,
    authorizer: Authorizer,
    metrics: Metrics,
}

impl Guard {
    /// Judges with these.
    #[must_use]
    pub(super) fn new(
        authenticator: Authenticator,
        authorizer: Authorizer,
        metrics: Metrics,
    ) -> Guard {
        let (tokens, accesses) = (authenticator.clone(), authorizer.clone());
        metrics.show_cache("token reviews", move || tokens.remembered());
        metrics.show_cache("access reviews", move || accesses.remembered());
        Guard { authenticator, authorizer, metrics }
    }

    async fn judge(&self, attributes: &Attributes, request: &mut Request) -> Result<(), Refusal> {
        if matches!(&attributes.target, Target::Path(path) if OPEN.contains(&path.as_str())) {
            return Ok(());
        }
        let peer = request.extensions().get::<Peer>().cloned().unwrap_or_default();
        let user = match self.authenticator.authenticate(&peer, request.headers()).await {
            Ok(user) => user,
            Err(error) => {
                if let AuthenticateError::Review(error) = &error {
                    tracing::warn!(%error, "cannot find out whose token it is");
                } else {
                    tracing::debug!(%error, "somebody is not who they claim to be");
                }
                return Err(Refusal::unauthorized());
            }
        };
        // Nothing behind this needs to know a secret.
        request.headers_mut().remove(header::AUTHORIZATION);
        self.authorizer.authorize(user, attributes.clone()).await
    }
}

/// The middleware.
pub(super) async fn guard(
    State(guard): State<Guard>,
    mut request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
    let attributes = Attributes::of(request.method(), path, query);
    let answering = async {
        if let Err(refusal) = guard.judge(&attributes, &mut request).await {
            return refusal.into_response();
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return Refusal::not_allowed().into_response();
        }
        next.run(request).await
    };
    let answer = match tokio::time::timeout(REQUEST_TIMEOUT, answering).await {
        Ok(answer) => answer,
        Err(_) => {
            let seconds = REQUEST_TIMEOUT.as_secs();
            Refusal::timeout(format!("no answer within {seconds} s")).into_response()
        }
    };
    let code = answer.status().as_u16();
    guard.metrics.served(group(&attributes), attributes.verb, code, began.elapsed());
    answer
}

/// The group of a request, out of few words.
fn group(attributes: &Attributes) -> &'static str {
    match &attributes.target {
        Target::Path(_) => "",
        Target::Resource(resource) => match resource.group.as_str() {
            podscale_metrics::resource::GROUP => podscale_metrics::resource::GROUP,
            podscale_metrics::custom::GROUP => podscale_metrics::custom::GROUP,
            podscale_metrics::external::GROUP => podscale_metrics::external::GROUP,
            _ => "other",
        },
    }
}
