use super::*;
use axum::Router;
use axum::http::{StatusCode, Uri};
use parking_lot::Mutex;

fn scraper(answer: fn(&str) -> (u16, String)) -> (Scraper, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    let router = Router::new().fallback(move |uri: Uri| {
        log.lock().push(uri.to_string());
        let (code, body) = answer(&uri.to_string());
        async move { (StatusCode::from_u16(code).expect("a code"), body) }
    });
    let client = Client::new(router, "default");
    let clock = Clock::wall();
    let kinds = RestMapper::new(client.clone(), clock);
    (Scraper::new(client, clock, kinds, Metrics::new()), asked)
}

fn hpa(metric: &str) -> HorizontalPodAutoscaler {
    let text = format!(r#"{{"metadata":{{"namespace":"shop"}},"spec":{{"metrics":[{metric}]}}}}"#);
    serde_json::from_str(&text).expect("an autoscaler")
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
        uri if uri.contains("/custom.metrics") => format!(r#"{{"items":[{}]}}"#, value("Pods")),
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
    for (metric, expected) in cases {
        let (scraper, asked) = scraper(served);
        let hpa = hpa(metric);
        let spec = &hpa.spec.metrics[0];
        let answer = scraper.read(&hpa, spec, "app=web", Duration::from_secs(3)).await;
        assert_eq!(asked.lock().last().map(String::as_str), Some(expected));
        match answer {
            Answer::Resource(values) => assert_eq!(values.len(), 1),
            Answer::Custom(values) => {
                let value = &values[0];
                let (metric, object) = match (&spec.pods, &spec.object) {
                    (Some(pods), _) => (&pods.metric, ("Pod", "p")),
                    (_, Some(object)) if object.described_object.kind == "Namespace" => {
                        (&object.metric, ("Namespace", "shop"))
                    }
                    (_, Some(object)) => (&object.metric, ("Ingress", "front")),
                    _ => unreachable!("custom metrics are of pods or objects"),
                };
                let described = &value.described_object;
                assert_eq!(*value.metric.name, *metric.name);
                assert_eq!((&*described.kind, &*described.name), object);
            }
            Answer::External(values) => assert_eq!(&*values[0].metric_name, "queue/x"),
            other => panic!("{expected}: {other:?}"),
        }
        let before = asked.lock().len();
        scraper.read(&hpa, spec, "app=web", Duration::from_secs(3)).await;
        assert_eq!(asked.lock().len(), before, "a second look within a moment costs no call");
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
    for (metric, expected) in cases {
        let (scraper, _) = scraper(|_| (503, "service unavailable".to_owned()));
        let hpa = hpa(metric);
        match scraper.read(&hpa, &hpa.spec.metrics[0], "app=web", Duration::from_secs(3)).await {
            Answer::Failed(error) => assert_eq!(&*error, expected),
            other => panic!("{expected}: {other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_version_of_custom_metrics_is_looked_up_once_in_a_period() {
    static SERVED: Mutex<(u16, &str)> = Mutex::new((200, ""));
    let (scraper, asked) = scraper(|uri| match uri {
        "/apis/custom.metrics.k8s.io" => {
            let (code, body) = *SERVED.lock();
            (code, body.to_owned())
        }
        _ => (200, r#"{"items":[]}"#.to_owned()),
    });
    let hpa = hpa(r#"{"type":"Pods","pods":{"metric":{"name":"rps"}}}"#);
    let fresh = Duration::from_secs(3);
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
        tokio::time::sleep(4 * fresh).await;
        match (scraper.read(&hpa, &hpa.spec.metrics[0], "app=web", fresh).await, expected) {
            (Answer::Failed(error), Err(expected)) => assert_eq!(&*error, expected, "{what}"),
            (Answer::Custom(_), Ok(version)) => {
                let last = asked.lock().last().cloned().unwrap_or_default();
                assert!(last.starts_with(&format!("/apis/custom.metrics.k8s.io/{version}/")));
            }
            other => panic!("{what}: {other:?}"),
        }
    }
    *SERVED.lock() = (200, r#"{"versions":[{"version":"v1beta2"}]}"#);
    tokio::time::sleep(fresh).await;
    let answer = scraper.read(&hpa, &hpa.spec.metrics[0], "app=web", fresh).await;
    assert!(matches!(answer, Answer::Custom(_)), "found as soon as it is there: {answer:?}");
}
