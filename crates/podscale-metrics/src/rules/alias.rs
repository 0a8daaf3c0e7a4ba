//! Metrics by name and labels: a rule under an alias of its own, kept in the configuration of a
//! prometheus-adapter or served here.

use super::document::{Node, Tree};
use super::{RuleError, RuleSet};
use podscale_api::quote::quote;
use podscale_api::singlecloud::Alias;
use podscale_api::singlecloud::alias::{is_label_name, is_series_name};
use thiserror::Error;

/// Where the rules of an adapter are kept, as its errors name it.
const KEPT_IN: &str = "prometheus-adapter configmap";

/// Why a configuration cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AliasError {
    /// There is no rule of that alias.
    #[error("no found hpa custom metric alias name {0} in {KEPT_IN}")]
    Missing(String),
    /// There is another rule of that alias already.
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

/// Whose series the query of a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// Those of all namespaces, as singlecloud writes it.
    Everywhere,
    /// Those of the autoscaler's namespace: pods of other namespaces may have the same names.
    Namespace,
}

/// The rule that gives a metric, in the form and order of prometheus-adapter's configuration.
///
/// # Errors
/// The series or a label has a name that Prometheus cannot have.
pub fn rule(alias: &Alias) -> Result<Node, AliasError> {
    rule_within(alias, Reach::Everywhere)
}

fn rule_within(alias: &Alias, reach: Reach) -> Result<Node, AliasError> {
    let Alias { metric, labels, namespace, .. } = alias;
    if !is_series_name(metric) {
        return Err(AliasError::Metric(metric.as_str().into()));
    }
    let mut matchers = Vec::with_capacity(labels.len());
    for (label, value) in labels.iter() {
        if !is_label_name(label) {
            return Err(AliasError::Label(label.into()));
        }
        matchers.push(format!("{label}={}", quote(value)));
    }
    if reach == Reach::Namespace {
        matchers.push(format!("kubernetes_namespace={}", quote(namespace)));
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
        ("as", Node::of_text(alias.name().replace('$', "$$"))),
    ];
    Ok(Node::of_map([
        ("seriesQuery", Node::of_text(series_query)),
        ("seriesFilters", Node { tree: Tree::List(Vec::new()), line: 0 }),
        ("resources", Node::of_map([("overrides", overrides)])),
        ("name", Node::of_map(name)),
        ("metricsQuery", Node::of_text(query)),
    ]))
}

/// What a change makes of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The new text; none if the old one is as it should be.
    pub text: Option<String>,
    /// What was to be removed and is not there, which is no reason to stop.
    pub missing: Vec<AliasError>,
}

/// The configuration of an adapter without the rules of some aliases and with those of others. What is not
/// understood stays as it is; comments do not. A rule that is there already, as it would be written, stays:
/// it is the rest of a change that did not come to its end.
///
/// # Errors
/// A new alias has another rule already, or the text is no configuration.
pub fn change(text: &str, old: &[Alias], new: &[Alias]) -> Result<Changed, AliasError> {
    if old.is_empty() && new.is_empty() {
        return Ok(Changed { text: None, missing: Vec::new() });
    }
    let unreadable = |error: RuleError| AliasError::Configuration(error.to_string());
    let mut document = Node::read(text).map_err(unreadable)?;
    let rules = rules(&mut document)?;
    let (mut differs, mut missing) = (false, Vec::new());
    for alias in old.iter().filter(|alias| !new.contains(alias)) {
        let (name, before) = (alias.name(), rules.len());
        rules.retain(|rule| alias_of(rule).as_deref() != Some(&*name));
        if rules.len() == before {
            missing.push(AliasError::Missing(name));
        }
        differs |= rules.len() != before;
    }
    for (at, alias) in new.iter().enumerate() {
        let name = alias.name();
        let wanted = rule(alias)?;
        let there = rules.iter().find(|rule| alias_of(rule).as_deref() == Some(&*name));
        let twice = new.iter().take(at).any(|earlier| earlier == alias);
        match there {
            Some(there) if twice || !same(there, &wanted) => {
                return Err(AliasError::Duplicate(name));
            }
            Some(_) => {}
            None => {
                rules.push(wanted);
                differs = true;
            }
        }
    }
    let written = differs.then(|| serde_saphyr::to_string(&document)).transpose();
    let text = written.map_err(|error| AliasError::Configuration(error.to_string()))?;
    Ok(Changed { text, missing })
}

/// Whether two rules say the same, wherever they stand.
fn same(one: &Node, other: &Node) -> bool {
    match (serde_json::to_value(one), serde_json::to_value(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// The rules of these aliases alone, as they are served here: each sees the series of its own namespace.
///
/// # Errors
/// As [`rule`].
pub fn rule_set<'a>(aliases: impl IntoIterator<Item = &'a Alias>) -> Result<RuleSet, AliasError> {
    let rules: Result<Vec<Node>, AliasError> =
        aliases.into_iter().map(|alias| rule_within(alias, Reach::Namespace)).collect();
    let rules = Node { tree: Tree::List(rules?), line: 0 };
    let document = Node::of_map([("rules", rules)]);
    let text = serde_saphyr::to_string(&document)
        .map_err(|error| AliasError::Configuration(error.to_string()))?;
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
