//! The addresses and ports that services get when they are stored.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::Write;
use crate::status::{ApiError, ApiResult};
use crate::value::{fields, integer, list, section, text};

/// Addresses are 10.96.0.0/16, as many clusters have them.
const ADDRESSES: u64 = 65_000;
const FIRST_NODE_PORT: i64 = 30_000;
const NODE_PORTS: u64 = 2_768;

/// Gives a service its address and node ports, where it needs them.
pub(crate) fn allocate(write: &Write<'_>, service: &mut Value) -> ApiResult<()> {
    let info = &write.served.info;
    if !(info.group.is_empty() && info.plural == "services") {
        return Ok(());
    }
    let kind = text(service, "/spec/type").to_owned();
    let wants_address = kind != "ExternalName" && text(service, "/spec/clusterIP").is_empty();
    let wants_ports = matches!(kind.as_str(), "NodePort" | "LoadBalancer");
    if !wants_address && !wants_ports {
        return Ok(());
    }
    let (mut addresses, mut ports) = (HashSet::new(), HashSet::new());
    for other in write.server.store.snapshot(&write.served.storage).objects.values() {
        addresses.insert(other.field("spec.clusterIP").unwrap_or_default().to_owned());
        if matches!(other.field("spec.type"), Some("NodePort" | "LoadBalancer")) {
            let value = other.value();
            let taken =
                list(&value, "/spec/ports").iter().filter_map(|port| integer(port, "/nodePort"));
            ports.extend(taken);
        }
    }
    if wants_address {
        let start = write.server.random_below(ADDRESSES);
        let free = (0..ADDRESSES)
            .map(|step| 10 + (start + step) % ADDRESSES)
            .map(|number| format!("10.96.{}.{}", number / 256, number % 256))
            .find(|address| !addresses.contains(address))
            .ok_or_else(|| ApiError::internal("failed to allocate a serviceIP: range is full"))?;
        let spec = section(service, "spec");
        spec.insert("clusterIPs".to_owned(), json!([free]));
        spec.insert("clusterIP".to_owned(), Value::from(free));
    }
    if wants_ports {
        let start = write.server.random_below(NODE_PORTS);
        let wanted = service.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
        for port in wanted.into_iter().flatten() {
            if integer(port, "/nodePort").unwrap_or_default() != 0 {
                continue;
            }
            let free = (0..NODE_PORTS)
                .filter_map(|step| i64::try_from((start + step) % NODE_PORTS).ok())
                .map(|offset| FIRST_NODE_PORT + offset)
                .find(|number| !ports.contains(number))
                .ok_or_else(|| {
                    ApiError::internal("failed to allocate a nodePort: range is full")
                })?;
            ports.insert(free);
            fields(port).insert("nodePort".to_owned(), Value::from(free));
        }
    }
    Ok(())
}
