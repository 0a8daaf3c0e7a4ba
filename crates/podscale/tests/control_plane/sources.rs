//! Metrics APIs that are down, slow or out of their minds, while the others go on.

use super::metrics::{Fault, Source, Usage};
use super::program::Program;
use super::room::{Room, load};
use super::stage::Theatre;
use anyhow::{Result, ensure};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::time::Duration;

pub fn trials(theatre: &Theatre) -> Vec<Trial> {
    vec![
        theatre.alone("sources::down", |room| with_fault(room, Fault::Down, DOWN)),
        theatre.alone("sources::slow", |room| {
            with_fault(room, Fault::Slow(Duration::from_secs(300)), "unable to fetch metrics")
        }),
        theatre.alone("sources::nonsense", nonsense),
        theatre.alone("sources::refused", refused),
        theatre.alone("sources::older_custom_metrics", older_custom_metrics),
    ]
}

const DOWN: &str = "unable to get metrics for resource cpu: unable to fetch metrics from resource \
    metrics API: the server is currently unable to handle the request (get pods.metrics.k8s.io)";

/// An autoscaler of each source: `cpu`, `rps` and `load`.
async fn three(room: &Room) -> Result<Program> {
    let (metrics, namespace) = (room.metrics(), &room.namespace);
    metrics.set_usage(namespace, "cpu", "cpu", Usage::Total(100));
    metrics.set_usage(namespace, "rps", "rps", Usage::Total(20_000));
    room.set_load("load", 2.0);
    let cpu = json!([{"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": 50}}}]);
    let rps = json!([{"type": "Pods", "pods": {"metric": {"name": "rps"},
        "target": {"type": "AverageValue", "averageValue": "10"}}}]);
    for (name, metric) in [("cpu", cpu), ("rps", rps), ("load", load("load"))] {
        room.deployment(name, 2).await?;
        room.autoscaler(name, (1, 20), metric, Value::Null).await?;
    }
    let program = Program::quick(&room.namespace, &room.stage.plane, &["--leader-elect=false"])?;
    all_are_active(room).await?;
    Ok(program)
}

async fn all_are_active(room: &Room) -> Result<()> {
    for name in ["cpu", "rps", "load"] {
        room.until_verdict(name, "ScalingActive", "True ValidMetricFound").await?;
    }
    Ok(())
}

/// The sources that are well scale to a size.
async fn others_go_on(room: &Room, replicas: i64) -> Result<()> {
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    room.set_load("load", replicas as f64);
    room.metrics().set_usage(&room.namespace, "rps", "rps", Usage::Total(10_000 * replicas));
    room.until_replicas("load", replicas).await?;
    room.until_replicas("rps", replicas).await
}

async fn is_well_again(room: &Room, mut program: Program) -> Result<()> {
    room.metrics().set_usage(&room.namespace, "cpu", "cpu", Usage::Total(250));
    room.until_replicas("cpu", 5).await?;
    all_are_active(room).await?;
    program.stop().await
}

async fn with_fault(room: Room, fault: Fault, says: &str) -> Result<()> {
    let program = three(&room).await?;
    room.metrics().set_usage(&room.namespace, "cpu", "cpu", Usage::Total(500));
    room.metrics().set_fault(Source::Resource, Some(fault));
    let outcome = async {
        others_go_on(&room, 4).await?;
        let verdict = "False FailedGetResourceMetric";
        room.until_message("cpu", "ScalingActive", verdict, says).await?;
        room.until_event("cpu", "Warning FailedGetResourceMetric ").await?;
        others_go_on(&room, 3).await?;
        ensure!(room.replicas("cpu").await? <= 10, "it scaled beyond what was measured");
        Ok(())
    };
    let outcome = outcome.await;
    room.metrics().set_fault(Source::Resource, None);
    outcome?;
    is_well_again(&room, program).await
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

async fn nonsense(room: Room) -> Result<()> {
    let program = three(&room).await?;
    let outcome = async {
        for (number, text) in (3_i64..).zip(NONSENSE) {
            room.metrics().set_fault(Source::Resource, Some(Fault::Nonsense(text)));
            let verdict = "False FailedGetResourceMetric";
            room.until_verdict("cpu", "ScalingActive", verdict).await?;
            others_go_on(&room, number).await?;
            ensure!(room.replicas("cpu").await? == 2, "{text:?} made it scale");
            room.metrics().set_fault(Source::Resource, None);
            room.until_verdict("cpu", "ScalingActive", "True ValidMetricFound").await?;
        }
        Ok(())
    };
    let outcome = outcome.await;
    room.metrics().set_fault(Source::Resource, None);
    outcome?;
    is_well_again(&room, program).await
}

/// Nobody listens where the API server was told that the metrics are.
async fn refused(room: Room) -> Result<()> {
    let program = three(&room).await?;
    room.metrics().close();
    let outcome = async {
        for (name, reason) in [
            ("cpu", "False FailedGetResourceMetric"),
            ("rps", "False FailedGetPodsMetric"),
            ("load", "False FailedGetExternalMetric"),
        ] {
            room.until_verdict(name, "ScalingActive", reason).await?;
            ensure!(room.replicas(name).await? == 2, "{name} scaled without metrics");
        }
        Ok(())
    };
    let outcome = outcome.await;
    room.metrics().listen().await?;
    outcome?;
    others_go_on(&room, 4).await?;
    is_well_again(&room, program).await
}

/// What an autoscaler shows of its metrics when it has a size, without the time.
async fn shown(room: &Room, name: &str, replicas: i64) -> Result<Value> {
    room.until_replicas(name, replicas).await?;
    room.until_pods(name, i32::try_from(replicas)?).await?;
    let stays = async || {
        let status = room.status(name).await?;
        let stays = status["currentReplicas"] == replicas && status["desiredReplicas"] == replicas;
        let metrics = status["currentMetrics"].clone();
        Ok::<_, anyhow::Error>(if stays { metrics } else { Value::Null })
    };
    room.until("whether all is decided", &true, async || Ok(!stays().await?.is_null())).await?;
    stays().await
}

/// The older version of the custom metrics API gives the same as the newer one, which is taken up when
/// it comes and not missed when it goes.
async fn older_custom_metrics(room: Room) -> Result<()> {
    const NEWER: &str = "v1beta2.custom.metrics.k8s.io";
    let (metrics, namespace, client) = (room.metrics(), &room.namespace, room.client());
    let pods = json!({"type": "Pods", "pods": {"metric": {"name": "rps"},
        "target": {"type": "AverageValue", "averageValue": "10"}}});
    let object = json!({"type": "Object", "object": {"metric": {"name": "hits"},
        "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "front"},
        "target": {"type": "AverageValue", "averageValue": "5"}}});
    metrics.set_usage(namespace, "rps", "rps", Usage::Total(20_000));
    metrics.set_object(namespace, "services/front", "hits", 10_000);
    for (name, metric) in [("rps", pods), ("hits", object)] {
        room.deployment(name, 2).await?;
        room.autoscaler(name, (1, 20), json!([metric]), Value::Null).await?;
    }
    let mut program =
        Program::quick(&room.namespace, &room.stage.plane, &["--leader-elect=false"])?;
    let outcome = async {
        let mut told = Vec::new();
        for version in ["v1beta2", "v1beta1", "v1beta2", "v1beta1"] {
            match version {
                "v1beta1" => metrics.unregister(&client, NEWER).await?,
                _ => metrics.register(&client).await?,
            }
            let what = "the version that is asked";
            room.until(what, &version.to_owned(), async || Ok(metrics.custom_version())).await?;
            for replicas in [4, 3] {
                metrics.set_usage(namespace, "rps", "rps", Usage::Total(10_000 * replicas));
                metrics.set_object(namespace, "services/front", "hits", 5_000 * replicas);
                let both = (shown(&room, "rps", replicas).await?, shown(&room, "hits", replicas));
                told.push((both.0, both.1.await?));
            }
        }
        for pair in told.chunks(2).skip(1) {
            ensure!(*pair == told[..2], "{pair:?} instead of {:?}", &told[..2]);
        }
        Ok(())
    };
    let outcome = outcome.await;
    room.metrics().register(&client).await?;
    outcome?;
    program.stop().await
}
