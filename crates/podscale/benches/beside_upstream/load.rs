//! What the pods of the autoscalers use.

use super::autoscalers::{PODS, Place, Places, USED};
use super::kubelet::Kubelet;
use super::metrics::{Metrics, Usage};
use super::plane::ControlPlane;
use anyhow::Result;
use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// How often the metrics change.
const CHANGE: Duration = Duration::from_secs(5);

/// A cluster full of autoscalers; what their pods use changes until this is dropped.
pub struct Load {
    pub places: Places,
    pub metrics: Metrics,
    held: Held,
    changing: JoinHandle<()>,
}

/// Those that keep what was set for them.
type Held = Arc<Mutex<HashSet<usize>>>;

impl Drop for Load {
    fn drop(&mut self) {
        self.changing.abort();
    }
}

impl Load {
    pub async fn start(plane: &ControlPlane, places: Places, steady: bool) -> Result<Load> {
        let kubelet = Kubelet::start(&plane.client);
        let metrics = Metrics::start(&plane.client, &plane.authority, kubelet.clone()).await?;
        places.create(&plane.client).await?;
        while kubelet.running(None).len() < PODS * places.count {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let held = Held::default();
        let changing = change(metrics.clone(), places, steady, Arc::clone(&held));
        let changing = tokio::spawn(changing);
        Ok(Load { places, metrics, held, changing })
    }

    /// Sets what the pods of one autoscaler use from now on.
    pub fn set(&self, number: usize, used: i64) {
        let mut held = self.held.lock();
        held.insert(number);
        let Place { namespace, name } = self.places.place(number);
        self.metrics.set_usage(&namespace, &name, "cpu", Usage::Each(used));
    }
}

/// Moves the usage of all pods to and fro by up to three percent, which nobody scales for.
async fn change(metrics: Metrics, places: Places, steady: bool, held: Held) {
    for round in 0i64.. {
        for (wave, number) in (0i64..).zip(0..places.count) {
            let wave = if steady { 0 } else { (wave * 7 + round * 11) % 31 - 15 };
            let Place { namespace, name } = places.place(number);
            let held = held.lock();
            if !held.contains(&number) {
                metrics.set_usage(&namespace, &name, "cpu", Usage::Each(USED + wave));
            }
        }
        tokio::time::sleep(CHANGE).await;
    }
}
