//! What is particular to each built-in resource: defaults, checks, what a write may change.

pub(crate) mod autoscaling;
pub(crate) mod batch;
mod builtin;
pub(crate) mod claims;
pub(crate) mod cluster;
pub(crate) mod config;
pub(crate) mod daemons;
pub(crate) mod go_value;
pub(crate) mod networking;
pub(crate) mod pod_defaults;
pub(crate) mod pod_spec;
pub(crate) mod pods;
pub(crate) mod policy;
pub(crate) mod quota;
mod selectors;
pub(crate) mod services;
pub(crate) mod workloads;

use podscale_api::field_error::FieldError;
use podscale_api::field_error::metadata::NameRule;
use podscale_api::field_error::names;
use serde_json::Value;

use crate::store::Fields;

pub(crate) use builtin::of;

/// Fields that an endpoint ignores, as paths of field-set steps.
pub(crate) type Reset = &'static [&'static [&'static str]];

/// When `metadata.generation` goes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generation {
    /// Never; it is not set at all.
    Unused,
    /// When the spec changes.
    Spec,
    /// When the spec or the annotations change.
    SpecOrAnnotations,
    /// When anything but metadata and status changes.
    Custom,
}

/// What is particular to a resource.
#[derive(Debug)]
pub(crate) struct Rules {
    /// Judges names.
    pub name: NameRule,
    /// Fills in what clients leave out.
    pub default: fn(&mut Value),
    /// Changes an object that is about to be created.
    pub prepare_create: fn(&mut Value),
    /// Changes a new object whose creator gave it no labels, after all else.
    pub finish_unlabelled: fn(&mut Value),
    /// Changes an object that is about to replace another.
    pub prepare_update: fn(&mut Value, &Value),
    /// Changes an object whose status is about to be replaced.
    pub prepare_status: fn(&mut Value, &Value),
    /// Checks a new object.
    pub check: fn(&Value) -> Vec<FieldError>,
    /// Checks an object against the one it replaces.
    pub check_update: fn(&Value, &Value) -> Vec<FieldError>,
    /// Checks a new status.
    pub check_status: fn(&Value, &Value) -> Vec<FieldError>,
    /// Warnings for clients about a new object that is valid, but surprising.
    pub warnings: fn(&Value) -> Vec<String>,
    /// Values for field selectors besides name and namespace.
    pub fields: fn(&Value) -> Fields,
    /// Which field selectors there are besides name and namespace.
    pub selectable: &'static [&'static str],
    /// When the generation goes up.
    pub generation: Generation,
    /// Whether the resource deletes in two steps, with a period of grace.
    pub graceful: bool,
    /// Whether a deletion answers with the object.
    pub returns_deleted: bool,
    /// Whether a deletion leaves dependents alone where nothing else is asked for.
    pub orphans_dependents: bool,
    /// Whether an update of an absent object creates it.
    pub create_on_update: bool,
    /// Whether an update may leave the resource version out.
    pub unconditional: bool,
    /// What writes of the object itself ignore.
    pub reset: Reset,
    /// What writes of the status ignore.
    pub reset_status: Reset,
}

fn nothing(_: &mut Value) {}

fn nothing_new(_: &mut Value, _: &Value) {}

fn fine(_: &Value) -> Vec<FieldError> {
    Vec::new()
}

fn fine_update(_: &Value, _: &Value) -> Vec<FieldError> {
    Vec::new()
}

fn no_warnings(_: &Value) -> Vec<String> {
    Vec::new()
}

fn no_fields(_: &Value) -> Fields {
    Vec::new()
}

const STATUS: Reset = &[&["f:status"]];
const SPEC: Reset = &[&["f:spec"]];

const PLAIN: Rules = Rules {
    name: names::dns_subdomain,
    default: nothing,
    prepare_create: nothing,
    finish_unlabelled: nothing,
    prepare_update: nothing_new,
    prepare_status: nothing_new,
    check: fine,
    check_update: fine_update,
    check_status: fine_update,
    warnings: no_warnings,
    fields: no_fields,
    selectable: &[],
    generation: Generation::Unused,
    graceful: false,
    returns_deleted: false,
    orphans_dependents: false,
    create_on_update: false,
    unconditional: true,
    reset: &[],
    reset_status: &[],
};

/// The rules of all custom resources.
pub(crate) static CUSTOM: Rules = Rules {
    generation: Generation::Custom,
    unconditional: false,
    reset: STATUS,
    reset_status: &[&["f:spec"], &["f:metadata"]],
    ..PLAIN
};
