use super::protocol::{Event, KeyValue};
use super::*;
use crate::grpc::tests::{Script, answer, serve};
use crate::tests::{context, outcome, soon, spec_of};
use crate::{connect, parse};

#[test]
fn fields_are_checked_in_the_words_of_keda() {
    const CONTEXT: &str =
        "error parsing kubernetes workload metadata: error parsing redis metadata: ";
    const GOOD: &str = "endpoints=a:2379,b:2379;watchKey=/jobs/length;value=5";
    for (text, expected) in [
        (GOOD.to_owned(), "s0-etcd--jobs-length 5 0"),
        (
            format!("{GOOD};activationValue=2.5;auth.tls=enable;auth.ca=c"),
            "s0-etcd--jobs-length 5 2.5",
        ),
        (
            String::new(),
            "missing required parameter \"endpoints\" in [triggerMetadata]\n\
             missing required parameter \"watchKey\" in [triggerMetadata]\n\
             missing required parameter \"value\" in [triggerMetadata]",
        ),
        (
            format!("{GOOD};watchProgressNotifyInterval=0"),
            "watchProgressNotifyInterval must be greater than 0",
        ),
        (format!("{GOOD};auth.tls=on"), "incorrect value for TLS given: on"),
        (format!("{GOOD};auth.tls=enable;auth.cert=c"), "key must be provided with cert"),
        (format!("{GOOD};auth.tls=enable;auth.key=k"), "cert must be provided with key"),
        (format!("{GOOD};auth.username=u"), "password must be provided with username"),
        (format!("{GOOD};auth.password=p"), "username must be provided with password"),
    ] {
        let found = outcome("etcd", &text);
        assert_eq!(found.strip_prefix(CONTEXT).unwrap_or(&found), expected, "{text}");
    }
}

#[test]
fn members_are_hosts_with_ports() {
    for (member, expected) in
        [("a:2379", "a:2379"), ("http://a:2379", "a:2379"), ("https://a.b:2379/", "a.b:2379")]
    {
        assert_eq!(host_and_port(member), expected);
    }
}

#[test]
fn keys_hold_numbers() {
    for (values, expected) in [
        (vec!["12"], "12"),
        (vec![" 1.5\n"], "1.5"),
        (vec![], "error getting metric value: watchKey k doesn't exist"),
        (vec!["many"], "error getting metric value: watchKey k does not hold a number"),
    ] {
        let kvs = values.iter().map(|value| KeyValue { value: value.as_bytes().to_vec() });
        let found = match number("k", &RangeResponse { kvs: kvs.collect() }) {
            Ok(number) => number.to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected, "{values:?}");
    }
}

#[tokio::test]
async fn members_that_are_away_are_passed_over_and_tokens_are_fetched_once() {
    let (script, asked) = (Script::default(), Arc::new(Mutex::new(Vec::new())));
    let address = serve(script.clone(), asked.clone()).await;
    let held = RangeResponse { kvs: vec![KeyValue { value: b"7".to_vec() }] };
    let changed = WatchResponse { canceled: false, events: vec![Event {}] };
    let token = AuthenticateResponse { token: "t".to_owned() };
    script.lock().insert("etcdserverpb.KV/Range", (vec![answer(&held)], "0"));
    script.lock().insert("etcdserverpb.Auth/Authenticate", (vec![answer(&token)], "0"));
    script.lock().insert("etcdserverpb.Watch/Watch", (vec![answer(&changed)], "0"));
    // Nobody listens on the first.
    let text = format!(
        "endpoints=127.0.0.1:1,http://{address};watchKey=k;value=5;auth.username=u;auth.password=hunter2"
    );
    let mut context = context();
    context.freshness = Duration::ZERO;
    let parsed = parse(&spec_of("etcd", &text)).expect("a trigger");
    assert!(!format!("{parsed:?}").contains("hunter2"), "{parsed:?}");
    let scaler = connect(parsed, &context).expect("a scaler");
    for _ in 0..2 {
        let values = scaler.poll(soon()).await.expect("a value");
        assert_eq!((values[0].value, values[0].active), (7.0, true));
    }
    let calls = ["etcdserverpb.Auth/Authenticate", "etcdserverpb.KV/Range as t"];
    assert_eq!(*asked.lock(), [calls[0], calls[1], calls[1]]);
    let mut told = scaler.notifications().expect("it is told");
    told.changed().await.expect("told");
    assert_eq!(asked.lock().last().map(String::as_str), Some("etcdserverpb.Watch/Watch as t"));

    script
        .lock()
        .insert("etcdserverpb.KV/Range", (Vec::new(), "16 etcdserver: invalid auth token"));
    let error = scaler.poll(soon()).await.expect_err("refused").to_string();
    assert!(error.ends_with("refuses the credentials: etcdserver: invalid auth token"), "{error}");
}
