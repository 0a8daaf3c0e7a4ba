//! Rules that turn Prometheus' series into the metrics of Kubernetes' APIs: the configuration file of
//! prometheus-adapter, unchanged.
//!
//! Everything but [`engine`] is a pure function: a file becomes a [`RuleSet`], a rule set with the series
//! that exist becomes a [`Catalog`] of metrics, a request becomes the text of a query, and the vector that
//! Prometheus answers becomes values.

pub mod alias;
pub mod catalog;
mod config;
pub mod document;
pub mod engine;
mod error;
pub mod matchers;
mod name;
mod promql;
pub mod query;
mod reader;
pub mod reload;
pub mod resources;
mod series;
pub mod template;
pub mod usage;
pub mod values;

pub use catalog::Catalog;
pub use error::RuleError;
pub use query::QueryError;
pub use resources::{KnownResources, Resource, Resources};
pub use series::SeriesFilter;
pub use usage::{ResourceRules, UsageRule};

use document::{Node, Tree};
use name::NameRule;
use resources::ResourceMapping;
use template::Template;

/// One rule: which series, whose metrics they are, how these are called and how they are asked for.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Where it stands in the file, such as `rules[3]`.
    pub path: Box<str>,
    /// The selector of the series that it is about.
    pub series_query: Box<str>,
    filters: Vec<SeriesFilter>,
    resources: ResourceMapping,
    name: NameRule,
    query: Template,
    /// Whether requests of a namespace see only its series.
    namespaced: bool,
}

/// All rules of a file.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    custom: Vec<Rule>,
    external: Vec<Rule>,
    resource: Option<ResourceRules>,
    warnings: Vec<RuleError>,
}

impl RuleSet {
    /// Reads a file of rules.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(text: &str) -> Result<RuleSet, Vec<RuleError>> {
        config::read(text)
    }

    /// Reads a file of rules that is to take the place of another. One with nothing in it is a mistake and
    /// not meant to drop every metric; `rules: []` says that.
    ///
    /// # Errors
    /// As [`RuleSet::parse`], or there is nothing in it.
    pub fn parse_edit(text: &str) -> Result<RuleSet, Vec<RuleError>> {
        let blank = Node::read(text).is_ok_and(|node| match node.tree {
            Tree::Null => true,
            Tree::Map(entries) => entries.is_empty(),
            _ => false,
        });
        if blank {
            return Err(vec![RuleError::whole("is empty; to drop all rules, say rules: []")]);
        }
        RuleSet::parse(text)
    }

    /// The rules of custom metrics, in their order.
    #[must_use]
    pub fn custom(&self) -> &[Rule] {
        &self.custom
    }

    /// The rules of external metrics, in their order.
    #[must_use]
    pub fn external(&self) -> &[Rule] {
        &self.external
    }

    /// How cpu and memory are asked for, if the file says so.
    #[must_use]
    pub fn resource(&self) -> Option<&ResourceRules> {
        self.resource.as_ref()
    }

    /// Whether there are no rules at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.custom.is_empty() && self.external.is_empty() && self.resource.is_none()
    }

    /// These rules and the others; how cpu and memory are asked for is said by these, if they say it.
    #[must_use]
    pub fn with(&self, others: &RuleSet) -> RuleSet {
        RuleSet {
            custom: [self.custom.as_slice(), &others.custom].concat(),
            external: [self.external.as_slice(), &others.external].concat(),
            resource: self.resource.clone().or_else(|| others.resource.clone()),
            warnings: [self.warnings.as_slice(), &others.warnings].concat(),
        }
    }

    /// What is allowed and hardly meant.
    #[must_use]
    pub fn warnings(&self) -> &[RuleError] {
        &self.warnings
    }

    /// The resources that rules name for a label and that are not known: what there is of these labels is
    /// passed over.
    #[must_use]
    pub fn unknown_resources(&self, resources: &dyn Resources) -> Vec<RuleError> {
        let of_rule = |rule: &Rule| {
            let path = rule.path.clone();
            let unknown = rule.resources.unknown(resources);
            let error = move |(label, problem): (&str, String)| RuleError {
                rule: format!("{path}.resources.overrides.{label}").into(),
                line: 0,
                problem: problem.into(),
            };
            unknown.into_iter().map(error).collect::<Vec<_>>()
        };
        self.custom.iter().chain(&self.external).flat_map(of_rule).collect()
    }

    /// The rules that look for the series of a selector, such as `rules[3]`.
    #[must_use]
    pub fn rules_of(&self, series_query: &str) -> Vec<&str> {
        let all = self.custom.iter().chain(&self.external);
        all.filter(|rule| *rule.series_query == *series_query).map(|rule| &*rule.path).collect()
    }

    /// The selectors of series that must be known, each once.
    #[must_use]
    pub fn series_queries(&self) -> Vec<&str> {
        let mut queries: Vec<&str> = Vec::new();
        for rule in self.custom.iter().chain(&self.external) {
            if !queries.contains(&&*rule.series_query) {
                queries.push(&rule.series_query);
            }
        }
        queries
    }
}

impl Rule {
    /// Whether a series is one of this rule.
    #[must_use]
    pub fn accepts(&self, series: &str) -> bool {
        self.filters.iter().all(|filter| filter.accepts(series)) && self.name.accepts(series)
    }

    /// What a series is called in the API.
    #[must_use]
    pub fn metric_name(&self, series: &str) -> Option<String> {
        self.name.of(series)
    }
}

#[cfg(test)]
mod tests;
