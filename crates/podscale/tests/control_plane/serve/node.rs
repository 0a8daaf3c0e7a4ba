//! A node whose kubelet says what a test wants its containers to use. The node itself always uses one core
//! and 1 GiB, each container 64 MiB. kubectl rounds thousandths of a core up, so it is half of one less.

use crate::aggregation;
use crate::certificates::Signed;
use crate::fixture::api;
use crate::plane::ControlPlane;
use anyhow::{Context, Result};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use jiff::Timestamp;
use kube::Client;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A container, and how many cores it uses at the moment.
pub struct Used {
    pub namespace: String,
    pub pod: String,
    pub container: String,
    pub cores: f64,
}

/// Says what the containers that run use.
pub type Usage = Box<dyn Fn() -> Vec<Used> + Send + Sync>;

/// What the kubelet has counted: for each container the seconds of its cores, until a moment.
struct Counted {
    usage: Usage,
    counters: Mutex<HashMap<String, (f64, i64)>>,
}

pub struct Node {
    client: Client,
    name: String,
    serving: JoinHandle<()>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// What a kubelet answers that says the truth.
pub fn kubelet(usage: Usage) -> Router {
    let counted = Arc::new(Counted { usage, counters: Mutex::default() });
    Router::new().route("/metrics/resource", get(exposition)).with_state(counted)
}

impl Node {
    /// Registers a node and answers for its kubelet, to everybody.
    pub async fn start(plane: &ControlPlane, name: &str, usage: Usage) -> Result<Node> {
        Node::serve(plane, name, kubelet(usage)).await
    }

    /// The same, but the kubelet asks the API server who asks it, and what they may, as real ones do.
    pub async fn start_guarded(plane: &ControlPlane, name: &str, usage: Usage) -> Result<Node> {
        let asked = (plane.client.clone(), name.to_owned());
        let router = kubelet(usage).layer(from_fn_with_state(asked, only_those_allowed));
        Node::serve(plane, name, router).await
    }

    /// Registers a node whose kubelet answers with this.
    pub async fn serve(plane: &ControlPlane, name: &str, router: Router) -> Result<Node> {
        let client = plane.client.clone();
        let object = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
        let nodes = api(&client, None, "v1", "Node");
        nodes.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        let serving = tokio::spawn(std::future::ready(()));
        let mut node = Node { client, name: name.to_owned(), serving };
        node.move_to(&plane.authority.sign(name, &["127.0.0.1"])?, router).await?;
        Ok(node)
    }

    /// From now on its kubelet is on another port, with this certificate, and answers with this.
    pub async fn move_to(&mut self, certificate: &Signed, router: Router) -> Result<()> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        self.serving.abort();
        self.serving = tokio::spawn(aggregation::accept(listener, certificate.acceptor()?, router));
        let amounts = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
        let status = json!({"status": {"capacity": amounts, "allocatable": amounts,
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}});
        let nodes = api(&self.client, None, "v1", "Node");
        nodes.patch_status(&self.name, &PatchParams::default(), &Patch::Merge(&status)).await?;
        Ok(())
    }

    /// Takes the node out of the cluster.
    pub async fn remove(self) -> Result<()> {
        let nodes = api(&self.client, None, "v1", "Node");
        nodes.delete(&self.name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Creates a pod on this node that runs at once.
    pub async fn pod(&self, name: &str, container: &str) -> Result<()> {
        let object = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"nodeName": self.name, "containers": [{"name": container, "image": "none"}]}});
        let pods = api(&self.client, Some("default"), "v1", "Pod");
        pods.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        Ok(())
    }
}

async fn only_those_allowed(
    State((client, node)): State<(Client, String)>,
    request: Request,
    next: Next,
) -> Response {
    match is_allowed(&client, &node, request.headers()).await {
        Ok(true) => next.run(request).await,
        Ok(false) => StatusCode::FORBIDDEN.into_response(),
        Err(_) => StatusCode::UNAUTHORIZED.into_response(),
    }
}

async fn is_allowed(client: &Client, node: &str, headers: &HeaderMap) -> Result<bool> {
    let token = headers.get("authorization").context("no token")?.to_str()?;
    let token = token.strip_prefix("Bearer ").context("no token")?;
    let review = async |path: &str, object: Value| -> Result<Value> {
        let request = axum::http::Request::post(path).header("content-type", "application/json");
        Ok(client.request(request.body(object.to_string().into_bytes())?).await?)
    };
    let who = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
        "spec": {"token": token}});
    let who = review("/apis/authentication.k8s.io/v1/tokenreviews", who).await?;
    let user = &who["status"]["user"];
    let may = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": user["username"], "groups": user["groups"], "resourceAttributes":
            {"verb": "get", "resource": "nodes", "subresource": "metrics", "name": node}}});
    let may = review("/apis/authorization.k8s.io/v1/subjectaccessreviews", may).await?;
    Ok(may["status"]["allowed"] == true)
}

impl Counted {
    /// The seconds of a container until now. None of its counters begins at zero, as none of a real kubelet
    /// does.
    fn seconds(&self, labels: &str, cores: f64, now: i64) -> f64 {
        let mut counters = self.counters.lock();
        let (seconds, until) = counters.entry(labels.to_owned()).or_insert((1.0, now));
        *seconds += cores * (now - *until) as f64 / 1000.0;
        *until = now;
        *seconds
    }
}

async fn exposition(State(counted): State<Arc<Counted>>) -> String {
    let ms = Timestamp::now().as_millisecond();
    let mut text = format!(
        "node_cpu_usage_seconds_total {} {ms}\n\
         node_memory_working_set_bytes {} {ms}\n",
        ms as f64 / 1000.0 * 0.9995,
        1u64 << 30
    );
    for Used { namespace, pod, container, cores } in (counted.usage)() {
        let labels =
            format!("{{container=\"{container}\",namespace=\"{namespace}\",pod=\"{pod}\"}}");
        let seconds = counted.seconds(&labels, cores, ms);
        let _ = write!(
            text,
            "container_start_time_seconds{labels} 1000 {ms}\n\
             container_cpu_usage_seconds_total{labels} {seconds} {ms}\n\
             container_memory_working_set_bytes{labels} {} {ms}\n",
            64u64 << 20
        );
    }
    text
}
