//! What holds for every source that asks a server: a deadline on each call, one call for all who ask the same, connections
//! that are shared, and a circuit breaker of its own. The server here takes connections and never answers.

use futures::future::{BoxFuture, join_all};
use podscale_api::Selector;
use podscale_scalers::{
    Cluster, Context, Endpoint, KINDS, PodPlace, Scaler, TriggerError, TriggerSpec, connect, parse,
};
use std::io::ErrorKind;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How long a poll may take here.
const DEADLINE: Duration = Duration::from_secs(10);
/// These ask nobody: the cluster and the clock know the answer.
const ASK_NOBODY: [&str; 4] = ["cpu", "cron", "kubernetes-workload", "memory"];

struct Empty;

impl Cluster for Empty {
    fn pods<'a>(
        &'a self,
        _: &'a str,
        _: &'a Selector,
    ) -> BoxFuture<'a, Result<Vec<PodPlace>, String>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn endpoints<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Endpoint>, String>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// A server that takes connections and says nothing.
struct Silent(TcpListener);

impl Silent {
    fn start() -> Silent {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("it does not wait");
        Silent(listener)
    }

    fn address(&self) -> String {
        self.0.local_addr().expect("an address").to_string()
    }

    /// How many have connected since this was last asked.
    fn connections(&self) -> usize {
        let mut count = 0;
        loop {
            match self.0.accept() {
                Ok(_) => count += 1,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return count,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// All types that ask a server, and ways to ask where there are several.
fn asking() -> Vec<(&'static str, &'static str)> {
    let kinds = KINDS.into_iter().filter(|kind| !ASK_NOBODY.contains(kind));
    kinds.map(|kind| (kind, "")).chain([("rabbitmq", "amqp")]).collect()
}

/// A trigger of a type that asks the server at an address about something, with a password.
fn spec(kind: &str, way: &str, address: &str, what: &str, password: &str) -> TriggerSpec {
    let (host, port) = address.split_once(':').expect("an address");
    let redis = format!("address={address};password={password};sentinelMaster=main");
    let database =
        format!("host={host};port={port};dbName=d;query=SELECT {what};auth.password={password}");
    let text = match (kind, way) {
        ("activemq", _) => format!(
            "managementEndpoint={address};brokerName=b;destinationName={what};username=u;password={password}"
        ),
        ("aws-sqs-queue", _) => format!(
            "queueURL=http://{address}/0/{what};awsEndpoint=http://{address};awsRegion=r;auth.awsAccessKeyID=k;auth.awsSecretAccessKey={password}"
        ),
        ("etcd", _) => format!(
            "endpoints={address};watchKey={what};value=5;auth.username=u;auth.password={password}"
        ),
        // Whoever asks proves nothing but by a certificate.
        ("external" | "external-push", _) => format!("scalerAddress={address};queue={what}"),
        ("kafka", _) => format!(
            "bootstrapServers={address};consumerGroup=g;topic={what};sasl=plaintext;auth.username=u;auth.password={password}"
        ),
        ("metrics-api", _) => format!(
            "url=http://{address}/{what};valueLocation=a;targetValue=5;authMode=basic;auth.username=u;auth.password={password}"
        ),
        ("mysql", _) => format!("{database};username=u;queryValue=5"),
        ("nats-jetstream", _) => {
            format!("natsServerMonitoringEndpoint={address};account=$G;stream={what};consumer=c")
        }
        ("postgresql", _) => format!("{database};userName=u;sslmode=disable;targetQueryValue=5"),
        ("prometheus", _) => format!(
            "serverAddress=http://{address};threshold=1;query={what};authModes=basic;auth.username=u;auth.password={password}"
        ),
        ("rabbitmq", "amqp") => format!(
            "host=amqp://u:{password}@{address}/v;queueName={what};mode=QueueLength;value=2"
        ),
        ("rabbitmq", _) => format!(
            "host=http://u:{password}@{address}/v;queueName={what};mode=QueueLength;value=2"
        ),
        ("temporal", _) => {
            format!("endpoint={address};taskQueue={what};auth.apiKey={password};enableTLS=false")
        }
        (kind, _) if kind.ends_with("streams") => {
            format!("{redis};stream={what};consumerGroup=g;lagCount=5")
        }
        _ => format!("{redis};listName={what}"),
    };
    let mut spec = TriggerSpec {
        kind: kind.to_owned(),
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
        ..TriggerSpec::default()
    };
    for (name, value) in text.split(';').filter_map(|pair| pair.split_once('=')) {
        match name.strip_prefix("auth.") {
            Some(name) => drop(spec.auth.insert(name.to_owned(), value.into())),
            None => drop(spec.metadata.insert(name.to_owned(), value.to_owned())),
        }
    }
    spec
}

fn scaler(context: &Context, spec: &TriggerSpec) -> Box<dyn Scaler> {
    let parsed = parse(spec).unwrap_or_else(|errors| panic!("{}: {errors}", spec.kind));
    connect(parsed, context).unwrap_or_else(|error| panic!("{}: {error}", spec.kind))
}

fn context() -> Context {
    let mut context = Context::new(Arc::new(Empty));
    context.http_timeout = DEADLINE;
    context
}

/// Why a poll failed, which it must before its deadline: time goes by itself while nothing happens.
async fn poll(scaler: &dyn Scaler) -> TriggerError {
    let polled = timeout(2 * DEADLINE, scaler.poll(Instant::now() + DEADLINE)).await;
    polled.expect("it ends by its deadline").expect_err("nobody answers")
}

#[tokio::test(start_paused = true)]
async fn no_poll_takes_longer_than_its_deadline() {
    for (kind, way) in asking() {
        let (silent, context) = (Silent::start(), context());
        let trigger = scaler(&context, &spec(kind, way, &silent.address(), "orders", "p"));
        let began = Instant::now();
        let error = poll(&*trigger).await;
        assert!(error.is_outage(), "{kind}: {error:?}");
        assert!(began.elapsed() <= DEADLINE, "{kind}: {:?}", began.elapsed());
        assert!(silent.connections() > 0, "{kind} asks its server");
    }
}

#[tokio::test(start_paused = true)]
async fn one_call_serves_all_who_ask_the_same() {
    for (kind, way) in asking() {
        let (one, many, context) = (Silent::start(), Silent::start(), context());
        poll(&*scaler(&context, &spec(kind, way, &one.address(), "orders", "p"))).await;
        let alone = one.connections();
        let same = || scaler(&context, &spec(kind, way, &many.address(), "orders", "p"));
        let triggers: Vec<_> = (0..20).map(|_| same()).collect();
        join_all(triggers.iter().map(|trigger| poll(&**trigger))).await;
        assert_eq!(many.connections(), alone, "{kind}: as many as for one");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_is_left_alone_and_others_are_not() {
    for (kind, way) in asking() {
        let (broken, other, context) = (Silent::start(), Silent::start(), context());
        let first = scaler(&context, &spec(kind, way, &broken.address(), "orders", "p"));
        let second = scaler(&context, &spec(kind, way, &broken.address(), "parcels", "p"));
        let elsewhere = scaler(&context, &spec(kind, way, &other.address(), "orders", "p"));
        poll(&*first).await;
        broken.connections();
        // What follows from a deadline that passed is known to all who ask the same server, whatever they ask.
        let error = poll(&*second).await;
        assert!(matches!(error, TriggerError::Open(_)), "{kind}: {error:?}");
        assert_eq!(broken.connections(), 0, "{kind}: it is left alone");
        let error = poll(&*elsewhere).await;
        assert!(!matches!(error, TriggerError::Open(_)), "{kind}: {error:?}");
        assert!(other.connections() > 0, "{kind}: another server is asked");
    }
}

#[tokio::test]
async fn triggers_of_the_same_server_and_credentials_share_it() {
    for (kind, way) in asking() {
        let (silent, context) = (Silent::start(), context());
        let address = silent.address();
        let of = |what: &str, password: &str| {
            scaler(&context, &spec(kind, way, &address, what, password))
        };
        let _orders = of("orders", "p");
        let servers = context.servers();
        assert!(servers > 0, "{kind}");
        let _parcels = of("parcels", "p");
        assert_eq!(context.servers(), servers, "{kind}: another question, the same server");
        let _others = of("orders", "q");
        let has_password = !matches!(kind, "external" | "external-push" | "nats-jetstream");
        assert_eq!(context.servers() > servers, has_password, "{kind}: other credentials");
        assert_eq!(silent.connections(), 0, "{kind}: nobody connects before it is polled");
    }
}
