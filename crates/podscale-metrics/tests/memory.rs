//! What a store of samples takes in memory, names included.

use jiff::Timestamp;
use podscale_metrics::scrape::Scrape;
use podscale_metrics::store::{Limits, Store};
use std::fmt::Write;
use std::time::Duration;

const NODES: usize = 100;
const PODS_PER_NODE: usize = 30;
/// What one pod of one container may take.
const MAX_BYTES_PER_POD: i64 = 500;

fn text(node: usize, second: i64) -> String {
    let mut text = String::new();
    for family in ["container_cpu_usage_seconds_total", "container_memory_working_set_bytes"] {
        for pod in 0..PODS_PER_NODE {
            let name = format!("frontend-service-7d4b9c6f5b-{node:03}x{pod:02}");
            writeln!(
                text,
                "{family}{{container=\"app\",namespace=\"shop-{}\",pod=\"{name}\"}} {second} {}",
                pod % 5,
                second * 1000
            )
            .expect("a string takes everything");
        }
    }
    text
}

#[test]
fn a_pod_takes_less_than_500_bytes() {
    let mut store = None;
    let info = allocation_counter::measure(|| {
        let (resolution, max_age) = (Duration::from_secs(15), Duration::from_secs(60));
        let filled = store.insert(Store::new(Limits { resolution, max_age }));
        for second in [1000, 1015] {
            let scraped = Timestamp::from_second(second).expect("a time");
            for node in 0..NODES {
                let scrape = Scrape::read(&text(node, second));
                filled.apply(&format!("node-{node}"), &scrape, scraped);
            }
        }
    });
    let store = store.expect("a store");
    assert_eq!(store.pods(), NODES * PODS_PER_NODE);
    let each = info.bytes_current / i64::try_from(NODES * PODS_PER_NODE).expect("few");
    println!("{each} bytes for each pod");
    assert!(each < MAX_BYTES_PER_POD, "{each} bytes for each pod");
}
