//! What containers and nodes use, by `resourceRules`.

use super::matchers::Matchers;
use super::query::{QueryError, namespaces, render};
use super::resources::{KnownResources, Resource, ResourceMapping, Resources};
use super::template::Template;
use super::values::milli;
use super::{RuleError, RuleSet};
use crate::prometheus::{Sample, Vector};
use jiff::Timestamp;
use std::time::Duration;

/// How cpu and memory are asked for.
#[derive(Clone, Debug)]
pub struct ResourceRules {
    /// Cores.
    pub cpu: UsageRule,
    /// Bytes.
    pub memory: UsageRule,
    /// Over how long rates are computed.
    pub window: Duration,
}

/// How one resource is asked for.
#[derive(Clone, Debug)]
pub struct UsageRule {
    pub(super) containers: Template,
    pub(super) nodes: Option<Template>,
    pub(super) resources: ResourceMapping,
    pub(super) container_label: Box<str>,
}

/// What can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Measured {
    /// Cores.
    Cpu,
    /// Bytes.
    Memory,
}

impl Measured {
    /// The name of the resource.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Measured::Cpu => "cpu",
            Measured::Memory => "memory",
        }
    }
}

/// Whose pods are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope<'a> {
    /// All pods of all namespaces.
    Cluster,
    /// All pods of a namespace.
    Namespace(&'a str),
    /// These pods of a namespace.
    Pods(&'a str, &'a [&'a str]),
}

/// A query and the labels that its answer is read by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageQuery {
    /// The text for Prometheus.
    pub text: String,
    /// The label that holds the namespace; empty if one namespace is asked for.
    pub namespace_label: String,
    /// The label that holds the name of the pod or node.
    pub name_label: String,
    /// The label that holds the name of the container; empty for nodes.
    pub container_label: String,
}

/// What a container or a node uses.
#[derive(Clone, Debug, PartialEq)]
pub struct Used {
    /// The namespace; empty for nodes, and where it was asked for.
    pub namespace: Box<str>,
    /// The pod or the node.
    pub name: Box<str>,
    /// The container; empty for nodes.
    pub container: Box<str>,
    /// Thousandths of cores or of bytes; NaN and negative numbers are 0.
    pub milli: i64,
    /// When it was computed.
    pub time: Timestamp,
}

/// What cAdvisor measures, as kubelets and most installations of Prometheus label it.
const DEFAULT: &str = r#"
resourceRules:
  cpu:
    containerQuery: sum by (<<.GroupBy>>) (irate(container_cpu_usage_seconds_total{<<.LabelMatchers>>,container!="",container!="POD"}[4m]))
    nodeQuery: sum by (<<.GroupBy>>) (irate(node_cpu_usage_seconds_total{<<.LabelMatchers>>}[4m]))
    resources: {overrides: {node: {resource: node}, namespace: {resource: namespace}, pod: {resource: pod}}}
    containerLabel: container
  memory:
    containerQuery: sum by (<<.GroupBy>>) (container_memory_working_set_bytes{<<.LabelMatchers>>,container!="",container!="POD"})
    nodeQuery: sum by (<<.GroupBy>>) (node_memory_working_set_bytes{<<.LabelMatchers>>})
    resources: {overrides: {node: {resource: node}, namespace: {resource: namespace}, pod: {resource: pod}}}
    containerLabel: container
  window: 4m
"#;

impl ResourceRules {
    /// The rules for the series of kubelets as Prometheus usually has them.
    ///
    /// # Errors
    /// Never: a test reads them.
    pub fn everyday() -> Result<ResourceRules, Vec<RuleError>> {
        let rules = RuleSet::parse(DEFAULT)?;
        rules.resource.ok_or_else(|| vec![RuleError::whole("no resourceRules")])
    }

    /// How one resource is asked for.
    #[must_use]
    pub fn of(&self, measured: Measured) -> &UsageRule {
        match measured {
            Measured::Cpu => &self.cpu,
            Measured::Memory => &self.memory,
        }
    }
}

impl UsageRule {
    /// Whether all namespaces can be asked for at once: only if the query groups by what it is told to.
    #[must_use]
    pub fn serves_cluster(&self) -> bool {
        self.containers.mentions("GroupBy") || self.containers.mentions("GroupBySlice")
    }

    /// The query for what containers use.
    ///
    /// # Errors
    /// The rule does not name the labels it needs.
    pub fn container_query(&self, scope: Scope<'_>) -> Result<UsageQuery, QueryError> {
        let known = KnownResources::everyday();
        let label = |resource: &Resource| self.resources.label(resource, &known);
        let pods = Resource::new(["", "v1", "pods", "pod", "Pod"], true);
        let (namespace_label, name_label) = (label(&namespaces())?, label(&pods)?);
        let mut matchers = Matchers::default();
        match scope {
            Scope::Cluster => {
                matchers.exists(&namespace_label);
                matchers.exists(&name_label);
            }
            Scope::Namespace(namespace) => {
                matchers.equals(&namespace_label, namespace);
                matchers.exists(&name_label);
            }
            Scope::Pods(namespace, pods) => {
                matchers.equals(&namespace_label, namespace);
                matchers.one_of(&name_label, pods);
            }
        }
        let mut group_by = vec![&*name_label, &*self.container_label];
        if scope == Scope::Cluster {
            group_by.insert(0, &namespace_label);
        }
        let text = render(&self.containers, "resourceRules", "", &matchers, &group_by)?;
        let namespace_label = if scope == Scope::Cluster { namespace_label } else { String::new() };
        let container_label = self.container_label.to_string();
        Ok(UsageQuery { text, namespace_label, name_label, container_label })
    }

    /// The query for what nodes use: all of them if none is named; nothing if the rule has none.
    ///
    /// # Errors
    /// The rule does not name the label it needs.
    pub fn node_query(&self, names: &[&str]) -> Option<Result<UsageQuery, QueryError>> {
        let template = self.nodes.as_ref()?;
        let known = KnownResources::everyday();
        let node = known.find("", "nodes")?;
        let query = self.resources.label(&node, &known).and_then(|name_label| {
            let mut matchers = Matchers::default();
            match names {
                [] => matchers.exists(&name_label),
                names => matchers.one_of(&name_label, names),
            }
            let text = render(template, "resourceRules", "", &matchers, &[&name_label])?;
            let empty = String::new();
            Ok(UsageQuery {
                text,
                namespace_label: empty.clone(),
                name_label,
                container_label: empty,
            })
        });
        Some(query)
    }
}

impl UsageQuery {
    /// What the samples of an answer say. Those without a name, or without a namespace where all were
    /// asked for, are left out.
    #[must_use]
    pub fn read(&self, vector: &Vector) -> Vec<Used> {
        let label = |sample: &Sample, name: &str| -> Option<Box<str>> {
            if name.is_empty() { Some("".into()) } else { sample.labels.get(name).map(Box::from) }
        };
        let read = |sample: &Sample| {
            Some(Used {
                namespace: label(sample, &self.namespace_label)?,
                name: label(sample, &self.name_label)?,
                container: label(sample, &self.container_label).unwrap_or_default(),
                milli: milli(sample.value).max(0),
                time: sample.time,
            })
        };
        vector.samples.iter().filter_map(read).collect()
    }
}
