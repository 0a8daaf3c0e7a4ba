//! A client that sends recorded requests to a server in the same process.

use std::collections::HashMap;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use podscale_apiserver::{ApiServer, Config};
use regex::{Captures, Regex};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::normalise::hide_generated;
use crate::transcode;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const BOTH: &str = "application/vnd.kubernetes.protobuf,application/json";

/// The values of a file of JSON lines.
pub fn lines(text: &str) -> impl Iterator<Item = Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap())
}

/// Sends requests and remembers the answers, as later requests refer to them.
pub struct Client {
    router: Router,
    answers: HashMap<String, Value>,
    /// Whether it speaks protobuf where there is a choice.
    protobuf: bool,
}

impl Client {
    /// A client of a server that holds nothing yet.
    pub fn new() -> Self {
        let server = ApiServer::new(Config { seed: Some(1), ..Config::default() });
        Self { router: server.router(), answers: HashMap::new(), protobuf: false }
    }

    /// The same, but it speaks protobuf where recorded clients spoke JSON.
    pub fn in_protobuf() -> Self {
        Self { protobuf: true, ..Self::new() }
    }

    /// The answer to a recorded line, in the form of its `expect`.
    pub async fn send(&mut self, line: &Value) -> Value {
        for _ in 0..100 {
            let answer = self.send_once(line).await;
            if line["retry"] != true || answer["code"] != 404 {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        json!("still 404")
    }

    async fn send_once(&mut self, line: &Value) -> Value {
        let text = |key: &str| line[key].as_str().unwrap_or_default();
        let path = self.expand(text("path"), |value| {
            form_urlencoded::byte_serialize(value.as_bytes()).collect()
        });
        let body = match &line["body"] {
            Value::Null => String::new(),
            Value::String(text) => self.expand(text, str::to_owned),
            other => self.expand(&other.to_string(), str::to_owned),
        };
        let mut request = Request::builder()
            .method(text("method"))
            .uri(path)
            .header("user-agent", "golden/1")
            .header("host", "127.0.0.1:6443");
        let custom = text("path").starts_with("/apis/golden.podscale.dev/");
        let encoded = match text("contentType") {
            // Custom objects are not spoken of in protobuf.
            "application/json" if self.protobuf && (!custom || text("path").contains("/scale")) => {
                transcode::body(&body)
            }
            _ => None,
        };
        let content_type = if encoded.is_some() { PROTOBUF } else { text("contentType") };
        let accept = match text("accept") {
            "" | "application/json" if self.protobuf => BOTH,
            given => given,
        };
        for (header, value) in [("content-type", content_type), ("accept", accept)] {
            if !value.is_empty() {
                request = request.header(header, value);
            }
        }
        let body = encoded.unwrap_or_else(|| body.into_bytes());
        let stream = line["stream"] == true;
        let mut answer = self.exchange(request.body(Body::from(body)).unwrap(), stream).await;
        self.answers.insert(text("name").to_owned(), answer["body"].clone());
        hide_generated(
            line["body"]["metadata"]["generateName"].as_str().unwrap_or_default(),
            &mut answer["body"],
        );
        answer
    }

    async fn exchange(&self, request: Request<Body>, stream: bool) -> Value {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let code = response.status().as_u16();
        let warnings: Vec<_> = response
            .headers()
            .get_all("warning")
            .iter()
            .map(|value| value.to_str().unwrap().to_owned())
            .collect();
        let kind = response.headers().get("content-type").cloned();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let body = match kind {
            // A watch that is refused is no stream.
            Some(kind) if kind == PROTOBUF && stream => json!([transcode::answer(&bytes, false)]),
            Some(kind) if kind.to_str().unwrap().starts_with(PROTOBUF) => {
                transcode::answer(&bytes, stream)
            }
            _ => decode(&bytes, stream),
        };
        let mut answer = json!({"code": code, "body": body});
        if !warnings.is_empty() {
            answer["warnings"] = json!(warnings);
        }
        answer
    }

    /// Replaces `${name:/json/pointer}` by what an earlier answer holds there.
    fn expand(&self, text: &str, escape: impl Fn(&str) -> String) -> String {
        let placeholder = Regex::new(r"\$\{([^:}]+):(/[^}]*)\}").unwrap();
        let expanded = placeholder.replace_all(text, |found: &Captures<'_>| {
            let value = self.answers.get(&found[1]).and_then(|answer| answer.pointer(&found[2]));
            escape(value.and_then(Value::as_str).unwrap_or("nothing"))
        });
        expanded.into_owned()
    }

    /// What a path holds, in the form asked for.
    pub async fn get(&self, path: &str, accept: &str) -> Value {
        let request = Request::get(path).header("accept", accept).body(Body::empty()).unwrap();
        let answer = self.exchange(request, false).await;
        answer["body"].clone()
    }

    /// Creates an object, which must succeed.
    pub async fn create(&self, path: &str, object: &Value) {
        self.write("POST", path, object).await;
    }

    /// Creates a recorded object and gives it its status.
    pub async fn load(&self, path: &str, mut object: Value) {
        let metadata = object["metadata"].as_object_mut().unwrap();
        for key in ["uid", "resourceVersion", "creationTimestamp", "generation"] {
            metadata.remove(key);
        }
        let created = self.write("POST", path, &object).await;
        if object.get("status").is_some() {
            object["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"].clone();
            let name = object["metadata"]["name"].as_str().unwrap();
            self.write("PUT", &format!("{path}/{name}/status"), &object).await;
        }
    }

    async fn write(&self, method: &str, path: &str, object: &Value) -> Value {
        let request =
            Request::builder().method(method).uri(path).header("content-type", "application/json");
        let answer =
            self.exchange(request.body(Body::from(object.to_string())).unwrap(), false).await;
        assert!(answer["code"].as_u64() < Some(300), "{method} {path}: {answer}");
        answer["body"].clone()
    }
}

/// One JSON value, or all values of a stream; what is not JSON becomes a string.
fn decode(bytes: &[u8], stream: bool) -> Value {
    let values: Result<Vec<Value>, _> =
        serde_json::Deserializer::from_slice(bytes).into_iter().collect();
    match values {
        Ok(values) if stream => Value::Array(values),
        Ok(mut values) if values.len() == 1 => values.remove(0),
        _ => json!(String::from_utf8_lossy(bytes).trim()),
    }
}
