//! How much the server does in a second, in-process: creates, lists of 10,000 pods, watch events.

#![allow(missing_docs, reason = "criterion's macros write functions without any")]

use axum::body::Body;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use futures::StreamExt;
use http::Request;
use http_body_util::BodyExt;
use podscale_apiserver::{ApiServer, Config};
use serde_json::{Value, json};
use tower::ServiceExt;

const PODS: u64 = 10_000;
const BURST: u64 = 1_000;

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "labels": { "app": "web", "pod-template-hash": "abc" } },
        "spec": { "nodeName": "node-1", "containers": [{
            "name": "main", "image": "registry.example/web:1.2.3",
            "ports": [{ "containerPort": 8080 }],
            "resources": { "requests": { "cpu": "100m", "memory": "128Mi" } },
        }] },
    })
}

async fn send(server: &ApiServer, method: &str, path: &str, body: String) -> Body {
    let request = Request::builder().method(method).uri(path).body(Body::from(body));
    let request = request.unwrap_or_default();
    match server.router().oneshot(request).await {
        Ok(response) => response.into_body(),
        Err(never) => match never {},
    }
}

async fn create(server: &ApiServer, from: u64, count: u64) {
    for number in from..from + count {
        let body = pod(&format!("pod-{number}")).to_string();
        let answer = send(server, "POST", "/api/v1/namespaces/default/pods", body).await;
        let _ = answer.collect().await;
    }
}

fn throughput(criterion: &mut Criterion) {
    let Ok(runtime) = tokio::runtime::Runtime::new() else { return };
    let mut group = criterion.benchmark_group("apiserver");
    group.sample_size(10);

    let server = ApiServer::new(Config::default());
    let mut next = 0;
    group.throughput(Throughput::Elements(BURST));
    group.bench_function("creates", |bencher| {
        bencher.iter(|| {
            runtime.block_on(create(&server, next, BURST));
            next += BURST;
        });
    });

    let server = ApiServer::new(Config::default());
    runtime.block_on(create(&server, 0, PODS));
    group.throughput(Throughput::Elements(1));
    group.bench_function("lists of 10,000 pods", |bencher| {
        bencher.iter(|| {
            runtime.block_on(async {
                let mut pieces =
                    send(&server, "GET", "/api/v1/pods", String::new()).await.into_data_stream();
                let mut bytes = 0;
                while let Some(Ok(piece)) = pieces.next().await {
                    bytes += piece.len();
                }
                bytes
            })
        });
    });

    let server = ApiServer::new(Config::default());
    runtime.block_on(create(&server, 0, PODS));
    group.throughput(Throughput::Elements(PODS));
    group.bench_function("watch events", |bencher| {
        bencher.iter(|| {
            runtime.block_on(async {
                // The history holds the creations; reading them back is what watchers do.
                let path = "/api/v1/pods?watch=1&resourceVersion=10";
                let mut pieces = send(&server, "GET", path, String::new()).await.into_data_stream();
                let mut events = 0;
                while events + 10 < PODS {
                    let Some(Ok(piece)) = pieces.next().await else { break };
                    events += piece.iter().filter(|byte| **byte == b'\n').count() as u64;
                }
                events
            })
        });
    });
    group.finish();
}

criterion_group!(benches, throughput);
criterion_main!(benches);
