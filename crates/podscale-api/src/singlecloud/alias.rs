//! The name under which pods have a metric that is known by its name and labels:
//! `metric_hash_namespace_autoscaler`. The hash is that of the labels, so that the same metric with other
//! labels is another one.

use crate::hpa::v2::{HorizontalPodAutoscaler, MetricIdentifier};
use crate::labels::Labels;
use sha2::{Digest, Sha256};

/// How many digits of the hash are part of the alias.
const HASH_DIGITS: usize = 12;

/// A metric of pods by its name and its labels, for one autoscaler.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Alias {
    /// The series.
    pub metric: String,
    /// The labels that the series must have.
    pub labels: Labels,
    /// The namespace of the autoscaler and its pods.
    pub namespace: String,
    /// The name of the autoscaler.
    pub autoscaler: String,
}

impl Alias {
    /// The name that the metric has in the API.
    pub fn name(&self) -> String {
        let Alias { metric, namespace, autoscaler, labels } = self;
        format!("{metric}{}", suffix(labels, namespace, autoscaler))
    }

    /// The alias that a metric of an autoscaler has, if it has one.
    pub fn of(metric: &MetricIdentifier, namespace: &str, autoscaler: &str) -> Option<Alias> {
        let labels = labels_of(metric)?;
        let suffix = suffix(&labels, namespace, autoscaler);
        let series = metric.name.strip_suffix(suffix.as_str())?;
        is_series_name(series).then(|| Alias {
            metric: series.to_owned(),
            labels,
            namespace: namespace.to_owned(),
            autoscaler: autoscaler.to_owned(),
        })
    }
}

/// The labels of a metric; none if it selects series in another way.
pub(super) fn labels_of(metric: &MetricIdentifier) -> Option<Labels> {
    match &metric.selector {
        None => Some(Labels::default()),
        Some(selector) if selector.match_expressions.is_empty() => {
            Some(selector.match_labels.clone())
        }
        Some(_) => None,
    }
}

/// Every alias that an autoscaler needs a rule for, each once.
pub fn aliases(hpa: &HorizontalPodAutoscaler) -> Vec<Alias> {
    let (namespace, name) = (&hpa.metadata.namespace, &hpa.metadata.name);
    let mut found: Vec<Alias> = Vec::new();
    for pods in hpa.spec.metrics.iter().filter_map(|metric| metric.pods.as_deref()) {
        if let Some(alias) = Alias::of(&pods.metric, namespace, name)
            && !found.contains(&alias)
        {
            found.push(alias);
        }
    }
    found
}

fn suffix(labels: &Labels, namespace: &str, autoscaler: &str) -> String {
    format!("_{}_{namespace}_{autoscaler}", label_hash(labels))
}

/// The hash of labels: the first digits of the SHA-256 of their JSON, with sorted keys. No labels are the
/// same as none given.
pub fn label_hash(labels: &Labels) -> String {
    let json = if labels.is_empty() { "null".to_owned() } else { go_json(labels) };
    let digest = Sha256::digest(json.as_bytes());
    let mut hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    hash.truncate(HASH_DIGITS);
    hash
}

/// JSON as Go writes it: without spaces, and with what HTML could misread escaped.
fn go_json(labels: &Labels) -> String {
    let json = serde_json::to_string(labels).unwrap_or_default();
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// Whether Prometheus can have a series of this name.
pub fn is_series_name(name: &str) -> bool {
    let part = |c: char| c == ':' || c == '_' || c.is_ascii_alphanumeric();
    name.starts_with(|c: char| part(c) && !c.is_ascii_digit()) && name.chars().all(part)
}

/// Whether Prometheus can have a label of this name.
pub fn is_label_name(name: &str) -> bool {
    is_series_name(name) && !name.contains(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().copied().collect()
    }

    #[test]
    fn labels_have_the_hashes_that_were_verified() {
        let example = labels(&[("view", "default"), ("module", "server")]);
        for (labels, hash) in [(&example, "820193bd2d60"), (&Labels::default(), "74234e98afe7")] {
            assert_eq!(label_hash(labels), hash);
        }
        let odd = labels(&[("a", "<&>\u{2028}\"")]);
        assert_eq!(go_json(&odd), r#"{"a":"\u003c\u0026\u003e\u2028\""}"#);
    }

    #[test]
    fn an_alias_is_found_again_by_its_labels_only() {
        let alias = Alias {
            metric: "qps".into(),
            labels: labels(&[("view", "default")]),
            namespace: "shop".into(),
            autoscaler: "web".into(),
        };
        let selector = |labels: &Labels| {
            let match_labels = labels.clone();
            Some(crate::LabelSelector { match_labels, ..crate::LabelSelector::default() })
        };
        let metric = MetricIdentifier { name: alias.name(), selector: selector(&alias.labels) };
        assert_eq!(Alias::of(&metric, "shop", "web").as_ref(), Some(&alias));
        assert_eq!(Alias::of(&metric, "shop", "other"), None);
        let bare = MetricIdentifier { selector: None, ..metric.clone() };
        assert_eq!(Alias::of(&bare, "shop", "web"), None);
        let empty = Alias { labels: Labels::default(), ..alias };
        for selector in [None, selector(&empty.labels)] {
            let metric = MetricIdentifier { name: empty.name(), selector };
            assert_eq!(Alias::of(&metric, "shop", "web").as_ref(), Some(&empty));
        }
    }

    #[test]
    fn names_are_those_that_prometheus_takes() {
        for (name, series, label) in [
            ("up", true, true),
            ("_x9", true, true),
            ("job:rate", true, false),
            ("9x", false, false),
            ("", false, false),
            ("a-b", false, false),
            ("a b", false, false),
            ("é", false, false),
        ] {
            assert_eq!((is_series_name(name), is_label_name(name)), (series, label), "{name}");
        }
    }
}
