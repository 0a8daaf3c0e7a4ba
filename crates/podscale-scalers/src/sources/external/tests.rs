use super::protocol::MetricValue;
use super::*;
use crate::grpc::tests::{Script, answer, serve};
use crate::tests::{context, outcome, soon, spec_of};
use crate::{MetricType, connect, parse};
use std::time::Duration;

#[test]
fn fields_are_checked_in_the_words_of_keda() {
    const CONTEXT: &str =
        "error parsing external scaler metadata: error parsing external scaler metadata: ";
    const TOLD: &str = "Told { metric_type: AverageValue, index: 0 }";
    for (text, expected) in [
        ("scalerAddress=h:1", TOLD),
        ("scalerAddress=dns:///h:1;anything=goes;enableTLS=true", TOLD),
        ("a=b", "missing required parameter \"scalerAddress\" in [triggerMetadata]"),
        ("scalerAddress=http://h:1", "parameter \"scalerAddress\" is not host:port"),
    ] {
        for kind in ["external", "external-push"] {
            let found = outcome(kind, text);
            assert_eq!(found.strip_prefix(CONTEXT).unwrap_or(&found), expected, "{text}");
        }
    }
    let parsed = parse(&spec_of("external", "scalerAddress=h:1;tresh=5")).expect("a trigger");
    assert!(parsed.warnings.is_empty(), "all names are the server's: {:?}", parsed.warnings);
}

#[test]
fn the_server_is_told_all_of_the_metadata_and_nobody_else() {
    let mut spec = spec_of("external", "scalerAddress=h:1;a=b;keyFromEnv=KEY;noneFromEnv=NONE");
    spec.env.insert("KEY".to_owned(), "hunter2".into());
    let parsed = parse(&spec).expect("a trigger");
    assert!(!format!("{parsed:?}").contains("hunter2"), "{parsed:?}");
    let object = Object {
        namespace: "shop".into(),
        name: "web".into(),
        metadata: metadata(&Fields::new(&spec)),
    };
    let message = object.message();
    let found: Vec<String> =
        message.scaler_metadata.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(found, ["a=b", "keyFromEnv=hunter2", "scalerAddress=h:1"]);
    assert_eq!((&*message.name, &*message.namespace), ("web", "shop"));
}

fn specs(specs: &[(&str, i64, f64)]) -> Vec<bytes::Bytes> {
    let spec = |(name, size, float): &(&str, i64, f64)| MetricSpec {
        metric_name: (*name).to_owned(),
        target_size: *size,
        target_size_float: *float,
    };
    vec![answer(&GetMetricSpecResponse { metric_specs: specs.iter().map(spec).collect() })]
}

#[tokio::test]
async fn metrics_targets_and_activity_are_the_servers() {
    let (script, asked) = (Script::default(), Arc::new(Mutex::new(Vec::new())));
    let address = serve(script.clone(), asked.clone()).await;
    let value = |metric_value, metric_value_float| MetricValue {
        metric_name: "x".to_owned(),
        metric_value,
        metric_value_float,
    };
    let values = GetMetricsResponse { metric_values: vec![value(3, 0.0), value(9, 1.5)] };
    let set = |name: &'static str, messages, status| {
        script.lock().insert(name, (messages, status));
    };
    set("externalscaler.ExternalScaler/GetMetricSpec", specs(&[("x", 7, 0.0), ("y", 7, 2.5)]), "0");
    set("externalscaler.ExternalScaler/GetMetrics", vec![answer(&values)], "0");
    let active = vec![answer(&IsActiveResponse { result: true })];
    set("externalscaler.ExternalScaler/IsActive", active.clone(), "0");
    set("externalscaler.ExternalScaler/StreamIsActive", active, "0");

    let mut context = context();
    context.freshness = Duration::ZERO;
    let make = |kind: &str| {
        let parsed = parse(&spec_of(kind, &format!("scalerAddress={address}"))).expect("a trigger");
        connect(parsed, &context).expect("a scaler")
    };
    let scaler = make("external");
    let found = scaler.poll(soon()).await.expect("values");
    let found: Vec<_> = found.iter().map(|v| (&*v.metric_name, v.value, v.active)).collect();
    assert_eq!(found, [("s0-x", 4.5, true), ("s0-y", 4.5, true)]);
    let metric = |name: &str, target| Metric::External {
        name: name.to_owned(),
        metric_type: MetricType::AverageValue,
        target,
    };
    let metrics = scaler.metrics(soon()).await.expect("metrics");
    assert_eq!(metrics, Some(vec![metric("s0-x", 7.0), metric("s0-y", 2.5)]));
    assert!(scaler.notifications().is_none(), "only external-push is told");

    set("externalscaler.ExternalScaler/GetMetricSpec", specs(&[]), "0");
    assert_eq!(scaler.poll(soon()).await, Ok(Vec::new()), "targets are not remembered");
    set("externalscaler.ExternalScaler/IsActive", Vec::new(), "5 no such queue");
    let error = scaler.poll(soon()).await.expect_err("refused").to_string();
    assert_eq!(error, format!("{address} gives no value: no such queue (gRPC 5)"));

    let mut told = make("external-push").notifications().expect("it is told");
    assert!(told.changed().await.is_err(), "it ends with its trigger");
    let pushed = make("external-push");
    let mut told = pushed.notifications().expect("it is told");
    told.changed().await.expect("told at once");
    assert_eq!(context.servers(), 1);
}
