//! Which resources of Kubernetes the labels of a series name, and the other way round.

use super::query::QueryError;
use super::series::expression;
use super::template::{Template, Value};
use regex::Regex;
use std::collections::HashSet;
use std::sync::Arc;

/// A kind of object as the API knows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Resource {
    /// The API group; empty for the core.
    pub group: Box<str>,
    /// The version, as references to objects need it.
    pub version: Box<str>,
    /// The name in paths, such as `pods`.
    pub plural: Box<str>,
    /// The name of one, such as `pod`.
    pub singular: Box<str>,
    /// The kind, such as `Pod`.
    pub kind: Box<str>,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
}

impl Resource {
    /// A resource from its parts, in the order of the fields.
    #[must_use]
    pub fn new([group, version, plural, singular, kind]: [&str; 5], namespaced: bool) -> Resource {
        Resource {
            group: group.into(),
            version: version.into(),
            plural: plural.into(),
            singular: singular.into(),
            kind: kind.into(),
            namespaced,
        }
    }

    /// Whether it is the one of Kubernetes' namespaces.
    #[must_use]
    pub fn is_namespace(&self) -> bool {
        self.group.is_empty() && &*self.plural == "namespaces"
    }

    /// As errors name it: `deployments.apps`.
    #[must_use]
    pub fn name(&self) -> String {
        if self.group.is_empty() {
            self.plural.to_string()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    fn is(&self, other: &Resource) -> bool {
        (&self.group, &self.plural) == (&other.group, &other.plural)
    }
}

/// Knows which resources there are.
pub trait Resources: Send + Sync {
    /// The resource of that name, singular or plural; an empty group stands for any.
    fn find(&self, group: &str, resource: &str) -> Option<Arc<Resource>>;
}

/// A list of resources; of several that fit, the first one counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownResources(Vec<Arc<Resource>>);

impl KnownResources {
    /// These and no others.
    pub fn new(resources: impl IntoIterator<Item = Resource>) -> KnownResources {
        KnownResources(resources.into_iter().map(Arc::new).collect())
    }

    /// These, and of others those that are not among them.
    #[must_use]
    pub fn and(mut self, others: impl IntoIterator<Item = Resource>) -> KnownResources {
        let known: HashSet<(Box<str>, Box<str>)> =
            self.0.iter().map(|known| (known.group.clone(), known.plural.clone())).collect();
        let new = |other: &Resource| !known.contains(&(other.group.clone(), other.plural.clone()));
        self.0.extend(others.into_iter().filter(new).map(Arc::new));
        self
    }

    /// Those that every cluster has and metrics are usually about.
    #[must_use]
    pub fn everyday() -> KnownResources {
        let root = |parts| Resource::new(parts, false);
        let namespaced = |parts| Resource::new(parts, true);
        KnownResources::new([
            root(["", "v1", "namespaces", "namespace", "Namespace"]),
            root(["", "v1", "nodes", "node", "Node"]),
            root(["", "v1", "persistentvolumes", "persistentvolume", "PersistentVolume"]),
            namespaced(["", "v1", "pods", "pod", "Pod"]),
            namespaced(["", "v1", "services", "service", "Service"]),
            namespaced(["", "v1", "endpoints", "endpoints", "Endpoints"]),
            namespaced([
                "",
                "v1",
                "persistentvolumeclaims",
                "persistentvolumeclaim",
                "PersistentVolumeClaim",
            ]),
            namespaced([
                "",
                "v1",
                "replicationcontrollers",
                "replicationcontroller",
                "ReplicationController",
            ]),
            namespaced(["apps", "v1", "deployments", "deployment", "Deployment"]),
            namespaced(["apps", "v1", "statefulsets", "statefulset", "StatefulSet"]),
            namespaced(["apps", "v1", "replicasets", "replicaset", "ReplicaSet"]),
            namespaced(["apps", "v1", "daemonsets", "daemonset", "DaemonSet"]),
            namespaced(["batch", "v1", "jobs", "job", "Job"]),
            namespaced(["batch", "v1", "cronjobs", "cronjob", "CronJob"]),
            namespaced(["networking.k8s.io", "v1", "ingresses", "ingress", "Ingress"]),
            namespaced([
                "autoscaling",
                "v2",
                "horizontalpodautoscalers",
                "horizontalpodautoscaler",
                "HorizontalPodAutoscaler",
            ]),
        ])
    }
}

impl Resources for KnownResources {
    fn find(&self, group: &str, resource: &str) -> Option<Arc<Resource>> {
        // As Kubernetes' own mapper: names are written in small letters, whichever way they are asked for.
        let resource = resource.to_lowercase();
        let named =
            |known: &&Arc<Resource>| *known.plural == *resource || *known.singular == *resource;
        // As Kubernetes' own mapper: the exact group, then one that begins so; and as labels write it.
        let fits: [&dyn Fn(&Resource) -> bool; 3] = [
            &|known| group.is_empty() || *known.group == *group,
            &|known| label_form(&known.group) == group,
            &|known| known.group.starts_with(group),
        ];
        let find = |fits: &dyn Fn(&Resource) -> bool| {
            self.0.iter().filter(named).find(|known| fits(known)).cloned()
        };
        fits.into_iter().find_map(find)
    }
}

/// A group as it can be part of a label.
fn label_form(group: &str) -> String {
    group.replace(['.', '-'], "_")
}

/// A group and a resource as a rule names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GroupResource {
    pub(super) group: String,
    pub(super) resource: String,
}

/// How the labels of a rule's series name resources.
#[derive(Clone, Debug, Default)]
pub(super) struct ResourceMapping {
    /// Labels of one form.
    pub(super) template: Option<LabelTemplate>,
    /// Single labels, which go before the template.
    pub(super) overrides: Vec<(Box<str>, GroupResource)>,
}

/// The form of labels that name resources.
#[derive(Clone, Debug)]
pub(super) struct LabelTemplate {
    template: Template,
    expression: Regex,
}

impl LabelTemplate {
    /// Reads a template such as `kube_<<.Group>>_<<.Resource>>`.
    pub(super) fn parse(text: &str) -> Result<LabelTemplate, String> {
        let template = Template::parse(text).map_err(|error| error.to_string())?;
        let parts = names("(?P<group>.+?)", "(?P<resource>.+?)");
        let pattern = template.render(&parts).map_err(|error| error.to_string())?;
        let expression = expression(&format!("^{pattern}$"))?;
        if !expression.capture_names().flatten().any(|name| name == "resource") {
            return Err("must contain <<.Resource>>".to_owned());
        }
        Ok(LabelTemplate { template, expression })
    }

    fn label(&self, resource: &Resource) -> Result<String, QueryError> {
        let no_label = |why: String| QueryError::NoLabel { resource: resource.name(), why };
        let parts = names(&label_form(&resource.group), &resource.singular);
        match self.template.render(&parts) {
            Ok(label) if label.is_empty() => Err(no_label("the template gives nothing".into())),
            Ok(label) => Ok(label),
            Err(error) => Err(no_label(error.to_string())),
        }
    }

    fn resource(&self, label: &str, resources: &dyn Resources) -> Option<Arc<Resource>> {
        let found = self.expression.captures(label)?;
        let resource = found.name("resource")?;
        let Some(group) = found.name("group") else {
            return resources.find("", resource.as_str());
        };
        let first = resources.find(group.as_str(), resource.as_str());
        if first.is_some() || group.end() >= resource.start() {
            return first;
        }
        // A group with dots has what is between group and resource in itself: any of them may be the end.
        let between = label.get(group.end()..resource.start())?;
        let both = label.get(group.start()..resource.end())?;
        both.match_indices(between)
            .find_map(|(at, _)| resources.find(both.get(..at)?, both.get(at + between.len()..)?))
    }
}

fn names(group: &str, resource: &str) -> Value {
    Value::record([("Group", Value::text(group)), ("Resource", Value::text(resource))])
}

impl ResourceMapping {
    /// Whether it names no resource at all.
    pub(super) fn is_empty(&self) -> bool {
        self.template.is_none() && self.overrides.is_empty()
    }

    /// The labels for which resources are named that are not known, and what is to be said of them.
    pub(super) fn unknown(&self, resources: &dyn Resources) -> Vec<(&str, String)> {
        let missing = |(_, named): &&(Box<str>, GroupResource)| {
            resources.find(&named.group, &named.resource).is_none()
        };
        let text = |GroupResource { group, resource }: &GroupResource| match group.as_str() {
            "" => format!("the cluster has no resource {resource:?}"),
            group => format!("the cluster has no resource {resource:?} in the group {group:?}"),
        };
        let unknown = self.overrides.iter().filter(missing);
        unknown.map(|(label, named)| (&**label, text(named))).collect()
    }

    /// The label that holds the name of an object.
    pub(super) fn label(
        &self,
        resource: &Resource,
        resources: &dyn Resources,
    ) -> Result<String, QueryError> {
        let is_meant = |named: &GroupResource| {
            let found = resources.find(&named.group, &named.resource);
            found.is_some_and(|found| found.is(resource))
        };
        if let Some((label, _)) = self.overrides.iter().find(|(_, named)| is_meant(named)) {
            return Ok(label.to_string());
        }
        match &self.template {
            Some(template) => template.label(resource),
            None => Err(QueryError::NoLabel {
                resource: resource.name(),
                why: "the rule's resources have neither an override for it nor a template".into(),
            }),
        }
    }

    /// The resource that a label names, if it does.
    pub(super) fn resource(&self, label: &str, resources: &dyn Resources) -> Option<Arc<Resource>> {
        match self.overrides.iter().find(|(known, _)| **known == *label) {
            Some((_, named)) => resources.find(&named.group, &named.resource),
            None => self.template.as_ref()?.resource(label, resources),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_found_by_either_name_and_by_parts_of_their_group() {
        let known = KnownResources::everyday().and([
            Resource::new(["cheese.io", "v1", "brands", "brand", "Brand"], false),
            Resource::new(["apps", "v9", "deployments", "deploy", "Deployment"], false),
        ]);
        for (group, resource, expected) in [
            ("", "pod", Some("pods")),
            ("", "pods", Some("pods")),
            ("", "deployment", Some("deployments.apps")),
            ("apps", "deployments", Some("deployments.apps")),
            ("apps", "Deployment", Some("deployments.apps")),
            ("", "deploy", None),
            ("networking", "ingress", Some("ingresses.networking.k8s.io")),
            ("networking_k8s_io", "ingress", Some("ingresses.networking.k8s.io")),
            ("cheese_io", "brand", Some("brands.cheese.io")),
            ("batch", "deployment", None),
            ("", "cheese", None),
        ] {
            let found = known.find(group, resource).map(|found| found.name());
            assert_eq!(found.as_deref(), expected, "{group} {resource}");
        }
    }
}
