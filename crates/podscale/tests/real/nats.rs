//! A real NATS server with JetStream: messages published, delivered, purged, and a restart.

use super::driven::{FOR_ONE, Server, Trigger};
use super::harness::{
    Folder, Process, context, free_port, gives, is_installed, listens, poll, polled, scaler, spec,
};
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;

/// A request of JetStream's API, or a message; gives the answer.
fn request(port: u16, subject: &str, payload: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    let length = payload.len();
    write!(
        stream,
        "CONNECT {{\"verbose\":false}}\r\nSUB answer 1\r\nPUB {subject} answer {length}\r\n{payload}\r\n"
    )
    .expect("written");
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).expect("a line") > 0, "{subject}: no answer");
        assert!(!line.starts_with("-ERR"), "{line}");
        if line.starts_with("MSG ") || line.starts_with("HMSG ") {
            let length =
                line.split_whitespace().last().and_then(|n| n.parse().ok()).expect("a length");
            let mut body = vec![0; length];
            reader.read_exact(&mut body).expect("a body");
            return String::from_utf8_lossy(&body).into_owned();
        }
    }
}

/// What makes a stream and a consumer of it.
const MADE: [(&str, &str); 2] = [
    (
        "$JS.API.STREAM.CREATE.orders",
        r#"{"name":"orders","subjects":["orders.*"],"storage":"file"}"#,
    ),
    (
        "$JS.API.CONSUMER.DURABLE.CREATE.orders.worker",
        r#"{"stream_name":"orders","config":{"durable_name":"worker","ack_policy":"explicit"}}"#,
    ),
];

pub(crate) struct JetStream {
    folder: Folder,
    port: u16,
    monitoring: u16,
}

impl JetStream {
    fn request(&self, subject: &str, payload: &str) {
        let answer = request(self.port, subject, payload);
        assert!(!answer.contains("\"error\""), "{subject}: {answer}");
    }
}

impl Server for JetStream {
    fn installed() -> Option<JetStream> {
        let (folder, port, monitoring) = (Folder::new("nats"), free_port(), free_port());
        let there = is_installed("nats-server", "nats-server");
        there.then_some(JetStream { folder, port, monitoring })
    }

    fn start(&self) -> Process {
        let (port, monitoring) = (self.port.to_string(), self.monitoring.to_string());
        let mut command = Command::new("nats-server");
        command.args(["-a", "127.0.0.1", "-p", &port, "-m", &monitoring]);
        let data = self.folder.path("data");
        Process::start(command.args(["-js", "-sd", &data]), &self.folder, "log")
    }

    async fn answers(&self) {
        listens(self.port).await;
        listens(self.monitoring).await;
    }

    fn prepare(&self) {
        for (subject, payload) in MADE {
            self.request(subject, payload);
        }
    }

    /// Its monitoring, which triggers ask, wants no credentials.
    fn triggers(&self) -> Vec<Trigger> {
        let metadata = json!({"account": "$G", "stream": "orders", "consumer": "worker",
            "lagThreshold": FOR_ONE});
        let endpoint = format!("127.0.0.1:{}", self.monitoring);
        let trigger = Trigger::new("nats-jetstream", metadata);
        vec![trigger.with_unchecked("natsServerMonitoringEndpoint", &endpoint)]
    }

    fn send(&self, count: usize) {
        for _ in 0..count {
            self.request("orders.new", "order");
        }
    }

    async fn drain(&self) {
        self.request("$JS.API.STREAM.PURGE.orders", "");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "starts real servers"]
async fn consumers_of_a_real_jetstream() {
    let Some(server) = JetStream::installed() else { return };
    let process = server.start();
    server.answers().await;
    let monitoring = server.monitoring;
    let text = format!(
        "natsServerMonitoringEndpoint: 127.0.0.1:{monitoring}\naccount: $G\nstream: orders\n\
         consumer: worker\nactivationLagThreshold: 1"
    );
    let context = context();
    let orders = scaler(&context, &spec("nats-jetstream", &text));
    gives(&*orders, "consumer \"worker\" not found in stream \"orders\"").await;
    for (subject, payload, expected) in [
        (MADE[0].0, MADE[0].1, "consumer \"worker\" not found in stream \"orders\""),
        (MADE[1].0, MADE[1].1, "0"),
        ("orders.new", "first", "1"),
        ("orders.new", "second", "2!"),
        ("orders.new", "third", "3!"),
        // One is delivered and not acknowledged, so it still counts.
        ("$JS.API.CONSUMER.MSG.NEXT.orders.worker", "1", "3!"),
        // What is purged counts no longer, delivered or not.
        ("$JS.API.STREAM.PURGE.orders", "", "0"),
        ("orders.new", "fourth", "1"),
        ("orders.new", "fifth", "2!"),
    ] {
        server.request(subject, payload);
        // The server works out numbers of consumers a moment later.
        gives(&*orders, expected).await;
    }
    let other = text.replace("consumer: worker", "consumer: other");
    let found = polled("nats-jetstream", &other).await;
    assert_eq!(found, "consumer \"other\" not found in stream \"orders\"");
    let account = text.replace("account: $G", "account: NOBODY");
    let found = polled("nats-jetstream", &account).await;
    assert!(found.contains("not found"), "{found}");

    drop(process);
    let gone = poll(&*orders).await;
    assert!(gone.contains("cannot be reached: "), "{gone}");
    let _process = server.start();
    gives(&*orders, "2!").await;
}
