//! From a request to the text of a query.

use super::Rule;
use super::matchers::Matchers;
use super::resources::{Resource, Resources};
use super::template::{Template, Value};
use podscale_api::Selector;
use podscale_api::selector::Operator;
use thiserror::Error;

/// Why a request cannot be put as a query.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum QueryError {
    /// Prometheus compares no labels by size.
    #[error("the operator {} on {label} is not supported by Prometheus", sign(*operator))]
    Operator {
        /// The label.
        label: Box<str>,
        /// What is asked of it.
        operator: Operator,
    },
    /// Prometheus has no such label.
    #[error("{0:?} cannot be the name of a label in Prometheus")]
    Label(Box<str>),
    /// Nothing says which label holds the names of objects.
    #[error("no label is known for {resource}: {why}")]
    NoLabel {
        /// The resource.
        resource: String,
        /// What is missing.
        why: String,
    },
    /// The template fails for this request.
    #[error("{rule}.metricsQuery: {problem}")]
    Template {
        /// The rule.
        rule: Box<str>,
        /// What fails.
        problem: Box<str>,
    },
    /// The template gives nothing.
    #[error("{0}.metricsQuery gives an empty query")]
    Empty(Box<str>),
}

fn sign(operator: Operator) -> &'static str {
    if operator == Operator::GreaterThan { ">" } else { "<" }
}

/// A query and what its answer is read by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The text for Prometheus.
    pub text: String,
    /// The label that holds the names of objects; empty if it is about none.
    pub label: String,
}

/// What is asked of objects.
#[derive(Clone, Copy, Debug)]
pub struct ObjectsQuery<'a> {
    /// Their resource.
    pub resource: &'a Resource,
    /// Their namespace, if they are in one.
    pub namespace: Option<&'a str>,
    /// Their names.
    pub names: &'a [&'a str],
    /// The series, by its name in Prometheus.
    pub series: &'a str,
    /// Which series of that name.
    pub selector: &'a Selector,
}

impl Rule {
    /// The query for a metric of objects.
    ///
    /// # Errors
    /// The rule or the selector does not allow it.
    pub fn objects_query(
        &self,
        asked: &ObjectsQuery<'_>,
        resources: &dyn Resources,
    ) -> Result<Query, QueryError> {
        let mut matchers = Matchers::of_selector(asked.selector)?;
        if let Some(namespace) = asked.namespace {
            matchers.equals(&self.namespace_label(resources)?, namespace);
        }
        let label = self.resources.label(asked.resource, resources)?;
        matchers.one_of(&label, asked.names);
        let text = render(&self.query, &self.path, asked.series, &matchers, &[&label])?;
        Ok(Query { text, label })
    }

    /// The query for an external metric.
    ///
    /// # Errors
    /// The rule or the selector does not allow it.
    pub fn external_query(
        &self,
        namespace: &str,
        series: &str,
        selector: &Selector,
        resources: &dyn Resources,
    ) -> Result<Query, QueryError> {
        let mut matchers = Matchers::of_selector(selector)?;
        if self.namespaced && !namespace.is_empty() {
            matchers.equals(&self.namespace_label(resources)?, namespace);
        }
        let text = render(&self.query, &self.path, series, &matchers, &[])?;
        Ok(Query { text, label: String::new() })
    }

    fn namespace_label(&self, resources: &dyn Resources) -> Result<String, QueryError> {
        self.resources.label(&namespaces(), resources)
    }
}

/// The resource of namespaces, which every cluster has.
pub(super) fn namespaces() -> Resource {
    Resource::new(["", "v1", "namespaces", "namespace", "Namespace"], false)
}

/// The text of a query.
pub(super) fn render(
    template: &Template,
    rule: &str,
    series: &str,
    matchers: &Matchers,
    group_by: &[&str],
) -> Result<String, QueryError> {
    let text = template.render(&data(series, matchers, group_by)).map_err(|error| {
        QueryError::Template { rule: rule.into(), problem: error.to_string().into() }
    })?;
    if text.is_empty() { Err(QueryError::Empty(rule.into())) } else { Ok(text) }
}

fn data(series: &str, matchers: &Matchers, group_by: &[&str]) -> Value {
    Value::record([
        ("Series", Value::text(series)),
        ("LabelMatchers", Value::text(&matchers.text())),
        ("LabelValuesByName", Value::map(matchers.values())),
        ("GroupBy", Value::text(&group_by.join(","))),
        ("GroupBySlice", Value::list(group_by.iter().copied())),
    ])
}

/// Values to try a template with.
pub(super) fn sample() -> Value {
    let mut matchers = Matchers::default();
    matchers.equals("namespace", "default");
    matchers.one_of("pod", &["a", "b"]);
    data("series", &matchers, &["pod", "container"])
}
