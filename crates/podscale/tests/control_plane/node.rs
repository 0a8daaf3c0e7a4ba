//! On a real node: kubelet, containerd and runc, real pods that burn real CPU, and Podscale itself in
//! pods. Needs root; `docs/development.md` says what else. One node per machine.

#[path = "node/agreement.rs"]
mod agreement;
#[path = "node/cluster.rs"]
mod cluster;
#[path = "node/document.rs"]
mod document;
#[path = "node/in_pods.rs"]
mod in_pods;
#[path = "node/load.rs"]
mod load;
#[path = "node/machine.rs"]
mod machine;
#[path = "node/real_cpu.rs"]
mod real_cpu;
#[path = "node/replaced.rs"]
mod replaced;
#[path = "node/runtime.rs"]
mod runtime;

use super::harness::Harness;
pub use cluster::Cluster;
use libtest_mimic::Trial;
pub use machine::possible;

pub fn trials(harness: &Harness) -> Vec<Trial> {
    let mut trials = real_cpu::trials(harness);
    trials.extend(in_pods::trials(harness));
    trials.extend(replaced::trials(harness));
    trials
}
