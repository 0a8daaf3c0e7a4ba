//! Every server drives ScaledObjects from zero to many and back with real messages, is killed and restarted in the
//! middle, and one of its triggers is given wrong credentials. All at the same time, in one cluster.

use super::cluster::{AUTHENTICATIONS, Cluster, DEPLOYMENTS, SCALED_OBJECTS, SECRETS};
use super::harness::{PLANTED, Process, WRONG, until};
use super::{
    activemq, etcd, external, kafka, mysql, nats, planted, postgresql, prometheus, rabbitmq, redis,
    sqs, temporal,
};
use podscale_api::keda::scaled_object::RESOURCE;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// How many messages are for one replica, in the metadata of all triggers.
pub(crate) const FOR_ONE: &str = "2";
/// How many polls must have failed before it is believed that nothing comes of them.
const FAILED_POLLS: f64 = 3.0;

/// A server, with something in it that can wait.
pub(crate) trait Server: Sized + 'static {
    /// One that is installed, not started; its ports and files stay the same until it is dropped.
    fn installed() -> Option<Self>;
    /// Starts it, again perhaps.
    fn start(&self) -> Process;
    /// Waits until it answers.
    async fn answers(&self);
    /// Makes what messages are sent to, once.
    fn prepare(&self);
    /// Those that see the messages.
    fn triggers(&self) -> Vec<Trigger>;
    /// Sends some more messages.
    fn send(&self, count: usize);
    /// Takes all messages that wait.
    async fn drain(&self);
}

/// A trigger on a server.
#[derive(Clone)]
pub(crate) struct Trigger {
    kind: &'static str,
    metadata: Value,
    /// Parameters, what is right for them, and what is not; nothing is if their server accepts anything.
    secret: Vec<(&'static str, String, Option<String>)>,
    /// What is said of what is not right.
    refusal: &'static str,
}

impl Trigger {
    pub(crate) fn new(kind: &'static str, metadata: Value) -> Trigger {
        let refusal = "refuses the credentials: ";
        Trigger { kind, metadata, secret: Vec::new(), refusal }
    }

    /// With a parameter that has the password in it.
    pub(crate) fn with(self, parameter: &'static str, value: &str) -> Trigger {
        let wrong = value.replace(PLANTED, WRONG);
        self.with_either(parameter, value, Some(&wrong))
    }

    /// With a parameter that is missing where it should be wrong, as its server accepts anything.
    pub(crate) fn with_unchecked(mut self, parameter: &'static str, value: &str) -> Trigger {
        self.refusal = "has no key";
        self.with_either(parameter, value, None)
    }

    /// With a parameter that is either right or wrong.
    pub(crate) fn with_either(
        mut self,
        parameter: &'static str,
        right: &str,
        wrong: Option<&str>,
    ) -> Trigger {
        self.secret.push((parameter, right.to_owned(), wrong.map(str::to_owned)));
        self
    }

    fn right(&self) -> Value {
        self.secret.iter().map(|(name, right, _)| ((*name).to_owned(), json!(right))).collect()
    }

    fn wrong(&self) -> Value {
        let wrong = self.secret.iter().filter_map(|(name, _, wrong)| Some((name, wrong.as_ref()?)));
        wrong.map(|(name, wrong)| ((*name).to_owned(), json!(wrong))).collect()
    }

    /// What must not be seen anywhere: keys of certificates have no password in them.
    fn keys(&self) -> impl Iterator<Item = &str> {
        let values = self.secret.iter().flat_map(|(_, right, wrong)| [Some(right), wrong.as_ref()]);
        let keys = values.flatten().filter(|value| value.contains("PRIVATE KEY"));
        keys.filter_map(|key| key.lines().nth(1))
    }
}

/// A ScaledObject with its target, its authentication, and two Secrets: one is right, one is not.
struct Object {
    cluster: Arc<Cluster>,
    name: String,
    trigger: Trigger,
}

impl Object {
    async fn create(cluster: &Arc<Cluster>, name: String, trigger: Trigger) -> Object {
        let labels = json!({"app": name});
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
        let secret = |name: String, values: Value| {
            json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": name}, "stringData": values})
        };
        let object = Object { cluster: Arc::clone(cluster), name, trigger };
        let Object { name, trigger, .. } = &object;
        let authentication = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "TriggerAuthentication",
            "metadata": {"name": name}, "spec": object.authentication(name)});
        let no_delay = json!({"scaleDown": {"stabilizationWindowSeconds": 0}});
        let scaled = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": name},
            "spec": {"scaleTargetRef": {"name": name}, "pollingInterval": 1, "cooldownPeriod": 1,
                "maxReplicaCount": 20, "advanced": {"horizontalPodAutoscalerConfig": {"behavior": no_delay}},
                "triggers": [{"type": trigger.kind, "metadata": trigger.metadata,
                    "authenticationRef": {"name": name}}]}});
        for (path, created) in [
            (DEPLOYMENTS, deployment),
            (SECRETS, secret(name.clone(), trigger.right())),
            (SECRETS, secret(format!("{name}-wrong"), trigger.wrong())),
            (AUTHENTICATIONS, authentication),
            (SCALED_OBJECTS, scaled),
        ] {
            cluster.create(path, &created).await;
        }
        object
    }

    /// What an authentication says that reads a Secret.
    fn authentication(&self, secret: &str) -> Value {
        let of = |name: &str| json!({"parameter": name, "name": secret, "key": name});
        let all: Vec<Value> = self.trigger.secret.iter().map(|(name, ..)| of(name)).collect();
        json!({"secretTargetRef": all})
    }

    /// Has its trigger prove itself with the Secret that is not right.
    async fn use_wrong(&self) {
        let spec = self.authentication(&format!("{}-wrong", self.name));
        let path = format!("{AUTHENTICATIONS}/{}", self.name);
        self.cluster.patch(&path, &json!({"spec": spec})).await;
    }

    /// Rights that Secret, which nobody is told of.
    async fn right(&self) {
        let path = format!("{SECRETS}/{}-wrong", self.name);
        self.cluster.patch(&path, &json!({"stringData": self.trigger.right()})).await;
    }

    /// Waits until a condition has one of some statuses and reasons.
    async fn is(&self, condition: &str, expected: &[&str]) {
        let path = format!("{SCALED_OBJECTS}/{}", self.name);
        until(&format!("{}: {condition} {expected:?}", self.name), async || {
            let object = self.cluster.get(&path).await;
            let all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let found = all.into_iter().find(|found| found["type"] == condition)?;
            let field = |name: &str| found[name].as_str().unwrap_or_default().to_owned();
            let found = format!("{} {}", field("status"), field("reason"));
            expected.contains(&found.as_str()).then_some(())
        })
        .await;
    }

    async fn is_ready(&self) {
        self.is("Ready", &["True ScaledObjectReady"]).await;
    }

    async fn is_not_ready(&self) {
        self.is("Ready", &["False TriggerError", "False ScaledObjectCheckFailed"]).await;
    }

    /// Waits until its target has so many replicas, and pods for them.
    async fn has(&self, replicas: usize) {
        let path = format!("{DEPLOYMENTS}/{}", self.name);
        until(&format!("{}: {replicas} replicas", self.name), async || {
            let target = self.cluster.get(&path).await;
            let pods = target["status"]["replicas"].as_u64().unwrap_or_default();
            (target["spec"]["replicas"] == replicas && pods == replicas as u64).then_some(())
        })
        .await;
    }

    /// Counts the changes of its target's spec.
    async fn generation(&self) -> Value {
        let target = self.cluster.get(&format!("{DEPLOYMENTS}/{}", self.name)).await;
        target["metadata"]["generation"].clone()
    }

    /// Waits until its status or its explanation has some words.
    async fn says(&self, words: &str) {
        let explanation = format!("/api/autoscalers/default/{}?kind={RESOURCE}", self.name);
        until(&format!("{}: {words:?}", self.name), async || {
            let object = self.cluster.get(&format!("{SCALED_OBJECTS}/{}", self.name)).await;
            let status = object["status"].to_string();
            let is_said =
                status.contains(words) || self.cluster.shown(&explanation).contains(words);
            is_said.then_some(())
        })
        .await;
    }

    /// Waits until some more polls have failed.
    async fn fails_again(&self) {
        let before = self.failures();
        until(&format!("{}: failed polls", self.name), async || {
            (self.failures() >= before + FAILED_POLLS).then_some(())
        })
        .await;
    }

    fn failures(&self) -> f64 {
        let label = format!("scaledObject=\"{}\"", self.name);
        let metrics = self.cluster.shown("/metrics");
        let mut lines =
            metrics.lines().filter(|line| line.starts_with("keda_scaled_object_errors"));
        let line = lines.find(|line| line.contains(&label));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or_default()
    }
}

/// A server, what it drives, and how many messages wait.
struct Timeline<'a, S> {
    server: &'a S,
    objects: Vec<Object>,
    waiting: usize,
}

impl<S: Server> Timeline<'_, S> {
    /// Sends messages; those that see them follow.
    async fn send(&mut self, count: usize, unseen: Option<usize>) {
        self.server.send(count);
        self.waiting += count;
        let for_one: usize = FOR_ONE.parse().expect("a number");
        for (_, object) in self.objects.iter().enumerate().filter(|(n, _)| Some(*n) != unseen) {
            object.has(self.waiting.div_ceil(for_one)).await;
        }
    }

    /// It is killed; what it drives stays as it is, and goes on when it is back.
    async fn outage(&mut self, process: Process) -> Process {
        let mut before = Vec::new();
        for object in &self.objects {
            before.push(object.generation().await);
        }
        drop(process);
        for object in &self.objects {
            object.is_not_ready().await;
            object.fails_again().await;
        }
        for (object, before) in self.objects.iter().zip(&before) {
            assert_eq!(object.generation().await, *before, "{} is moved", object.name);
        }
        let process = self.server.start();
        self.server.answers().await;
        for (object, before) in self.objects.iter().zip(before) {
            object.is_ready().await;
            let after = object.generation().await;
            assert_eq!(after, before, "{} is moved by its return", object.name);
        }
        self.send(2, None).await;
        process
    }

    /// One trigger is given wrong credentials: only its own object says so, and stays as it is, while others of the
    /// same server follow. It goes on when its Secret is right.
    async fn wrong_credentials(&mut self, place: usize) {
        let object = &self.objects[place];
        let before = object.generation().await;
        object.use_wrong().await;
        object.is_not_ready().await;
        object.says(object.trigger.refusal).await;
        // Where a key is missing nobody is asked.
        if object.trigger.wrong() != json!({}) {
            object.fails_again().await;
        }
        // An even number in the end, and few: what comes one by one then never ends within the tolerance.
        self.send(4 - self.waiting % 2, Some(place)).await;
        for other in self.objects.iter().enumerate().filter(|(n, _)| *n != place) {
            other.1.is_ready().await;
        }
        let object = &self.objects[place];
        assert_eq!(object.generation().await, before, "{} is moved", object.name);
        object.right().await;
        object.is_ready().await;
        self.send(0, None).await;
    }
}

/// Gives the keys that must not be seen.
async fn drive<S: Server>(cluster: &Arc<Cluster>, name: &str, server: &S) -> Vec<String> {
    let process = server.start();
    server.answers().await;
    server.prepare();
    let mut triggers = server.triggers();
    let kinds = triggers.len();
    if let [only] = &triggers[..] {
        triggers.push(only.clone());
    }
    let mut objects = Vec::new();
    for (number, trigger) in triggers.into_iter().enumerate() {
        objects.push(Object::create(cluster, format!("{name}-{number}"), trigger).await);
    }
    for object in &objects {
        object.is_ready().await;
        object.is("Active", &["False ScalerNotActive"]).await;
        object.has(0).await;
    }
    let mut timeline = Timeline { server, objects, waiting: 0 };
    timeline.send(1, None).await;
    timeline.send(4, None).await;
    let _process = timeline.outage(process).await;
    for place in 0..kinds {
        timeline.wrong_credentials(place).await;
    }
    server.drain().await;
    timeline.waiting = 0;
    for object in &timeline.objects {
        object.has(0).await;
        object.is("Active", &["False ScalerNotActive"]).await;
        object.is_ready().await;
    }
    let keys = timeline.objects.iter().flat_map(|object| object.trigger.keys());
    keys.map(str::to_owned).collect()
}

/// What became of a server's timeline: what must not be seen, or nothing if it is not installed.
type Run = (&'static str, JoinHandle<Option<Vec<String>>>);

/// Runs a server's timeline on a thread of its own, as much of it waits for programs; unless only others are wanted.
fn run<S: Server>(cluster: &Arc<Cluster>, name: &'static str) -> Run {
    let cluster = Arc::clone(cluster);
    let running = tokio::task::spawn_blocking(move || {
        let wanted = std::env::var("PODSCALE_SERVERS").unwrap_or_else(|_| name.to_owned());
        let server = wanted.split(',').any(|wanted| wanted == name).then(S::installed)??;
        let began = Instant::now();
        let keys = Handle::current().block_on(drive(&cluster, name, &server));
        eprintln!("{name}: from zero to many and back in {} s", began.elapsed().as_secs());
        Some(keys)
    });
    (name, running)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "starts real servers"]
async fn from_zero_to_many_and_back() {
    let cluster = Arc::new(Cluster::start().await);
    let runs = [
        run::<kafka::Broker>(&cluster, "kafka"),
        run::<activemq::Broker>(&cluster, "activemq"),
        run::<rabbitmq::Broker>(&cluster, "rabbitmq"),
        run::<sqs::Queues>(&cluster, "sqs"),
        run::<temporal::Temporal>(&cluster, "temporal"),
        run::<mysql::Database>(&cluster, "mysql"),
        run::<postgresql::Database>(&cluster, "postgresql"),
        run::<prometheus::Prometheus>(&cluster, "prometheus"),
        run::<external::Numbers>(&cluster, "external"),
        run::<redis::Redis>(&cluster, "redis"),
        run::<nats::JetStream>(&cluster, "nats"),
        run::<etcd::Etcd>(&cluster, "etcd"),
    ];
    let (mut failed, mut driven, mut keys) = (Vec::new(), Vec::new(), Vec::new());
    for (name, running) in runs {
        match running.await {
            Ok(Some(found)) => {
                driven.push(name);
                keys.extend(found);
            }
            Ok(None) => {}
            Err(_) => failed.push(name),
        }
    }
    assert!(failed.is_empty(), "failed, as said above: {failed:?}");
    let cluster = Arc::into_inner(cluster).expect("nobody else has it");
    planted::is_nowhere(cluster, &driven, &keys).await;
}
