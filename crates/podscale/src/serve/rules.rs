//! Rules for metrics in a ConfigMap that is followed: what is written there is in use seconds later.
//! A version that is wrong is reported, and the last good one stays in use.

use crate::metrics::Metrics;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use podscale_client::call::{query, segment};
use podscale_client::events::{Recorder, Severity};
use podscale_client::instrument::Instruments;
use podscale_client::watch::{Change, Presence, follow};
use serde_json::Value;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The key that holds the rules where there are several, as in prometheus-adapter's installations.
const DEFAULT_KEY: &str = "config.yaml";
/// How many errors an event names.
const EVENT_ERRORS: usize = 3;

/// Where the rules are: a ConfigMap and one of its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The namespace of the ConfigMap.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The key; if not given, the only one, or else `config.yaml`.
    pub key: Option<String>,
}

impl FromStr for Location {
    type Err = String;

    fn from_str(text: &str) -> Result<Location, String> {
        let parts: Vec<&str> = text.split('/').collect();
        let whole = parts.iter().all(|part| !part.is_empty());
        let (namespace, name, key) = match parts.as_slice() {
            [namespace, name] if whole => (*namespace, *name, None),
            [namespace, name, key] if whole => (*namespace, *name, Some((*key).to_owned())),
            _ => {
                return Err(
                    "not a namespace, a name and perhaps a key: NAMESPACE/NAME[/KEY]".to_owned()
                );
            }
        };
        Ok(Location { namespace: namespace.to_owned(), name: name.to_owned(), key })
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl Location {
    fn path(&self) -> String {
        let name = format!("metadata.name={}", self.name);
        let namespace = segment(&self.namespace);
        format!("/api/v1/namespaces/{namespace}/configmaps{}", query(&[("fieldSelector", &name)]))
    }

    /// The key of a ConfigMap that holds the rules.
    #[must_use]
    pub fn key_in<'a>(&'a self, config_map: &'a Value) -> &'a str {
        let data = config_map["data"].as_object();
        let only = data.filter(|data| data.len() == 1).and_then(|data| data.keys().next());
        self.key.as_deref().or(only.map(String::as_str)).unwrap_or(DEFAULT_KEY)
    }

    /// The text of the rules in a ConfigMap.
    ///
    /// # Errors
    /// There is none.
    pub fn text<'a>(&self, config_map: &'a Value) -> Result<&'a str, String> {
        let key = self.key_in(config_map);
        config_map["data"][key].as_str().ok_or_else(|| format!("there is no key {key}"))
    }
}

/// Follows the rules in a ConfigMap.
pub struct RuleWatch {
    /// The API server.
    pub client: Client,
    /// Where the rules are.
    pub location: Location,
    /// Counts what was read.
    pub metrics: Metrics,
    /// Where errors are reported to those who look at the ConfigMap.
    pub recorder: Recorder,
}

impl RuleWatch {
    /// Until dropped, gives every version that `parse` accepts to `apply`.
    pub async fn follow<T>(
        self,
        parse: impl Fn(&str) -> Result<T, Vec<String>>,
        mut apply: impl FnMut(T),
    ) {
        let instruments: Instruments = Arc::new(self.metrics.clone());
        let mut known: Option<String> = None;
        let mut take = |config_map: &Value| {
            let read = self.location.text(config_map).map_err(|problem| vec![problem]);
            if read.is_ok() && read.as_deref().ok() == known.as_deref() {
                return;
            }
            known = read.as_deref().ok().map(str::to_owned);
            match read.and_then(&parse) {
                Ok(rules) => {
                    apply(rules);
                    self.metrics.rules_loaded(0);
                    tracing::info!(config_map = %self.location, "the rules for metrics are in use");
                }
                Err(errors) => self.report(config_map, &errors),
            }
        };
        let path = self.location.path();
        let missing = || {
            tracing::warn!(
                config_map = %self.location,
                "there is no such ConfigMap; the last rules for metrics stay in use"
            );
        };
        let on_change = |change: Change<Value>| match change {
            Change::All(all) if all.is_empty() => missing(),
            Change::All(all) => all.iter().for_each(&mut take),
            Change::Applied(config_map) => take(&config_map),
            Change::Deleted(_) => missing(),
        };
        let resource = "configmaps";
        follow(&self.client, &path, resource, Presence::Always, &instruments, on_change).await;
    }

    fn report(&self, config_map: &Value, errors: &[String]) {
        self.metrics.rules_loaded(errors.len());
        for error in errors {
            tracing::warn!(config_map = %self.location, error, "a rule for metrics is wrong");
        }
        let first: Vec<&str> = errors.iter().take(EVENT_ERRORS).map(String::as_str).collect();
        let more = match errors.len().saturating_sub(EVENT_ERRORS) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let text = format!(
            "The last good rules stay in use, since these are wrong: {}{more}",
            first.join("; ")
        );
        let field = |name: &str| config_map["metadata"][name].as_str().map(str::to_owned);
        let about = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("ConfigMap".to_owned()),
            namespace: field("namespace"),
            name: field("name"),
            uid: field("uid"),
            resource_version: field("resourceVersion"),
            ..ObjectReference::default()
        };
        self.recorder.record(about, Severity::Warning, "InvalidMetricRules", text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_location_names_a_config_map_and_perhaps_a_key() {
        let read = |text: &str| text.parse::<Location>();
        let data = json!({"data": {"rules.yaml": "a", "config.yaml": "b"}});
        assert_eq!(read("shop/rules/rules.yaml").unwrap().text(&data), Ok("a"));
        assert_eq!(read("shop/rules").unwrap().text(&data), Ok("b"));
        assert_eq!(read("shop/rules").unwrap().text(&json!({"data": {"x": "c"}})), Ok("c"));
        assert!(read("shop/rules/y").unwrap().text(&data).is_err());
        assert!(read("shop/rules").unwrap().text(&json!({})).is_err());
        for wrong in ["rules", "/rules", "shop/", "a/b/c/d", ""] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        let path = "/api/v1/namespaces/shop/configmaps?fieldSelector=metadata.name%3Drules";
        assert_eq!(read("shop/rules").unwrap().path(), path);
    }
}
