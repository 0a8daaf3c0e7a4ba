//! What a trigger takes in memory while nobody polls it.

use futures::future::BoxFuture;
use podscale_api::Selector;
use podscale_scalers::{
    Cluster, Context, Endpoint, KINDS, PodPlace, Scaler, TriggerSpec, connect, parse,
};
use std::sync::Arc;

/// What one trigger may take.
const MAX_BYTES: i64 = 4096;
const TRIGGERS: usize = 1000;

struct Empty;

impl Cluster for Empty {
    fn pods<'a>(
        &'a self,
        _: &'a str,
        _: &'a Selector,
    ) -> BoxFuture<'a, Result<Vec<PodPlace>, String>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn endpoints<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Endpoint>, String>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// A trigger of a type, with fields as long as those of people.
fn spec(kind: &str, number: usize) -> TriggerSpec {
    let redis = "address=redis-master.shop.svc.cluster.local:6379;password=p";
    let text = match kind {
        "activemq" => "managementEndpoint=activemq.shop.svc:8161;brokerName=localhost;destinationName=orders-#;username=u;password=p".to_owned(),
        "aws-sqs-queue" => "queueURL=https://sqs.eu-central-1.amazonaws.com/012345678912/orders-#;awsRegion=eu-central-1;auth.awsAccessKeyID=AKIAIOSFODNN7EXAMPLE;auth.awsSecretAccessKey=secret".to_owned(),
        "cpu" | "memory" => "value=60".to_owned(),
        "cron" => "start=0 8 * * 1-5;end=0 18 * * 1-5;timezone=Europe/Berlin;desiredReplicas=10".to_owned(),
        "etcd" => "endpoints=etcd-0.etcd.shop.svc:2379,etcd-1.etcd.shop.svc:2379;watchKey=orders-#;value=5".to_owned(),
        "external" | "external-push" => "scalerAddress=scaler.shop.svc:6000;queue=orders-#;tenant=shop".to_owned(),
        "kafka" => "bootstrapServers=kafka-0.kafka.shop.svc:9092,kafka-1.kafka.shop.svc:9092;consumerGroup=workers;topic=orders-#".to_owned(),
        "kubernetes-workload" => "podSelector=app=web-#,tier in (front,back);value=5".to_owned(),
        "metrics-api" => "url=http://api.shop.svc:8080/v1/queues/#;valueLocation=queues.#(name==\"a\").depth;targetValue=5".to_owned(),
        "mysql" => "host=db;port=3306;username=u;dbName=d;query=SELECT count(*) FROM jobs WHERE queue = '#' AND state = 'waiting';queryValue=5;auth.password=p".to_owned(),
        "nats-jetstream" => "natsServerMonitoringEndpoint=nats.nats.svc:8222;account=$G;stream=orders-#;consumer=worker".to_owned(),
        "postgresql" => "host=db;port=5432;userName=u;dbName=d;sslmode=require;query=SELECT count(*) FROM jobs WHERE queue = '#' AND state = 'waiting';targetQueryValue=5".to_owned(),
        "prometheus" => "serverAddress=http://prometheus.monitoring:9090;threshold=100;query=sum(rate(http_requests_total{namespace=\"shop\",deployment=\"web-#\"}[2m]))".to_owned(),
        "rabbitmq" => "host=http://u:p@rabbitmq.shop.svc:15672/vhost;queueName=orders-#;mode=QueueLength;value=20".to_owned(),
        "temporal" => "endpoint=temporal-frontend.temporal.svc:7233;namespace=shop;taskQueue=orders-#".to_owned(),
        kind if kind.ends_with("streams") => format!("{redis};stream=orders-#;consumerGroup=workers;lagCount=5;sentinelMaster=main"),
        _ => format!("{redis};listName=orders-#;sentinelMaster=main"),
    };
    let metadata = text.replace('#', &number.to_string());
    let metadata = match kind {
        // Here it stands for something.
        "metrics-api" => text.replace("/#;", &format!("/{number};")),
        _ => metadata,
    };
    let metric_type = if matches!(kind, "cpu" | "memory") { "Utilization" } else { "" };
    let pairs = metadata.split(';').filter_map(|pair| pair.split_once('='));
    let (auth, pairs): (Vec<_>, Vec<_>) = pairs.partition(|(name, _)| name.starts_with("auth."));
    TriggerSpec {
        kind: kind.to_owned(),
        metric_type: metric_type.to_owned(),
        namespace: "shop".to_owned(),
        name: format!("web-{number}"),
        metadata: pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        auth: auth
            .iter()
            .map(|(name, value)| (name.replace("auth.", ""), (*value).into()))
            .collect(),
        ..TriggerSpec::default()
    }
}

/// How many threads this process has.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

/// There is no runtime here, so none of them could have a task either.
#[test]
fn a_trigger_takes_less_than_4_kilobytes_and_no_thread() {
    let context = Context::new(Arc::new(Empty));
    let before = threads();
    for kind in KINDS {
        let make = |number: usize| -> Box<dyn Scaler> {
            let parsed = parse(&spec(kind, number)).unwrap_or_else(|e| panic!("{kind}: {e}"));
            connect(parsed, &context).unwrap_or_else(|e| panic!("{kind}: {e}"))
        };
        // What triggers of a server share is made with the first.
        let first = make(0);
        let mut all = Vec::with_capacity(TRIGGERS);
        let info = allocation_counter::measure(|| all.extend((1..=TRIGGERS).map(make)));
        let each = info.bytes_current / i64::try_from(all.len()).expect("few");
        println!("{kind}: {each} bytes at rest");
        assert!(each < MAX_BYTES, "{kind}: {each} bytes");
        assert_eq!(threads(), before, "{kind}");
        drop(first);
    }
}
