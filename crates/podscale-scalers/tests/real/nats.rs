//! A real NATS server with JetStream: messages published, delivered, purged, and a restart.

use super::harness::{
    Folder, Process, context, free_port, gives, is_installed, listens, poll, polled, scaler, spec,
};
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "starts real servers"]
async fn consumers_of_a_real_jetstream() {
    if !is_installed("nats-server", "nats-server") {
        return;
    }
    let (folder, port, monitoring) = (Folder::new("nats"), free_port(), free_port());
    let start = || {
        let mut command = Command::new("nats-server");
        command.args(["-a", "127.0.0.1", "-p", &port.to_string(), "-m", &monitoring.to_string()]);
        Process::start(command.args(["-js", "-sd", &folder.path("data")]), &folder, "log")
    };
    let process = start();
    listens(port).await;
    listens(monitoring).await;
    let text = format!(
        "natsServerMonitoringEndpoint: 127.0.0.1:{monitoring}\naccount: $G\nstream: orders\n\
         consumer: worker\nactivationLagThreshold: 1"
    );
    let context = context();
    let orders = scaler(&context, &spec("nats-jetstream", &text));
    gives(&*orders, "consumer \"worker\" not found in stream \"orders\"").await;
    for (subject, payload, expected) in [
        (
            "$JS.API.STREAM.CREATE.orders",
            r#"{"name":"orders","subjects":["orders.*"],"storage":"file"}"#,
            "consumer \"worker\" not found in stream \"orders\"",
        ),
        (
            "$JS.API.CONSUMER.DURABLE.CREATE.orders.worker",
            r#"{"stream_name":"orders","config":{"durable_name":"worker","ack_policy":"explicit"}}"#,
            "0",
        ),
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
        let answer = request(port, subject, payload);
        assert!(!answer.contains("\"error\""), "{subject}: {answer}");
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
    let _process = start();
    gives(&*orders, "2!").await;
}
