//! Server-side printing: objects as the rows and columns that `kubectl get` shows.
//!
//! Columns, their order and the texts in the cells are those of Kubernetes; descriptions are our own.

pub mod age;
mod batch;
mod budget;
mod cluster;
mod custom;
mod hpa;
mod ingress;
pub mod jsonpath;
mod network;
mod pod;
mod workload;

#[cfg(test)]
mod tests;

use crate::value::{self, list, text};
use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::{Value, json};

pub use custom::{CustomColumn, CustomColumns};

/// One column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Heading.
    pub name: Cow<'static, str>,
    /// OpenAPI type of the cells: `string`, `integer`, `number`, `boolean` or `date`.
    pub kind: Cow<'static, str>,
    /// OpenAPI format; `name` marks the column that names the object.
    pub format: Cow<'static, str>,
    /// What the column tells.
    pub description: Cow<'static, str>,
    /// 0: always shown; above: only in wide output.
    pub priority: i64,
}

impl Column {
    const fn text(name: &'static str, description: &'static str) -> Self {
        Self::new(name, "string", "", 0, description)
    }

    const fn integer(name: &'static str, description: &'static str) -> Self {
        Self::new(name, "integer", "", 0, description)
    }

    const fn wide(name: &'static str, description: &'static str) -> Self {
        Self::new(name, "string", "", 1, description)
    }

    const fn name() -> Self {
        Self::new("Name", "string", "name", 0, "Name of the object, unique within its namespace.")
    }

    const fn age() -> Self {
        Self::new("Age", "string", "", 0, "Time since the object was created.")
    }

    const fn new(
        name: &'static str,
        kind: &'static str,
        format: &'static str,
        priority: i64,
        description: &'static str,
    ) -> Self {
        Self {
            name: Cow::Borrowed(name),
            kind: Cow::Borrowed(kind),
            format: Cow::Borrowed(format),
            description: Cow::Borrowed(description),
            priority,
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "type": self.kind,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        })
    }
}

/// The cells of one object, in the order of the columns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    /// One JSON value per column.
    pub cells: Vec<Value>,
    /// Row conditions; tells clients that a pod has run to its end.
    pub conditions: Option<Value>,
}

impl From<Vec<Value>> for Row {
    fn from(cells: Vec<Value>) -> Self {
        Self { cells, conditions: None }
    }
}

/// How much of each object a table carries along.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IncludeObject {
    /// Its metadata, as PartialObjectMetadata.
    #[default]
    Metadata,
    /// The whole object.
    Object,
    /// Nothing.
    None,
}

impl IncludeObject {
    /// Reads the `includeObject` query parameter; the error is the server's message.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "" | "Metadata" => Ok(Self::Metadata),
            "Object" => Ok(Self::Object),
            "None" => Ok(Self::None),
            other => Err(format!("unrecognized includeObject value: {other:?}")),
        }
    }
}

type PrintRow = fn(&Value, Timestamp) -> Row;

/// Prints the objects of one resource.
#[derive(Debug, Clone)]
pub struct Printer {
    columns: Vec<Column>,
    rows: Rows,
}

#[derive(Debug, Clone)]
enum Rows {
    BuiltIn(PrintRow),
    Custom(CustomColumns),
}

impl Printer {
    /// The printer of a built-in resource; name and creation time for those without columns of their own.
    pub fn built_in(group: &str, plural: &str) -> Self {
        let (columns, print): (Vec<Column>, PrintRow) = match (group, plural) {
            ("", "pods") => (pod::columns(), pod::row),
            ("", "replicationcontrollers") => {
                (workload::replica_columns(), workload::replication_controller_row)
            }
            ("apps", "replicasets") => (workload::replica_columns(), workload::replica_set_row),
            ("apps", "daemonsets") => (workload::daemon_set_columns(), workload::daemon_set_row),
            ("apps", "deployments") => (workload::deployment_columns(), workload::deployment_row),
            ("apps", "statefulsets") => {
                (workload::stateful_set_columns(), workload::stateful_set_row)
            }
            ("batch", "jobs") => (batch::job_columns(), batch::job_row),
            ("batch", "cronjobs") => (batch::cron_job_columns(), batch::cron_job_row),
            ("policy", "poddisruptionbudgets") => {
                (budget::disruption_columns(), budget::disruption_row)
            }
            ("", "resourcequotas") => (budget::quota_columns(), budget::quota_row),
            ("", "persistentvolumeclaims") => (budget::claim_columns(), budget::claim_row),
            ("networking.k8s.io", "ingresses") => (ingress::columns(), ingress::row),
            ("networking.k8s.io", "ingressclasses") => {
                (ingress::class_columns(), ingress::class_row)
            }
            ("networking.k8s.io", "networkpolicies") => {
                (ingress::policy_columns(), ingress::policy_row)
            }
            ("", "services") => (network::service_columns(), network::service_row),
            ("", "endpoints") => (network::endpoints_columns(), network::endpoints_row),
            ("discovery.k8s.io", "endpointslices") => {
                (network::endpoint_slice_columns(), network::endpoint_slice_row)
            }
            ("", "nodes") => (cluster::node_columns(), cluster::node_row),
            ("", "namespaces") => (cluster::namespace_columns(), cluster::namespace_row),
            ("" | "events.k8s.io", "events") => (cluster::event_columns(), cluster::event_row),
            ("", "configmaps") => (cluster::config_map_columns(), cluster::config_map_row),
            ("", "secrets") => (cluster::secret_columns(), cluster::secret_row),
            ("", "serviceaccounts") => (vec![Column::name(), Column::age()], cluster::named_row),
            ("coordination.k8s.io", "leases") => (cluster::lease_columns(), cluster::lease_row),
            ("autoscaling", "horizontalpodautoscalers") => (hpa::columns(), hpa::row),
            ("autoscaling", "scales") => (workload::scale_columns(), workload::scale_row),
            ("apiregistration.k8s.io", "apiservices") => {
                (cluster::api_service_columns(), cluster::api_service_row)
            }
            _ => (cluster::default_columns(), cluster::default_row),
        };
        Self { columns, rows: Rows::BuiltIn(print) }
    }

    /// The printer of a custom resource, from the `additionalPrinterColumns` of its version.
    pub fn custom(columns: CustomColumns) -> Self {
        let headings = columns.headings();
        Self { columns: headings, rows: Rows::Custom(columns) }
    }

    /// The columns, in order.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The cells of one object at the given time.
    pub fn row(&self, object: &Value, now: Timestamp) -> Row {
        match &self.rows {
            Rows::BuiltIn(print) => print(object, now),
            Rows::Custom(columns) => columns.row(object, now),
        }
    }

    /// One row of a Table as JSON.
    pub fn row_json(&self, object: &Value, include: IncludeObject, now: Timestamp) -> Value {
        let row = self.row(object, now);
        let mut out = serde_json::Map::new();
        out.insert("cells".to_owned(), Value::Array(row.cells));
        if let Some(conditions) = row.conditions {
            out.insert("conditions".to_owned(), conditions);
        }
        let included = match include {
            IncludeObject::Metadata => partial_object_metadata(object),
            IncludeObject::Object => object.clone(),
            IncludeObject::None => Value::Null,
        };
        out.insert("object".to_owned(), included);
        Value::Object(out)
    }

    /// The column definitions as JSON.
    pub fn columns_json(&self) -> Value {
        self.columns.iter().map(Column::to_json).collect()
    }

    /// A whole Table; `metadata` is that of the list or object, and a watch leaves out the headers
    /// from its second event on.
    pub fn table<'a>(
        &self,
        items: impl IntoIterator<Item = &'a Value>,
        metadata: Value,
        include: IncludeObject,
        headers: bool,
        now: Timestamp,
    ) -> Value {
        let rows: Vec<Value> =
            items.into_iter().map(|item| self.row_json(item, include, now)).collect();
        json!({
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata,
            "columnDefinitions": if headers { self.columns_json() } else { Value::Null },
            "rows": rows,
        })
    }
}

/// An object's metadata alone, as the PartialObjectMetadata kind.
pub fn partial_object_metadata(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object.get("metadata").cloned().unwrap_or_else(|| json!({})),
    })
}

/// The integer at a JSON pointer, or zero.
fn integer(object: &Value, pointer: &str) -> i64 {
    value::integer(object, pointer).unwrap_or_default()
}

/// How many keys the object at a JSON pointer has.
fn entries(object: &Value, pointer: &str) -> usize {
    object.pointer(pointer).and_then(Value::as_object).map_or(0, serde_json::Map::len)
}

/// The text itself, or what to show instead of an empty one.
fn or_else<'a>(text: &'a str, instead: &'a str) -> &'a str {
    if text.is_empty() { instead } else { text }
}

fn name_cell(object: &Value) -> Value {
    text(object, "/metadata/name").into()
}

fn age_cell(object: &Value, now: Timestamp) -> Value {
    age::since(text(object, "/metadata/creationTimestamp"), now).into()
}

/// `first,second + N more...` for the items past the limit.
fn shortened(items: &[String], limit: usize, separator: &str) -> String {
    let shown = items.iter().take(limit).map(String::as_str).collect::<Vec<_>>().join(separator);
    match items.len().saturating_sub(limit) {
        0 => shown,
        more => format!("{shown} + {more} more..."),
    }
}
