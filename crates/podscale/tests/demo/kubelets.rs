//! The demo's kubelets, read by a controller of its own.

use super::*;

/// A program that is ended with the test.
pub(super) struct Program(pub(super) std::process::Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_controller_reads_the_kubelets_of_a_cluster_itself() {
    let real_time = SCENARIO.replace("speed: 10", "speed: 1");
    let demo = Demo::start(Config::of(scenario(&real_time)), Vec::new()).await.expect("starts");
    let free = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let admin = free.local_addr().expect("an address");
    drop(free);
    let program = std::process::Command::new(env!("CARGO_BIN_EXE_podscale"))
        .args(["run", "--dry-run", "--resource-metrics", "kubelet", "--metric-resolution", "1s"])
        .args(["--admin-address", &admin.to_string(), "--kubeconfig"])
        .arg(demo.kubeconfig())
        .stderr(std::process::Stdio::null())
        .spawn();
    let _program = Program(program.expect("the program"));
    let text = until("samples of both nodes", async || {
        TcpStream::connect(admin).ok()?;
        let text = page(admin, "/metrics").await;
        let scraped = text.contains("podscale_kubelet_scrapes_total{outcome=\"new\"}");
        (scraped && text.contains("podscale_kubelet_nodes 2")).then_some(text)
    })
    .await;
    assert!(!text.contains("scrapes_total{outcome=\"failed\"}"), "{text}");
    // The idle one is measured by cpu, which nothing but the kubelets tells this program.
    until("a decision by cpu", async || {
        let shown = page(admin, "/api/autoscalers").await;
        shown.contains("%\",\"goal\":50.0,\"name\":\"cpu\"").then_some(())
    })
    .await;
    timeout(TIMEOUT, demo.stop()).await.expect("ends");
}
