//! ElasticMQ, an emulator of Amazon SQS: messages that wait, are in flight and delayed, and a restart.

use super::harness::{
    Folder, PLANTED, Process, context, free_port, gives, listens, poll, polled, provided, scaler,
    spec,
};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

/// An action of SQS's API for JSON; the emulator wants no signature.
fn call(port: u16, action: &str, body: &str) -> String {
    let request = format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/x-amz-json-1.0\r\n\
         X-Amz-Target: AmazonSQS.{action}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    stream.write_all(request.as_bytes()).expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{action}: {answer}");
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "starts real servers"]
async fn queues_of_an_emulated_sqs() {
    let Some(ready) = provided("elasticmq/.version", "e2e/jars/build") else { return };
    let jars = ready.with_file_name("*");
    let (folder, port) = (Folder::new("sqs"), free_port());
    // Queues and messages stay when it is started again.
    let config = folder.file(
        "elasticmq.conf",
        &format!(
            "include classpath(\"application.conf\")\nnode-address {{ host = localhost, port = {port} }}\n\
             rest-sqs {{ bind-port = {port}, bind-hostname = \"127.0.0.1\" }}\nrest-stats {{ enabled = false }}\n\
             messages-storage {{ enabled = true, uri = \"jdbc:h2:{}\" }}\n\
             queues-storage {{ enabled = true, path = \"{}\" }}\n",
            folder.path("messages"),
            folder.path("queues.conf")
        ),
    );
    let start = || {
        let mut command = Command::new("java");
        command
            .args(["-Xmx256m", &format!("-Dconfig.file={config}"), "-cp"])
            .arg(&jars)
            .arg("org.elasticmq.server.Main");
        Process::start(&mut command, &folder, "log")
    };
    let process = start();
    listens(port).await;
    call(port, "CreateQueue", r#"{"QueueName":"orders"}"#);
    let url = format!("http://localhost:{port}/000000000000/orders");
    let text = format!(
        "queueURL: {url}\nawsRegion: elasticmq\nawsEndpoint: http://localhost:{port}\n\
         activationQueueLength: 1\nauth.awsAccessKeyID: x\nauth.awsSecretAccessKey: {PLANTED}"
    );
    let context = context();
    let orders = scaler(&context, &spec("aws-sqs-queue", &text));
    gives(&*orders, "0").await;
    let send = |delay: u32| {
        let body = format!(r#"{{"QueueUrl":"{url}","MessageBody":"x","DelaySeconds":{delay}}}"#);
        call(port, "SendMessage", &body);
    };
    for expected in ["1", "2!", "3!"] {
        send(0);
        assert_eq!(poll(&*orders).await, expected);
    }
    let one = format!(r#"{{"QueueUrl":"{url}","MaxNumberOfMessages":1,"VisibilityTimeout":600}}"#);
    call(port, "ReceiveMessage", &one);
    send(600);
    assert_eq!(poll(&*orders).await, "3!", "what is in flight counts, what is delayed does not");
    let waiting = format!("{text}\nscaleOnInFlight: false");
    assert_eq!(polled("aws-sqs-queue", &waiting).await, "2!");
    assert_eq!(polled("aws-sqs-queue", &format!("{text}\nscaleOnDelayed: true")).await, "4!");
    let none = polled("aws-sqs-queue", &text.replace("/orders", "/none")).await;
    assert!(none.contains("gives no value: it answers 400"), "{none}");

    drop(process);
    let gone = poll(&*orders).await;
    assert!(gone.contains("cannot be reached: "), "{gone}");
    let _process = start();
    let waits = scaler(&context, &spec("aws-sqs-queue", &format!("{text}\nscaleOnDelayed: true")));
    gives(&*waits, "4!").await;
    call(port, "PurgeQueue", &format!(r#"{{"QueueUrl":"{url}"}}"#));
    gives(&*waits, "0").await;
}
