//! Metrics APIs that are down, slow or out of their minds, while the others go on.

use super::fixture::{Fixture, load};
use super::harness::Harness;
use super::metrics::{Fault, Source, Usage};
use super::program::Program;
use anyhow::{Result, ensure};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::time::Duration;

pub fn trials(harness: &Harness) -> Vec<Trial> {
    vec![
        harness.alone("sources::down", |fixture| with_fault(fixture, Fault::Down, DOWN)),
        harness.alone("sources::slow", |fixture| {
            with_fault(fixture, Fault::Slow(Duration::from_secs(300)), "unable to fetch metrics")
        }),
        harness.alone("sources::nonsense", nonsense),
        harness.alone("sources::refused", refused),
        harness.alone("sources::older_custom_metrics", older_custom_metrics),
    ]
}

const DOWN: &str = "unable to get metrics for resource cpu: unable to fetch metrics from resource \
    metrics API: the server is currently unable to handle the request (get pods.metrics.k8s.io)";

/// An autoscaler of each source: `cpu`, `rps` and `load`.
async fn three(fixture: &Fixture) -> Result<Program> {
    let (metrics, namespace) = (fixture.metrics(), &fixture.namespace);
    metrics.set_usage(namespace, "cpu", "cpu", Usage::Total(100));
    metrics.set_usage(namespace, "rps", "rps", Usage::Total(20_000));
    fixture.set_load("load", 2.0);
    let cpu = json!([{"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": 50}}}]);
    let rps = json!([{"type": "Pods", "pods": {"metric": {"name": "rps"},
        "target": {"type": "AverageValue", "averageValue": "10"}}}]);
    for (name, metric) in [("cpu", cpu), ("rps", rps), ("load", load("load"))] {
        fixture.deployment(name, 2).await?;
        fixture.autoscaler(name, (1, 20), metric, Value::Null).await?;
    }
    let program =
        Program::quick(&fixture.namespace, &fixture.environment.plane, &["--leader-elect=false"])?;
    all_are_active(fixture).await?;
    Ok(program)
}

async fn all_are_active(fixture: &Fixture) -> Result<()> {
    for name in ["cpu", "rps", "load"] {
        fixture.until_verdict(name, "ScalingActive", "True ValidMetricFound").await?;
    }
    Ok(())
}

/// The sources that are well scale to a size.
async fn others_go_on(fixture: &Fixture, replicas: i64) -> Result<()> {
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    fixture.set_load("load", replicas as f64);
    fixture.metrics().set_usage(&fixture.namespace, "rps", "rps", Usage::Total(10_000 * replicas));
    fixture.until_replicas("load", replicas).await?;
    fixture.until_replicas("rps", replicas).await
}

async fn is_well_again(fixture: &Fixture, mut program: Program) -> Result<()> {
    fixture.metrics().set_usage(&fixture.namespace, "cpu", "cpu", Usage::Total(250));
    fixture.until_replicas("cpu", 5).await?;
    all_are_active(fixture).await?;
    program.stop().await
}

async fn with_fault(fixture: Fixture, fault: Fault, says: &str) -> Result<()> {
    let program = three(&fixture).await?;
    fixture.metrics().set_usage(&fixture.namespace, "cpu", "cpu", Usage::Total(500));
    fixture.metrics().set_fault(Source::Resource, Some(fault));
    let outcome = async {
        others_go_on(&fixture, 4).await?;
        let verdict = "False FailedGetResourceMetric";
        fixture.until_message("cpu", "ScalingActive", verdict, says).await?;
        fixture.until_event("cpu", "Warning FailedGetResourceMetric ").await?;
        others_go_on(&fixture, 3).await?;
        ensure!(fixture.replicas("cpu").await? <= 10, "it scaled beyond what was measured");
        Ok(())
    };
    let outcome = outcome.await;
    fixture.metrics().set_fault(Source::Resource, None);
    outcome?;
    is_well_again(&fixture, program).await
}

/// Answers that no source should give.
const NONSENSE: [&str; 8] = [
    "",
    "<html>it works!</html>",
    "[]",
    r#"{"kind":"PodMetricsList","items":7}"#,
    r#"{"items":[{"metadata":{"name":7},"containers":"many"}]}"#,
    r#"{"items":[{"metadata":{"name":"x"},"timestamp":"yesterday","window":"long","containers":[]}]}"#,
    r#"{"items":[{"metadata":{"name":"x"},"containers":[{"name":"app","usage":{"cpu":"a lot"}}]}]}"#,
    r#"{"items":[{"metadata""#,
];

async fn nonsense(fixture: Fixture) -> Result<()> {
    let program = three(&fixture).await?;
    let outcome = async {
        for (number, text) in (3_i64..).zip(NONSENSE) {
            fixture.metrics().set_fault(Source::Resource, Some(Fault::Nonsense(text)));
            let verdict = "False FailedGetResourceMetric";
            fixture.until_verdict("cpu", "ScalingActive", verdict).await?;
            others_go_on(&fixture, number).await?;
            ensure!(fixture.replicas("cpu").await? == 2, "{text:?} made it scale");
            fixture.metrics().set_fault(Source::Resource, None);
            fixture.until_verdict("cpu", "ScalingActive", "True ValidMetricFound").await?;
        }
        Ok(())
    };
    let outcome = outcome.await;
    fixture.metrics().set_fault(Source::Resource, None);
    outcome?;
    is_well_again(&fixture, program).await
}

/// Nobody listens where the API server was told that the metrics are.
async fn refused(fixture: Fixture) -> Result<()> {
    let program = three(&fixture).await?;
    fixture.metrics().close();
    let outcome = async {
        for (name, reason) in [
            ("cpu", "False FailedGetResourceMetric"),
            ("rps", "False FailedGetPodsMetric"),
            ("load", "False FailedGetExternalMetric"),
        ] {
            fixture.until_verdict(name, "ScalingActive", reason).await?;
            ensure!(fixture.replicas(name).await? == 2, "{name} scaled without metrics");
        }
        Ok(())
    };
    let outcome = outcome.await;
    fixture.metrics().listen().await?;
    outcome?;
    others_go_on(&fixture, 4).await?;
    is_well_again(&fixture, program).await
}

/// What an autoscaler shows of its metrics when it has a size, without the time.
async fn shown(fixture: &Fixture, name: &str, replicas: i64) -> Result<Value> {
    fixture.until_replicas(name, replicas).await?;
    fixture.until_pods(name, i32::try_from(replicas)?).await?;
    let stays = async || {
        let status = fixture.status(name).await?;
        let stays = status["currentReplicas"] == replicas && status["desiredReplicas"] == replicas;
        let metrics = status["currentMetrics"].clone();
        Ok::<_, anyhow::Error>(if stays { metrics } else { Value::Null })
    };
    fixture.until("whether all is decided", &true, async || Ok(!stays().await?.is_null())).await?;
    stays().await
}

/// The older version of the custom metrics API gives the same as the newer one, which is taken up when
/// it comes and not missed when it goes.
async fn older_custom_metrics(fixture: Fixture) -> Result<()> {
    const NEWER: &str = "v1beta2.custom.metrics.k8s.io";
    let (metrics, namespace, client) = (fixture.metrics(), &fixture.namespace, fixture.client());
    let pods = json!({"type": "Pods", "pods": {"metric": {"name": "rps"},
        "target": {"type": "AverageValue", "averageValue": "10"}}});
    let object = json!({"type": "Object", "object": {"metric": {"name": "hits"},
        "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "front"},
        "target": {"type": "AverageValue", "averageValue": "5"}}});
    metrics.set_usage(namespace, "rps", "rps", Usage::Total(20_000));
    metrics.set_object(namespace, "services/front", "hits", 10_000);
    for (name, metric) in [("rps", pods), ("hits", object)] {
        fixture.deployment(name, 2).await?;
        fixture.autoscaler(name, (1, 20), json!([metric]), Value::Null).await?;
    }
    let mut program =
        Program::quick(&fixture.namespace, &fixture.environment.plane, &["--leader-elect=false"])?;
    let outcome = async {
        let mut told = Vec::new();
        for version in ["v1beta2", "v1beta1", "v1beta2", "v1beta1"] {
            match version {
                "v1beta1" => metrics.unregister(&client, NEWER).await?,
                _ => metrics.register(&client).await?,
            }
            let what = "the version that is asked";
            fixture.until(what, &version.to_owned(), async || Ok(metrics.custom_version())).await?;
            for replicas in [4, 3] {
                metrics.set_usage(namespace, "rps", "rps", Usage::Total(10_000 * replicas));
                metrics.set_object(namespace, "services/front", "hits", 5_000 * replicas);
                let both =
                    (shown(&fixture, "rps", replicas).await?, shown(&fixture, "hits", replicas));
                told.push((both.0, both.1.await?));
            }
        }
        for pair in told.chunks(2).skip(1) {
            ensure!(*pair == told[..2], "{pair:?} instead of {:?}", &told[..2]);
        }
        Ok(())
    };
    let outcome = outcome.await;
    fixture.metrics().register(&client).await?;
    outcome?;
    program.stop().await
}
