//! Deleting objects: at once, after a period of grace, or when their finalizers are done.

use std::sync::Arc;

use jiff::SignedDuration;
use podscale_api::field_error::{FieldError, FieldPath};
use serde_json::{Value, json};

use super::update::may_go;
use super::{Write, Written};
use crate::status::{ApiError, ApiResult};
use crate::store::Object;
use crate::types::decode::time_text;
use crate::value::{integer, is_set, list, metadata, section, text};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";
/// How often a deletion is tried again when the object changes meanwhile.
const TRIES: usize = 100;

/// What becomes of the objects that an object owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    Orphan,
    Background,
    Foreground,
}

/// How to delete.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    pub grace_seconds: Option<i64>,
    pub propagation: Option<Propagation>,
    pub uid: Option<String>,
    pub resource_version: Option<String>,
    pub dry_run: bool,
}

/// What a deletion did.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// The object is gone.
    Gone(Written),
    /// The object stays until its grace period or its finalizers are over.
    Pending(Written),
}

impl DeleteOptions {
    /// Reads the options in a request's body.
    pub(crate) fn read(&mut self, body: &Value) -> ApiResult<()> {
        let (kind, version) = (text(body, "/kind"), text(body, "/apiVersion"));
        if !matches!(kind, "" | "DeleteOptions") {
            return Err(ApiError::bad_request(format!(
                "no kind {kind:?} is registered for version {version:?} in scheme \
                 \"pkg/runtime/scheme.go\""
            )));
        }
        let both = is_set(body.get("propagationPolicy")) && is_set(body.get("orphanDependents"));
        if let Some(policy) = body.get("propagationPolicy").and_then(Value::as_str).filter(|_| both)
        {
            let path = FieldPath::new("propagationPolicy");
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            let error = FieldError::invalid(&path, policy, detail);
            return Err(ApiError::invalid("meta.k8s.io", "DeleteOptions", "", &[error]));
        }
        if let Some(seconds) = integer(body, "/gracePeriodSeconds") {
            self.grace_seconds = Some(seconds);
        }
        if let Some(policy) = body.get("propagationPolicy").and_then(Value::as_str) {
            self.propagation = Some(Propagation::parse(policy)?);
        }
        if let Some(orphan) = body.get("orphanDependents").and_then(Value::as_bool) {
            self.propagation =
                Some(if orphan { Propagation::Orphan } else { Propagation::Background });
        }
        let given =
            |pointer: &str| body.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        self.uid = given("/preconditions/uid").or(self.uid.take());
        self.resource_version =
            given("/preconditions/resourceVersion").or(self.resource_version.take());
        self.dry_run |= list(body, "/dryRun").iter().any(|word| word == "All");
        Ok(())
    }
}

impl Propagation {
    pub(crate) fn parse(text: &str) -> ApiResult<Self> {
        match text {
            "Orphan" => Ok(Self::Orphan),
            "Background" => Ok(Self::Background),
            "Foreground" => Ok(Self::Foreground),
            other => {
                let path = FieldPath::new("propagationPolicy");
                let allowed = ["Foreground", "Background", "Orphan", "nil"];
                let error = FieldError::not_supported(&path, other, &allowed);
                Err(ApiError::invalid("meta.k8s.io", "DeleteOptions", "", &[error]))
            }
        }
    }
}

/// Deletes an object, or marks it for deletion.
pub(crate) fn delete(write: &Write<'_>, name: &str, options: &DeleteOptions) -> ApiResult<Deleted> {
    for _ in 0..TRIES {
        let stored = write.get(name)?;
        if let Some(done) = attempt(write, name, &stored, options)? {
            return Ok(done);
        }
    }
    Err(ApiError::modified(&write.served.info, name))
}

/// `None` if the object changed meanwhile.
fn attempt(
    write: &Write<'_>,
    name: &str,
    stored: &Arc<Object>,
    options: &DeleteOptions,
) -> ApiResult<Option<Deleted>> {
    let old = stored.value();
    check_preconditions(write, name, &old, options)?;
    let mut object = old.clone();
    let deleting = is_set(old.pointer("/metadata/deletionTimestamp"));
    set_propagation(&mut object, options.propagation);
    let grace = grace_seconds(write, &old, options);
    let present = integer(&old, "/metadata/deletionGracePeriodSeconds");
    let namespace = write.served.info.group.is_empty() && write.served.info.plural == "namespaces";
    let mut held = object.clone();
    metadata(&mut held).remove("deletionGracePeriodSeconds");
    let immediate = grace == 0 && may_go(&held);
    if immediate {
        if write.served.rules.graceful {
            mark(write, &mut object, &old, 0, false);
        }
        return remove(write, stored, object, options.dry_run || write.dry_run);
    }
    if deleting {
        // A deletion under way can only be hurried.
        let shorter = present.is_some_and(|present| grace < present);
        if !shorter && object == old {
            return Ok(Some(Deleted::Pending(Written::Stored(stored.clone()))));
        }
    }
    mark(write, &mut object, &old, grace, namespace);
    if options.dry_run || write.dry_run {
        return Ok(Some(Deleted::Pending(Written::Preview(object))));
    }
    let store = &write.server.store;
    let draft = write.draft(object);
    match store.replace(&write.served.storage, &stored.key, stored.revision, draft) {
        Ok(written) => Ok(Some(Deleted::Pending(Written::Stored(written)))),
        Err(_) => Ok(None),
    }
}

fn remove(
    write: &Write<'_>,
    stored: &Arc<Object>,
    object: Value,
    dry_run: bool,
) -> ApiResult<Option<Deleted>> {
    if dry_run {
        return Ok(Some(Deleted::Gone(Written::Preview(object))));
    }
    let draft = write.draft(object);
    match write.server.store.remove(&write.served.storage, &stored.key, stored.revision, draft) {
        Ok(gone) => Ok(Some(Deleted::Gone(Written::Stored(gone)))),
        Err(_) => Ok(None),
    }
}

fn mark(write: &Write<'_>, object: &mut Value, old: &Value, grace: i64, namespace: bool) {
    let now = write.server.now();
    let since = text(old, "/metadata/deletionTimestamp").parse().ok();
    let present = integer(old, "/metadata/deletionGracePeriodSeconds").unwrap_or_default();
    // A second deletion counts from the first.
    let start = since.and_then(|time: jiff::Timestamp| {
        time.checked_sub(SignedDuration::from_secs(present)).ok()
    });
    let end = start.unwrap_or(now).checked_add(SignedDuration::from_secs(grace)).unwrap_or(now);
    let generation = integer(old, "/metadata/generation").unwrap_or_default();
    let meta = metadata(object);
    meta.insert("deletionTimestamp".to_owned(), Value::from(time_text(end)));
    let plain = namespace || write.served.info.plural == "customresourcedefinitions";
    if !plain {
        meta.insert("deletionGracePeriodSeconds".to_owned(), Value::from(grace));
    }
    if since.is_none() && generation > 0 && !plain {
        meta.insert("generation".to_owned(), Value::from(generation.saturating_add(1)));
    }
    if namespace {
        section(object, "status").insert("phase".to_owned(), json!("Terminating"));
    }
}

fn grace_seconds(write: &Write<'_>, old: &Value, options: &DeleteOptions) -> i64 {
    if !write.served.rules.graceful {
        return 0;
    }
    // Only a running pod on a node needs time.
    let placed = !text(old, "/spec/nodeName").is_empty();
    let ended = matches!(text(old, "/status/phase"), "Succeeded" | "Failed");
    if !placed || ended {
        return 0;
    }
    let own = || integer(old, "/spec/terminationGracePeriodSeconds").unwrap_or(30);
    let seconds = match options.grace_seconds.unwrap_or_else(own) {
        negative if negative < 0 => 1,
        seconds => seconds,
    };
    match integer(old, "/metadata/deletionGracePeriodSeconds") {
        // While it is being deleted, the time left can only become less.
        Some(present) if options.grace_seconds.is_none() => present.min(seconds),
        _ => seconds,
    }
}

fn set_propagation(object: &mut Value, propagation: Option<Propagation>) {
    let Some(propagation) = propagation else { return };
    let mut finalizers: Vec<Value> = list(object, "/metadata/finalizers")
        .iter()
        .filter(|finalizer| *finalizer != ORPHAN && *finalizer != FOREGROUND)
        .cloned()
        .collect();
    match propagation {
        Propagation::Orphan => finalizers.push(json!(ORPHAN)),
        Propagation::Foreground => finalizers.push(json!(FOREGROUND)),
        Propagation::Background => {}
    }
    let meta = metadata(object);
    if finalizers.is_empty() {
        meta.remove("finalizers");
    } else {
        meta.insert("finalizers".to_owned(), Value::Array(finalizers));
    }
}

fn check_preconditions(
    write: &Write<'_>,
    name: &str,
    old: &Value,
    options: &DeleteOptions,
) -> ApiResult<()> {
    let info = &write.served.info;
    let mut kind = info.clone();
    kind.plural.clone_from(&info.kind);
    let uid = text(old, "/metadata/uid");
    if let Some(wanted) = options.uid.as_deref().filter(|wanted| *wanted != uid) {
        let why = format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The \
             object might have been deleted and then recreated"
        );
        return Err(ApiError::conflict(&kind, name, &why));
    }
    let version = text(old, "/metadata/resourceVersion");
    if let Some(wanted) = options.resource_version.as_deref().filter(|wanted| *wanted != version) {
        let why = format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion \
             in record ({version}). The object might have been modified"
        );
        return Err(ApiError::conflict(&kind, name, &why));
    }
    Ok(())
}
