//! The record of who wrote what (`metadata.managedFields`), and server-side apply on top of it.

use serde_json::{Value, json};

use super::merge::{compare, fields_of, merge, remove};
use super::{FieldSet, Shape};
use crate::status::ApiError;

/// Most writers recorded for updates before the oldest are lumped together.
const MAX_UPDATERS: usize = 10;
/// The name under which lumped writers go.
const ANCIENT: &str = "ancient-changes";

/// Fields of metadata that nobody owns.
const UNOWNED: [&[&str]; 11] = [
    &["f:apiVersion"],
    &["f:kind"],
    &["f:metadata", "f:name"],
    &["f:metadata", "f:namespace"],
    &["f:metadata", "f:creationTimestamp"],
    &["f:metadata", "f:selfLink"],
    &["f:metadata", "f:uid"],
    &["f:metadata", "f:clusterName"],
    &["f:metadata", "f:generation"],
    &["f:metadata", "f:managedFields"],
    &["f:metadata", "f:resourceVersion"],
];

/// One entry of the record.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    manager: String,
    applied: bool,
    api_version: String,
    subresource: String,
    time: Option<String>,
    fields: FieldSet,
}

/// The whole record of an object.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Managers(Vec<Entry>);

/// Who writes.
#[derive(Debug, Clone, Copy)]
pub struct Writer<'a> {
    /// Name of the field manager.
    pub manager: &'a str,
    /// Version in which the object was sent.
    pub api_version: &'a str,
    /// Subresource that was written to; empty for the object itself.
    pub subresource: &'a str,
    /// When.
    pub time: &'a str,
    /// Fields that this endpoint ignores, as paths of steps.
    pub reset: &'a [&'a [&'a str]],
}

/// A write of a whole object.
#[derive(Debug)]
pub struct UpdateRequest<'a> {
    /// How the object is divided.
    pub shape: Shape<'a>,
    /// The object before; the empty object when it is created.
    pub live: &'a Value,
    /// Who writes.
    pub writer: Writer<'a>,
}

/// A server-side apply.
#[derive(Debug)]
pub struct ApplyRequest<'a> {
    /// How the object is divided.
    pub shape: Shape<'a>,
    /// The object before; the empty object when it is created.
    pub live: &'a Value,
    /// What was applied.
    pub config: &'a Value,
    /// Who applies.
    pub writer: Writer<'a>,
    /// Whether to take fields from others.
    pub force: bool,
}

impl Managers {
    /// Reads the record of an object.
    pub fn of(object: &Value) -> Self {
        let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
        let text = |entry: &Value, name: &str| {
            entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let read = |entry: &Value| Entry {
            manager: text(entry, "manager"),
            applied: entry.get("operation").and_then(Value::as_str) == Some("Apply"),
            api_version: text(entry, "apiVersion"),
            subresource: text(entry, "subresource"),
            time: entry.get("time").and_then(Value::as_str).map(str::to_owned),
            fields: entry.get("fieldsV1").map(FieldSet::from_value).unwrap_or_default(),
        };
        Self(entries.into_iter().flatten().map(read).collect())
    }

    /// Writes the record into an object.
    pub fn write(mut self, object: &mut Value) {
        self.0.retain(|entry| !entry.fields.is_empty());
        self.lump();
        self.0.sort_by(|a, b| {
            (!a.applied, &a.time, &a.manager, &a.api_version, &a.subresource).cmp(&(
                !b.applied,
                &b.time,
                &b.manager,
                &b.api_version,
                &b.subresource,
            ))
        });
        let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
            return;
        };
        metadata.remove("managedFields");
        if !self.0.is_empty() {
            let entries = self.0.iter().map(Entry::to_value).collect();
            metadata.insert("managedFields".to_owned(), Value::Array(entries));
        }
    }

    /// Lumps the oldest updaters of a version together when there are too many.
    fn lump(&mut self) {
        loop {
            let updaters = self.0.iter().filter(|entry| !entry.applied).count();
            if updaters <= MAX_UPDATERS {
                return;
            }
            let oldest = |entries: &[Entry]| {
                let open = entries
                    .iter()
                    .enumerate()
                    .filter(|(_, entry)| !entry.applied && entry.manager != ANCIENT);
                open.min_by(|(_, a), (_, b)| a.time.cmp(&b.time)).map(|(at, _)| at)
            };
            let Some(at) = oldest(&self.0) else { return };
            let mut entry = self.0.remove(at);
            let home = self.0.iter_mut().find(|other| {
                other.manager == ANCIENT && !other.applied && other.api_version == entry.api_version
            });
            match home {
                Some(home) => {
                    home.fields.add(&entry.fields);
                    home.time = entry.time;
                }
                None => {
                    entry.manager = ANCIENT.to_owned();
                    entry.subresource = String::new();
                    self.0.push(entry);
                }
            }
        }
    }

    fn position(&self, writer: &Writer<'_>, applied: bool) -> Option<usize> {
        self.0.iter().position(|entry| {
            entry.applied == applied
                && entry.manager == writer.manager
                && entry.subresource == writer.subresource
                && (applied || entry.api_version == writer.api_version)
        })
    }

    fn put(&mut self, writer: &Writer<'_>, applied: bool, fields: FieldSet) {
        let at = self.position(writer, applied);
        // The scale endpoint does not say when.
        let time = Some(writer.time.to_owned()).filter(|time| !time.is_empty());
        match at.and_then(|at| self.0.get_mut(at)) {
            Some(entry) => {
                if entry.fields != fields || entry.api_version != writer.api_version {
                    entry.time = time;
                }
                entry.fields = fields;
                entry.api_version = writer.api_version.to_owned();
            }
            None => self.0.push(Entry {
                manager: writer.manager.to_owned(),
                applied,
                api_version: writer.api_version.to_owned(),
                subresource: writer.subresource.to_owned(),
                time,
                fields,
            }),
        }
    }

    /// What a writer owned before.
    fn owned(&self, writer: &Writer<'_>, applied: bool) -> FieldSet {
        let entry = self.position(writer, applied).and_then(|at| self.0.get(at));
        entry.map(|entry| entry.fields.clone()).unwrap_or_default()
    }

    /// Takes fields away from everyone else of the same version.
    fn yield_to(&mut self, writer: &Writer<'_>, applied: bool, taken: &FieldSet, gone: &FieldSet) {
        let own = self.position(writer, applied);
        for (at, entry) in self.0.iter_mut().enumerate() {
            if Some(at) == own || entry.api_version != writer.api_version {
                continue;
            }
            let left = entry.fields.difference(taken).difference(gone);
            if left != entry.fields {
                entry.fields = left;
            }
        }
    }
}

impl Entry {
    fn to_value(&self) -> Value {
        let mut entry = json!({
            "manager": self.manager,
            "operation": if self.applied { "Apply" } else { "Update" },
            "apiVersion": self.api_version,
            "fieldsType": "FieldsV1",
            "fieldsV1": self.fields.to_value(),
        });
        if let Some(entry) = entry.as_object_mut() {
            if let Some(time) = &self.time {
                entry.insert("time".to_owned(), Value::from(time.as_str()));
            }
            if !self.subresource.is_empty() {
                entry.insert("subresource".to_owned(), Value::from(self.subresource.as_str()));
            }
        }
        entry
    }

    fn describe(&self) -> String {
        let mut text = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            text.push_str(&format!(" with subresource {:?}", self.subresource));
        }
        if !self.applied {
            text.push_str(&format!(" using {}", self.api_version));
        }
        text
    }
}

fn strip(set: &mut FieldSet, writer: &Writer<'_>) {
    for path in UNOWNED.iter().chain(writer.reset) {
        set.remove(path);
    }
    if let Some(metadata) = set.children.get_mut("f:metadata") {
        metadata.member = false;
        if metadata.is_empty() {
            set.children.remove("f:metadata");
        }
    }
}

/// Notes in `new` who owns what after a write of the whole object.
pub fn track_update(request: &UpdateRequest<'_>, new: &mut Value) {
    let given = new.pointer("/metadata/managedFields").and_then(Value::as_array);
    // `[{}]` is how clients ask for the record to be wiped.
    let wiped =
        given.is_some_and(|entries| entries.len() == 1 && entries.first() == Some(&json!({})));
    if wiped {
        Managers::default().write(new);
        return;
    }
    let mut managers = match given {
        Some(entries) if !entries.is_empty() => Managers::of(new),
        _ => Managers::of(request.live),
    };
    let mut found = compare(request.shape, request.live, new);
    strip(&mut found.changed, &request.writer);
    strip(&mut found.removed, &request.writer);
    let writer = &request.writer;
    managers.yield_to(writer, false, &found.changed, &found.removed);
    let fields = managers.owned(writer, false).union(&found.changed).difference(&found.removed);
    managers.put(writer, false, fields);
    managers.write(new);
}

/// The object after a server-side apply, with the record of owners in it.
pub fn track_apply(request: &ApplyRequest<'_>) -> Result<Value, ApiError> {
    let ApplyRequest { shape, live, config, writer, force } = request;
    let mut managers = Managers::of(live);
    let mut applied = fields_of(*shape, config);
    strip(&mut applied, writer);
    let before = managers.owned(writer, true);

    let mut merged = merge(*shape, (*live).clone(), config);
    let others = managers
        .0
        .iter()
        .enumerate()
        .filter(|(at, _)| Some(*at) != managers.position(writer, true))
        .fold(FieldSet::default(), |all, (_, entry)| all.union(&entry.fields));
    let kept = others.union(&applied);
    remove(*shape, &mut merged, &before.difference(&kept), &kept);

    let mut found = compare(*shape, live, &merged);
    strip(&mut found.changed, writer);
    strip(&mut found.removed, writer);
    if !force {
        refuse_conflicts(&managers, writer, &found.changed)?;
    }
    managers.yield_to(writer, true, &found.changed, &found.removed);
    managers.put(writer, true, applied);
    managers.write(&mut merged);
    Ok(merged)
}

fn refuse_conflicts(
    managers: &Managers,
    writer: &Writer<'_>,
    changed: &FieldSet,
) -> Result<(), ApiError> {
    let own = managers.position(writer, true);
    let mut conflicts: Vec<(String, String)> = Vec::new();
    for (at, entry) in managers.0.iter().enumerate() {
        if Some(at) == own || entry.api_version != writer.api_version {
            continue;
        }
        let both = entry.fields.intersection(changed);
        conflicts.extend(both.paths().into_iter().map(|path| (entry.describe(), path)));
    }
    if conflicts.is_empty() {
        return Ok(());
    }
    conflicts.sort();
    let causes = conflicts
        .iter()
        .map(|(manager, path)| {
            json!({
                "reason": "FieldManagerConflict",
                "message": format!("conflict with {manager}"),
                "field": path,
            })
        })
        .collect();
    Err(ApiError::apply_conflict(conflict_message(&conflicts), causes))
}

fn conflict_message(conflicts: &[(String, String)]) -> String {
    if let [(manager, path)] = conflicts {
        return format!("Apply failed with 1 conflict: conflict with {manager}: {path}");
    }
    let mut lines = Vec::new();
    let mut last = None;
    for (manager, path) in conflicts {
        if last != Some(manager) {
            lines.push(format!("conflicts with {manager}:"));
            last = Some(manager);
        }
        lines.push(format!("- {path}"));
    }
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}

/// An empty object, which a created one of unknown type is compared with.
pub(crate) fn blank() -> Value {
    json!({ "metadata": {} })
}
