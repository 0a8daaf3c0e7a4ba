//! The embedded API server with two users, failures on demand, and singlecloud's API in front of it.

use axum::body::Body as AxumBody;
use axum::extract::{Request as AxumRequest, State};
use axum::http::{Request, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http_body_util::BodyExt;
use kube::client::Body;
use kube::{Client, Config};
use parking_lot::Mutex;
use podscale_apiserver::ApiServer;
use podscale_client::clock::Clock;
use podscale_controller::metrics::Metrics;
use podscale_controller::readiness::Readiness;
use podscale_controller::serve::routes::Routes;
use podscale_controller::serve::singlecloud::{Options, Rules};
use podscale_controller::serve::{self, CertificateSource, Context, Served, Server};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long anything may take before the test gives up: generous, since machines can be busy.
const PATIENCE: Duration = Duration::from_secs(120);
pub const NAMESPACE: &str = "shop";
pub const COLLECTION: &str =
    "/apis/zcloud.cn/v1/clusters/local/namespaces/shop/horizontalpodautoscalers";
pub const ADAPTER: &str = "zcloud/monitor-prometheus-adapter";
const CONFIG_MAP: &str = "/api/v1/namespaces/zcloud/configmaps/monitor-prometheus-adapter";
/// What the adapter is configured with before.
const CONFIGURATION: &str =
    "resourceRules:\n  window: 5m\nrules:\n- seriesQuery: up\n  odd: true\n";

/// A request that is to be refused: its method, a part of its path, how often, and the code.
struct Fault {
    method: &'static str,
    part: String,
    left: usize,
    code: u16,
}

type Faults = Arc<Mutex<Vec<Fault>>>;

/// The API server and, in front of it, singlecloud's API.
pub struct Environment {
    pub client: Client,
    faults: Faults,
    rules: Rules,
    server: Option<(Server, Client)>,
}

async fn refuse(
    State(faults): State<Faults>,
    request: AxumRequest<AxumBody>,
    next: Next,
) -> Response {
    let refused = {
        let (method, path) = (request.method().as_str(), request.uri().path());
        let mut faults = faults.lock();
        let hit = |f: &&mut Fault| f.left > 0 && f.method == method && path.contains(&f.part);
        faults.iter_mut().find(hit).map(|fault| {
            fault.left -= 1;
            fault.code
        })
    };
    let Some(code) = refused else { return next.run(request).await };
    let reason = if code == 409 { "Conflict" } else { "Forbidden" };
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "reason": reason, "message": "refused by the test"});
    (StatusCode::from_u16(code).expect("a code"), Json(status)).into_response()
}

/// In front of an API server: knows the token `good` of a user who may do everything, and `reader` of one
/// who may only read.
fn with_users(server: Router, faults: &Faults) -> Client {
    let token = async |Json(review): Json<Value>| {
        let token = review["spec"]["token"].as_str().unwrap_or_default().to_owned();
        let known = ["good", "reader"].contains(&token.as_str());
        Json(json!({"status": {"authenticated": known, "user": {"username": token}}}))
    };
    let access = async |Json(review): Json<Value>| {
        let asked = &review["spec"]["resourceAttributes"];
        let native = ["autoscaling", "apps"].iter().any(|group| asked["group"] == *group);
        let reads = ["get", "list"].iter().any(|verb| asked["verb"] == *verb);
        let user = &review["spec"]["user"];
        let here = [NAMESPACE, "default"].iter().any(|known| asked["namespace"] == *known);
        let allowed = native && here && (reads || user == "good");
        Json(json!({"status": {"allowed": allowed}}))
    };
    let router = Router::new()
        .route("/apis/authentication.k8s.io/v1/tokenreviews", post(token))
        .route("/apis/authorization.k8s.io/v1/subjectaccessreviews", post(access))
        .fallback_service(server)
        .layer(from_fn_with_state(Arc::clone(faults), refuse));
    Client::new(router, "default")
}

/// The code and the body of an answer; null if it has none.
pub async fn send(
    client: &Client,
    verb: &str,
    path: &str,
    object: &Value,
    token: &str,
) -> (u16, Value) {
    let form = if verb == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let mut request = Request::builder().method(verb).uri(path).header("content-type", form);
    if !token.is_empty() {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let body = if object.is_null() { Vec::new() } else { object.to_string().into_bytes() };
    let answer = client.send(request.body(Body::from(body)).expect("a request")).await;
    let answer = answer.expect("an answer");
    let code = answer.status().as_u16();
    let body = answer.into_body().collect().await.expect("a body").to_bytes();
    (code, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

pub async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = ask().await {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}");
        sleep(Duration::from_millis(50)).await;
    }
}

impl Environment {
    /// In front of another API server.
    pub async fn before(client: Client) -> Environment {
        let forward = move |request: AxumRequest<AxumBody>| {
            let client = client.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await.expect("a body").to_bytes();
                let answer = client.send(Request::from_parts(head, Body::from(body))).await;
                answer.expect("an answer").map(AxumBody::new)
            }
        };
        let faults = Faults::default();
        let client = with_users(Router::new().fallback(forward), &faults);
        let mut environment = Environment { client, faults, rules: Rules::None, server: None };
        environment.restart().await;
        environment
    }

    pub async fn start(rules: Rules) -> Environment {
        let faults = Faults::default();
        let server = ApiServer::new(podscale_apiserver::Config::default());
        let client = with_users(server.router(), &faults);
        let mut environment = Environment { client, faults, rules, server: None };
        environment.create("/api/v1/namespaces", json!({"metadata": {"name": NAMESPACE}})).await;
        environment.create("/api/v1/namespaces", json!({"metadata": {"name": "zcloud"}})).await;
        environment.restart().await;
        environment
    }

    /// As [`Environment::start`], with a prometheus-adapter of two pods that keeps the rules.
    pub async fn with_adapter() -> Environment {
        let environment =
            Environment::start(Rules::Adapter(ADAPTER.parse().expect("a place"))).await;
        let maps = "/api/v1/namespaces/zcloud/configmaps";
        let name = "monitor-prometheus-adapter";
        let map = json!({"metadata": {"name": name}, "data": {"config.yaml": CONFIGURATION}});
        environment.create(maps, map).await;
        environment.workload("zcloud", "deployments", name).await;
        environment.adapter_pods().await;
        environment
    }

    /// Makes the adapter's pods again, as its Deployment would.
    pub async fn adapter_pods(&self) {
        for name in ["one", "two"] {
            let labels = json!({"app": "monitor-prometheus-adapter"});
            let pod = json!({"metadata": {"name": name, "labels": labels},
                "spec": {"containers": [{"name": "app", "image": "none"}]}});
            self.create("/api/v1/namespaces/zcloud/pods", pod).await;
        }
    }

    /// How many of the adapter's pods are left.
    pub async fn pods_left(&self) -> usize {
        let (_, list) = self.ask("GET", "/api/v1/namespaces/zcloud/pods", &Value::Null).await;
        let alive = |pod: &&Value| pod["metadata"]["deletionTimestamp"].is_null();
        list["items"].as_array().map_or(0, |pods| pods.iter().filter(alive).count())
    }

    pub async fn workload(&self, namespace: &str, resource: &str, name: &str) {
        let labels = json!({"app": name});
        let object = json!({"metadata": {"name": name}, "spec": {
            "selector": {"matchLabels": labels}, "serviceName": name,
            "template": {"metadata": {"labels": labels},
                "spec": {"containers": [{"name": "app", "image": "none"}]}}}});
        let mut object = object;
        if resource != "statefulsets" {
            object["spec"].as_object_mut().expect("an object").remove("serviceName");
        }
        self.create(&format!("/apis/apps/v1/namespaces/{namespace}/{resource}"), object).await;
    }

    pub async fn stop(&mut self) {
        if let Some((server, _)) = self.server.take() {
            server.stop().await;
        }
    }

    /// Starts singlecloud's API, after it was stopped or for the first time.
    pub async fn restart(&mut self) {
        self.stop().await;
        let config = serve::Config {
            address: ([127, 0, 0, 1], 0).into(),
            plain_address: None,
            service: ("kube-system".to_owned(), "podscale-metrics".to_owned()),
            certificate: CertificateSource::Own { secret: "podscale-serving".to_owned() },
            routes: Routes::default(),
        };
        let options = Options {
            address: ([127, 0, 0, 1], 0).into(),
            cluster: "local".to_owned(),
            rules: self.rules.clone(),
        };
        let served = Served { singlecloud: Some(options), ..Served::default() };
        let context = Context {
            client: self.client.clone(),
            clock: Clock::wall(),
            metrics: Metrics::new(),
            readiness: Readiness::new(),
        };
        let server = Server::start(config, served, context).await.expect("a server");
        let address = server.singlecloud_address().expect("an address");
        let mut config = Config::new(format!("https://{address}").parse().expect("a URL"));
        let (_, secret) = self
            .ask("GET", "/api/v1/namespaces/kube-system/secrets/podscale-serving", &Value::Null)
            .await;
        let pem = STANDARD.decode(secret["data"]["ca.crt"].as_str().expect("authorities"));
        let roots = pem.expect("base64");
        let roots = CertificateDer::pem_slice_iter(&roots);
        config.root_cert = Some(roots.map(|root| root.expect("a certificate").to_vec()).collect());
        config.tls_server_name = Some("podscale-metrics.kube-system.svc".to_owned());
        self.server = Some((server, Client::try_from(config).expect("a client")));
    }

    /// Asks the API server itself.
    pub async fn ask(&self, verb: &str, path: &str, object: &Value) -> (u16, Value) {
        send(&self.client, verb, path, object, "").await
    }

    pub async fn create(&self, path: &str, mut object: Value) {
        let (version, kind) = match path.rsplit('/').next() {
            Some("namespaces") => ("v1", "Namespace"),
            Some("configmaps") => ("v1", "ConfigMap"),
            Some("pods") => ("v1", "Pod"),
            Some("deployments") => ("apps/v1", "Deployment"),
            Some("statefulsets") => ("apps/v1", "StatefulSet"),
            _ => ("apps/v1", "DaemonSet"),
        };
        (object["apiVersion"], object["kind"]) = (version.into(), kind.into());
        let (code, body) = self.ask("POST", path, &object).await;
        assert!((200..300).contains(&code), "{path}: {body}");
    }

    /// Asks singlecloud's API.
    pub async fn rest(&self, verb: &str, path: &str, body: &Value, token: &str) -> (u16, Value) {
        let (_, client) = self.server.as_ref().expect("a server");
        send(client, verb, path, body, token).await
    }

    /// Has the next requests of that sort refused.
    pub fn refuse(&self, method: &'static str, part: &str, times: usize, code: u16) {
        let part = part.to_owned();
        self.faults.lock().push(Fault { method, part, left: times, code });
    }

    pub fn forgive(&self) {
        self.faults.lock().clear();
    }

    /// A native autoscaler; null if there is none.
    pub async fn hpa(&self, name: &str) -> Value {
        let path =
            format!("/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers/{name}");
        match self.ask("GET", &path, &Value::Null).await {
            (200, hpa) => hpa,
            _ => Value::Null,
        }
    }

    /// What the adapter is configured with.
    pub async fn configuration(&self) -> Value {
        let (_, map) = self.ask("GET", CONFIG_MAP, &Value::Null).await;
        let text = map["data"]["config.yaml"].as_str().expect("a text").to_owned();
        serde_saphyr::from_str(&text).expect("YAML")
    }

    /// The names under which the adapter's rules give metrics.
    pub async fn aliases(&self) -> Vec<String> {
        let rules = self.configuration().await["rules"].clone();
        let named = |rule: &Value| rule["name"]["as"].as_str().map(str::to_owned);
        rules.as_array().expect("a list").iter().filter_map(named).collect()
    }
}
