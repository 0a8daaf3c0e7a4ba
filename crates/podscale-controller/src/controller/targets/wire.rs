//! Workloads on the wire, as much of them as their scale and their pods need.

use podscale_api::labels::Labels;
use podscale_api::meta::OwnerReference;
use podscale_api::selector::{LabelSelector, LabelSelectorRequirement, Selector};
use podscale_client::watch::Watched;
use serde::Deserialize;

/// A workload on the wire.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Wire {
    pub(super) metadata: WireMeta,
    pub(super) spec: WireSpec,
    pub(super) status: WireStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct WireMeta {
    pub(super) name: Box<str>,
    pub(super) namespace: Box<str>,
    pub(super) uid: Box<str>,
    pub(super) resource_version: Box<str>,
    pub(super) owner_references: Option<Vec<OwnerReference>>,
}

impl WireMeta {
    /// The uid of the object that controls the workload, if one does.
    pub(super) fn controller(&self) -> Option<Box<str>> {
        let mut owners = self.owner_references.iter().flatten();
        owners.find(|owner| owner.controller == Some(true)).map(|owner| owner.uid.as_str().into())
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireSpec {
    pub(super) replicas: Option<i32>,
    pub(super) selector: Option<WireSelector>,
}

/// Replication controllers select by plain labels, the others by selectors.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum WireSelector {
    Selector(StrictSelector),
    Labels(Labels),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct StrictSelector {
    match_labels: Option<Labels>,
    match_expressions: Option<Vec<LabelSelectorRequirement>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireStatus {
    pub(super) replicas: i32,
}

impl Watched for Wire {
    fn version(&self) -> Option<&str> {
        Some(&self.metadata.resource_version)
    }
}

/// The selector as a scale shows it.
pub(super) fn selector_text(selector: WireSelector) -> String {
    match selector {
        WireSelector::Labels(labels) => Selector::from_labels(labels.iter()).to_string(),
        WireSelector::Selector(StrictSelector { match_labels, match_expressions }) => {
            let selector = LabelSelector {
                match_labels: match_labels.unwrap_or_default(),
                match_expressions: match_expressions.unwrap_or_default(),
            };
            selector.to_selector().map(|s| s.to_string()).unwrap_or_default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_read_as_in_a_scale() {
        let cases = [
            (r#"{"matchLabels":{"b":"2","a":"1"}}"#, "a=1,b=2"),
            (
                r#"{"matchExpressions":[{"key":"a","operator":"In","values":["y","x"]}]}"#,
                "a in (x,y)",
            ),
            (r#"{"app":"web","tier":"x"}"#, "app=web,tier=x"),
        ];
        for (selector, expected) in cases {
            let spec: WireSpec =
                serde_json::from_str(&format!(r#"{{"selector":{selector}}}"#)).expect("a spec");
            assert_eq!(selector_text(spec.selector.expect("a selector")), expected);
        }
    }
}
