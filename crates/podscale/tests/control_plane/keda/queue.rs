//! A server that tells the length of a queue to those who know the word, and repeats what others said.

use anyhow::Result;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A running server; it ends when this is dropped.
pub struct Queue {
    state: Arc<Told>,
    address: SocketAddr,
    running: JoinHandle<()>,
}

struct Told {
    word: Mutex<String>,
    length: AtomicU32,
    asked: AtomicU32,
}

impl Queue {
    /// Starts it on loopback, with an empty queue.
    pub async fn start(word: &str) -> Result<Queue> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let word = Mutex::new(word.to_owned());
        let state = Arc::new(Told { word, length: AtomicU32::new(0), asked: AtomicU32::new(0) });
        let router = Router::new().route("/stats", get(tell)).with_state(Arc::clone(&state));
        let running = tokio::spawn(async move {
            // It ends with the test.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Queue { state, address, running })
    }

    pub fn url(&self) -> String {
        format!("http://{}/stats", self.address)
    }

    pub fn set(&self, length: u32) {
        self.state.length.store(length, Ordering::Relaxed);
    }

    /// Accepts another word from now on.
    pub fn accept(&self, word: &str) {
        *self.state.word.lock().unwrap_or_else(PoisonError::into_inner) = word.to_owned();
    }

    /// How often it was asked.
    pub fn asked(&self) -> u32 {
        self.state.asked.load(Ordering::Relaxed)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.running.abort();
    }
}

async fn tell(
    State(told): State<Arc<Told>>,
    headers: HeaderMap,
) -> (StatusCode, Json<serde_json::Value>) {
    told.asked.fetch_add(1, Ordering::Relaxed);
    let said = headers.get("authorization").and_then(|value| value.to_str().ok());
    let said = said.unwrap_or_default();
    let word = told.word.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if said != format!("Bearer {word}") {
        return (StatusCode::UNAUTHORIZED, Json(json!({"error": format!("not allowed: {said}")})));
    }
    (StatusCode::OK, Json(json!({"queue": told.length.load(Ordering::Relaxed)})))
}
