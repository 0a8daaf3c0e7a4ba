//! Answers for the metrics APIs: rules, the series that exist, and Prometheus behind a shared cache.
//!
//! The rules can be replaced at any time. Series are looked up on a schedule, and at once when a metric is
//! asked for that is not known; a name that is still unknown then is not looked up again for a while.

mod discovery;
mod negative;

use super::catalog::{Asked, CustomMetric};
use super::query::Query;
use super::usage::{Measured, Scope, Used};
use super::values::{self, ExternalValue, ObjectValue};
use super::{Catalog, QueryError, Resource, ResourceRules, Resources, RuleSet};
use crate::prometheus::{Answer, Client, PrometheusError, Queries};
use discovery::Discovery;
use negative::Unknown;
use parking_lot::{Mutex, RwLock};
use podscale_api::Selector;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::watch;

pub use discovery::Discovered;

/// When series are looked up.
#[derive(Clone, Copy, Debug)]
pub struct Timings {
    /// How often all series are looked up.
    pub refresh: Duration,
    /// How long a series may have had no sample.
    pub lookback: Duration,
    /// How long a name stays unknown before it is looked up again.
    pub unknown: Duration,
}

impl Default for Timings {
    fn default() -> Timings {
        Timings {
            refresh: Duration::from_secs(60),
            lookback: Duration::from_secs(600),
            unknown: Duration::from_secs(2),
        }
    }
}

/// Why there are no values.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EngineError {
    /// No rule and no series give this metric.
    #[error("the server could not find the metric {metric} for {resource}")]
    NoMetric {
        /// The metric.
        metric: Box<str>,
        /// The resource that it was asked for.
        resource: Box<str>,
    },
    /// The metric is there, but not for this object.
    #[error("the server could not find the metric {metric} for {resource} {name}")]
    NoValue {
        /// The metric.
        metric: Box<str>,
        /// The resource that it was asked for.
        resource: Box<str>,
        /// The object.
        name: Box<str>,
    },
    /// The request cannot be put as a query.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// Prometheus gave no values.
    #[error("unable to fetch metrics: {0}")]
    Prometheus(#[from] PrometheusError),
}

/// A rule set and the metrics that it gives, which always belong together.
struct Current {
    rules: Arc<RuleSet>,
    catalog: Catalog,
}

/// Where rules come from: some are configured, and others follow from objects of the cluster.
struct Origins {
    configured: Arc<RuleSet>,
    derived: Arc<RuleSet>,
}

/// Answers for the metrics APIs.
pub struct Engine {
    queries: Queries,
    resources: Arc<dyn Resources>,
    timings: Timings,
    current: RwLock<Arc<Current>>,
    /// Locked while the metrics are worked out, so that nobody who reads waits for it.
    origins: Mutex<Origins>,
    discovery: Discovery,
    unknown: Unknown,
    /// Counts how often rules were replaced.
    versions: watch::Sender<u64>,
}

impl Engine {
    /// Knows no series yet.
    #[must_use]
    pub fn new(
        client: Arc<Client>,
        rules: RuleSet,
        resources: Arc<dyn Resources>,
        timings: Timings,
    ) -> Engine {
        let rules = Arc::new(rules);
        let origins = Origins { configured: Arc::clone(&rules), derived: Arc::default() };
        let current = Current { rules, catalog: Catalog::default() };
        Engine {
            queries: Queries::new(client),
            resources,
            timings,
            current: RwLock::new(Arc::new(current)),
            origins: Mutex::new(origins),
            discovery: Discovery::default(),
            unknown: Unknown::new(timings.unknown),
            versions: watch::Sender::new(0),
        }
    }

    /// Goes on with other configured rules; everything that is known of series and answers stays.
    pub fn replace(&self, rules: RuleSet) {
        self.unknown.clear();
        self.install(|origins| origins.configured = Arc::new(rules));
        self.versions.send_modify(|version| *version = version.wrapping_add(1));
    }

    /// Goes on with other rules that follow from objects; the configured ones stay.
    pub fn replace_derived(&self, rules: RuleSet) {
        self.unknown.clear();
        self.install(|origins| origins.derived = Arc::new(rules));
        self.versions.send_modify(|version| *version = version.wrapping_add(1));
    }

    /// Other resources are known now, so that labels may name what they did not before.
    pub fn resources_changed(&self) {
        self.unknown.clear();
        self.install(|_| {});
    }

    /// Changes whenever rules are replaced.
    #[must_use]
    pub fn versions(&self) -> watch::Receiver<u64> {
        self.versions.subscribe()
    }

    /// The rules in use.
    #[must_use]
    pub fn rules(&self) -> Arc<RuleSet> {
        Arc::clone(&self.current().rules)
    }

    /// The answers of Prometheus, shared by all who ask.
    #[must_use]
    pub fn queries(&self) -> &Queries {
        &self.queries
    }

    /// The metrics of objects that exist, sorted.
    #[must_use]
    pub fn custom_metrics(&self) -> Vec<CustomMetric> {
        self.current().catalog.custom_metrics().cloned().collect()
    }

    /// The names of the external metrics that exist, sorted.
    #[must_use]
    pub fn external_metrics(&self) -> Vec<Box<str>> {
        self.current().catalog.external_metrics().map(Box::from).collect()
    }

    /// Looks all series up, over and over, and at once after rules were replaced; ends when it is dropped.
    /// `report` hears how each round went.
    pub async fn refresh_forever(&self, report: impl Fn(&Discovered)) {
        let mut versions = self.versions();
        loop {
            versions.mark_unchanged();
            report(&self.refresh().await);
            // The sender is a part of this, so it does not end.
            let _ = tokio::time::timeout(self.timings.refresh, versions.changed()).await;
        }
    }

    /// Looks all series up now. Queries that fail keep the series they had.
    pub async fn refresh(&self) -> Discovered {
        self.discover(false).await
    }

    async fn discover(&self, on_demand: bool) -> Discovered {
        let round = || async {
            let (rules, client) = (self.rules(), self.queries.client());
            let mut discovered = self.discovery.round(client, &rules, self.timings.lookback).await;
            self.install(|_| {});
            discovered.metrics = self.current().catalog.len();
            discovered
        };
        self.discovery.share(on_demand, round).await
    }

    fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current.read())
    }

    /// Works out which metrics the rules give after a change of them, with the series that are known now.
    fn install(&self, change: impl FnOnce(&mut Origins)) {
        let mut origins = self.origins.lock();
        change(&mut origins);
        let rules = match origins.derived.is_empty() {
            true => Arc::clone(&origins.configured),
            false => Arc::new(origins.configured.with(&origins.derived)),
        };
        let catalog = Catalog::new(&rules, &self.discovery.series(), &*self.resources);
        *self.current.write() = Arc::new(Current { rules, catalog });
    }

    /// The values of a metric of objects. Objects without a value are left out; one that is asked for
    /// alone must have one.
    ///
    /// # Errors
    /// There is no such metric, the request cannot be put as a query, or Prometheus gave no values.
    pub async fn custom(
        &self,
        metric: &str,
        asked: Asked<'_>,
        max_age: Duration,
    ) -> Result<Vec<ObjectValue>, EngineError> {
        let resource = asked.resource.name();
        let missing =
            || EngineError::NoMetric { metric: metric.into(), resource: (&*resource).into() };
        let find = |current: &Current| {
            current.catalog.objects_query(&current.rules, metric, asked, &*self.resources)
        };
        let key = format!("{resource}/{metric}");
        let query = self.find(&key, find).await?.ok_or_else(missing)?;
        // Nobody is asked about no objects, but whether there is such a metric has been said.
        if asked.names.is_empty() {
            return Ok(Vec::new());
        }
        let answer = self.queries.get(&query.text, max_age).await?;
        if answer.scalar {
            return Err(PrometheusError::Type { kind: "scalar".into() }.into());
        }
        let values = values::of_objects(&answer.vector, &query.label, asked.names);
        match (asked.names, values.is_empty()) {
            ([name], true) => Err(EngineError::NoValue {
                metric: metric.into(),
                resource: (&*resource).into(),
                name: (*name).into(),
            }),
            _ => Ok(values),
        }
    }

    /// The values of an external metric.
    ///
    /// # Errors
    /// As [`Engine::custom`].
    pub async fn external(
        &self,
        metric: &str,
        namespace: &str,
        selector: &Selector,
        max_age: Duration,
    ) -> Result<Vec<ExternalValue>, EngineError> {
        let missing =
            || EngineError::NoMetric { metric: metric.into(), resource: "external metrics".into() };
        let find = |current: &Current| {
            let (rules, resources) = (&current.rules, &*self.resources);
            current.catalog.external_query(rules, metric, namespace, selector, resources)
        };
        let query = self.find(metric, find).await?.ok_or_else(missing)?;
        let answer = self.queries.get(&query.text, max_age).await?;
        Ok(values::of_series(&answer.vector))
    }

    /// What `find` finds, after a look at the series if it finds nothing at first; nothing if there is no
    /// such metric.
    async fn find<F>(&self, key: &str, find: F) -> Result<Option<Query>, EngineError>
    where
        F: Fn(&Current) -> Option<Result<Query, QueryError>>,
    {
        if let Some(found) = find(&self.current()) {
            return Ok(Some(found?));
        }
        let failure = if self.unknown.look_up(key) {
            let discovered = self.discover(true).await;
            discovered.doubt()
        } else {
            self.discovery.settled().await
        };
        match (find(&self.current()), failure) {
            (Some(found), _) => {
                self.unknown.forget(key);
                Ok(Some(found?))
            }
            // Whether there is such a metric cannot be said.
            (None, Some(error)) => Err(error.into()),
            (None, None) => Ok(None),
        }
    }

    /// What containers use, by `everyday` where the rules do not say how to ask.
    ///
    /// # Errors
    /// The rule does not name the labels it needs, or Prometheus gave no values.
    pub async fn containers(
        &self,
        measured: Measured,
        scope: Scope<'_>,
        everyday: &ResourceRules,
        max_age: Duration,
    ) -> Result<Vec<Used>, EngineError> {
        let rules = self.rules();
        let rule = rules.resource().unwrap_or(everyday).of(measured);
        let query = rule.container_query(scope)?;
        let answer: Arc<Answer> = self.queries.get(&query.text, max_age).await?;
        Ok(query.read(&answer.vector))
    }

    /// What nodes use: all of them if none is named; nothing if the rules do not say how to ask.
    ///
    /// # Errors
    /// As [`Engine::containers`].
    pub async fn nodes(
        &self,
        measured: Measured,
        names: &[&str],
        everyday: &ResourceRules,
        max_age: Duration,
    ) -> Result<Vec<Used>, EngineError> {
        let rules = self.rules();
        let rule = rules.resource().unwrap_or(everyday).of(measured);
        let Some(query) = rule.node_query(names) else { return Ok(Vec::new()) };
        let query = query?;
        let answer = self.queries.get(&query.text, max_age).await?;
        Ok(query.read(&answer.vector))
    }

    /// The resource of that name, as the rules find it.
    #[must_use]
    pub fn resource(&self, group: &str, resource: &str) -> Option<Arc<Resource>> {
        self.resources.find(group, resource)
    }
}

#[cfg(test)]
mod tests;
