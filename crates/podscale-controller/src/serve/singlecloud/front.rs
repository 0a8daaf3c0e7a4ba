//! Takes requests in: who asks, whether they may, what they want.

use super::Autoscalers;
use super::answer::{Failure, Place, warn};
use super::picker::Picker;
use super::request::{Subject, Wanted};
use crate::metrics::Metrics;
use crate::serve::authenticate::Authenticator;
use crate::serve::authorize::Authorizer;
use crate::serve::judge::Peer;
use crate::serve::user::User;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use http_body_util::{BodyExt, Limited};
use podscale_api::singlecloud::{Read, collection, read};
use std::time::{Duration, Instant};

/// How long an answer may take, wall-clock. A change goes on behind it.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// The largest body that is read.
const BODY_LIMIT_BYTES: usize = 1024 * 1024;
/// What requests are counted as.
const GROUP: &str = "zcloud.cn";

/// Takes requests in. Clones share everything.
#[derive(Clone)]
pub(super) struct Front {
    authenticator: Authenticator,
    authorizer: Authorizer,
    metrics: Metrics,
    cluster: String,
    autoscalers: Autoscalers,
    picker: Picker,
}

impl Front {
    /// Judges with these, and changes autoscalers of the cluster of that name.
    pub(super) fn new(
        authenticator: Authenticator,
        authorizer: Authorizer,
        metrics: Metrics,
        cluster: String,
        autoscalers: Autoscalers,
    ) -> Front {
        let picker = Picker::new(autoscalers.0.client.clone());
        Front { authenticator, authorizer, metrics, cluster, autoscalers, picker }
    }

    /// Answers every path.
    pub(super) fn router(self) -> Router {
        Router::new().fallback(answer).with_state(self)
    }

    /// What a request is about, if whoever asks may do that.
    async fn admit(&self, request: &Parts) -> Result<Subject, Failure> {
        let peer = request.extensions.get::<Peer>().cloned().unwrap_or_default();
        let user = match self.authenticator.authenticate(&peer, &request.headers).await {
            Ok(user) if user != User::anonymous() => user,
            Ok(_) => return Err(Failure::unauthorized()),
            Err(error) => {
                tracing::debug!(%error, "somebody is not who they claim to be");
                return Err(Failure::unauthorized());
            }
        };
        let nowhere = || Failure::not_found("no such resource");
        let Wanted { cluster, subject } = Wanted::of(request.uri.path()).ok_or_else(nowhere)?;
        if cluster != self.cluster {
            return Err(Failure::not_found("cluster doesn't exist"));
        }
        let attributes = subject.attributes(&request.method).ok_or_else(Failure::not_allowed)?;
        match self.authorizer.authorize(user, attributes).await {
            Ok(()) => Ok(subject),
            Err(refusal) if refusal.code() == StatusCode::FORBIDDEN.as_u16() => {
                Err(Failure::forbidden(refusal.message().to_owned()))
            }
            Err(refusal) => Err(Failure::server(refusal.message())),
        }
    }

    async fn act(&self, request: Request) -> Result<Response, Failure> {
        let (request, body) = request.into_parts();
        let subject = self.admit(&request).await?;
        let (method, host) = (&request.method, host(&request));
        match subject {
            Subject::Autoscalers { namespace } => {
                let place = Place { host, collection: collection(&self.cluster, &namespace) };
                if *method == Method::POST {
                    return self.create(place, namespace, body).await;
                }
                let all = self.autoscalers.list(&namespace).await?;
                Ok(Json(place.autoscalers(all)).into_response())
            }
            Subject::Autoscaler { namespace, name } => {
                let place = Place { host, collection: collection(&self.cluster, &namespace) };
                match *method {
                    Method::PUT => self.update(place, namespace, name, body).await,
                    Method::DELETE => self.delete(namespace, name).await,
                    _ => {
                        let one = self.autoscalers.get(&namespace, &name).await?;
                        Ok(Json(place.linked(one)).into_response())
                    }
                }
            }
            Subject::Metrics { namespace, resource, name } => {
                let place = Place { host, collection: request.uri.path().to_owned() };
                let metrics = self.picker.metrics(resource, &namespace, &name).await?;
                Ok(Json(place.list("metric", &metrics)).into_response())
            }
        }
    }

    async fn create(
        &self,
        place: Place,
        namespace: String,
        body: Body,
    ) -> Result<Response, Failure> {
        let Read { autoscaler, unknown } = body_of(body).await?;
        let autoscalers = self.autoscalers.clone();
        let changing = async move { autoscalers.create(&namespace, &autoscaler).await };
        let stored = place.linked(whole(changing).await?);
        Ok(warn((StatusCode::CREATED, Json(stored)).into_response(), &unknown))
    }

    async fn update(
        &self,
        place: Place,
        namespace: String,
        name: String,
        body: Body,
    ) -> Result<Response, Failure> {
        let Read { autoscaler, unknown } = body_of(body).await?;
        if autoscaler.name != name {
            let message = format!("name {} isn't {name} of the path", autoscaler.name);
            return Err(Failure::body(invalid("name", message)));
        }
        let autoscalers = self.autoscalers.clone();
        let changing = async move { autoscalers.update(&namespace, &autoscaler).await };
        let stored = place.linked(whole(changing).await?);
        Ok(warn(Json(stored).into_response(), &unknown))
    }

    async fn delete(&self, namespace: String, name: String) -> Result<Response, Failure> {
        let autoscalers = self.autoscalers.clone();
        whole(async move { autoscalers.delete(&namespace, &name).await }).await?;
        Ok(StatusCode::ACCEPTED.into_response())
    }
}

/// Lets a change come to its end even if nobody waits for it any more.
async fn whole<T: Send + 'static>(
    change: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> Result<T, Failure> {
    let ended = tokio::spawn(change).await;
    ended.unwrap_or_else(|error| Err(Failure::server(error.to_string())))
}

fn invalid(field: &str, message: String) -> podscale_api::singlecloud::Invalid {
    podscale_api::singlecloud::Invalid { field: field.to_owned(), message }
}

async fn body_of(body: Body) -> Result<Read, Failure> {
    let unreadable = |error: &dyn std::fmt::Display| {
        Failure::body(invalid("", format!("the body cannot be read: {error}")))
    };
    let body = Limited::new(body, BODY_LIMIT_BYTES).collect().await;
    let body = body.map_err(|error| unreadable(&error))?.to_bytes();
    let value = serde_json::from_slice(&body).map_err(|error| unreadable(&error))?;
    read(&value).map_err(Failure::body)
}

/// Where the client found this server.
fn host(request: &Parts) -> String {
    let named = request.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let asked = request.uri.authority().map(|authority| authority.as_str());
    format!("https://{}", named.or(asked).unwrap_or_default())
}

async fn answer(State(front): State<Front>, request: Request) -> Response {
    let began = Instant::now();
    let verb = match *request.method() {
        Method::GET => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::DELETE => "delete",
        _ => "other",
    };
    let answer = match tokio::time::timeout(REQUEST_TIMEOUT, front.act(request)).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(failure)) => failure.into_response(),
        Err(_) => {
            let seconds = REQUEST_TIMEOUT.as_secs();
            Failure::server(format!("no answer within {seconds} s")).into_response()
        }
    };
    front.metrics.served(GROUP, verb, answer.status().as_u16(), began.elapsed());
    answer
}
