//! Rules for metrics in a ConfigMap that is followed: what is written there is in use seconds later.

pub mod file;
mod intake;

use super::rule_reports::RuleReports;
use crate::metrics::Metrics;
use intake::{Found, Intake};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use podscale_client::call::{query, segment};
use podscale_client::instrument::Instruments;
use podscale_client::watch::{Change, Presence, follow};
use podscale_metrics::rules::reload::Reloader;
use serde_json::Value;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The key that holds the rules where there are several, as in prometheus-adapter's installations.
const DEFAULT_KEY: &str = "config.yaml";

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
    /// Where errors are reported, also to those who look at the ConfigMap.
    pub reports: Arc<RuleReports>,
}

impl RuleWatch {
    /// Until dropped, gives every version of the rules to this.
    pub async fn follow(self, reloader: Reloader) {
        let instruments: Instruments = Arc::new(self.metrics.clone());
        let RuleWatch { client, location, reports, .. } = self;
        let mut intake = Intake::new(location.to_string(), reloader, Arc::clone(&reports));
        let path = location.path();
        let take = |intake: &mut Intake, config_map: &Value| {
            reports.concern(reference(config_map));
            intake.take(match location.text(config_map) {
                Ok(text) => Found::Text(text),
                Err(problem) => Found::Wrong(problem),
            });
        };
        let missing = || Found::Missing("there is no such ConfigMap".to_owned());
        let on_change = |change: Change<Value>| match change {
            Change::All(all) if all.is_empty() => intake.take(missing()),
            Change::All(all) => all.iter().for_each(|config_map| take(&mut intake, config_map)),
            Change::Applied(config_map) => take(&mut intake, &config_map),
            Change::Deleted(_) => intake.take(missing()),
        };
        let resource = "configmaps";
        follow(&client, &path, resource, Presence::Always, &instruments, on_change).await;
    }
}

fn reference(config_map: &Value) -> ObjectReference {
    let field = |name: &str| config_map["metadata"][name].as_str().map(str::to_owned);
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("ConfigMap".to_owned()),
        namespace: field("namespace"),
        name: field("name"),
        uid: field("uid"),
        resource_version: field("resourceVersion"),
        ..ObjectReference::default()
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
