//! What answers as Prometheus does: one series for each namespace, whose value is the namespace's number.

use anyhow::Result;
use axum::extract::State;
use axum::routing::post;
use axum::{Form, Json, Router};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// How many namespaces there are.
pub const NAMESPACES: usize = 20;

/// Serves until it is dropped.
pub struct Prometheus {
    pub url: String,
    asked: Arc<AtomicU64>,
    serving: JoinHandle<()>,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Prometheus {
    pub async fn start() -> Result<Prometheus> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let asked = Arc::<AtomicU64>::default();
        let router = Router::new()
            .route("/api/v1/series", post(series))
            .route("/api/v1/query", post(query))
            .with_state(Arc::clone(&asked));
        let serving = tokio::spawn(async move {
            // It ends with the benchmark.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Prometheus { url, asked, serving })
    }

    /// How many queries it has answered.
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }
}

async fn series() -> Json<Value> {
    let one = |number: usize| json!({"__name__": "queue_depth", "namespace": format!("shop-{number}"), "queue": "mail"});
    Json(json!({"status": "success", "data": (0..NAMESPACES).map(one).collect::<Vec<_>>()}))
}

async fn query(
    State(asked): State<Arc<AtomicU64>>,
    Form(form): Form<HashMap<String, String>>,
) -> Json<Value> {
    asked.fetch_add(1, Ordering::Relaxed);
    let query = form.get("query").map(String::as_str).unwrap_or_default();
    let number = query.split("shop-").nth(1).and_then(|rest| rest.split('"').next());
    let seconds = Timestamp::now().as_second();
    Json(json!({"status": "success", "data": {"resultType": "vector", "result": [
        {"metric": {"queue": "mail"}, "value": [seconds, number.unwrap_or("NaN")]}]}}))
}
