//! ElasticMQ, an emulator of Amazon SQS: messages that wait, are in flight and delayed, and a restart.

use super::driven::{FOR_ONE, Server, Trigger};
use super::harness::{
    Folder, PLANTED, Process, context, free_port, gives, listens, poll, polled, provided, scaler,
    spec,
};
use axum::Router;
use parking_lot::Mutex;
use podscale_scalers::{AwsIdentity, Identity, Secret};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

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

/// Keeps queues and messages when it is started again.
pub(crate) struct Queues {
    jars: PathBuf,
    folder: Folder,
    port: u16,
    config: String,
}

impl Queues {
    fn url(&self) -> String {
        format!("http://localhost:{}/000000000000/orders", self.port)
    }

    fn send_later(&self, delay: u32) {
        let url = self.url();
        let body = format!(r#"{{"QueueUrl":"{url}","MessageBody":"x","DelaySeconds":{delay}}}"#);
        call(self.port, "SendMessage", &body);
    }
}

impl Server for Queues {
    fn installed() -> Option<Queues> {
        let jars = provided("elasticmq/.version", "e2e/jars/build")?.with_file_name("*");
        let (folder, port) = (Folder::new("sqs"), free_port());
        let config = folder.file(
            "elasticmq.conf",
            &format!(
                "include classpath(\"application.conf\")\nnode-address {{ host = localhost, port = {port} }}\n\
                 rest-sqs {{ bind-port = {port}, bind-hostname = \"127.0.0.1\" }}\nrest-stats {{ enabled = false }}\n\
                 messages-storage {{ enabled = true, uri = \"jdbc:h2:{};WRITE_DELAY=0\" }}\n\
                 queues-storage {{ enabled = true, path = \"{}\" }}\n",
                folder.path("messages"),
                folder.path("queues.conf")
            ),
        );
        Some(Queues { jars, folder, port, config })
    }

    fn start(&self) -> Process {
        let mut command = Command::new("java");
        command
            .args(["-Xmx256m", &format!("-Dconfig.file={}", self.config), "-cp"])
            .arg(&self.jars)
            .arg("org.elasticmq.server.Main");
        Process::start(&mut command, &self.folder, "log")
    }

    async fn answers(&self) {
        listens(self.port).await;
    }

    fn prepare(&self) {
        call(self.port, "CreateQueue", r#"{"QueueName":"orders"}"#);
    }

    /// It is an emulator, which accepts any signature.
    fn triggers(&self) -> Vec<Trigger> {
        let metadata = json!({"queueURL": self.url(), "awsRegion": "elasticmq",
            "awsEndpoint": format!("http://localhost:{}", self.port), "queueLength": FOR_ONE});
        let trigger = Trigger::new("aws-sqs-queue", metadata).with_unchecked("awsAccessKeyID", "x");
        vec![trigger.with_unchecked("awsSecretAccessKey", PLANTED)]
    }

    fn send(&self, count: usize) {
        for _ in 0..count {
            self.send_later(0);
        }
    }

    async fn drain(&self) {
        call(self.port, "PurgeQueue", &format!(r#"{{"QueueUrl":"{}"}}"#, self.url()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "starts real servers"]
async fn queues_of_an_emulated_sqs() {
    let Some(queues) = Queues::installed() else { return };
    let (port, url) = (queues.port, queues.url());
    let process = queues.start();
    queues.answers().await;
    queues.prepare();
    let text = format!(
        "queueURL: {url}\nawsRegion: elasticmq\nawsEndpoint: http://localhost:{port}\n\
         activationQueueLength: 1\nauth.awsAccessKeyID: x\nauth.awsSecretAccessKey: {PLANTED}"
    );
    let context = context();
    let orders = scaler(&context, &spec("aws-sqs-queue", &text));
    gives(&*orders, "0").await;
    for expected in ["1", "2!", "3!"] {
        queues.send(1);
        assert_eq!(poll(&*orders).await, expected);
    }
    let one = format!(r#"{{"QueueUrl":"{url}","MaxNumberOfMessages":1,"VisibilityTimeout":600}}"#);
    call(port, "ReceiveMessage", &one);
    queues.send_later(600);
    assert_eq!(poll(&*orders).await, "3!", "what is in flight counts, what is delayed does not");
    let waiting = format!("{text}\nscaleOnInFlight: false");
    assert_eq!(polled("aws-sqs-queue", &waiting).await, "2!");
    assert_eq!(polled("aws-sqs-queue", &format!("{text}\nscaleOnDelayed: true")).await, "4!");
    let none = polled("aws-sqs-queue", &text.replace("/orders", "/none")).await;
    assert!(none.contains("gives no value: it answers 400"), "{none}");

    drop(process);
    let gone = poll(&*orders).await;
    assert!(gone.contains("cannot be reached: "), "{gone}");
    let _process = queues.start();
    queues.answers().await;
    // What it has of the last moment before it was killed is a matter of luck, and the queue may come a moment later.
    queues.prepare();
    queues.drain().await;
    gives(&*orders, "0").await;
    queues.send(2);
    gives(&*orders, "2!").await;
}

/// In the place of Amazon's service that gives keys for roles: gives some, and says which roles were asked for and how.
async fn roles() -> (String, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    let router = Router::new().fallback(async move |body: String| {
        let field = |name: &str| {
            let mut fields = body.split('&').filter_map(|pair| pair.split_once('='));
            fields.find(|(found, _)| *found == name).map(|(_, value)| value.to_owned())
        };
        let token = field("WebIdentityToken").map(|token| format!(" by {token}"));
        let parts = [field("Action"), Some(" ".to_owned()), field("RoleArn"), token];
        log.lock().push(parts.into_iter().flatten().collect::<String>());
        format!(
            "<R><Credentials><AccessKeyId>k</AccessKeyId><SecretAccessKey>{PLANTED}</SecretAccessKey>\
             <SessionToken>{PLANTED}</SessionToken><Expiration>2100-01-01T00:00:00Z</Expiration></Credentials></R>"
        )
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, asked)
}

/// Amazon's own service for roles cannot be had here; the queue is the emulator's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "starts real servers"]
async fn roles_ask_an_emulated_sqs() {
    let Some(queues) = Queues::installed() else { return };
    let _process = queues.start();
    queues.answers().await;
    queues.prepare();
    queues.send(3);
    let (address, asked) = roles().await;
    let mut context = context();
    context.variables = Arc::new(move |name| match name {
        "AWS_ENDPOINT_URL_STS" => Some(address.as_str().into()),
        "AWS_ACCESS_KEY_ID" => Some("own".into()),
        "AWS_SECRET_ACCESS_KEY" => Some(Secret::from(PLANTED)),
        _ => None,
    });
    let text = format!(
        "queueURL: {}\nawsRegion: elasticmq\nawsEndpoint: http://localhost:{}",
        queues.url(),
        queues.port
    );
    let (role, account) = ("queues".to_owned(), "shop/web".to_owned());
    for (identity, expected) in [
        (AwsIdentity::Controller { role: None, external_id: None }, None),
        (
            AwsIdentity::Controller { role: Some(role.clone()), external_id: None },
            Some("AssumeRole queues"),
        ),
        (
            AwsIdentity::Workload { role, account, token: "t".into() },
            Some("AssumeRoleWithWebIdentity queues by t"),
        ),
    ] {
        let mut trigger = spec("aws-sqs-queue", &text);
        trigger.identity = Some(Identity::Aws(identity));
        let orders = scaler(&context, &trigger);
        gives(&*orders, "3!").await;
        gives(&*orders, "3!").await;
        assert_eq!(asked.lock().drain(..).collect::<Vec<_>>(), Vec::from_iter(expected));
    }
}
