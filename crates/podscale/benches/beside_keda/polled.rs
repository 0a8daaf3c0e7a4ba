//! The server that is polled: it has nothing to do for anybody, and knows when each asked.

use anyhow::Result;
use axum::extract::{Path, State};
use axum::routing::get;
use axum::{Json, Router};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A running server; it ends when this is dropped.
pub struct Polled {
    asked: Arc<Mutex<Asked>>,
    pub address: SocketAddr,
    running: JoinHandle<()>,
}

struct Asked {
    /// When each asked last.
    last: Vec<Option<Instant>>,
    /// The seconds between two questions of the same one.
    gaps: Vec<f64>,
    /// All questions.
    count: u64,
}

impl Polled {
    /// Starts it on loopback, for so many.
    pub async fn start(count: usize) -> Result<Polled> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let asked = Asked { last: vec![None; count], gaps: Vec::new(), count: 0 };
        let asked = Arc::new(Mutex::new(asked));
        let router = Router::new().route("/{number}", get(tell)).with_state(Arc::clone(&asked));
        let running = tokio::spawn(async move {
            // It ends with the benchmark.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Polled { asked, address, running })
    }

    /// Forgets who has asked.
    pub fn forget(&self) {
        let mut asked = self.asked.lock();
        asked.last.fill(None);
        asked.gaps.clear();
        asked.count = 0;
    }

    /// How many there are to ask.
    pub fn expected(&self) -> usize {
        self.asked.lock().last.len()
    }

    /// How many have asked at all.
    pub fn met(&self) -> usize {
        self.asked.lock().last.iter().flatten().count()
    }

    /// How many questions there were, and the seconds between them, since the last time.
    pub fn take(&self) -> (u64, Vec<f64>) {
        let mut asked = self.asked.lock();
        (std::mem::take(&mut asked.count), std::mem::take(&mut asked.gaps))
    }
}

impl Drop for Polled {
    fn drop(&mut self) {
        self.running.abort();
    }
}

async fn tell(State(asked): State<Arc<Mutex<Asked>>>, Path(number): Path<usize>) -> Json<Value> {
    let mut asked = asked.lock();
    asked.count += 1;
    let now = Instant::now();
    if let Some(last) = asked.last.get_mut(number) {
        let before = last.replace(now);
        asked.gaps.extend(before.map(|before| (now - before).as_secs_f64()));
    }
    Json(json!({"value": 0}))
}
