//! A real Temporal: workflows that wait for workers, namespaces, and a restart.

use super::driven::{FOR_ONE, Server, Trigger};
use super::harness::{
    Folder, PLANTED, Process, context, free_port, gives, listens, poll, polled, provided, scaler,
    spec, until,
};
use axum::body::Bytes;
use axum::http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::json;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) struct Temporal {
    program: PathBuf,
    folder: Folder,
    port: u16,
    /// How many workflows were started.
    started: AtomicUsize,
}

impl Temporal {
    fn run(&self, arguments: &[&str]) -> bool {
        let mut command = Command::new(&self.program);
        command.args(arguments).args(["--address", &format!("127.0.0.1:{}", self.port)]);
        command.env("HOME", self.folder.path("")).output().expect("temporal").status.success()
    }

    /// Asks for a task as workers do, and waits for a while. Those of workflows that have ended are dropped by this.
    async fn poll_as_worker(&self) {
        // A field that is a text or a message; all are short.
        let field = |number: u8, value: &[u8]| {
            let length = u8::try_from(value.len()).expect("short");
            [&[number << 3 | 2, length], value].concat()
        };
        // The namespace, the queue with its name, and who asks.
        let queue = field(1, b"orders");
        let message = [field(1, b"default"), field(2, &queue), field(3, b"worker")].concat();
        let length = u8::try_from(message.len()).expect("short");
        let framed = [&[0, 0, 0, 0, length], &message[..]].concat();
        let method = "temporal.api.workflowservice.v1.WorkflowService/PollWorkflowTaskQueue";
        let request = Request::post(format!("http://127.0.0.1:{}/{method}", self.port))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .header("grpc-timeout", "5S")
            .body(Full::new(Bytes::from(framed)));
        let client = Client::builder(TokioExecutor::new()).http2_only(true).build_http();
        let answer = client.request(request.expect("a request")).await.expect("an answer");
        // How it ends does not matter: mostly because nothing came in time.
        let _ = answer.into_body().collect().await;
    }
}

impl Server for Temporal {
    fn installed() -> Option<Temporal> {
        let program = provided("temporal/temporal", "e2e/temporal/build")?;
        let (folder, port) = (Folder::new("temporal"), free_port());
        Some(Temporal { program, folder, port, started: AtomicUsize::new(0) })
    }

    fn start(&self) -> Process {
        let mut command = Command::new(&self.program);
        command
            .args(["server", "start-dev", "--headless", "--ip", "127.0.0.1"])
            .args(["--port", &self.port.to_string(), "--db-filename", &self.folder.path("db")])
            .env("HOME", self.folder.path(""));
        Process::start(&mut command, &self.folder, "log")
    }

    async fn answers(&self) {
        listens(self.port).await;
        until("Temporal", async || self.run(&["operator", "cluster", "health"]).then_some(()))
            .await;
        // Its namespace is made a moment later.
        let namespace = ["operator", "namespace", "describe", "--namespace", "default"];
        until("its namespace", async || self.run(&namespace).then_some(())).await;
    }

    fn prepare(&self) {}

    /// Its server for development accepts any key.
    fn triggers(&self) -> Vec<Trigger> {
        let endpoint = format!("127.0.0.1:{}", self.port);
        let metadata = json!({"endpoint": endpoint, "taskQueue": "orders", "queueTypes": "workflow",
            "targetQueueSize": FOR_ONE, "enableTLS": "false"});
        vec![Trigger::new("temporal", metadata).with_unchecked("apiKey", PLANTED)]
    }

    fn send(&self, count: usize) {
        for _ in 0..count {
            let id = format!("order-{}", self.started.fetch_add(1, Ordering::Relaxed));
            let workflow = ["workflow", "start", "--type", "order", "--task-queue", "orders"];
            let is_started = self.run(&[&workflow[..], &["--workflow-id", &id]].concat());
            assert!(is_started, "{id} is not started");
        }
    }

    async fn drain(&self) {
        for number in 0..self.started.load(Ordering::Relaxed) {
            let id = format!("order-{number}");
            let ended = self.run(&["workflow", "terminate", "--workflow-id", &id]);
            assert!(ended, "{id} does not end");
        }
        self.poll_as_worker().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "starts real servers"]
async fn tasks_of_a_real_temporal() {
    let Some(temporal) = Temporal::installed() else { return };
    let port = temporal.port;
    let process = temporal.start();
    temporal.answers().await;
    let text = format!(
        "endpoint: 127.0.0.1:{port}\ntaskQueue: orders\nqueueTypes: workflow\nactivationTargetQueueSize: 1"
    );
    let context = context();
    let orders = scaler(&context, &spec("temporal", &text));
    gives(&*orders, "0").await;
    for expected in ["1", "2!", "3!"] {
        temporal.send(1);
        gives(&*orders, expected).await;
    }
    let activities = text.replace("queueTypes: workflow", "queueTypes: activity");
    assert_eq!(polled("temporal", &activities).await, "0");
    let nobody = polled("temporal", &format!("{text}\nnamespace: nobody")).await;
    assert!(nobody.contains("failed to get Temporal backlog count: "), "{nobody}");
    assert!(nobody.contains("not found"), "{nobody}");

    drop(process);
    let gone = poll(&*orders).await;
    assert!(gone.contains("cannot be reached: "), "{gone}");
    let _process = temporal.start();
    gives(&*orders, "3!").await;
    temporal.drain().await;
    gives(&*orders, "0").await;
}
