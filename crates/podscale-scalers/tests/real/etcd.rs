//! A real etcd: a key that changes, being told, users, and a restart.

use super::harness::{
    Folder, PLANTED, Process, context, free_port, gives, http, listens, poll, polled, provided,
    scaler, spec,
};
use base64::Engine;
use std::process::Command;
use std::time::Duration;

/// A call of etcd's gateway for JSON; gives the answer.
fn call(port: u16, path: &str, body: &str) -> String {
    let answer = http(port, &format!("POST /v3/{path}"), None, body);
    assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
    answer
}

fn put(port: u16, value: &str) {
    let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let (key, value) = (encode("jobs"), encode(value));
    call(port, "kv/put", &format!(r#"{{"key":"{key}","value":"{value}"}}"#));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "starts real servers"]
async fn keys_of_a_real_etcd() {
    let assets = std::env::var("KUBEBUILDER_ASSETS").ok();
    let assets = assets.map(|folder| std::path::Path::new(&folder).join("etcd"));
    let program = assets.filter(|path| path.is_file());
    let program = program.or_else(|| provided("controlplane/bin/etcd", "e2e/controlplane/build"));
    let Some(program) = program else { return };
    let (folder, port, peers) = (Folder::new("etcd"), free_port(), free_port());
    let start = || {
        let (client, peer) =
            (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{peers}"));
        let mut command = Command::new(&program);
        command
            .args(["--data-dir", &folder.path("data"), "--name", "one"])
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("one={peer}")]);
        Process::start(&mut command, &folder, "log")
    };
    let process = start();
    listens(port).await;
    let text = format!(
        "endpoints: 127.0.0.1:1,127.0.0.1:{port}\nwatchKey: jobs\nvalue: 5\nactivationValue: 1"
    );
    let context = context();
    let jobs = scaler(&context, &spec("etcd", &text));
    gives(&*jobs, "error getting metric value: watchKey jobs doesn't exist").await;
    for (value, expected) in [("0", "0"), ("1", "1"), ("2.5", "2.5!"), ("0", "0")] {
        put(port, value);
        assert_eq!(poll(&*jobs).await, expected);
    }
    let mut told = jobs.notifications().expect("it is told");
    let changed = async {
        // It may not listen yet when the first ones come.
        for number in 2..600 {
            put(port, &number.to_string());
            let waited = tokio::time::timeout(Duration::from_millis(100), told.changed()).await;
            if waited.is_ok() {
                return true;
            }
        }
        false
    };
    assert!(changed.await, "nothing is told");
    put(port, "3");
    assert_eq!(poll(&*jobs).await, "3!");

    drop(process);
    let gone = poll(&*jobs).await;
    assert!(gone.contains("cannot be reached: "), "{gone}");
    let process = start();
    gives(&*jobs, "3!").await;
    users(port, &text).await;
    drop(process);
}

async fn users(port: u16, text: &str) {
    for (path, body) in [
        ("auth/user/add", format!(r#"{{"name":"root","password":"{PLANTED}"}}"#)),
        ("auth/role/add", r#"{"name":"root"}"#.to_owned()),
        ("auth/user/grant", r#"{"user":"root","role":"root"}"#.to_owned()),
        ("auth/enable", "{}".to_owned()),
    ] {
        call(port, path, &body);
    }
    let known = format!("{text}\nauth.username: root\nauth.password: {PLANTED}");
    assert_eq!(polled("etcd", &known).await, "3!");
    let wrong = polled("etcd", &known.replace(PLANTED, "other")).await;
    assert!(wrong.contains("refuses the credentials: "), "{wrong}");
    let nobody = polled("etcd", text).await;
    assert!(nobody.contains("user name is empty"), "{nobody}");
}
