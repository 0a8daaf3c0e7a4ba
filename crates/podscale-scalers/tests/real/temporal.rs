//! A real Temporal: workflows that wait for workers, namespaces, and a restart.

use super::harness::{
    Folder, Process, context, free_port, gives, listens, poll, polled, provided, scaler, spec,
};
use std::path::Path;
use std::process::Command;

fn run(program: &Path, port: u16, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).args(["--address", &format!("127.0.0.1:{port}")]);
    command.output().expect("temporal").status.success()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "starts real servers"]
async fn tasks_of_a_real_temporal() {
    let Some(program) = provided("temporal/temporal", "e2e/temporal/build") else { return };
    let (folder, port) = (Folder::new("temporal"), free_port());
    let start = || {
        let mut command = Command::new(&program);
        command
            .args(["server", "start-dev", "--headless", "--ip", "127.0.0.1"])
            .args(["--port", &port.to_string(), "--db-filename", &folder.path("db")])
            .env("HOME", folder.path(""));
        Process::start(&mut command, &folder, "log")
    };
    let process = start();
    listens(port).await;
    let text = format!(
        "endpoint: 127.0.0.1:{port}\ntaskQueue: orders\nqueueTypes: workflow\nactivationTargetQueueSize: 1"
    );
    let context = context();
    let orders = scaler(&context, &spec("temporal", &text));
    gives(&*orders, "0").await;
    for (number, expected) in [(1, "1"), (2, "2!"), (3, "3!")] {
        let id = format!("order-{number}");
        let workflow = ["workflow", "start", "--type", "order", "--task-queue", "orders"];
        let started = run(&program, port, &[&workflow[..], &["--workflow-id", &id]].concat());
        assert!(started, "{id} is not started");
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
    let _process = start();
    gives(&*orders, "3!").await;
}
