//! A real RabbitMQ: messages by its HTTP API and by AMQP, virtual hosts, credentials, and a restart.

use super::driven::{FOR_ONE, Server, Trigger};
use super::harness::{
    Folder, PLANTED, Process, basic, context, free_port, gives, http, is_installed, listens, poll,
    polled, scaler, spec, until,
};
use serde_json::json;
use std::process::Command;

const SERVER: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";

pub(crate) struct Broker {
    folder: Folder,
    amqp: u16,
    management: u16,
    distribution: u16,
    names: u16,
    /// Erlang's registry of names, which would stay behind if the broker started it.
    _registry: Process,
}

impl Broker {
    fn new() -> Broker {
        let (folder, amqp, management) = (Folder::new("rabbitmq"), free_port(), free_port());
        folder.file("plugins", "[rabbitmq_management].");
        folder.file(
            "rabbitmq.conf",
            &format!(
                "listeners.tcp.1 = 127.0.0.1:{amqp}\nmanagement.tcp.ip = 127.0.0.1\n\
                 management.tcp.port = {management}\ndefault_user = admin\ndefault_pass = {PLANTED}\n\
                 collect_statistics_interval = 1000\nlog.console = true\n"
            ),
        );
        let (names, distribution) = (free_port(), free_port());
        let mut command = Command::new("epmd");
        command.args(["-port", &names.to_string(), "-address", "127.0.0.1"]);
        let registry = Process::start(&mut command, &folder, "log-epmd");
        Broker { folder, amqp, management, distribution, names, _registry: registry }
    }

    fn api(&self, head: &str, body: &str) -> String {
        http(self.management, head, &basic("admin", PLANTED), body)
    }

    fn publish(&self, vhost: &str, queue: &str, count: usize) {
        let body = json!({"properties": {"delivery_mode": 2}, "routing_key": queue, "payload": "x",
            "payload_encoding": "string"});
        let body = body.to_string();
        for _ in 0..count {
            let answer =
                self.api(&format!("POST /api/exchanges/{vhost}/amq.default/publish"), &body);
            assert!(answer.contains("{\"routed\":true}"), "{answer}");
        }
    }
}

impl Server for Broker {
    fn installed() -> Option<Broker> {
        is_installed(SERVER, "rabbitmq-server").then(Broker::new)
    }

    fn start(&self) -> Process {
        let mut command = Command::new(SERVER);
        let folder = |name: &str| self.folder.path(name);
        command
            .env("HOME", folder(""))
            .env("ERL_EPMD_PORT", self.names.to_string())
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
            .env("RABBITMQ_NODENAME", format!("podscale{}@localhost", self.amqp))
            .env("RABBITMQ_DIST_PORT", self.distribution.to_string())
            .env("RABBITMQ_MNESIA_BASE", folder("data"))
            .env("RABBITMQ_LOG_BASE", folder("logs"))
            .env("RABBITMQ_PID_FILE", folder("pid"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", folder("plugins"))
            .env("RABBITMQ_CONFIG_FILE", folder("rabbitmq"))
            .env("RABBITMQ_GENERATED_CONFIG_DIR", folder("generated"));
        Process::start(&mut command, &self.folder, "log")
    }

    async fn answers(&self) {
        listens(self.amqp).await;
        listens(self.management).await;
        until("the API", async || {
            self.api("GET /api/overview", "").starts_with("HTTP/1.1 200").then_some(())
        })
        .await;
    }

    fn prepare(&self) {
        let answer = self.api("PUT /api/queues/%2F/jobs", r#"{"durable":true}"#);
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    }

    fn triggers(&self) -> Vec<Trigger> {
        let trigger = |host: String| {
            let metadata = json!({"queueName": "jobs", "mode": "QueueLength", "value": FOR_ONE});
            Trigger::new("rabbitmq", metadata).with("host", &host)
        };
        vec![
            trigger(format!("amqp://admin:{PLANTED}@127.0.0.1:{}/", self.amqp)),
            trigger(format!("http://admin:{PLANTED}@127.0.0.1:{}/", self.management)),
        ]
    }

    fn send(&self, count: usize) {
        self.publish("%2F", "jobs", count);
    }

    async fn drain(&self) {
        let answer = self.api("DELETE /api/queues/%2F/jobs/contents", "");
        assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "starts real servers"]
async fn queues_of_a_real_rabbitmq() {
    let Some(broker) = Broker::installed() else { return };
    let process = broker.start();
    broker.answers().await;
    broker.prepare();
    for (head, body) in [
        ("PUT /api/queues/%2F/jobs-2", r#"{"durable":true}"#),
        ("PUT /api/vhosts/other", ""),
        ("PUT /api/queues/other/jobs", r#"{"durable":true}"#),
    ] {
        let answer = broker.api(head, body);
        assert!(answer.starts_with("HTTP/1.1 201"), "{head}: {answer}");
    }
    let Broker { amqp, management, .. } = &broker;
    let by_amqp = format!("queueName: jobs\nhost: amqp://admin:{PLANTED}@127.0.0.1:{amqp}/");
    let by_http = format!("queueName: jobs\nhost: http://admin:{PLANTED}@127.0.0.1:{management}/");
    let wait = "mode: QueueLength\nvalue: 5\nactivationValue: 1";
    let context = context();
    let fast = scaler(&context, &spec("rabbitmq", &format!("{by_amqp}\nactivationValue: 1")));
    let slow = scaler(&context, &spec("rabbitmq", &format!("{by_http}\n{wait}")));
    for (count, expected) in [(0, "0"), (1, "1"), (1, "2!"), (5, "7!")] {
        broker.publish("%2F", "jobs", count);
        gives(&*fast, expected).await;
        // The statistics of the API come later.
        gives(&*slow, expected).await;
    }
    broker.publish("%2F", "jobs-2", 3);
    broker.publish("other", "jobs", 4);
    let pattern = by_http.replace("queueName: jobs", "queueName: ^jobs.*$");
    for (operation, expected) in [("sum", "10!"), ("avg", "5!"), ("max", "7!")] {
        let text = format!("{pattern}\n{wait}\nuseRegex: true\noperation: {operation}");
        gives(&*scaler(&context, &spec("rabbitmq", &text)), expected).await;
    }
    let other = format!("{by_amqp}\nvhostName: other");
    assert_eq!(polled("rabbitmq", &other).await, "4!");
    let other = format!("{by_http}other\n{wait}");
    gives(&*scaler(&context, &spec("rabbitmq", &other)), "4!").await;
    refusals(&by_amqp, &by_http).await;

    broker.drain().await;
    gives(&*fast, "0").await;
    gives(&*slow, "0").await;
    drop(process);
    for trigger in [&fast, &slow] {
        let gone = poll(&**trigger).await;
        assert!(gone.contains("cannot be reached: "), "{gone}");
    }
    let _process = broker.start();
    gives(&*fast, "0").await;
}

async fn refusals(by_amqp: &str, by_http: &str) {
    for (text, expected) in [
        (
            by_amqp.replace("queueName: jobs", "queueName: none"),
            "404 NOT_FOUND - no queue 'none' in vhost '/'",
        ),
        (by_http.replace("queueName: jobs", "queueName: none"), "gives no value: it answers 404"),
        (by_amqp.replace(PLANTED, "other"), "refuses the credentials: ACCESS_REFUSED"),
        (by_http.replace(PLANTED, "other"), "refuses the credentials: it answers 401"),
        (
            format!("{by_amqp}\nvhostName: none"),
            "refuses the credentials: NOT_ALLOWED - vhost none not found",
        ),
    ] {
        let found = polled("rabbitmq", &text).await;
        assert!(found.contains(expected), "{expected}: {found}");
    }
}
