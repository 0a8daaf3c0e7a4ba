//! The workloads that stand beside autoscalers.

use serde_json::Value;

use crate::hpa::v2::HorizontalPodAutoscaler;
use crate::pod::{Container, Pod, ResourceRequirements};

/// A workload: something with replicas and a template of pods.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// Its namespace, if it says one.
    pub namespace: String,
    /// The group of its API.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The size that it says itself.
    pub replicas: Option<i64>,
    /// A pod as the template makes them, with requests filled in from limits as an API server does.
    pub pod: Pod,
}

impl Workload {
    /// Reads a workload; nothing if the object has no template of pods.
    pub fn read(object: &Value) -> Option<Workload> {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let template = object.pointer("/spec/template").filter(|one| one.get("spec").is_some())?;
        let mut pod: Pod = serde_json::from_value(template.clone()).ok()?;
        let containers = pod.spec.init_containers.iter_mut().chain(&mut pod.spec.containers);
        for Container { resources, .. } in containers {
            request_limits(resources);
        }
        request_limits(&mut pod.spec.resources);
        Some(Workload {
            namespace: text("/metadata/namespace").to_owned(),
            group: group(text("/apiVersion")).to_owned(),
            kind: text("/kind").to_owned(),
            name: text("/metadata/name").to_owned(),
            replicas: object.pointer("/spec/replicas").and_then(Value::as_i64),
            pod,
        })
    }

    /// Whether an autoscaler scales it.
    pub fn is_target_of(&self, hpa: &HorizontalPodAutoscaler) -> bool {
        let target = &hpa.spec.scale_target_ref;
        self.namespace == hpa.metadata.namespace
            && self.group == group(&target.api_version)
            && self.kind.eq_ignore_ascii_case(&target.kind)
            && self.name == target.name
    }
}

/// The group of an `apiVersion`.
pub(super) fn group(api_version: &str) -> &str {
    api_version.rsplit_once('/').map_or("", |(group, _)| group)
}

fn request_limits(resources: &mut ResourceRequirements) {
    for (name, limit) in resources.limits.clone().iter() {
        if resources.requests.get(name).is_none() {
            resources.requests.insert(name, limit.clone());
        }
    }
}
