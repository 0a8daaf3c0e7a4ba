//! The client's rate limit (`--kube-api-qps`, `--kube-api-burst`). Watches are not counted, since they
//! stay open; neither are calls of leases: a leader that waits for its turn would lose its lease.

use crate::instrument::Instruments;
use http::Request;
use parking_lot::Mutex;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tower::{Layer, Service};

/// How many calls may be made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// In a second, in the long run; above zero.
    pub per_second: f64,
    /// At once, after a quiet time.
    pub burst: u32,
}

/// The longest time between two calls.
const LONGEST_GAP: Duration = Duration::from_secs(24 * 3600);

/// A token bucket of calls. Clones share it.
#[derive(Clone)]
pub(crate) struct RateLimit {
    gap: Duration,
    /// By how much calls may come before their turn: what a quiet time saves up.
    early: Duration,
    /// The turn of the next call.
    next: Arc<Mutex<Option<Instant>>>,
    instruments: Instruments,
}

impl RateLimit {
    /// Allows calls at this rate, a burst at once.
    #[must_use]
    pub(crate) fn new(rate: Rate, instruments: Instruments) -> RateLimit {
        let gap = Duration::try_from_secs_f64(rate.per_second.recip()).unwrap_or(LONGEST_GAP);
        let gap = gap.min(LONGEST_GAP);
        let early = gap.saturating_mul(rate.burst.saturating_sub(1));
        RateLimit { gap, early, next: Arc::default(), instruments }
    }

    /// Takes the next turn; how long to wait for it.
    fn turn(&self) -> Duration {
        let now = Instant::now();
        let mut next = self.next.lock();
        let turn = next.map_or(now, |next| next.max(now));
        *next = Some(turn.checked_add(self.gap).unwrap_or(turn));
        (turn - now).saturating_sub(self.early)
    }

    async fn wait(&self) {
        let wait = self.turn();
        if !wait.is_zero() {
            self.instruments.throttled();
            sleep(wait).await;
        }
    }
}

impl<S> Layer<S> for RateLimit {
    type Service = RateLimited<S>;

    fn layer(&self, inner: S) -> RateLimited<S> {
        RateLimited { inner, rate_limit: self.clone() }
    }
}

/// A service whose calls are rate limited.
#[derive(Clone)]
pub(crate) struct RateLimited<S> {
    inner: S,
    rate_limit: RateLimit,
}

impl<S, B> Service<Request<B>> for RateLimited<S>
where
    S: Service<Request<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let rate_limit = (!is_free(&request)).then(|| self.rate_limit.clone());
        // Nothing is sent before this is polled.
        let answer = self.inner.call(request);
        Box::pin(async move {
            if let Some(rate_limit) = rate_limit {
                rate_limit.wait().await;
            }
            answer.await
        })
    }
}

fn is_free<B>(request: &Request<B>) -> bool {
    let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
    let watches = query.split('&').any(|parameter| parameter == "watch=true");
    watches || path.starts_with("/apis/coordination.k8s.io/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::body::Body;
    use futures::future::join_all;
    use http::Uri;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tower::ServiceExt;

    #[derive(Default)]
    struct Throttled(AtomicU32);

    impl crate::instrument::Instrument for Throttled {
        fn throttled(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    type Arrivals = Arc<Mutex<Vec<(u128, String)>>>;

    /// Notes when which request arrived, in milliseconds.
    fn server() -> (Router, Arrivals) {
        let arrivals = Arrivals::default();
        let (log, began) = (Arc::clone(&arrivals), Instant::now());
        let router = Router::new().fallback(move |uri: Uri| {
            log.lock().push((began.elapsed().as_millis(), uri.to_string()));
            async { "" }
        });
        (router, arrivals)
    }

    fn get(uri: &str) -> Request<Body> {
        Request::get(uri).body(Body::empty()).expect("a request")
    }

    #[tokio::test(start_paused = true)]
    async fn calls_keep_to_the_rate_and_save_up_no_more_than_the_burst() {
        let (router, arrivals) = server();
        let throttled = Arc::new(Throttled::default());
        let rate = Rate { per_second: 10.0, burst: 3 };
        let rate_limit = RateLimit::new(rate, Arc::clone(&throttled) as Instruments);
        let service = rate_limit.layer(router);
        let all = |count: usize| join_all((0..count).map(|_| service.clone().oneshot(get("/a"))));
        all(6).await;
        sleep(Duration::from_secs(60)).await;
        all(5).await;
        let times: Vec<u128> = arrivals.lock().drain(..).map(|(time, _)| time).collect();
        assert_eq!(times, [0, 0, 0, 100, 200, 300, 60_300, 60_300, 60_300, 60_400, 60_500]);
        assert_eq!(throttled.0.load(Ordering::Relaxed), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn watches_and_leases_wait_for_nobody() {
        let (router, arrivals) = server();
        let rate_limit = RateLimit::new(Rate { per_second: 0.1, burst: 1 }, Arc::new(()));
        let service = rate_limit.layer(router);
        let lease = "/apis/coordination.k8s.io/v1/namespaces/x/leases/podscale";
        let free = [lease, "/api/v1/pods?watch=true&timeoutSeconds=290"];
        let calls = ["/a", "/b"].into_iter().chain(free).chain(free);
        join_all(calls.map(|uri| service.clone().oneshot(get(uri)))).await;
        let (at_once, late): (Vec<_>, Vec<_>) =
            arrivals.lock().drain(..).partition(|(time, _)| *time == 0);
        assert_eq!(at_once.len(), 5, "{at_once:?}");
        assert_eq!(late, [(10_000, "/b".to_owned())]);
    }
}
