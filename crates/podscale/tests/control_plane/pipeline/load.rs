//! What the workloads have to do: each has a total that its running pods share.

use crate::kubelet::Kubelet;
use crate::serve::node::Used;
use parking_lot::Mutex;
use std::collections::BTreeMap;

pub struct Load {
    kubelet: Kubelet,
    namespace: String,
    totals: Mutex<BTreeMap<String, f64>>,
}

impl Load {
    pub fn new(kubelet: Kubelet, namespace: &str) -> Load {
        Load { kubelet, namespace: namespace.to_owned(), totals: Mutex::default() }
    }

    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// What all pods of a workload have to do together from now on.
    pub fn set(&self, workload: &str, total: f64) {
        self.totals.lock().insert(workload.to_owned(), total);
    }

    pub fn total(&self, workload: &str) -> f64 {
        self.totals.lock().get(workload).copied().unwrap_or_default()
    }

    /// The part of each pod that runs.
    pub fn shares(&self, workload: &str) -> Vec<(String, f64)> {
        let mut rows = self.kubelet.running(Some(&self.namespace));
        rows.retain(|row| row.labels.get("app").is_some_and(|app| app == workload));
        let share = self.total(workload) / rows.len().max(1) as f64;
        rows.into_iter().map(|row| (row.name, share)).collect()
    }

    /// What the pods of a workload burn, if its total is cores.
    pub fn used(&self, workload: &str) -> Vec<Used> {
        let used = |(pod, cores): (String, f64)| Used {
            namespace: self.namespace.clone(),
            pod,
            container: "app".to_owned(),
            cores,
        };
        self.shares(workload).into_iter().map(used).collect()
    }
}
