//! Ports of the demo that somebody else has.

use super::*;

#[tokio::test]
async fn a_busy_port_is_an_error_of_one_line() {
    let taken = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let config = Config { port, ..Config::of(scenario(SCENARIO)) };
    let error = Demo::start(config, Vec::new()).await.err().expect("the port is taken").to_string();
    assert!(error.contains(&format!("127.0.0.1:{port}")), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

/// A scenario without pods, for what happens before there are any.
const NOTHING: &str = "
name: nothing
nodes: 2
manifests:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}
";

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_kubelet_port_gives_way_unless_it_is_required() {
    let first_node = Ipv4Addr::new(127, 0, 1, 1);
    // Where there is no such address, any other reason not to bind it serves as well.
    let taken = tokio::net::TcpListener::bind((first_node, 0)).await.ok();
    let port = taken.as_ref().map_or(10250, |l| l.local_addr().expect("an address").port());

    let kubelet_port = KubeletPort::Preferred(port);
    let config = Config { kubelet_port, ..Config::of(scenario(NOTHING)) };
    let demo = Demo::start(config, Vec::new()).await.expect("falls back");
    let notice = demo.kubelet_notice().expect("a notice").to_owned();
    assert!(notice.starts_with(&format!("127.0.1.1:{port} cannot be used (")), "{notice}");
    assert_eq!(notice.lines().count(), 1, "{notice}");
    let nodes = page(address(&demo.dashboard_url()), "/nodes").await;
    assert!(nodes.contains("\"name\":\"node-1\""), "{nodes}");
    assert!(!nodes.contains(&format!("\"address\":\"127.0.1.1\",\"port\":{port},")), "{nodes}");
    timeout(TIMEOUT, demo.stop()).await.expect("ends");

    let kubelet_port = KubeletPort::Required(port);
    let config = Config { kubelet_port, ..Config::of(scenario(NOTHING)) };
    let error = Demo::start(config, Vec::new()).await.err().expect("the port is taken").to_string();
    let expected = format!("cannot listen on 127.0.1.1:{port} for the kubelet of node-1: ");
    assert!(error.starts_with(&expected), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}
