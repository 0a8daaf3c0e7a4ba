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
