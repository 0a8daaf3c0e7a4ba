//! The one port for those who run the program: the dashboard and its data, `/metrics`, `/healthz`
//! and `/readyz`. Everything is read-only.

use crate::connections::{self, Limits};
use crate::dashboard::{self, Hub};
use crate::metrics::{CONTENT_TYPE, Metrics};
use crate::readiness::Readiness;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How long open connections may take to end; wall-clock.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// What there is to show.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The autoscalers and their decisions.
    pub hub: Hub,
    /// What is counted and measured.
    pub metrics: Metrics,
    /// What is missing before anything can be decided.
    pub readiness: Readiness,
}

/// The port cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} for the admin pages: {source}")]
pub struct AdminError {
    /// Which address.
    pub address: SocketAddr,
    /// Why not.
    pub source: std::io::Error,
}

/// The pages and their data.
pub fn router(shown: Shown) -> Router {
    let Shown { hub, metrics, readiness } = shown;
    let metrics = async move || ([(header::CONTENT_TYPE, CONTENT_TYPE)], metrics.text());
    dashboard::router(hub)
        .route("/metrics", get(metrics))
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(async move || ready(&readiness)))
}

/// A replica that does not lead is ready as well: it is there to take over.
fn ready(readiness: &Readiness) -> Response {
    let missing = readiness.missing();
    if missing.is_empty() {
        return "ok\n".into_response();
    }
    let text = format!("waiting for {}\n", missing.join(", "));
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}

/// The pages, while they are served.
pub struct Admin {
    address: SocketAddr,
    hub: Hub,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Admin {
    /// Serves the pages.
    ///
    /// # Errors
    /// The address is taken or not allowed.
    pub async fn start(address: SocketAddr, shown: Shown) -> Result<Admin, AdminError> {
        let fail = |source| AdminError { address, source };
        let listener = TcpListener::bind(address).await.map_err(fail)?;
        let address = listener.local_addr().unwrap_or(address);
        let (stop, mut stopped) = watch::channel(false);
        let (hub, router) = (shown.hub.clone(), router(shown));
        let task = tokio::spawn(async move {
            let stop = async move {
                let _ = stopped.wait_for(|stop| *stop).await;
            };
            connections::serve(listener, router, Limits::default(), stop).await;
        });
        Ok(Admin { address, hub, stop, task })
    }

    /// Where the pages are.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends the streams to browsers and stops.
    pub async fn stop(mut self) {
        self.hub.close();
        self.stop.send_replace(true);
        if tokio::time::timeout(STOP_TIMEOUT, &mut self.task).await.is_err() {
            self.task.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use axum::http::Request;
    use http_body_util::BodyExt;
    use podscale_client::clock::Clock;
    use tower::ServiceExt;

    async fn ask(router: &Router, path: &str) -> (u16, String) {
        let request = Request::get(path).body(Body::empty()).expect("a request");
        let answer = router.clone().oneshot(request).await.expect("an answer");
        let code = answer.status().as_u16();
        let body = answer.into_body().collect().await.expect("a body").to_bytes();
        (code, String::from_utf8(body.to_vec()).expect("UTF-8"))
    }

    #[tokio::test]
    async fn one_port_tells_how_the_program_is() {
        let readiness = Readiness::new();
        readiness.needs("the list of pods");
        let (hub, metrics) = (Hub::new(Clock::wall()), Metrics::new());
        let router = router(Shown { hub, metrics, readiness: readiness.clone() });
        let ask = async |path: &str| ask(&router, path).await;
        assert_eq!(ask("/readyz").await, (503, "waiting for the list of pods\n".to_owned()));
        readiness.has("the list of pods");
        for (path, code, part) in [
            ("/readyz", 200, "ok"),
            ("/healthz", 200, "ok"),
            ("/metrics", 200, "\npodscale_leader 0\n"),
            ("/", 200, "<title>"),
            ("/api/autoscalers", 200, "\"autoscalers\":[]"),
            ("/api/autoscalers/a/b", 404, "no autoscaler a/b"),
            ("/secrets", 404, "nothing here"),
        ] {
            let (found, text) = ask(path).await;
            assert_eq!((found, text.contains(part)), (code, true), "{path}: {text}");
        }
    }
}
