//! The real Prometheus scrapes the pods of the demo, by the configuration in `docs/demo.md`.

use super::kubelets::Program;
use super::*;
use podscale_metrics::prometheus::{Client as Prometheus, Config as PrometheusConfig};
use std::process::{Command, Stdio};

/// Whether there is a Prometheus; in CI there must be.
fn is_installed() -> bool {
    let found = Command::new("prometheus").arg("--version").output().is_ok();
    assert!(found || std::env::var("CI").as_deref() != Ok("true"), "prometheus is not installed");
    if !found {
        println!("\n!! LEFT OUT: prometheus is not installed (Debian's package prometheus)\n");
    }
    found
}

/// The configuration that the documentation shows.
fn documented() -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/demo.md");
    let page = std::fs::read_to_string(path).expect("docs/demo.md");
    let mut blocks = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.find(|block| block.contains("http_sd_configs")).expect("a prometheus.yml").to_owned()
}

/// Starts it with this configuration; it ends with the test.
fn start(folder: &std::path::Path, config: &str) -> (Program, Prometheus) {
    std::fs::create_dir_all(folder).expect("a folder");
    let file = folder.join("prometheus.yml");
    std::fs::write(&file, config).expect("written");
    let free = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let listen = free.local_addr().expect("an address");
    drop(free);
    let program = Command::new("prometheus")
        .arg(format!("--config.file={}", file.display()))
        .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
        .arg(format!("--web.listen-address={listen}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let client = Prometheus::new(PrometheusConfig::new(format!("http://{listen}")));
    (Program(program.expect("prometheus starts")), client.expect("a client"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_prometheus_scrapes_the_pods() {
    if !is_installed() {
        return;
    }
    let demo = Demo::start(Config::of(scenario(SCENARIO)), Vec::new()).await.expect("starts");
    let dashboard = address(&demo.dashboard_url());
    let config = documented().replace("127.0.0.1:8700", &dashboard.to_string());
    let served = page(dashboard, "/prometheus.yml").await;
    let (_, served) = served.split_once("\r\n\r\n").expect("a body");
    assert_eq!(served, config, "the demo gives out what is documented");
    let folder = std::env::temp_dir().join(format!("podscale-scraped-{}", std::process::id()));
    let (program, prometheus) = start(&folder, &config);
    let value = async |query: &str| {
        let answer = prometheus.query(query).await.ok()?;
        answer.vector.samples.first().map(|sample| sample.value)
    };
    // 120 requests a second need six pods at 20 each: four of them are found after they were made.
    until("six pods that serve all requests", async || {
        let pods = value("count(requests_per_second{workload=\"busy\"} > 0)").await?;
        let rps = value("sum(requests_per_second{workload=\"busy\"})").await?;
        (pods == 6.0 && (rps - 120.0).abs() < 1.0).then_some(())
    })
    .await;
    let pods: Api<Pod> = Api::default_namespaced(outside(&demo).await);
    until("the same pods as the cluster has", async || {
        let answer = prometheus.query("http_requests_total{workload=\"busy\"} > 0").await.ok()?;
        let label = |name: &str| -> Vec<String> {
            let samples = answer.vector.samples.iter();
            let mut found: Vec<String> =
                samples.filter_map(|s| s.labels.get(name).map(str::to_owned)).collect();
            found.sort();
            found
        };
        let mut running: Vec<String> =
            busy_pods(&pods).await.into_iter().map(|(name, ..)| name).collect();
        running.sort();
        let instances = label("instance");
        let named = instances.iter().all(|instance| instance.starts_with("default/"));
        (label("pod") == running && named).then_some(())
    })
    .await;
    drop(program);
    std::fs::remove_dir_all(&folder).expect("removed");
    drop(pods);
    timeout(TIMEOUT, demo.stop()).await.expect("ends");
}
