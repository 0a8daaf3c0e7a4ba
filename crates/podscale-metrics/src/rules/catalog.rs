//! Which metrics there are: what the rules make of the series that exist.

use super::query::{ObjectsQuery, Query, QueryError};
use super::resources::{Resource, Resources};
use super::{Rule, RuleSet};
use crate::prometheus::SeriesShape;
use podscale_api::Selector;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The shapes of series by the query that found them.
pub type SeriesByQuery = BTreeMap<Box<str>, Arc<[SeriesShape]>>;

/// A metric of a kind of object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CustomMetric {
    /// The group of the resource; empty for the core.
    pub group: Box<str>,
    /// The plural name of the resource.
    pub resource: Box<str>,
    /// The name of the metric.
    pub metric: Box<str>,
    /// Whether the objects are in namespaces.
    pub namespaced: bool,
}

/// Where a metric comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Origin {
    /// The place of the rule.
    rule: usize,
    series: Arc<str>,
}

/// The metrics that exist.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    custom: BTreeMap<CustomMetric, Origin>,
    external: BTreeMap<Box<str>, Origin>,
}

impl Catalog {
    /// What rules make of series. Where several give the same metric, the last rule counts, and of its
    /// series the last by name.
    #[must_use]
    pub fn new(rules: &RuleSet, series: &SeriesByQuery, resources: &dyn Resources) -> Catalog {
        let mut catalog = Catalog::default();
        let of = |rule: &Rule| series.get(&rule.series_query).cloned().unwrap_or_default();
        for (place, rule) in rules.custom().iter().enumerate() {
            for shape in sorted(&of(rule)) {
                catalog.add_custom(place, rule, shape, resources);
            }
        }
        for (place, rule) in rules.external().iter().enumerate() {
            for shape in sorted(&of(rule)) {
                if let Some(metric) = named(rule, shape) {
                    let origin = Origin { rule: place, series: Arc::clone(&shape.name) };
                    catalog.external.insert(metric.into(), origin);
                }
            }
        }
        catalog
    }

    fn add_custom(
        &mut self,
        place: usize,
        rule: &Rule,
        shape: &SeriesShape,
        resources: &dyn Resources,
    ) {
        let Some(metric) = named(rule, shape) else { return };
        for label in shape.labels.iter() {
            let Some(resource) = rule.resources.resource(label, resources) else { continue };
            let metric = custom_metric(&resource, &metric);
            let origin = Origin { rule: place, series: Arc::clone(&shape.name) };
            self.custom.insert(metric, origin);
        }
    }

    /// The metrics of objects, sorted.
    pub fn custom_metrics(&self) -> impl Iterator<Item = &CustomMetric> {
        self.custom.keys()
    }

    /// The names of external metrics, sorted.
    pub fn external_metrics(&self) -> impl Iterator<Item = &str> {
        self.external.keys().map(|name| &**name)
    }

    /// How many metrics there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.custom.len() + self.external.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.custom.is_empty() && self.external.is_empty()
    }

    /// The query for a metric of objects; nothing if there is no such metric.
    ///
    /// # Errors
    /// The rule or the selector does not allow it.
    pub fn objects_query(
        &self,
        rules: &RuleSet,
        metric: &str,
        asked: Asked<'_>,
        resources: &dyn Resources,
    ) -> Option<Result<Query, QueryError>> {
        let Origin { rule, series } = self.custom.get(&custom_metric(asked.resource, metric))?;
        let rule = rules.custom().get(*rule)?;
        let Asked { resource, namespace, names, selector } = asked;
        let asked = ObjectsQuery { resource, namespace, names, series, selector };
        Some(rule.objects_query(&asked, resources))
    }

    /// The query for an external metric; nothing if there is no such metric.
    ///
    /// # Errors
    /// The rule or the selector does not allow it.
    pub fn external_query(
        &self,
        rules: &RuleSet,
        metric: &str,
        namespace: &str,
        selector: &Selector,
        resources: &dyn Resources,
    ) -> Option<Result<Query, QueryError>> {
        let Origin { rule, series } = self.external.get(metric)?;
        let rule = rules.external().get(*rule)?;
        Some(rule.external_query(namespace, series, selector, resources))
    }
}

/// What is asked of objects.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Their resource.
    pub resource: &'a Resource,
    /// Their namespace, if they are in one.
    pub namespace: Option<&'a str>,
    /// Their names.
    pub names: &'a [&'a str],
    /// Which series of the metric.
    pub selector: &'a Selector,
}

fn custom_metric(resource: &Resource, metric: &str) -> CustomMetric {
    CustomMetric {
        group: resource.group.clone(),
        resource: resource.plural.clone(),
        metric: metric.into(),
        namespaced: resource.namespaced,
    }
}

fn named(rule: &Rule, shape: &SeriesShape) -> Option<String> {
    let name = rule.accepts(&shape.name).then(|| rule.metric_name(&shape.name)).flatten();
    name.filter(|name| !name.is_empty())
}

fn sorted(shapes: &[SeriesShape]) -> Vec<&SeriesShape> {
    let mut sorted: Vec<&SeriesShape> = shapes.iter().collect();
    sorted.sort_unstable();
    sorted
}
