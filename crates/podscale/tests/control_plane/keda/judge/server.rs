//! A server that tells what each scenario says; it is asked at `/SCENARIO/NAME`.

use anyhow::{Result, bail};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// What it tells, by scenario and name; nothing: it fails.
type Told = Arc<Mutex<HashMap<(String, String), Option<f64>>>>;

/// A running server; it ends when this is dropped.
pub struct Server {
    told: Told,
    pub address: SocketAddr,
    running: JoinHandle<()>,
}

impl Server {
    /// Starts it on loopback. Whatever it was told nothing about is zero.
    pub async fn start() -> Result<Server> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let told = Told::default();
        let router =
            Router::new().route("/{scenario}/{name}", get(tell)).with_state(Arc::clone(&told));
        let running = tokio::spawn(async move {
            // It ends with the test.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Server { told, address, running })
    }

    /// Forgets what it was told in a scenario.
    pub fn forget(&self, scenario: &str) {
        self.told.lock().retain(|(known, _), _| known != scenario);
    }

    /// Tells a number from now on, or `fails`.
    pub fn set(&self, scenario: &str, name: &str, value: &Value) -> Result<()> {
        let value = match value {
            Value::String(word) if word == "fails" => None,
            Value::Number(number) => number.as_f64(),
            other => bail!("{scenario}: {other} is neither a number nor `fails`"),
        };
        self.told.lock().insert((scenario.to_owned(), name.to_owned()), value);
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.running.abort();
    }
}

async fn tell(
    State(told): State<Told>,
    Path(key): Path<(String, String)>,
) -> (StatusCode, Json<Value>) {
    match told.lock().get(&key).copied().unwrap_or(Some(0.0)) {
        Some(value) => (StatusCode::OK, Json(json!({"value": value}))),
        None => (StatusCode::INTERNAL_SERVER_ERROR, Json(json!({"error": "told to fail"}))),
    }
}
