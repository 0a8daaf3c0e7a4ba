//! A real external scaler, built on KEDA's published stubs: values, targets, being told, and a restart.

use super::certificates::Authority;
use super::driven::{FOR_ONE, Server, Trigger};
use super::harness::{
    Folder, Process, context, free_port, gives, listens, poll, polled, provided, scaler, spec,
};
use podscale_scalers::{Metric, MetricType};
use serde_json::json;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// One that says the number of a file, to those with a certificate.
pub(crate) struct Numbers {
    program: PathBuf,
    folder: Folder,
    port: u16,
    /// Who signs its own certificate, and those of whom it answers.
    authority: Authority,
    waiting: AtomicUsize,
}

impl Server for Numbers {
    fn installed() -> Option<Numbers> {
        let program = provided("triggers/external-scaler", "e2e/triggers/build")?;
        let (folder, port) = (Folder::new("external"), free_port());
        let (authority, waiting) = (Authority::new(), AtomicUsize::new(0));
        Some(Numbers { program, folder, port, authority, waiting })
    }

    fn start(&self) -> Process {
        let (certificate, key) = self.authority.sign("localhost");
        let mut command = Command::new(&self.program);
        command.arg(format!("127.0.0.1:{}", self.port));
        for (name, contents) in
            [("certificate", &*certificate), ("key", &*key), ("authority", self.authority.pem())]
        {
            command.arg(self.folder.file(name, contents));
        }
        Process::start(&mut command, &self.folder, "log")
    }

    async fn answers(&self) {
        listens(self.port).await;
    }

    fn prepare(&self) {
        self.send(0);
    }

    fn triggers(&self) -> Vec<Trigger> {
        let address = format!("localhost:{}", self.port);
        let metadata = json!({"scalerAddress": address, "file": self.folder.path("number"), "target": FOR_ONE});
        let (right, wrong) = (self.authority.sign("client"), Authority::new().sign("client"));
        let trigger = |kind| {
            Trigger::new(kind, metadata.clone())
                .with("caCert", self.authority.pem())
                .with_either("tlsClientCert", &right.0, Some(&wrong.0))
                .with_either("tlsClientKey", &right.1, Some(&wrong.1))
        };
        vec![trigger("external"), trigger("external-push")]
    }

    fn send(&self, count: usize) {
        let before = self.waiting.fetch_add(count, Ordering::Relaxed);
        self.folder.file("number", &(before + count).to_string());
    }

    async fn drain(&self) {
        self.waiting.store(0, Ordering::Relaxed);
        self.send(0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "starts real servers"]
async fn numbers_of_a_real_external_scaler() {
    let Some(program) = provided("triggers/external-scaler", "e2e/triggers/build") else { return };
    let (folder, port) = (Folder::new("external"), free_port());
    let start = || {
        let mut command = Command::new(&program);
        Process::start(command.arg(format!("127.0.0.1:{port}")), &folder, "log")
    };
    let process = start();
    listens(port).await;
    let file = folder.file("number", "0");
    let text = format!("scalerAddress: 127.0.0.1:{port}\nfile: {file}\ntarget: 2.5");
    let context = context();
    let numbers = scaler(&context, &spec("external", &text));
    for (number, expected) in [("0", "0"), ("1", "1!"), ("12", "12!"), ("0", "0")] {
        folder.file("number", number);
        assert_eq!(poll(&*numbers).await, expected);
    }
    let soon = tokio::time::Instant::now() + Duration::from_secs(20);
    let metrics = numbers.metrics(soon).await.expect("metrics");
    let metric_type = MetricType::AverageValue;
    let name = "s0--".to_owned();
    assert_eq!(metrics, Some(vec![Metric::External { name, metric_type, target: 2.5 }]));

    let pushed = scaler(&context, &spec("external-push", &text));
    let mut told = pushed.notifications().expect("it is told");
    folder.file("number", "5");
    tokio::time::timeout(Duration::from_secs(60), told.changed()).await.expect("told").expect("it");
    assert_eq!(poll(&*pushed).await, "5!");
    let wrong = polled("external", &text.replace("target: 2.5", "target: many")).await;
    assert!(wrong.ends_with("gives no value: target is no number (gRPC 3)"), "{wrong}");
    let gone = polled("external", &text.replace(&file, "/nowhere")).await;
    assert!(gone.ends_with("gives no value: there is no such file (gRPC 5)"), "{gone}");

    drop(process);
    let away = poll(&*numbers).await;
    assert!(away.contains("cannot be reached: "), "{away}");
    let _process = start();
    gives(&*numbers, "5!").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "starts real servers"]
async fn certificates_of_a_real_external_scaler() {
    let Some(numbers) = Numbers::installed() else { return };
    let _process = numbers.start();
    numbers.answers().await;
    numbers.send(7);
    let context = context();
    let trigger = |authority: &Authority| {
        let text = format!(
            "scalerAddress: localhost:{}\nfile: {}\ntarget: 2",
            numbers.port,
            numbers.folder.path("number")
        );
        let mut spec = spec("external", &text);
        let (certificate, key) = authority.sign("client");
        for (parameter, value) in [("tlsClientCert", certificate), ("tlsClientKey", key)] {
            spec.auth.insert(parameter.to_owned(), value.as_str().into());
        }
        spec.auth.insert("caCert".to_owned(), numbers.authority.pem().into());
        scaler(&context, &spec)
    };
    gives(&*trigger(&numbers.authority), "7!").await;
    let stranger = trigger(&Authority::new());
    // What the server says comes after TLS is established, at any moment of a request.
    for _ in 0..50 {
        let found = poll(&*stranger).await;
        assert!(found.contains("refuses the credentials: the client's certificate: "), "{found}");
    }
}
