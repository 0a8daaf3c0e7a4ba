//! Decisions on a PodAutoscaler are recorded, and replay by its own rules.

use super::*;
use crate::record::{Limits, Recorder};
use podscale_core::Time;
use podscale_core::model::Milli;

/// A query with one answer.
struct Rate(Clock);

impl MetricSource for Rate {
    fn ask<'a>(&'a self, _question: Question<'a>) -> BoxFuture<'a, Answer> {
        let now = Time(self.0.now().as_microsecond());
        async move { Answer::Value(Some((Milli(100_000), now))) }.boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn its_decisions_are_recorded_and_replay() {
    let folder = recordings::folder("pa");
    let cluster = Cluster::with_definition().await;
    let (client, metrics) = (cluster.client("podscale/0"), Metrics::new());
    let mapper = RestMapper::new(client.clone(), cluster.clock);
    let mut sources = Sources::metrics_apis(&client, cluster.clock, mapper.clone(), &metrics);
    let load = Arc::new(Load::default());
    *load.replicas.lock() = 9;
    sources.external = Arc::clone(&load) as Arc<dyn MetricSource>;
    sources.queries = Arc::new(Rate(cluster.clock));
    let (recorder, writing) =
        Recorder::start(&folder, Limits::default(), metrics.clone()).expect("a folder");
    let observers: Vec<Arc<dyn Observer>> = vec![Arc::new(recorder)];
    let parts = Parts {
        config: Config::default(),
        dialects: dialect::built_in(),
        watchers: Watchers { observers, metrics, ..Watchers::default() },
        role: Role::alone(),
        mapper,
        pods: Arc::default(),
        sources,
        announcements: source::notifications().1,
    };
    let controller = Controller::assemble(&client, cluster.clock, parts);
    // An HPA of these metrics would go to 9.
    let rate = json!({"type": "Prometheus", "name": "rate", "onMissing": "LastValue", "maxAge": "5m",
        "prometheus": {"query": "sum(x)", "target": {"type": "AverageValue", "averageValue": "20"}}});
    let mut object =
        pa("web", json!({"combine": "Expression", "expression": "min(rate, load) - 1"}));
    object["spec"]["metrics"][0]["name"] = json!("load");
    object["spec"]["metrics"].as_array_mut().expect("metrics").push(rate);
    let always =
        json!({"name": "always", "start": "* * * * *", "duration": "2m", "minReplicas": 2});
    object["spec"]["schedules"] = json!([always]);
    object["spec"]["behavior"]["scaleUp"] = json!({"limit": {"factor": "1", "minimum": 4}});
    cluster.send("POST", PAS, &object).await;
    until("the expression decides", async || cluster.replicas().await == 4).await;
    tokio::time::sleep(MINUTE).await;
    *load.replicas.lock() = 1;
    until("the schedule holds it", async || cluster.replicas().await == 2).await;
    let change = async |spec: Value| {
        cluster.send("PATCH", &format!("{PAS}/web"), &json!({"spec": spec})).await;
    };
    change(json!({"hold": {"replicas": 7}})).await;
    until("it is held", async || cluster.replicas().await == 7).await;
    change(json!({"hold": null, "mode": "DryRun"})).await;
    tokio::time::sleep(2 * MINUTE).await;
    controller.stop().await;
    writing.finish();
    assert_eq!(cluster.replicas().await, 7, "a dry run");
    let (names, sizes) = recordings::replay(&folder);
    for size in [4, 2, 7] {
        assert!(sizes.contains(&size), "{sizes:?}");
    }
    assert!(sizes.len() >= 15, "{sizes:?}");
    // One for each spec, one for the first status, and few more.
    assert!(names.len() <= 8, "{names:?} of {} steps", sizes.len());
}
