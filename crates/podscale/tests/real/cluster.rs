//! The embedded cluster, and `podscale run --triggers` on it as its users run it.

use super::harness::{Folder, Process, free_port, listens};
use axum::http::{Method, Request};
use kube::Client;
use podscale_api::crds;
use podscale_apiserver::{ApiServer, Config, Serving};
use podscale_client::clock::Clock;
use podscale_cluster::controllers::spawn_all;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Command, Output};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Where objects of the tests are.
pub(crate) const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
pub(crate) const SECRETS: &str = "/api/v1/namespaces/default/secrets";
pub(crate) const SCALED_OBJECTS: &str = "/apis/keda.sh/v1alpha1/namespaces/default/scaledobjects";
pub(crate) const AUTHENTICATIONS: &str =
    "/apis/keda.sh/v1alpha1/namespaces/default/triggerauthentications";

/// A cluster with a controller; all of it ends when it is dropped.
pub(crate) struct Cluster {
    client: Client,
    program: Process,
    admin: u16,
    folder: Folder,
    _serving: Serving,
    _controllers: JoinSet<()>,
    _stop: watch::Sender<bool>,
}

impl Cluster {
    /// Starts it, with KEDA's kinds defined.
    pub(crate) async fn start() -> Cluster {
        let server = ApiServer::new(Config::default());
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let serving = server.serve(address, None).await.expect("it listens");
        let client = Client::new(server.router(), "default");
        let (stop, stopped) = watch::channel(false);
        let controllers = spawn_all(client.clone(), Clock::wall(), stopped);
        for definition in crds::keda::definitions() {
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            ask(&client, Method::POST, path, Some(&definition)).await;
        }
        let (folder, admin) = (Folder::new("cluster"), free_port());
        let program = Process::start(&mut podscale(&folder, &serving.url(), admin), &folder, "log");
        listens(admin).await;
        Cluster {
            client,
            program,
            admin,
            folder,
            _serving: serving,
            _controllers: controllers,
            _stop: stop,
        }
    }

    pub(crate) async fn create(&self, path: &str, object: &Value) {
        ask(&self.client, Method::POST, path, Some(object)).await;
    }

    pub(crate) async fn patch(&self, path: &str, patch: &Value) {
        ask(&self.client, Method::PATCH, path, Some(patch)).await;
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        ask(&self.client, Method::GET, path, None).await
    }

    /// What the controller's admin port answers at a path.
    pub(crate) fn shown(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.admin)).expect("a connection");
        write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").expect("written");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    /// Runs a command of the program that asks the controller.
    pub(crate) fn command(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_podscale"));
        command.args(arguments).args(["--admin", &format!("http://127.0.0.1:{}", self.admin)]);
        command.output().expect("podscale")
    }

    /// Ends the controller, so that it has written all it has to say; gives its log and its recordings.
    pub(crate) fn end(mut self) -> Vec<(String, String)> {
        self.program.terminate();
        let read = |path: &std::path::Path| {
            let output = Command::new("zcat").arg("--force").arg(path).output().expect("zcat");
            (path.display().to_string(), String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let mut texts = vec![read(&self.folder.0.join("log"))];
        let recordings = std::fs::read_dir(self.folder.0.join("recordings")).expect("recordings");
        texts.extend(recordings.flatten().map(|file| read(&file.path())));
        texts
    }
}

/// The controller, which reconciles every second, says all it can and records all decisions.
fn podscale(folder: &Folder, server: &str, admin: u16) -> Command {
    let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "a",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {}}]});
    let kubeconfig = folder.file("kubeconfig", &kubeconfig.to_string());
    let mut command = Command::new(env!("CARGO_BIN_EXE_podscale"));
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name == "RUST_LOG" || name.starts_with("OTEL_") || name.starts_with("PODSCALE_") {
            command.env_remove(name);
        }
    }
    command
        .args(["run", "--triggers", "--leader-elect=false", "--log-level=trace"])
        .args(["--sync-period=1s", "--kubeconfig", &kubeconfig])
        .arg(format!("--record={}", folder.path("recordings")))
        .arg(format!("--admin-address=127.0.0.1:{admin}"));
    command
}

async fn ask(client: &Client, method: Method, path: &str, body: Option<&Value>) -> Value {
    let kind = match method {
        Method::PATCH => "application/merge-patch+json",
        _ => "application/json",
    };
    let bytes = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
    let request = Request::builder().method(&method).uri(path).header("content-type", kind);
    let answer = client.request(request.body(bytes).expect("a request")).await;
    answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
}
