use super::super::subscriptions::notifications;
use super::*;
use crate::kubelets::Reports;
use crate::metrics::Metrics;
use podscale_client::watch::Change;
use podscale_core::model::Source;
use podscale_metrics::directory::Directory;
use podscale_metrics::scrape::Scrape;
use podscale_metrics::scraper::{Observer, Scraped};
use podscale_metrics::store::{Limits, Store};
use std::time::Duration;

/// What a kubelet says of the pod `web-1`, whose container used so much until now.
fn scrape(clock: Clock, cpu: f64) -> Scrape {
    let (ms, labels) =
        (clock.now().as_millisecond(), r#"{container="app",namespace="shop",pod="web-1"}"#);
    Scrape::read(&format!(
        "container_cpu_usage_seconds_total{labels} {cpu} {ms}\n\
         container_memory_working_set_bytes{labels} 1048576 {ms}\n"
    ))
}

fn said(answer: &Answer) -> String {
    match answer {
        Answer::Resource(pods) => {
            let pods = pods.iter().map(|pod| {
                let usage = &pod.containers[0].usage;
                let amount = |name| usage.get(name).map(ToString::to_string).unwrap_or_default();
                format!(
                    "{} {} {} {}",
                    pod.metadata.name,
                    amount("cpu"),
                    amount("memory"),
                    pod.window
                )
            });
            pods.collect::<Vec<_>>().join(", ")
        }
        Answer::Failed(why) => why.to_string(),
        _ => "something else".to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn it_answers_from_the_store_and_announces_what_is_new() {
    let clock = Clock::wall();
    let (resolution, max_age) = (Duration::from_secs(15), Duration::from_secs(60));
    let store = Arc::new(Store::new(Limits { resolution, max_age }));
    let reports = Arc::new(Reports::new(Metrics::new()));
    let kubelets = Kubelets::scraped_elsewhere(
        Arc::clone(&store),
        Arc::new(Directory::default()),
        Arc::clone(&reports),
        &Metrics::new(),
        clock,
    );
    let pods = Arc::new(Pods::default());
    let mut pod = Pod::default();
    (pod.metadata.namespace, pod.metadata.name) = ("shop".into(), "web-1".into());
    pod.metadata.labels = [("app", "web")].into_iter().collect();
    pods.apply(Change::All(vec![pod]));
    let (notifier, mut announcements) = notifications();
    let source = KubeletMetrics::new(kubelets, pods, clock, notifier);
    let metric = Source::Resource { name: "cpu".into() };
    let (max_age, period) = (Duration::ZERO, Duration::from_secs(15));
    let question =
        Question { namespace: "shop", metric: &metric, pods: "app=web", max_age, period };
    let topic = source.topic(&question).expect("a topic");
    assert_eq!(said(&source.ask(question).await), "no kubelet has been scraped yet");
    for (cpu, expected) in [(10.0, ""), (13.0, "web-1 200m 1Mi 15s"), (13.0015, "web-1 1m 1Mi 15s")]
    {
        let scrape = scrape(clock, cpu);
        let applied = store.apply("n1", &scrape, clock.now());
        let took = Duration::ZERO;
        let node: Arc<str> = "n1".into();
        reports.scraped(&node, &Scraped { scrape: &scrape, applied: &applied, took, outage: None });
        let announced = announcements.next().await.expect("an announcement");
        assert!(announced.contains_key(&topic) && announced.len() == 1);
        assert_eq!(said(&source.ask(question).await), expected);
        tokio::time::sleep(Duration::from_secs(15)).await;
    }
    let other = Question { pods: "app=api", ..question };
    assert_eq!(said(&source.ask(other).await), "");
    tokio::time::sleep(Duration::from_secs(46)).await;
    assert_eq!(said(&source.ask(question).await), "", "too old");
}
