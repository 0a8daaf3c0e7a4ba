//! Keeps what is served in step with the definitions among the stored objects.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::aggregate::{api_services, judge};
use crate::apply::{UpdateRequest, track_update};
use crate::crd::definition;
use crate::custom::{self, Custom};
use crate::registry::{Forwarded, Registry, Served};
use crate::resource::GroupResource;
use crate::server::Inner;
use crate::store::Draft;
use crate::value::{fields, integer, is_set, list, metadata, text};
use crate::write::delete::{DeleteOptions, delete};
use crate::write::revise::revise;
use crate::write::{Endpoint, Write, Written};

/// The finalizer that keeps a definition while objects of its kind remain.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Definition,
    ApiService,
    Other,
}

fn kind(served: &Served) -> Kind {
    match (served.info.group.as_str(), served.info.plural.as_str()) {
        ("apiextensions.k8s.io", "customresourcedefinitions") => Kind::Definition,
        ("apiregistration.k8s.io", "apiservices") => Kind::ApiService,
        _ => Kind::Other,
    }
}

fn definitions() -> GroupResource {
    GroupResource {
        group: "apiextensions.k8s.io".into(),
        resource: "customresourcedefinitions".into(),
    }
}

/// Serves what a written definition describes.
pub(crate) fn after_write(write: &Write<'_>, written: Written) -> Written {
    let Written::Stored(object) = &written else { return written };
    match kind(write.served) {
        Kind::Definition => {
            establish(write.server, object.name());
            refresh(write.server);
        }
        Kind::ApiService => {
            judge(write.server, object.name());
            refresh(write.server);
        }
        Kind::Other => finish_definition(write),
    }
    written
}

/// Stops serving what a deleted definition described.
pub(crate) fn after_delete(write: &Write<'_>, name: &str) {
    match kind(write.served) {
        Kind::Definition => {
            clean_up(write, name);
            refresh(write.server);
        }
        Kind::ApiService => refresh(write.server),
        Kind::Other => finish_definition(write),
    }
}

/// Holds a definition until the objects of its kind are gone.
pub(crate) fn before_delete(write: &Write<'_>, name: &str, options: &DeleteOptions) {
    if kind(write.served) != Kind::Definition || options.dry_run {
        return;
    }
    let now = write.server.now();
    revise(write.server, &definitions(), name, |definition| {
        if !is_established(definition) {
            return;
        }
        definition::mark_terminating(definition, now);
        let finalizers = metadata(definition).entry("finalizers").or_insert_with(|| json!([]));
        if let Some(finalizers) = finalizers.as_array_mut()
            && !finalizers.iter().any(|finalizer| finalizer == CLEANUP)
        {
            finalizers.push(json!(CLEANUP));
        }
    });
}

/// Deletes the objects of a custom resource whose definition is going.
fn clean_up(write: &Write<'_>, name: &str) {
    let Some(found) = write.server.store.get(&definitions(), name) else { return };
    let definition = found.value();
    let Some(served) = served_by(write.server, &definition) else { return };
    for object in write.server.store.snapshot(&served.storage).objects.values() {
        let below = Write {
            server: write.server,
            served: &served,
            namespace: object.namespace(),
            manager: write.manager,
            dry_run: false,
        };
        // An object that is already gone is as good as deleted.
        let _ = delete(&below, object.name(), &DeleteOptions::default());
    }
    finish_definition(&Write {
        server: write.server,
        served: &served,
        namespace: "",
        manager: write.manager,
        dry_run: false,
    });
}

fn served_by(server: &Inner, definition: &Value) -> Option<Arc<Served>> {
    let (group, plural) = (text(definition, "/spec/group"), text(definition, "/spec/names/plural"));
    let registry = server.registry();
    registry
        .resources()
        .iter()
        .find(|served| served.info.group == group && served.info.plural == plural)
        .cloned()
}

/// Lets a definition go that only waited for the last object of its kind.
fn finish_definition(write: &Write<'_>) {
    let info = &write.served.info;
    if !info.custom || write.server.store.count(&write.served.storage) > 0 {
        return;
    }
    let name = info.qualified();
    let Some(found) = write.server.store.get(&definitions(), &name) else { return };
    let mut definition = found.value();
    if !is_set(definition.pointer("/metadata/deletionTimestamp")) {
        return;
    }
    let meta = metadata(&mut definition);
    if let Some(finalizers) = meta.get_mut("finalizers").and_then(Value::as_array_mut) {
        finalizers.retain(|finalizer| finalizer != CLEANUP);
        if !finalizers.is_empty() {
            return;
        }
    }
    meta.remove("finalizers");
    let draft = Draft { value: definition, fields: Vec::new() };
    if write.server.store.remove(&definitions(), &name, found.revision, draft).is_ok() {
        refresh(write.server);
    }
}

/// Judges the names of a definition and says so in its status.
fn establish(server: &Inner, name: &str) {
    let _one_at_a_time = server.definitions.lock();
    let snapshot = server.store.snapshot(&definitions());
    let others: Vec<Value> = snapshot
        .objects
        .values()
        .filter(|other| other.name() != name)
        .map(|other| other.value())
        .collect();
    let now = server.now();
    revise(server, &definitions(), name, |definition| {
        let others: Vec<&Value> = others.iter().collect();
        let old = definition.clone();
        let mut status = definition::established_status(definition, &others, now);
        remember_storage_version(definition, &mut status);
        fields(definition).insert("status".to_owned(), status);
        track_own(server, &old, definition);
    });
}

/// Notes that the server itself wrote a definition's status.
fn track_own(server: &Inner, old: &Value, new: &mut Value) {
    let registry = server.registry();
    let Some(served) = registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    else {
        return;
    };
    let write =
        Write { server, served: &served, namespace: "", manager: "kube-apiserver", dry_run: false };
    let (version, time) = (served.api_version(), server.now_text());
    let request = UpdateRequest {
        shape: write.shape(),
        live: old,
        writer: write.writer(Endpoint::Status, &version, &time),
    };
    track_update(&request, new);
}

/// Every version that objects were ever stored in is remembered.
fn remember_storage_version(definition: &Value, status: &mut Value) {
    let versions = list(definition, "/spec/versions");
    let storage = versions
        .iter()
        .find(|version| version.get("storage").and_then(Value::as_bool) == Some(true));
    let Some(name) = storage.and_then(|version| version.get("name")) else { return };
    let stored = fields(status).entry("storedVersions").or_insert_with(|| json!([]));
    if let Some(stored) = stored.as_array_mut()
        && !stored.contains(name)
    {
        stored.push(name.clone());
    }
}

fn is_established(definition: &Value) -> bool {
    list(definition, "/status/conditions").iter().any(|condition| {
        text(condition, "/type") == "Established" && text(condition, "/status") == "True"
    })
}

/// Serves exactly what the stored definitions describe.
pub(crate) fn refresh(server: &Inner) {
    let _one_at_a_time = server.definitions.lock();
    let mut customs: Vec<Custom> = Vec::new();
    for object in server.store.snapshot(&definitions()).objects.values() {
        let definition = object.value();
        if is_established(&definition) {
            customs.extend(custom::versions(&definition));
        }
    }
    let services = server.store.snapshot(&api_services());
    let forwarded = services.objects.values().filter_map(|service| forwarded(&service.value()));
    let removed_versions = server.config.removed_autoscaling_versions;
    let registry = Registry::with(customs, forwarded.collect(), removed_versions);
    *server.registry.write() = Arc::new(registry);
}

fn forwarded(service: &Value) -> Option<Forwarded> {
    let reference = service.pointer("/spec/service").filter(|reference| reference.is_object())?;
    Some(Forwarded {
        group: text(service, "/spec/group").to_owned(),
        version: text(service, "/spec/version").to_owned(),
        service: (text(reference, "/namespace").to_owned(), text(reference, "/name").to_owned()),
        port: integer(reference, "/port").and_then(|port| u16::try_from(port).ok()).unwrap_or(443),
        group_priority: integer(service, "/spec/groupPriorityMinimum").unwrap_or_default(),
        version_priority: integer(service, "/spec/versionPriority").unwrap_or_default(),
    })
}
