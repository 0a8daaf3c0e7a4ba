//! A real external scaler, built on KEDA's published stubs: values, targets, being told, and a restart.

use super::harness::{
    Folder, Process, context, free_port, gives, listens, poll, polled, provided, scaler, spec,
};
use podscale_scalers::{Metric, MetricType};
use std::process::Command;
use std::time::Duration;

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
