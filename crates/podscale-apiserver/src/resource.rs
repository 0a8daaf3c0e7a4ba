//! What the server knows about a kind of object: its names, its scope and the paths it is served at.

mod builtin;

use std::sync::Arc;

pub use builtin::builtin;

/// One served resource of one version, as discovery describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceInfo {
    /// API group; empty for the core group.
    pub group: String,
    /// Version within the group, such as `v1`.
    pub version: String,
    /// Kind of a single object, such as `Deployment`.
    pub kind: String,
    /// Kind of a list, such as `DeploymentList`.
    pub list_kind: String,
    /// Plural name in paths, such as `deployments`.
    pub plural: String,
    /// Singular name, such as `deployment`.
    pub singular: String,
    /// Abbreviations that kubectl accepts, such as `deploy`.
    pub short_names: Vec<String>,
    /// Groups of resources that this one belongs to, such as `all`.
    pub categories: Vec<String>,
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// What can be done with the objects, in discovery's order.
    pub verbs: &'static [&'static str],
    /// Further endpoints below an object.
    pub subresources: Vec<Subresource>,
    /// Whether a CustomResourceDefinition (and not this program) defines it.
    pub custom: bool,
}

/// An endpoint below a single object, such as `status`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subresource {
    /// `status`: changes the status alone.
    Status,
    /// `scale`: the object seen as an `autoscaling/v1` Scale.
    Scale(ScalePaths),
    /// `finalize` of a namespace.
    Finalize,
    /// `eviction` of a pod.
    Eviction,
    /// `binding` of a pod to a node.
    Binding,
    /// `log` of a pod.
    Log,
    /// `token` of a service account.
    Token,
}

/// Where the fields of a Scale are found in the object, as dotted paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScalePaths {
    /// Path of the wanted number of replicas, such as `.spec.replicas`.
    pub spec_replicas: String,
    /// Path of the observed number of replicas, such as `.status.replicas`.
    pub status_replicas: String,
    /// Path of the selector: a label selector object for built-in kinds, its text for custom ones.
    pub selector: Option<String>,
}

/// The verbs of ordinary resources.
pub const ALL_VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

impl ResourceInfo {
    /// `group/version`, or the version alone for the core group.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    /// The name that error messages use: `deployments.apps`, `pods`.
    pub fn qualified(&self) -> String {
        qualified(&self.group, &self.plural)
    }

    /// Identifies the resource whatever its version.
    pub fn group_resource(&self) -> GroupResource {
        GroupResource { group: self.group.as_str().into(), resource: self.plural.as_str().into() }
    }

    /// Whether status is a separate endpoint.
    pub fn has_status(&self) -> bool {
        self.subresources.contains(&Subresource::Status)
    }

    /// Where the scale's fields are, if there is a scale endpoint.
    pub fn scale(&self) -> Option<&ScalePaths> {
        self.subresources.iter().find_map(|subresource| match subresource {
            Subresource::Scale(paths) => Some(paths),
            _ => None,
        })
    }
}

/// `group/version`, or the version alone for the core group.
pub fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// `plural.group`, or the plural alone for the core group.
pub fn qualified(group: &str, plural: &str) -> String {
    if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
}

/// A resource whatever its version; objects are stored under it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupResource {
    /// API group; empty for the core group.
    pub group: Arc<str>,
    /// Plural name.
    pub resource: Arc<str>,
}

impl std::fmt::Display for GroupResource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&qualified(&self.group, &self.resource))
    }
}

impl Subresource {
    /// Last part of the path.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Scale(_) => "scale",
            Self::Finalize => "finalize",
            Self::Eviction => "eviction",
            Self::Binding => "binding",
            Self::Log => "log",
            Self::Token => "token",
        }
    }
}
