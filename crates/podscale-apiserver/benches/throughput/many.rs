//! Many objects in the embedded server: how long they take, how much memory they need, and whether
//! lists of all of them hold up writers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use podscale_apiserver::{ApiServer, Config};

use crate::work;

/// What was measured.
pub struct Figures {
    count: u64,
    filling: Duration,
    bytes: u64,
    list: Duration,
    listed_bytes: usize,
    watch: Duration,
    alone: Vec<Duration>,
    beside: Vec<Duration>,
    lists_beside: u64,
}

/// Fills a server in this process and asks it for everything.
pub async fn measure(count: u64) -> Figures {
    let before = resident_bytes();
    let server = ApiServer::new(Config::default());
    let client = kube::Client::new(server.router(), "default");
    let started = Instant::now();
    work::create(&client, "pod", count).await;
    let filling = started.elapsed();
    let bytes = resident_bytes().saturating_sub(before);

    let started = Instant::now();
    let listed_bytes = work::get(&client, "/api/v1/pods").await;
    let list = started.elapsed();
    let started = Instant::now();
    work::watch(&client, "/api/v1/pods?watch=1&resourceVersion=0", work::ADDED, count).await;
    let watch = started.elapsed();

    let probes = (count / 50).max(10);
    let alone = work::create(&client, "alone", probes).await;
    let done = Arc::new(AtomicBool::new(false));
    let lister = tokio::spawn({
        let (client, done) = (client.clone(), done.clone());
        async move {
            let mut lists = 0;
            while !done.load(Ordering::Relaxed) {
                work::get(&client, "/api/v1/pods").await;
                lists += 1;
            }
            lists
        }
    });
    let beside = work::create(&client, "beside", probes).await;
    done.store(true, Ordering::Relaxed);
    let lists_beside = lister.await.unwrap();
    Figures { count, filling, bytes, list, listed_bytes, watch, alone, beside, lists_beside }
}

impl Figures {
    pub fn print(&self) {
        let Self { count, filling, bytes, list, listed_bytes, watch, .. } = self;
        let (mega, listed) = (bytes / 1_000_000, listed_bytes / 1_000_000);
        println!("\n{count} pods in the embedded server, without a socket:");
        println!("- created in {filling:.1?}, held in {mega} MB");
        println!(
            "- listed ({listed} MB of JSON) in {list:.2?}, watched from the start in {watch:.2?}"
        );
        for (name, times) in [("alone", &self.alone), ("beside lists of everything", &self.beside)]
        {
            println!(
                "- creates {name}: half below {:.0?}, 99 % below {:.0?}, slowest {:.0?}",
                work::share(times, 50),
                work::share(times, 99),
                times.last().copied().unwrap_or_default()
            );
        }
        println!("- lists of everything meanwhile: {}", self.lists_beside);
    }
}

/// Memory that this process holds; zero where the system does not tell.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() * 1024
}
