//! Who stands behind a service: a pure function of the service and the pods it selects.

use crate::controllers::claim::owner_reference;
use crate::controllers::pod::Pod;
use k8s_openapi::api::core::v1::{
    EndpointAddress, EndpointPort, EndpointSubset, Endpoints, ObjectReference, Service, ServicePort,
};
use k8s_openapi::api::discovery::v1::{
    Endpoint, EndpointConditions, EndpointPort as SlicePort, EndpointSlice,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The label that names a slice's service.
pub const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// The label that tells who keeps a slice.
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const CONTROLLER_NAME: &str = "endpointslice-controller.k8s.io";
const HEADLESS: &str = "service.kubernetes.io/headless";
/// The most endpoints in a slice.
const SLICE_SIZE: usize = 100;
/// The most addresses in an Endpoints object.
const MOST_ADDRESSES: usize = 1000;
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";

/// A port as it is at some of the pods: name, number, protocol, application protocol.
type Port = (Option<String>, i32, String, Option<String>);

/// Whether pods stand behind the service.
#[must_use]
pub fn is_served(service: &Service) -> bool {
    let Some(spec) = &service.spec else { return false };
    spec.type_.as_deref() != Some("ExternalName")
        && spec.selector.as_ref().is_some_and(|selector| !selector.is_empty())
}

/// The pods with an address, by the ports at which they serve.
fn by_ports<'a>(service: &Service, pods: &'a [Arc<Pod>]) -> BTreeMap<Vec<Port>, Vec<&'a Pod>> {
    let ports = service.spec.as_ref().and_then(|spec| spec.ports.as_deref()).unwrap_or_default();
    let mut groups: BTreeMap<Vec<Port>, Vec<&Pod>> = BTreeMap::new();
    let reachable = pods.iter().filter(|pod| pod.status.pod_ip.is_some() && !pod.is_ended());
    for pod in reachable {
        let resolved = ports.iter().filter_map(|port| resolve(port, pod)).collect();
        groups.entry(resolved).or_default().push(pod);
    }
    groups
}

fn resolve(port: &ServicePort, pod: &Pod) -> Option<Port> {
    let protocol = port.protocol.as_deref().unwrap_or("TCP");
    let number = match &port.target_port {
        None => Some(port.port),
        Some(IntOrString::Int(0)) => Some(port.port),
        Some(IntOrString::Int(number)) => Some(*number),
        Some(IntOrString::String(name)) => {
            let containers = pod.spec.containers.iter().chain(&pod.spec.init_containers);
            let mut ports = containers.flat_map(|container| &container.ports);
            let found = ports.find(|known| {
                known.name.as_deref() == Some(name)
                    && known.protocol.as_deref().unwrap_or("TCP") == protocol
            });
            found.map(|known| known.container_port)
        }
    }?;
    Some((port.name.clone(), number, protocol.to_owned(), port.app_protocol.clone()))
}

fn publishes_unready(service: &Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.publish_not_ready_addresses) == Some(true)
}

fn is_headless(service: &Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref()) == Some("None")
}

fn target(pod: &Pod) -> ObjectReference {
    ObjectReference {
        kind: Some("Pod".into()),
        namespace: pod.metadata.namespace.clone(),
        name: pod.metadata.name.clone(),
        uid: pod.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

fn hostname(service: &Service, pod: &Pod) -> Option<String> {
    let same = pod.spec.subdomain.as_deref() == service.metadata.name.as_deref();
    pod.spec.hostname.clone().filter(|_| same)
}

/// The Endpoints object of a service.
#[must_use]
pub fn endpoints(service: &Service, pods: &[Arc<Pod>]) -> Endpoints {
    let mut left = MOST_ADDRESSES;
    let mut cut = false;
    let publish = publishes_unready(service);
    let mut subsets = Vec::new();
    for (ports, pods) in by_ports(service, pods) {
        let (mut ready, mut unready) = (Vec::new(), Vec::new());
        for pod in pods.into_iter().filter(|pod| publish || !pod.is_terminating()) {
            if left == 0 {
                cut = true;
                break;
            }
            left -= 1;
            let list = if publish || pod.is_ready() { &mut ready } else { &mut unready };
            list.push(EndpointAddress {
                ip: pod.status.pod_ip.clone().unwrap_or_default(),
                hostname: hostname(service, pod),
                node_name: pod.spec.node_name.clone(),
                target_ref: Some(target(pod)),
            });
        }
        let ports = ports.into_iter().map(|(name, port, protocol, app_protocol)| EndpointPort {
            name,
            port,
            protocol: Some(protocol),
            app_protocol,
        });
        let ports: Vec<EndpointPort> = ports.collect();
        if !(ready.is_empty() && unready.is_empty()) {
            subsets.push(EndpointSubset {
                addresses: some(ready),
                not_ready_addresses: some(unready),
                ports: some(ports),
            });
        }
    }
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    labels.insert("endpoints.kubernetes.io/managed-by".into(), "endpoint-controller".into());
    if is_headless(service) {
        labels.insert(HEADLESS.into(), String::new());
    }
    let truncated = cut.then(|| [(OVER_CAPACITY.to_owned(), "truncated".to_owned())].into());
    Endpoints {
        metadata: ObjectMeta {
            name: service.metadata.name.clone(),
            namespace: service.metadata.namespace.clone(),
            labels: Some(labels),
            annotations: truncated,
            ..ObjectMeta::default()
        },
        subsets: some(subsets),
    }
}

fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

/// A change of a slice.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// A new one.
    Create(EndpointSlice),
    /// One as it should be.
    Update(EndpointSlice),
    /// One that nobody needs, by its name.
    Delete(String),
}

/// What makes the slices of a service right. An endpoint stays in the slice where it is, so that a
/// change of one pod changes one slice.
#[must_use]
pub fn slices(service: &Service, pods: &[Arc<Pod>], existing: &[Arc<EndpointSlice>]) -> Vec<Write> {
    let mut writes = Vec::new();
    let mut groups = by_ports(service, pods);
    if groups.is_empty() {
        // A service without pods keeps one empty slice.
        groups.insert(Vec::new(), Vec::new());
    }
    let mut spare: Vec<&Arc<EndpointSlice>> = existing.iter().collect();
    for (ports, pods) in groups {
        let ports: Vec<SlicePort> = ports.into_iter().map(slice_port).collect();
        let (own, others): (Vec<_>, Vec<_>) = spare
            .into_iter()
            .partition(|slice| slice.ports.as_deref().unwrap_or_default() == ports);
        spare = others;
        writes.extend(fill(service, &ports, &pods, &own));
    }
    writes.extend(
        spare.into_iter().filter_map(|slice| slice.metadata.name.clone().map(Write::Delete)),
    );
    writes
}

fn fill(
    service: &Service,
    ports: &[SlicePort],
    pods: &[&Pod],
    own: &[&Arc<EndpointSlice>],
) -> Vec<Write> {
    let mut wanted: HashMap<&str, Endpoint> =
        pods.iter().map(|pod| (pod.uid(), endpoint(service, pod))).collect();
    let mut filled: Vec<Vec<Endpoint>> = Vec::new();
    for slice in own {
        let uids = slice.endpoints.iter().flatten().filter_map(|endpoint| {
            endpoint.target_ref.as_ref().and_then(|target| target.uid.as_deref())
        });
        filled.push(uids.filter_map(|uid| wanted.remove(uid)).collect());
    }
    let mut new: Vec<Endpoint> =
        pods.iter().filter_map(|pod| wanted.remove(pod.uid())).rev().collect();
    for endpoints in &mut filled {
        while endpoints.len() < SLICE_SIZE
            && let Some(endpoint) = new.pop()
        {
            endpoints.push(endpoint);
        }
    }
    new.reverse();
    let mut writes = Vec::new();
    for (position, (slice, endpoints)) in own.iter().zip(filled).enumerate() {
        // Without pods one empty slice stays.
        if endpoints.is_empty() && !(pods.is_empty() && position == 0) {
            writes.extend(slice.metadata.name.clone().map(Write::Delete));
            continue;
        }
        let mut changed = EndpointSlice::clone(slice);
        changed.endpoints = some(endpoints);
        changed.metadata.labels = Some(slice_labels(service));
        if !same(slice, &changed) {
            writes.push(Write::Update(changed));
        }
    }
    let chunks = new.chunks(SLICE_SIZE).map(<[Endpoint]>::to_vec);
    let empty = (pods.is_empty() && own.is_empty()).then(Vec::new);
    for endpoints in chunks.chain(empty) {
        let name = service.metadata.name.as_deref().unwrap_or_default();
        writes.push(Write::Create(EndpointSlice {
            address_type: "IPv4".into(),
            metadata: ObjectMeta {
                generate_name: Some(format!("{name}-")),
                namespace: service.metadata.namespace.clone(),
                labels: Some(slice_labels(service)),
                owner_references: Some(vec![owner_reference(service)]),
                ..ObjectMeta::default()
            },
            endpoints: some(endpoints),
            ports: some(ports.to_vec()),
        }));
    }
    writes
}

/// An empty list and none at all are the same when stored.
fn same(one: &EndpointSlice, other: &EndpointSlice) -> bool {
    one.endpoints.as_deref().unwrap_or_default() == other.endpoints.as_deref().unwrap_or_default()
        && one.metadata.labels == other.metadata.labels
}

fn slice_port((name, port, protocol, app_protocol): Port) -> SlicePort {
    SlicePort {
        name: Some(name.unwrap_or_default()),
        port: Some(port),
        protocol: Some(protocol),
        app_protocol,
    }
}

fn slice_labels(service: &Service) -> BTreeMap<String, String> {
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    let name = service.metadata.name.clone().unwrap_or_default();
    labels.insert(SERVICE_NAME.into(), name);
    labels.insert(MANAGED_BY.into(), CONTROLLER_NAME.into());
    if is_headless(service) {
        labels.insert(HEADLESS.into(), String::new());
    }
    labels
}

fn endpoint(service: &Service, pod: &Pod) -> Endpoint {
    let (ready, terminating) = (pod.is_ready(), pod.is_terminating());
    Endpoint {
        addresses: pod.status.pod_ip.clone().into_iter().collect(),
        conditions: Some(EndpointConditions {
            ready: Some(publishes_unready(service) || (ready && !terminating)),
            serving: Some(ready),
            terminating: Some(terminating),
        }),
        hostname: hostname(service, pod),
        node_name: pod.spec.node_name.clone(),
        target_ref: Some(target(pod)),
        ..Endpoint::default()
    }
}

/// Whether a slice is kept by this controller.
#[must_use]
pub fn is_ours(slice: &EndpointSlice) -> bool {
    let labels = slice.metadata.labels.as_ref();
    labels
        .and_then(|labels| labels.get(MANAGED_BY))
        .is_some_and(|manager| manager == CONTROLLER_NAME)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
