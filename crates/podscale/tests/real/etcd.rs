//! A real etcd: a key that changes, being told, users, and a restart.

use super::driven::{FOR_ONE, Server, Trigger};
use super::harness::{
    Folder, PLANTED, Process, context, free_port, gives, http, listens, poll, polled, provided,
    scaler, spec, until,
};
use base64::Engine;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How often a call is made while etcd waits for its disk, which it says after some seconds.
const TRIES: u32 = 10;

/// A call of etcd's gateway for JSON; gives the answer.
fn call(port: u16, path: &str, token: &str, body: &str) -> String {
    let ask = || http(port, &format!("POST /v3/{path}"), token, body);
    let mut answers = (1..TRIES).map(|_| ask()).skip_while(|a| a.starts_with("HTTP/1.1 503"));
    let answer = answers.next().unwrap_or_else(ask);
    assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
    answer
}

fn put(port: u16, token: &str, value: &str) {
    let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let (key, value) = (encode("jobs"), encode(value));
    call(port, "kv/put", token, &format!(r#"{{"key":"{key}","value":"{value}"}}"#));
}

/// From now on everybody has to prove who they are.
fn require_users(port: u16) {
    for (path, body) in [
        ("auth/user/add", format!(r#"{{"name":"root","password":"{PLANTED}"}}"#)),
        ("auth/role/add", r#"{"name":"root"}"#.to_owned()),
        ("auth/user/grant", r#"{"user":"root","role":"root"}"#.to_owned()),
        ("auth/enable", "{}".to_owned()),
    ] {
        call(port, path, "", &body);
    }
}

pub(crate) struct Etcd {
    program: PathBuf,
    folder: Folder,
    port: u16,
    peers: u16,
    /// What the key holds.
    waiting: AtomicUsize,
}

impl Etcd {
    /// Puts what waits, as somebody who may.
    fn put(&self) {
        let user = format!(r#"{{"name":"root","password":"{PLANTED}"}}"#);
        let answer = call(self.port, "auth/authenticate", "", &user);
        let (_, after) = answer.split_once(r#""token":""#).expect("a token");
        let (token, _) = after.split_once('"').expect("a token");
        put(self.port, token, &self.waiting.load(Ordering::Relaxed).to_string());
    }
}

impl Server for Etcd {
    fn installed() -> Option<Etcd> {
        let assets = std::env::var("KUBEBUILDER_ASSETS").ok();
        let assets = assets.map(|folder| Path::new(&folder).join("etcd"));
        let program = assets.filter(|path| path.is_file());
        let script = "e2e/controlplane/build etcd";
        let program = program.or_else(|| provided("controlplane/bin/etcd", script))?;
        let (folder, port, peers) = (Folder::new("etcd"), free_port(), free_port());
        Some(Etcd { program, folder, port, peers, waiting: AtomicUsize::new(0) })
    }

    fn start(&self) -> Process {
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let (client, peer) = (url(self.port), url(self.peers));
        let mut command = Command::new(&self.program);
        command
            .args(["--data-dir", &self.folder.path("data"), "--name", "one"])
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("one={peer}")]);
        Process::start(&mut command, &self.folder, "log")
    }

    async fn answers(&self) {
        listens(self.port).await;
        until("etcd", async || {
            http(self.port, "GET /health", "", "").contains(r#""health":"true""#).then_some(())
        })
        .await;
    }

    fn prepare(&self) {
        require_users(self.port);
        self.put();
    }

    fn triggers(&self) -> Vec<Trigger> {
        let endpoints = format!("127.0.0.1:{}", self.port);
        let metadata = json!({"endpoints": endpoints, "watchKey": "jobs", "value": FOR_ONE});
        vec![Trigger::new("etcd", metadata).with("username", "root").with("password", PLANTED)]
    }

    fn send(&self, count: usize) {
        self.waiting.fetch_add(count, Ordering::Relaxed);
        self.put();
    }

    async fn drain(&self) {
        self.waiting.store(0, Ordering::Relaxed);
        self.put();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "starts real servers"]
async fn keys_of_a_real_etcd() {
    let Some(etcd) = Etcd::installed() else { return };
    let port = etcd.port;
    let process = etcd.start();
    etcd.answers().await;
    let text = format!(
        "endpoints: 127.0.0.1:1,127.0.0.1:{port}\nwatchKey: jobs\nvalue: 5\nactivationValue: 1"
    );
    let context = context();
    let jobs = scaler(&context, &spec("etcd", &text));
    gives(&*jobs, "error getting metric value: watchKey jobs doesn't exist").await;
    for (value, expected) in [("0", "0"), ("1", "1"), ("2.5", "2.5!"), ("0", "0")] {
        put(port, "", value);
        assert_eq!(poll(&*jobs).await, expected);
    }
    let mut told = jobs.notifications().expect("it is told");
    let changed = async {
        // It may not listen yet when the first ones come.
        for number in 2..600 {
            put(port, "", &number.to_string());
            let waited = tokio::time::timeout(Duration::from_millis(100), told.changed()).await;
            if waited.is_ok() {
                return true;
            }
        }
        false
    };
    assert!(changed.await, "nothing is told");
    put(port, "", "3");
    assert_eq!(poll(&*jobs).await, "3!");

    drop(process);
    let gone = poll(&*jobs).await;
    assert!(gone.contains("cannot be reached: "), "{gone}");
    let process = etcd.start();
    gives(&*jobs, "3!").await;
    users(port, &text).await;
    drop(process);
}

async fn users(port: u16, text: &str) {
    require_users(port);
    let known = format!("{text}\nauth.username: root\nauth.password: {PLANTED}");
    assert_eq!(polled("etcd", &known).await, "3!");
    let wrong = polled("etcd", &known.replace(PLANTED, "other")).await;
    assert!(wrong.contains("refuses the credentials: "), "{wrong}");
    let nobody = polled("etcd", text).await;
    assert!(nobody.contains("user name is empty"), "{nobody}");
}
