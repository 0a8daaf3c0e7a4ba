use super::*;
use axum::Router;
use axum::http::{StatusCode, Uri};
use parking_lot::Mutex;
use std::time::Duration;

fn sources(answer: fn(&str) -> (u16, String)) -> (Sources, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    let router = Router::new().fallback(move |uri: Uri| {
        log.lock().push(uri.to_string());
        let (code, body) = answer(&uri.to_string());
        async move { (StatusCode::from_u16(code).expect("a code"), body) }
    });
    let client = Client::new(router, "default");
    let clock = Clock::wall();
    let mapper = RestMapper::new(client.clone(), clock);
    (Sources::metrics_apis(&client, clock, mapper, &Metrics::new()), asked)
}

/// The source of a metric, as the model has it.
fn metric(spec: &str) -> Arc<Source> {
    let text = format!(r#"{{"metadata":{{"namespace":"shop"}},"spec":{{"metrics":[{spec}]}}}}"#);
    let hpa = serde_json::from_str(&text).expect("an autoscaler");
    Arc::clone(&podscale_api::translate::autoscaler(&hpa).metrics[0].source)
}

fn question(metric: &Source) -> Question<'_> {
    let (max_age, period) = (Duration::from_secs(3), Duration::from_secs(15));
    Question { namespace: "shop", metric, pods: "app=web", max_age, period }
}

fn served(uri: &str) -> (u16, String) {
    let value = |kind: &str| {
        format!(
            r#"{{"describedObject":{{"kind":"{kind}","name":"p"}},"metric":{{"name":"other"}},"value":"3"}}"#
        )
    };
    let body = match uri {
        "/apis/custom.metrics.k8s.io" => r#"{"versions":[{"version":"v1beta1"}]}"#.to_owned(),
        "/apis/networking.k8s.io" => r#"{"versions":[{"version":"v1"}]}"#.to_owned(),
        "/apis/networking.k8s.io/v1" => {
            r#"{"resources":[{"name":"ingresses/status","kind":"Ingress","namespaced":true},
                {"name":"ingresses","kind":"Ingress","namespaced":true}]}"#
                .to_owned()
        }
        uri if uri.contains("/external.metrics") => {
            r#"{"items":[{"metricName":"odd","value":"4"}]}"#.to_owned()
        }
        uri if uri.contains("/custom.metrics") => {
            format!(r#"{{"kind":"MetricValueList","items":[{}]}}"#, value("Pods"))
        }
        _ => r#"{"items":[{"metadata":{"name":"p","labels":{"app":"web"}}}]}"#.to_owned(),
    };
    (200, body)
}

#[tokio::test]
async fn each_type_asks_the_path_that_kubernetes_knows() {
    let cases = [
        (
            r#"{"type":"Resource","resource":{"name":"cpu"}}"#,
            "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods",
        ),
        (
            r#"{"type":"Pods","pods":{"metric":{"name":"rps","selector":{"matchLabels":{"a":"b"}}}}}"#,
            "/apis/custom.metrics.k8s.io/v1beta1/namespaces/shop/pods/*/rps?labelSelector=app%3Dweb&metricLabelSelector=a%3Db",
        ),
        (
            r#"{"type":"Object","object":{"metric":{"name":"hits"},"describedObject":{"kind":"Ingress","name":"front","apiVersion":"networking.k8s.io/v1"}}}"#,
            "/apis/custom.metrics.k8s.io/v1beta1/namespaces/shop/ingresses.networking.k8s.io/front/hits",
        ),
        (
            r#"{"type":"Object","object":{"metric":{"name":"hits"},"describedObject":{"kind":"Namespace","name":"else","apiVersion":"v1"}}}"#,
            "/apis/custom.metrics.k8s.io/v1beta1/namespaces/shop/metrics/hits",
        ),
        (
            r#"{"type":"External","external":{"metric":{"name":"queue/x","selector":{"matchLabels":{"q":"1"}}}}}"#,
            "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/queue%2Fx?labelSelector=q%3D1",
        ),
    ];
    for (spec, expected) in cases {
        let (sources, asked) = sources(served);
        let metric = metric(spec);
        let answer = sources.ask(question(&metric)).await;
        assert_eq!(asked.lock().last().map(String::as_str), Some(expected));
        match answer {
            Answer::Resource(values) => assert_eq!(values.len(), 1),
            Answer::Custom(values) => {
                let value = &values[0];
                let (series, object) = match &*metric {
                    Source::Pods(series) => (series, ("Pod", "p")),
                    Source::Object { series, object } if &*object.kind == "Namespace" => {
                        (series, ("Namespace", "shop"))
                    }
                    Source::Object { series, .. } => (series, ("Ingress", "front")),
                    _ => unreachable!("custom metrics are of pods or objects"),
                };
                let described = &value.described_object;
                assert_eq!(*value.metric.name, *series.name);
                assert_eq!((&*described.kind, &*described.name), object);
            }
            Answer::External(values) => assert_eq!(&*values[0].metric_name, "queue/x"),
            other => panic!("{expected}: {other:?}"),
        }
        let before = asked.lock().len();
        sources.ask(question(&metric)).await;
        assert_eq!(asked.lock().len(), before, "the same question within a moment costs no call");
    }
}

#[tokio::test]
async fn errors_read_as_upstream_puts_them() {
    let cases = [
        (
            r#"{"type":"Resource","resource":{"name":"cpu"}}"#,
            "the server is currently unable to handle the request (get pods.metrics.k8s.io)",
        ),
        (
            r#"{"type":"Pods","pods":{"metric":{"name":"rps"}}}"#,
            "the server is currently unable to handle the request (get pods.custom.metrics.k8s.io *)",
        ),
        (
            r#"{"type":"External","external":{"metric":{"name":"queue"}}}"#,
            "the server is currently unable to handle the request (get queue.external.metrics.k8s.io)",
        ),
    ];
    for (spec, expected) in cases {
        let (sources, _) = sources(|_| (503, "service unavailable".to_owned()));
        match sources.ask(question(&metric(spec))).await {
            Answer::Failed(error) => assert_eq!(&*error, expected),
            other => panic!("{expected}: {other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_version_of_custom_metrics_is_discovered_once_in_a_period() {
    static SERVED: Mutex<(u16, &str)> = Mutex::new((200, ""));
    let (sources, asked) = sources(|uri| match uri {
        "/apis/custom.metrics.k8s.io" => {
            let (code, body) = *SERVED.lock();
            (code, body.to_owned())
        }
        _ => (200, r#"{"kind":"MetricValueList","items":[]}"#.to_owned()),
    });
    let metric = metric(r#"{"type":"Pods","pods":{"metric":{"name":"rps"}}}"#);
    let max_age = question(&metric).max_age;
    for (what, code, group, expected) in [
        ("none", 404, "", Err("no custom metrics API (custom.metrics.k8s.io) registered")),
        ("the older one", 200, r#"{"versions":[{"version":"v1beta1"}]}"#, Ok("v1beta1")),
        (
            "both",
            200,
            r#"{"versions":[{"version":"v1beta2"},{"version":"v1beta1"}],
                "preferredVersion":{"version":"v1beta2"}}"#,
            Ok("v1beta2"),
        ),
        (
            "the older one is preferred",
            200,
            r#"{"versions":[{"version":"v1beta2"},{"version":"v1beta1"}],
                "preferredVersion":{"version":"v1beta1"}}"#,
            Ok("v1beta1"),
        ),
        ("the server is busy", 503, "", Ok("v1beta1")),
        (
            "one that nobody knows",
            200,
            r#"{"versions":[{"version":"v9"}]}"#,
            Err("no known available metric versions found"),
        ),
    ] {
        *SERVED.lock() = (code, group);
        tokio::time::sleep(FRESHNESS_PARTS * max_age).await;
        match (sources.ask(question(&metric)).await, expected) {
            (Answer::Failed(error), Err(expected)) => assert_eq!(&*error, expected, "{what}"),
            (Answer::Custom(_), Ok(version)) => {
                let last = asked.lock().last().cloned().unwrap_or_default();
                assert!(last.starts_with(&format!("/apis/custom.metrics.k8s.io/{version}/")));
            }
            other => panic!("{what}: {other:?}"),
        }
    }
    *SERVED.lock() = (200, r#"{"versions":[{"version":"v1beta2"}]}"#);
    tokio::time::sleep(max_age).await;
    let answer = sources.ask(question(&metric)).await;
    assert!(matches!(answer, Answer::Custom(_)), "found as soon as it is there: {answer:?}");
}
