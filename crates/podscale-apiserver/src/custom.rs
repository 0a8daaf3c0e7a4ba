//! Custom resources: what a CustomResourceDefinition makes of the server.

use podscale_api::field_error::FieldError;
use serde_json::Value;

use crate::crd::{self, Schema};
use crate::resource::{ALL_VERBS, ResourceInfo, ScalePaths, Subresource};
use crate::table::CustomColumns;
use crate::value::{list, text};

/// One version of a custom resource.
#[derive(Debug)]
pub(crate) struct Custom {
    pub info: ResourceInfo,
    pub columns: CustomColumns,
    /// Version in which objects are stored.
    pub storage_api_version: String,
    /// The schema as JSON, for field ownership.
    pub raw_schema: Option<Value>,
    schema: Option<Schema>,
}

impl Custom {
    /// Removes fields that the schema does not have, and returns which.
    pub(crate) fn prune(&self, object: &mut Value) -> Result<Vec<String>, FieldError> {
        self.schema.as_ref().map_or(Ok(Vec::new()), |schema| crd::prune(object, schema))
    }

    /// Fills in the schema's defaults.
    pub(crate) fn fill_defaults(&self, object: &mut Value) {
        if let Some(schema) = &self.schema {
            crd::fill_defaults(object, schema);
        }
    }

    /// Checks an object against the schema; the status endpoint does not look at the scale's spec.
    pub(crate) fn check(&self, object: &Value, old: Option<&Value>, spec: bool) -> Vec<FieldError> {
        let mut errors = match &self.schema {
            Some(schema) => crd::check(object, old, schema),
            None => Vec::new(),
        };
        if let Some(paths) = self.info.scale() {
            errors.extend(crd::check_scale(object, paths, spec));
        }
        errors
    }
}

/// The served versions that a definition describes, the preferred first.
pub(crate) fn versions(definition: &Value) -> Vec<Custom> {
    let spec = definition.get("spec").unwrap_or(&Value::Null);
    let group = text(spec, "/group");
    let versions = list(spec, "/versions");
    let flag = |version: &Value, name: &str| {
        version.get(name).and_then(Value::as_bool).unwrap_or_default()
    };
    let storage = versions.iter().find(|version| flag(version, "storage"));
    let storage = storage.map_or("", |version| text(version, "/name"));
    let texts = |pointer: &str| -> Vec<String> {
        list(spec, pointer).iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let served = versions.iter().filter(|version| flag(version, "served"));
    let mut customs: Vec<Custom> = served
        .map(|version| Custom {
            info: ResourceInfo {
                group: group.to_owned(),
                version: text(version, "/name").to_owned(),
                kind: text(spec, "/names/kind").to_owned(),
                list_kind: text(spec, "/names/listKind").to_owned(),
                plural: text(spec, "/names/plural").to_owned(),
                singular: text(spec, "/names/singular").to_owned(),
                short_names: texts("/names/shortNames"),
                categories: texts("/names/categories"),
                namespaced: text(spec, "/scope") == "Namespaced",
                verbs: ALL_VERBS,
                subresources: subresources(version),
                custom: true,
            },
            columns: CustomColumns::parse(list(version, "/additionalPrinterColumns"))
                .unwrap_or_default(),
            storage_api_version: crate::resource::api_version(group, storage),
            raw_schema: version.pointer("/schema/openAPIV3Schema").cloned(),
            // Definitions with unreadable schemas are refused, so this reads.
            schema: version
                .pointer("/schema/openAPIV3Schema")
                .and_then(|schema| Schema::parse(schema).ok()),
        })
        .collect();
    customs.sort_by_key(|custom| std::cmp::Reverse(version_order(&custom.info.version)));
    customs
}

fn subresources(version: &Value) -> Vec<Subresource> {
    let mut found = Vec::new();
    if version.pointer("/subresources/status").is_some_and(Value::is_object) {
        found.push(Subresource::Status);
    }
    if let Some(scale) = version.pointer("/subresources/scale").filter(|scale| scale.is_object()) {
        let selector = text(scale, "/labelSelectorPath");
        found.push(Subresource::Scale(ScalePaths {
            spec_replicas: text(scale, "/specReplicasPath").to_owned(),
            status_replicas: text(scale, "/statusReplicasPath").to_owned(),
            selector: (!selector.is_empty()).then(|| selector.to_owned()),
        }));
    }
    found
}

/// Versions in Kubernetes' order of preference: stable before beta before alpha, higher first.
fn version_order(version: &str) -> (u8, u64, u64, std::cmp::Reverse<String>) {
    let plain = || (0, 0, 0, std::cmp::Reverse(version.to_owned()));
    let Some(rest) = version.strip_prefix('v') else { return plain() };
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (major, rest) = rest.split_at(end);
    let Ok(major) = major.parse() else { return plain() };
    let stage = |word: &str, rank: u8| {
        let minor = rest.strip_prefix(word)?.parse().ok()?;
        Some((rank, major, minor, std::cmp::Reverse(String::new())))
    };
    if rest.is_empty() {
        return (3, major, 0, std::cmp::Reverse(String::new()));
    }
    stage("beta", 2).or_else(|| stage("alpha", 1)).unwrap_or_else(plain)
}
