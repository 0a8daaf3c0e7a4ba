//! Metrics by name and labels: a rule under an alias of its own, kept in the configuration of a
//! prometheus-adapter or served here.
//!
//! The alias is `metric_hash_namespace_autoscaler`; the hash is that of the labels, so that the same metric
//! with other labels is another one.

use super::document::{Node, Tree};
use super::matchers::is_label_name;
use super::{RuleError, RuleSet};
use podscale_api::Labels;
use podscale_api::quote::quote;
use sha2::{Digest, Sha256};
use thiserror::Error;

/// How many digits of the hash are part of the alias.
const HASH_DIGITS: usize = 12;
/// Where the rules of an adapter are kept, as its errors name it.
const KEPT_IN: &str = "prometheus-adapter configmap";

/// A metric of pods by its name and its labels, for one autoscaler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alias<'a> {
    /// The series.
    pub metric: &'a str,
    /// The labels that the series must have.
    pub labels: &'a Labels,
    /// The namespace of the autoscaler and its pods.
    pub namespace: &'a str,
    /// The name of the autoscaler.
    pub autoscaler: &'a str,
}

/// Why a configuration cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AliasError {
    /// There is no rule of that alias.
    #[error("no found hpa custom metric alias name {0} in {KEPT_IN}")]
    Missing(String),
    /// There is a rule of that alias already.
    #[error("duplicate hpa custom metric alias name {0} in {KEPT_IN}")]
    Duplicate(String),
    /// A label cannot be matched on.
    #[error("{0:?} cannot be the name of a label in Prometheus")]
    Label(Box<str>),
    /// The series cannot be asked for.
    #[error("{0:?} cannot be the name of a series in Prometheus")]
    Metric(Box<str>),
    /// The configuration is not one.
    #[error("the configuration cannot be changed: {0}")]
    Configuration(String),
}

/// The hash of labels: the first digits of the SHA-256 of their JSON, with sorted keys. No labels are the
/// same as none given.
#[must_use]
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

impl Alias<'_> {
    /// The name that the metric has in the API.
    #[must_use]
    pub fn name(&self) -> String {
        let Alias { metric, namespace, autoscaler, .. } = self;
        format!("{metric}_{}_{namespace}_{autoscaler}", label_hash(self.labels))
    }

    /// The metric of a name in the API, if it was made from these labels, namespace and autoscaler.
    #[must_use]
    pub fn metric_of<'n>(
        name: &'n str,
        labels: &Labels,
        namespace: &str,
        autoscaler: &str,
    ) -> Option<&'n str> {
        let suffix = format!("_{}_{namespace}_{autoscaler}", label_hash(labels));
        name.strip_suffix(suffix.as_str()).filter(|metric| !metric.is_empty())
    }

    /// The rule that gives the metric, in the form and order of prometheus-adapter's configuration.
    ///
    /// # Errors
    /// The series or a label has a name that Prometheus cannot have.
    pub fn rule(&self) -> Result<Node, AliasError> {
        let Alias { metric, labels, namespace, .. } = self;
        let part = |c: char| c == ':' || c == '_' || c.is_ascii_alphanumeric();
        if metric.is_empty()
            || metric.starts_with(|c: char| c.is_ascii_digit())
            || !metric.chars().all(part)
        {
            return Err(AliasError::Metric((*metric).into()));
        }
        let mut matchers = Vec::with_capacity(labels.len());
        for (label, value) in labels.iter() {
            if !is_label_name(label) {
                return Err(AliasError::Label(label.into()));
            }
            matchers.push(format!("{label}={}", quote(value)));
        }
        let series_query = format!(
            "{{__name__=~{},kubernetes_pod_name!=\"\",kubernetes_namespace={}}}",
            quote(metric),
            quote(namespace)
        );
        let resource = |name| Node::of_map([("resource", Node::of_text(name))]);
        let overrides = Node::of_map([
            ("kubernetes_namespace", resource("namespace")),
            ("kubernetes_pod_name", resource("pod")),
        ]);
        let query = format!("sum({metric}{{{}}}) by (<<.GroupBy>>)", matchers.join(","));
        let name = [
            ("matches", Node::of_text(format!("^{metric}$"))),
            ("as", Node::of_text(self.name().replace('$', "$$"))),
        ];
        Ok(Node::of_map([
            ("seriesQuery", Node::of_text(series_query)),
            ("seriesFilters", Node { tree: Tree::List(Vec::new()), line: 0 }),
            ("resources", Node::of_map([("overrides", overrides)])),
            ("name", Node::of_map(name)),
            ("metricsQuery", Node::of_text(query)),
        ]))
    }
}

/// The configuration of an adapter without the rules of some aliases and with those of others. What is not
/// understood stays as it is; comments do not.
///
/// # Errors
/// An old alias is missing, a new one is there already, or the text is no configuration.
pub fn change(text: &str, old: &[Alias<'_>], new: &[Alias<'_>]) -> Result<String, AliasError> {
    if old.is_empty() && new.is_empty() {
        return Ok(text.to_owned());
    }
    let unreadable = |error: RuleError| AliasError::Configuration(error.to_string());
    let mut document = Node::read(text).map_err(unreadable)?;
    let rules = rules(&mut document)?;
    for alias in old {
        let name = alias.name();
        let before = rules.len();
        rules.retain(|rule| alias_of(rule).as_deref() != Some(&*name));
        if rules.len() == before {
            return Err(AliasError::Missing(name));
        }
    }
    for alias in new {
        let name = alias.name();
        if rules.iter().any(|rule| alias_of(rule).as_deref() == Some(&*name)) {
            return Err(AliasError::Duplicate(name));
        }
        rules.push(alias.rule()?);
    }
    let written = serde_saphyr::to_string(&document);
    written.map_err(|error| AliasError::Configuration(error.to_string()))
}

/// The rules of these aliases alone, as they can be served.
///
/// # Errors
/// As [`Alias::rule`].
pub fn rule_set(aliases: &[Alias<'_>]) -> Result<RuleSet, AliasError> {
    let text = change("rules: []", &[], aliases)?;
    RuleSet::parse(&text).map_err(|errors| {
        let texts: Vec<String> = errors.iter().map(RuleError::to_string).collect();
        AliasError::Configuration(texts.join("; "))
    })
}

fn alias_of(rule: &Node) -> Option<String> {
    rule.get("name")?.get("as")?.text().map(|name| name.replace("$$", "$"))
}

/// The list of rules, made if there is none.
fn rules(document: &mut Node) -> Result<&mut Vec<Node>, AliasError> {
    let wrong = |what: &str| Err(AliasError::Configuration(what.to_owned()));
    if document.tree == Tree::Null {
        document.tree = Tree::Map(Vec::new());
    }
    let Tree::Map(entries) = &mut document.tree else { return wrong("it is not a map") };
    if !entries.iter().any(|(key, _)| key.name == "rules") {
        let key = super::document::Key { name: "rules".to_owned(), line: 0 };
        entries.insert(0, (key, Node { tree: Tree::Null, line: 0 }));
    }
    let Some((_, rules)) = entries.iter_mut().find(|(key, _)| key.name == "rules") else {
        return wrong("it has no rules");
    };
    if rules.tree == Tree::Null {
        rules.tree = Tree::List(Vec::new());
    }
    match &mut rules.tree {
        Tree::List(rules) => Ok(rules),
        _ => wrong("its rules are not a list"),
    }
}

#[cfg(test)]
mod tests;
