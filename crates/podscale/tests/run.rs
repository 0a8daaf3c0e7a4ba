//! `podscale run` as a process: what it says when it cannot start, and how one replica hands over to
//! the next.

#![allow(missing_docs, unreachable_pub, reason = "nothing here is used from elsewhere")]
// Helpers of tests may fail as loudly as tests do.
#![allow(clippy::expect_used)]

#[cfg(feature = "otlp")]
#[path = "run/telemetry.rs"]
mod telemetry;

use podscale_apiserver::{ApiServer, Config};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// How long anything may take before the test gives up: generous, since machines can be busy.
const PATIENCE: Duration = Duration::from_secs(120);

fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_podscale"));
    let settings = std::env::vars_os().filter(|(name, _)| {
        name.to_str().is_some_and(|name| {
            let of_others = name == "RUST_LOG" || name.starts_with("OTEL_");
            of_others || name.starts_with("PODSCALE_")
        })
    });
    for (name, _) in settings {
        command.env_remove(name);
    }
    command.env_remove("KUBECONFIG").arg("run").args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

fn ended(child: Child) -> Output {
    child.wait_with_output().expect("it ends")
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let taken = listener.local_addr().expect("an address").to_string();
    let folder = Folder::new("wrong");
    let kubeconfig = folder.kubeconfig("http://127.0.0.1:1");
    let cases: [(&[&str], i32, &str); 20] = [
        (
            &["--kubeconfig", "/nonexistent"],
            1,
            "podscale: cannot use the kubeconfig /nonexistent: ",
        ),
        (
            &["--kubeconfig", &kubeconfig, "--context", "b"],
            1,
            "podscale: cannot use the kubeconfig",
        ),
        (
            &["--leader-elect-lease-duration", "5s"],
            2,
            "podscale: --leader-elect-lease-duration must be longer than",
        ),
        (&["--sync-period", "0s"], 2, "error: invalid value '0s'"),
        (&["--sync-period", "-5s"], 2, "error: invalid value '-5s'"),
        (&["--kube-api-qps", "-1"], 2, "error: invalid value '-1' for '--kube-api-qps <N>'"),
        (&["--log-level", "loud"], 2, "error: invalid value 'loud' for '--log-level <LEVEL>'"),
        (
            &["--namespaces", "a", "--exclude-namespaces", "a"],
            2,
            "podscale: --exclude-namespaces leaves",
        ),
        (
            &["--resource-metrics", "prometheus"],
            2,
            "podscale: --prometheus-url must say where Prometheus is",
        ),
        (
            &["--resource-metrics", "prometheus", "--prometheus-url", "p:9090"],
            2,
            "podscale: Prometheus: p:9090: must begin with http:// or https://",
        ),
        (
            &["--kubeconfig", &kubeconfig, "--record", "/proc/none"],
            1,
            "podscale: --record: cannot write",
        ),
        (
            &["--kube-api-qps", "many"],
            2,
            "error: invalid value 'many' for '--kube-api-qps <N>': not a",
        ),
        (&["--kube-api-burst", "0"], 2, "error: invalid value '0' for '--kube-api-burst <N>'"),
        (
            &["--namespaces", ""],
            2,
            "error: invalid value '' for '--namespaces <NAME,...>': not a name",
        ),
        (
            &["--leader-elect-resource-namespace", "Bad Name"],
            2,
            "error: invalid value 'Bad Name' for '--leader-elect-resource-namespace <NAMESPACE>': not a",
        ),
        (
            &["--leader-elect-resource-name", ".x"],
            2,
            "error: invalid value '.x' for '--leader-elect-resource-name <NAME>': not a name",
        ),
        (
            &["--admin-address", "9090"],
            2,
            "error: invalid value '9090' for '--admin-address <ADDRESS>': not an address and a port",
        ),
        (
            &["--record-max-size", "5Q"],
            2,
            "error: invalid value '5Q' for '--record-max-size <SIZE>': not a size such as 512Mi",
        ),
        (
            &["--kubeconfig", &kubeconfig, "--otlp-endpoint", "localhost:4318"],
            2,
            "podscale: --otlp-endpoint: ",
        ),
        (
            &["--kubeconfig", &kubeconfig, "--admin-address", &taken],
            1,
            "podscale: --admin-address: cannot listen on 127.0.0.1:",
        ),
    ];
    for (arguments, code, beginning) in cases {
        let output = ended(program(arguments).spawn().expect("the program starts"));
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        assert!(text.starts_with(beginning), "{arguments:?}: {text}");
        assert!(code == 2 || text.trim_end().lines().count() == 1, "{arguments:?}: {text}");
    }
}

/// A folder that is gone after the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder =
            std::env::temp_dir().join(format!("podscale-run-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        Folder(folder)
    }

    fn kubeconfig(&self, server: &str) -> String {
        let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "a",
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {}}]});
        let path = self.0.join("kubeconfig");
        std::fs::write(&path, kubeconfig.to_string()).expect("written");
        path.to_str().expect("UTF-8").to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A replica that ends with the test, however that ends.
struct Replica(Option<Child>);

impl Replica {
    fn start(kubeconfig: &str, more: &[&str]) -> Replica {
        Replica::start_with(kubeconfig, more, &[])
    }

    /// Starts one with more flags, and with variables of the environment.
    fn start_with(kubeconfig: &str, flags: &[&str], variables: &[(&str, &str)]) -> Replica {
        let always = ["--kubeconfig", kubeconfig, "--admin-address", "127.0.0.1:0"];
        // In a cluster its file system is read-only: whoever writes to a file here is ended.
        let podscale = program(&[&always[..], flags].concat());
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -f 0 && exec \"$0\" \"$@\""]).arg(podscale.get_program());
        command.args(podscale.get_args());
        for (name, value) in podscale.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.envs(variables.iter().copied());
        Replica(Some(command.spawn().expect("the program starts")))
    }

    /// Waits until it has said something.
    async fn says(&mut self, words: &'static str) {
        let stderr = self.0.as_mut().and_then(|child| child.stderr.take()).expect("it is heard");
        let listening = tokio::task::spawn_blocking(move || {
            let mut lines = BufReader::new(stderr).lines();
            lines.any(|line| line.is_ok_and(|line| line.contains(words)))
        });
        let heard = tokio::time::timeout(PATIENCE, listening).await;
        assert!(matches!(heard, Ok(Ok(true))), "it never said {words:?}");
    }

    /// Asks it to end; what it said.
    fn end(mut self) -> Output {
        let child = self.0.take().expect("it runs");
        let asked = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
        assert!(asked.expect("kill").success());
        ended(child)
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What the server has at a path; null if nothing.
async fn get(client: &kube::Client, path: &str) -> Value {
    let request = axum::http::Request::get(path).body(Vec::new()).expect("a request");
    client.request(request).await.unwrap_or_default()
}

async fn create(client: &kube::Client, path: &str, object: Value) {
    let request = axum::http::Request::post(path).header("content-type", "application/json");
    let request = request.body(object.to_string().into_bytes()).expect("a request");
    client.request::<Value>(request).await.expect("created");
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "never: {what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_ends_hands_over_its_lease_and_its_memory() {
    let server = ApiServer::new(Config::default());
    let serving = server.serve(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), None).await;
    let serving = serving.expect("it listens");
    let client = kube::Client::new(server.router(), "default");
    let folder = Folder::new("hand-over");
    let kubeconfig = folder.kubeconfig(&serving.url());
    let (deployments, autoscalers) = (
        "/apis/apps/v1/namespaces/default/deployments",
        "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
    );
    let template = json!({"metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}});
    create(&client, deployments, target).await;
    let rules = json!({"policies": [{"type": "Pods", "value": 1, "periodSeconds": 600}]});
    let hpa = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"}, "spec": {"minReplicas": 3, "maxReplicas": 9,
            "behavior": {"scaleUp": rules}, "scaleTargetRef":
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "metrics": [{"type": "Resource", "resource": {"name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 50}}}]}});
    create(&client, autoscalers, hpa).await;

    let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/podscale";
    let holder = async || {
        let lease = get(&client, lease).await;
        lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
    };
    let first = Replica::start(&kubeconfig, &[]);
    until("the first scales", async || {
        get(&client, &format!("{deployments}/web")).await["spec"]["replicas"] == 3
    })
    .await;
    let leader = holder().await;
    let mut second = Replica::start(&kubeconfig, &[]);
    let output = first.end();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    for part in ["leading", "1 → 3", "released the lease"] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    let events = get(&client, "/api/v1/namespaces/default/events").await;
    assert!(events.to_string().contains("SuccessfulRescale"), "no event before its end: {events}");
    let maps = get(&client, "/api/v1/namespaces/kube-system/configmaps").await;
    let kept = maps["items"].as_array().cloned().unwrap_or_default();
    let complete = kept.iter().filter(|map| map["data"]["complete"] == "true");
    assert_eq!(complete.count(), 1, "{maps}");
    until("the second leads", async || {
        let holder = holder().await;
        !holder.is_empty() && holder != leader
    })
    .await;
    // It leads a moment before it has read what was kept.
    second.says("histories loaded autoscalers=1").await;
    second.end();
    assert_eq!(holder().await, "");
    serving.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_for_the_lease_that_is_not_there_is_told() {
    let server = ApiServer::new(Config::default());
    let serving = server.serve(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), None).await;
    let serving = serving.expect("it listens");
    let folder = Folder::new("absent");
    let kubeconfig = folder.kubeconfig(&serving.url());
    let flag = "--leader-elect-resource-namespace=absent";
    let mut replica = Replica::start(&kubeconfig, &[flag]);
    replica.says("cannot write the lease error=namespaces \"absent\" not found").await;
    drop(replica);
    serving.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn that_nobody_serves_cpu_and_memory_is_said_once_with_what_to_do() {
    let server = ApiServer::new(Config::default());
    let serving = server.serve(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), None).await;
    let serving = serving.expect("it listens");
    let client = kube::Client::new(server.router(), "default");
    let folder = Folder::new("no-metrics");
    let kubeconfig = folder.kubeconfig(&serving.url());
    let template = json!({"metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}});
    create(&client, "/apis/apps/v1/namespaces/default/deployments", target).await;
    for resource in ["cpu", "memory"] {
        let hpa = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": resource}, "spec": {"maxReplicas": 9, "scaleTargetRef":
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "metrics": [{"type": "Resource", "resource": {"name": resource,
                    "target": {"type": "AverageValue", "averageValue": "1"}}}]}});
        let path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
        create(&client, path, hpa).await;
    }
    let replica = Replica::start(&kubeconfig, &["--sync-period=1s", "--leader-elect=false"]);
    // Each time that it is asked for in vain, an event happens again.
    until("both are asked for several times", async || {
        let events = get(&client, "/api/v1/namespaces/default/events").await;
        let of = |name: &str| {
            let mut all = events["items"].as_array().into_iter().flatten();
            let repeated = |event: &Value| event["count"].as_i64().is_some_and(|count| count >= 3);
            all.any(|event| event["involvedObject"]["name"] == name && repeated(event))
        };
        of("cpu") && of("memory")
    })
    .await;
    let said = String::from_utf8_lossy(&replica.end().stderr).into_owned();
    let words = "the cluster serves no metrics.k8s.io, so cpu and memory of pods are unknown: install \
        metrics-server, or run with --resource-metrics kubelet";
    assert_eq!(said.matches(words).count(), 1, "{said}");
    serving.stop().await;
}
