//! Writing objects: everything between a decoded request and the store.

pub(crate) mod create;
pub(crate) mod decode;
pub(crate) mod delete;
pub(crate) mod revise;
pub(crate) mod services;
pub(crate) mod update;

use std::sync::Arc;

use podscale_api::field_error::{BadValue, FieldError, FieldPath};
use serde_json::Value;

use crate::admission::Candidate;
use crate::apply::{Shape, Writer};
use crate::registry::Served;
use crate::rules::Reset;
use crate::server::Inner;
use crate::status::{ApiError, ApiResult};
use crate::store::{Draft, Object};
use crate::types;
use crate::types::decode::zero;
use crate::value::{is_set, text};

/// Which part of an object a request writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Object,
    Status,
    Scale,
    Finalize,
    Binding,
}

impl Endpoint {
    pub(crate) fn subresource(self) -> &'static str {
        match self {
            Self::Object | Self::Binding => "",
            Self::Status => "status",
            Self::Scale => "scale",
            Self::Finalize => "finalize",
        }
    }
}

/// What every write needs to know.
#[derive(Debug)]
pub(crate) struct Write<'a> {
    pub server: &'a Inner,
    pub served: &'a Served,
    /// Namespace in the path; empty for cluster-wide objects.
    pub namespace: &'a str,
    /// Name of the field manager.
    pub manager: &'a str,
    pub dry_run: bool,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner").finish_non_exhaustive()
    }
}

/// An object after a write, as it is stored.
#[derive(Debug)]
pub(crate) enum Written {
    Stored(Arc<Object>),
    /// What would have been stored.
    Preview(Value),
}

impl Written {
    /// What the client is told about the object it created.
    pub(crate) fn warnings(&self, served: &Served) -> Vec<String> {
        match self {
            Self::Stored(object) => (served.rules.warnings)(&object.value()),
            Self::Preview(value) => (served.rules.warnings)(value),
        }
    }

    pub(crate) fn into_value(self) -> Value {
        match self {
            Self::Stored(object) => object.value(),
            Self::Preview(value) => value,
        }
    }
}

impl Write<'_> {
    pub(crate) fn key(&self, name: &str) -> String {
        crate::store::key(self.namespace, name)
    }

    pub(crate) fn get(&self, name: &str) -> ApiResult<Arc<Object>> {
        let found = self.server.store.get(&self.served.storage, &self.key(name));
        found.ok_or_else(|| ApiError::not_found(&self.served.info, name))
    }

    pub(crate) fn draft(&self, value: Value) -> Draft {
        let fields = (self.served.rules.fields)(&value);
        Draft { value, fields }
    }

    /// How objects of the served version are divided among owners.
    pub(crate) fn shape(&self) -> Shape<'_> {
        match (&self.served.ty, &self.served.custom) {
            (Some(ty), _) => Shape::of(ty),
            (None, Some(custom)) => Shape::Custom(custom.raw_schema.as_ref()),
            (None, None) => Shape::Unknown,
        }
    }

    pub(crate) fn writer<'a>(
        &'a self,
        endpoint: Endpoint,
        version: &'a str,
        time: &'a str,
    ) -> Writer<'a> {
        let reset: Reset = match endpoint {
            Endpoint::Object if self.served.info.has_status() => self.served.rules.reset,
            Endpoint::Status => self.served.rules.reset_status,
            _ => &[],
        };
        Writer {
            manager: self.manager,
            api_version: version,
            subresource: endpoint.subresource(),
            time: if endpoint == Endpoint::Scale { "" } else { time },
            reset,
        }
    }

    /// What a new object is compared with to find out what its creator set.
    pub(crate) fn blank(&self) -> Value {
        self.served.ty.as_ref().map_or_else(crate::apply::blank, |ty| zero(types::kubernetes(), ty))
    }

    /// Answers with all that is wrong, if anything is.
    pub(crate) fn refuse(&self, name: &str, errors: Vec<FieldError>) -> ApiResult<()> {
        if errors.is_empty() {
            return Ok(());
        }
        let info = &self.served.info;
        Err(ApiError::invalid(&info.group, &info.kind, name, &errors))
    }

    /// Asks whoever else judges objects.
    pub(crate) fn admit(&self, name: &str, object: &Value, old: Option<&Value>) -> ApiResult<()> {
        let Some(admission) = &self.server.config.admission else { return Ok(()) };
        let info = &self.served.info;
        let candidate = Candidate { group: &info.group, kind: &info.kind, name, object, old };
        match (admission.judge)(&candidate) {
            Some(refusal) => Err(ApiError::denied(admission.webhook, refusal)),
            None => Ok(()),
        }
    }

    /// Objects can only be put into a namespace that exists and stays.
    pub(crate) fn require_namespace(&self, name: &str) -> ApiResult<()> {
        if !self.served.info.namespaced {
            return Ok(());
        }
        let registry = self.server.registry();
        let Some(namespaces) = registry.find("", "v1", "namespaces") else { return Ok(()) };
        let found = self.server.store.get(&namespaces.storage, self.namespace);
        let Some(found) = found else {
            return Err(ApiError::not_found(&namespaces.info, self.namespace));
        };
        if is_terminating(&found) {
            return Err(ApiError::namespace_terminating(&self.served.info, name, self.namespace));
        }
        Ok(())
    }
}

fn is_terminating(namespace: &Object) -> bool {
    namespace.field("status.phase") == Some("Terminating")
        || is_set(namespace.value().pointer("/metadata/deletionTimestamp"))
}

/// Checks name and namespace of an object against the path it was sent to.
pub(crate) fn check_identity(object: &Value, namespace: &str, name: &str) -> ApiResult<()> {
    let given = text(object, "/metadata/name");
    if given.is_empty() {
        return Err(ApiError::bad_request(
            "the name of the object (based on URL) was undeterminable: name must be provided",
        ));
    }
    if given != name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        )));
    }
    check_namespace(object, namespace)
}

pub(crate) fn check_namespace(object: &Value, namespace: &str) -> ApiResult<()> {
    let given = text(object, "/metadata/namespace");
    if !given.is_empty() && given != namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

/// The error for an update that does not say what it is based on.
pub(crate) fn version_required() -> FieldError {
    let path = FieldPath::new("metadata").child("resourceVersion");
    let value = BadValue::verbatim("0");
    FieldError::invalid(&path, value, "must be specified for an update")
}
