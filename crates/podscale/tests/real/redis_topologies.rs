//! A cluster of Redis, and a master that sentinels name.

use super::harness::{
    Folder, Process, context, free_port, gives, is_installed, listens, poll, polled, scaler, spec,
    until,
};
use super::redis::{redis, start};
use std::process::Command;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "starts real servers"]
async fn keys_of_a_cluster_are_found_on_every_node() {
    if !is_installed("redis-server", "redis-server") {
        return;
    }
    let mut nodes = Vec::new();
    for (first, last) in [(0, 5460), (5461, 10922), (10923, 16383)] {
        let (folder, port, bus) =
            (Folder::new("redis-cluster"), free_port(), free_port().to_string());
        let process = start(&folder, port, &["--cluster-enabled", "yes", "--cluster-port", &bus]);
        listens(port).await;
        assert_eq!(redis(port, "", &format!("CLUSTER ADDSLOTSRANGE {first} {last}")), "+OK");
        nodes.push((port, bus, process, folder));
    }
    let first = nodes[0].0;
    for (port, bus, ..) in &nodes[1..] {
        assert_eq!(redis(first, "", &format!("CLUSTER MEET 127.0.0.1 {port} {bus}")), "+OK");
    }
    for (port, ..) in &nodes {
        until("the cluster", async || {
            let state = redis(*port, "", "LLEN x");
            (!state.starts_with("-CLUSTERDOWN")).then_some(())
        })
        .await;
    }
    // Only one node is named; the others are found by its redirections. These three are on three nodes.
    let context = context();
    for (key, node) in [("bar", 0), ("hello", 0), ("foo", 2), ("a", 2), ("b", 0), ("c", 1)] {
        let reply = redis(nodes[node].0, "", &format!("LPUSH {key} 1 2 3"));
        assert!(reply.starts_with(':') || reply.starts_with("-MOVED"), "{reply}");
    }
    for key in ["foo", "bar", "hello", "a", "b", "c"] {
        for (port, ..) in &nodes {
            redis(*port, "", &format!("DEL {key}"));
            redis(*port, "", &format!("RPUSH {key} 1 2"));
        }
        let text = format!("address: 127.0.0.1:{first}\nlistName: {key}");
        let list = scaler(&context, &spec("redis-cluster", &text));
        assert_eq!(poll(&*list).await, "2!", "{key}");
        assert_eq!(poll(&*list).await, "2!", "{key} again");
    }
    let stream = format!("address: 127.0.0.1:{first}\nstream: s");
    assert_eq!(polled("redis-cluster-streams", &stream).await, "0");
    // A plain client is told that the key is elsewhere, and where: that is no value, but it follows as well.
    let plain = format!("address: 127.0.0.1:{first}\nlistName: foo");
    assert_eq!(polled("redis", &plain).await, "2!");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "starts real servers"]
async fn sentinels_say_where_the_master_is_now() {
    if !is_installed("redis-server", "redis-server") {
        return;
    }
    let (folder, master, replica, sentinel) =
        (Folder::new("redis-sentinel"), free_port(), free_port(), free_port());
    let first = start(&folder, master, &[]);
    listens(master).await;
    let other = Folder::new("redis-replica");
    let _second = start(&other, replica, &["--replicaof", &format!("127.0.0.1 {master}")]);
    listens(replica).await;
    let config = folder.file(
        "sentinel.conf",
        &format!(
            "port {sentinel}\nbind 127.0.0.1\nsentinel monitor main 127.0.0.1 {master} 1\n\
             sentinel down-after-milliseconds main 5000\nsentinel failover-timeout main 10000\n"
        ),
    );
    let mut command = Command::new("redis-server");
    let _sentinel = Process::start(command.args([&config, "--sentinel"]), &folder, "log-sentinel");
    listens(sentinel).await;
    redis(master, "", "LPUSH jobs a b c");
    until("the copy", async || (redis(replica, "", "LLEN jobs") == ":3").then_some(())).await;

    let at = format!("address: 127.0.0.1:{sentinel}\nlistName: jobs");
    let context = context();
    let list = scaler(&context, &spec("redis-sentinel", &format!("{at}\nsentinelMaster: main")));
    gives(&*list, "3!").await;
    let unknown = polled("redis-sentinel", &format!("{at}\nsentinelMaster: other")).await;
    assert!(unknown.contains("knows no master \"other\"; check sentinelMaster"), "{unknown}");
    // The sentinel must know the replica before it can make it the master.
    until("the replica", async || {
        let known = redis(sentinel, "", "SENTINEL replicas main");
        (known == "*1").then_some(())
    })
    .await;
    drop(first);
    let gone = poll(&*list).await;
    assert!(gone.contains("cannot be reached"), "{gone}");
    until("the new master", async || {
        redis(replica, "", "LPUSH jobs d").starts_with(':').then_some(())
    })
    .await;
    gives(&*list, "4!").await;
}
