use super::*;
use crate::tests::{context, outcome, soon, spec_of};
use crate::{connect, parse};
use axum::Router;
use axum::routing::get;
use std::sync::Arc;

#[test]
fn fields_are_checked_in_the_words_of_keda() {
    const CONTEXT: &str = "error parsing NATS JetStream metadata: ";
    const GOOD: &str = "natsServerMonitoringEndpoint=n:8222;stream=s;consumer=c";
    for (text, expected) in [
        (format!("{GOOD};account=$G"), "s0-nats-jetstream-s 10 0"),
        (
            format!("{GOOD};accountID=A;lagThreshold=5;activationLagThreshold=2;useHttps=true"),
            "s0-nats-jetstream-s 5 2",
        ),
        (GOOD.to_owned(), "no account name or id given"),
        (
            "account=$G;natsServerMonitoringEndpoint=n:8222".to_owned(),
            "error parsing nats metadata: missing required parameter \"stream\" in [triggerMetadata]\n\
             missing required parameter \"consumer\" in [triggerMetadata]",
        ),
        (
            "account=$G;stream=s;consumer=c".to_owned(),
            "error parsing nats metadata: missing required parameter \"natsServerMonitoringEndpoint\" in \
             [authParams triggerMetadata]",
        ),
    ] {
        let found = outcome("nats-jetstream", &text);
        assert_eq!(found.strip_prefix(CONTEXT).unwrap_or(&found), expected, "{text}");
    }
}

/// A node of a cluster on an address of the loopback; `leader` leads the consumer.
async fn node(
    address: &str,
    port: u16,
    name: &'static str,
    leader: Arc<Mutex<&'static str>>,
) -> Option<u16> {
    let lag = if name == "n2" { 7 } else { 99 };
    let accounts = move || {
        let leader = *leader.lock();
        async move {
            format!(
                r#"{{"meta_cluster":{{"cluster_size":2}},"account_details":[{{"name":"$G","id":"$G","stream_detail":
                [{{"name":"s","consumer_detail":[{{"name":"c","num_pending":{lag},"num_ack_pending":1,
                "cluster":{{"leader":"{leader}"}}}}]}}]}}]}}"#
            )
        }
    };
    let varz = move || async move {
        format!(r#"{{"server_name":"{name}","connect_urls":["127.0.0.1:4222","127.0.0.2:4222"]}}"#)
    };
    let router = Router::new().route("/jsz", get(accounts)).route("/varz", get(varz));
    let listener = tokio::net::TcpListener::bind((address, port)).await.ok()?;
    let port = listener.local_addr().ok()?.port();
    tokio::spawn(async move { axum::serve(listener, router).await });
    Some(port)
}

#[tokio::test]
async fn the_leader_of_a_consumer_is_asked() {
    let leader = Arc::new(Mutex::new("n2"));
    let mut ports = None;
    // A port that is free on one address may be taken on the other.
    for _ in 0..20 {
        let Some(port) = node("127.0.0.1", 0, "n1", leader.clone()).await else { continue };
        if node("127.0.0.2", port, "n2", leader.clone()).await.is_some() {
            ports = Some(port);
            break;
        }
    }
    let port = ports.expect("a port on both addresses");
    let text =
        format!("natsServerMonitoringEndpoint=127.0.0.1:{port};stream=s;consumer=c;account=$G");
    let mut context = context();
    context.freshness = Duration::ZERO;
    let parsed = parse(&spec_of("nats-jetstream", &text)).expect("a trigger");
    let scaler = connect(parsed, &context).expect("a scaler");
    let value = async || match scaler.poll(soon()).await {
        Ok(values) => values[0].value.to_string(),
        Err(error) => error.to_string(),
    };
    assert_eq!(value().await, "8", "n2 leads");
    assert_eq!(value().await, "8", "and is remembered");
    *leader.lock() = "n1";
    assert_eq!(value().await, "100", "n1 has taken over");
    *leader.lock() = "n3";
    assert_eq!(value().await, "leader node not found for consumer c");
}
