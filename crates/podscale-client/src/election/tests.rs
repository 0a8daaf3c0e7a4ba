use super::*;
use podscale_apiserver::ApiServer;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::task::JoinHandle;
use tower::ServiceExt;

const TIMINGS: LeaseTimings = LeaseTimings {
    lease: Duration::from_secs(15),
    renew: Duration::from_secs(10),
    retry: Duration::from_secs(2),
};

fn server(clock: Clock) -> ApiServer {
    ApiServer::new(podscale_apiserver::Config {
        clock: Arc::new(move || clock.now()),
        ..podscale_apiserver::Config::default()
    })
}

/// A replica that takes part in the election.
struct Replica {
    leading: watch::Receiver<Option<Term>>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Replica {
    fn start(client: Client, clock: Clock, identity: &str) -> Replica {
        let config = Config {
            namespace: "default".to_owned(),
            name: "podscale".to_owned(),
            identity: identity.to_owned(),
            timings: TIMINGS,
        };
        let ((elected, leading), (stop, stopped)) = (watch::channel(None), watch::channel(false));
        let task = tokio::spawn(run(client, clock, config, Arc::new(()), elected, stopped));
        Replica { leading, stop, task }
    }

    async fn leads(&mut self) -> Option<Term> {
        *self.leading.wait_for(Option::is_some).await.expect("it takes part")
    }
}

async fn lease(client: &Client) -> Value {
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/podscale";
    let about = About { resource: RESOURCE, name: "podscale" };
    call::get(client, path, about).await.expect("a lease")
}

#[tokio::test(start_paused = true)]
async fn a_standby_takes_over_when_the_leader_gives_up_or_vanishes() {
    let clock = Clock::wall();
    let client = Client::new(server(clock).router(), "default");
    let mut one = Replica::start(client.clone(), clock, "one");
    assert_eq!(one.leads().await, Some(Term::Elected(0)));
    let mut two = Replica::start(client.clone(), clock, "two");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(*two.leading.borrow(), None);
    assert_eq!(lease(&client).await["spec"]["holderIdentity"], "one");
    // Gives up: the standby need not wait.
    let asked = Instant::now();
    one.stop.send_replace(true);
    one.task.await.expect("it ends");
    assert_eq!(two.leads().await, Some(Term::Elected(1)));
    assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
    let stored = lease(&client).await;
    assert_eq!(stored["spec"]["leaseTransitions"], 1);
    assert_eq!(stored["spec"]["leaseDurationSeconds"], 15);
    // Vanishes: its lease must end first.
    let mut three = Replica::start(client.clone(), clock, "three");
    tokio::time::sleep(Duration::from_secs(5)).await;
    two.task.abort();
    let vanished = Instant::now();
    assert_eq!(three.leads().await, Some(Term::Elected(2)));
    let waited = vanished.elapsed();
    let timings = TIMINGS.lease - TIMINGS.retry..TIMINGS.lease + TIMINGS.retry * 3;
    assert!(timings.contains(&waited), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_leader_without_answers_stops_in_time_and_comes_back() {
    let clock = Clock::wall();
    let router = server(clock).router();
    let down = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&down);
    let flaky = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (router, down) = (router.clone(), switch.load(Ordering::Relaxed));
        async move {
            if down {
                // No answer, not even a refusal.
                std::future::pending::<()>().await;
            }
            router.oneshot(request.map(axum::body::Body::new)).await
        }
    });
    let mut one = Replica::start(Client::new(flaky, "default"), clock, "one");
    assert!(one.leads().await.is_some());
    tokio::time::sleep(Duration::from_secs(7)).await;
    down.store(true, Ordering::Relaxed);
    let lost = Instant::now();
    one.leading.wait_for(Option::is_none).await.expect("it takes part");
    assert!(lost.elapsed() <= TIMINGS.renew, "{:?}", lost.elapsed());
    down.store(false, Ordering::Relaxed);
    assert!(one.leads().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn what_others_put_on_the_lease_stays() {
    let clock = Clock::wall();
    let client = Client::new(server(clock).router(), "default");
    let mut one = Replica::start(client.clone(), clock, "one");
    one.leads().await;
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/podscale";
    let about = About { resource: RESOURCE, name: "podscale" };
    let label = json!({"metadata": {"labels": {"team": "blue"}}});
    let patched: Result<Value, _> = call::send(&client, "PATCH", path, &label, about).await;
    patched.expect("labelled");
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(one.leading.borrow().is_some(), "a conflict is no loss");
    assert_eq!(lease(&client).await["metadata"]["labels"]["team"], "blue");
}
