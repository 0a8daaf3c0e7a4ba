//! Reads a file of rules: every field of prometheus-adapter's configuration, and nothing else.

use super::document::Node;
use super::name::{NameProblem, NameRule};
use super::promql;
use super::query;
use super::reader::{Place, Report};
use super::resources::{GroupResource, LabelTemplate, ResourceMapping};
use super::series::{SeriesFilter, expression};
use super::template::Template;
use super::usage::{ResourceRules, UsageRule};
use super::{Rule, RuleError, RuleSet};
use std::time::Duration;

/// How many rules a file may have.
const MOST_RULES: usize = 5000;

const FILE: [&str; 3] = ["rules", "externalRules", "resourceRules"];
const RULE: [&str; 5] = ["seriesQuery", "seriesFilters", "resources", "name", "metricsQuery"];
const FILTER: [&str; 2] = ["is", "isNot"];
const RESOURCES: [&str; 3] = ["template", "overrides", "namespaced"];
const OVERRIDE: [&str; 2] = ["group", "resource"];
const NAME: [&str; 2] = ["matches", "as"];
const RESOURCE_RULES: [&str; 3] = ["cpu", "memory", "window"];
const USAGE: [&str; 4] = ["containerQuery", "nodeQuery", "resources", "containerLabel"];

/// Reads a file.
pub(super) fn read(text: &str) -> Result<RuleSet, Vec<RuleError>> {
    let document = Node::read(text).map_err(|error| vec![error])?;
    let mut report = Report::default();
    let root = Place::root(&document);
    root.check_keys(&FILE, &mut report);
    let custom = rules(&root.field("rules"), false, &mut report);
    let external = rules(&root.field("externalRules"), true, &mut report);
    let resource = resource_rules(&root.field("resourceRules"), &mut report);
    if !report.errors.is_empty() {
        return Err(report.errors);
    }
    if custom.is_empty() && external.is_empty() && resource.is_none() {
        report.warn(&root, "has no rules");
    }
    Ok(RuleSet { custom, external, resource, warnings: report.warnings })
}

fn rules(place: &Place<'_>, external: bool, report: &mut Report) -> Vec<Rule> {
    let elements = place.elements(report);
    if elements.len() > MOST_RULES {
        report.error(place, format!("has more than {MOST_RULES} rules"));
        return Vec::new();
    }
    elements.iter().filter_map(|element| rule(element, external, report)).collect()
}

/// One rule; nothing if it cannot be used, which the report says.
fn rule(place: &Place<'_>, external: bool, report: &mut Report) -> Option<Rule> {
    if place.is_absent() {
        report.error(place, "is empty");
        return None;
    }
    place.check_keys(&RULE, report);
    let selector = place.field("seriesQuery");
    let series_query = required(&selector, report);
    if let Some(Err(problem)) = series_query.as_deref().map(promql::check) {
        report.error(&selector, problem);
    }
    let filters = filters(&place.field("seriesFilters"), report);
    let mapping = place.field("resources");
    let (resources, namespaced) = resources(&mapping, report);
    let name = name(&place.field("name"), report);
    let query_place = place.field("metricsQuery");
    let query = template(&query_place, report);
    let namespaced = namespaced.unwrap_or(true);
    if resources.is_empty() && external && namespaced {
        report.warn(
            &mapping,
            "nothing says which label holds the namespace, so every request fails: add an override \
             for namespace, or set namespaced: false",
        );
    }
    if resources.is_empty() && !external {
        report.warn(&mapping, "has neither template nor overrides, so no object has this metric");
    }
    Some(Rule {
        path: place.path.as_str().into(),
        series_query: series_query?.into(),
        filters: filters?,
        resources,
        name: name?,
        query: query?,
        namespaced,
    })
}

fn required(place: &Place<'_>, report: &mut Report) -> Option<String> {
    let errors = report.errors.len();
    let text = place.text(report);
    if text.trim().is_empty() {
        if report.errors.len() == errors {
            report.error(place, "must be set");
        }
        return None;
    }
    Some(text)
}

fn filters(place: &Place<'_>, report: &mut Report) -> Option<Vec<SeriesFilter>> {
    let elements = place.elements(report);
    let read: Vec<_> = elements.iter().map(|element| filter(element, report)).collect();
    read.into_iter().collect()
}

fn filter(place: &Place<'_>, report: &mut Report) -> Option<SeriesFilter> {
    place.check_keys(&FILTER, report);
    let (is, is_not) = (place.field("is"), place.field("isNot"));
    let (wanted, unwanted) = (is.text(report), is_not.text(report));
    let (field, text) = match (wanted.as_str(), unwanted.as_str()) {
        ("", "") => {
            report.error(place, "must have either is or isNot");
            return None;
        }
        (wanted, "") => (is, wanted),
        ("", unwanted) => (is_not, unwanted),
        _ => {
            report.error(place, "cannot have both is and isNot: make two filters of them");
            return None;
        }
    };
    match expression(text) {
        Ok(expression) => Some(SeriesFilter::new(expression, unwanted.is_empty())),
        Err(problem) => {
            report.error(&field, problem);
            None
        }
    }
}

fn name(place: &Place<'_>, report: &mut Report) -> Option<NameRule> {
    place.check_keys(&NAME, report);
    let (matches, replacement) = (place.field("matches"), place.field("as"));
    match NameRule::new(&matches.text(report), &replacement.text(report)) {
        Ok(name) => Some(name),
        Err(NameProblem::Matches(problem)) => {
            report.error(&matches, problem);
            None
        }
        Err(NameProblem::As(problem)) => {
            report.error(&replacement, problem);
            None
        }
    }
}

/// A query, tried with made-up values: what fails then fails always.
fn template(place: &Place<'_>, report: &mut Report) -> Option<Template> {
    let text = required(place, report)?;
    let parsed = Template::parse(&text).and_then(|template| {
        let rendered = template.render(&query::sample())?;
        Ok((template, rendered))
    });
    match parsed {
        Ok((template, rendered)) => {
            if let Err(problem) = promql::check(&rendered) {
                report.error(place, problem);
            }
            Some(template)
        }
        Err(error) => {
            let near = error.place.and_then(|at| text.get(at..)).unwrap_or_default();
            let near: String = near.chars().take(30).collect();
            let place_text =
                if near.is_empty() { String::new() } else { format!(" (at {near:?})") };
            report.error(place, format!("{error}{place_text}"));
            None
        }
    }
}

fn resources(place: &Place<'_>, report: &mut Report) -> (ResourceMapping, Option<bool>) {
    place.check_keys(&RESOURCES, report);
    let field = place.field("template");
    let text = field.text(report);
    let mut mapping = ResourceMapping::default();
    if !text.is_empty() {
        match LabelTemplate::parse(&text) {
            Ok(template) => mapping.template = Some(template),
            Err(problem) => report.error(&field, problem),
        }
    }
    for (label, entry) in place.field("overrides").entries(report) {
        entry.check_keys(&OVERRIDE, report);
        if !super::matchers::is_label_name(label) {
            report.error(&entry, format!("{label:?} is not the name of a label in Prometheus"));
        }
        let group = entry.field("group").text(report);
        if let Some(resource) = required(&entry.field("resource"), report) {
            mapping.overrides.push((label.into(), GroupResource { group, resource }));
        }
    }
    (mapping, place.field("namespaced").truth(report))
}

fn resource_rules(place: &Place<'_>, report: &mut Report) -> Option<ResourceRules> {
    if place.is_absent() {
        return None;
    }
    place.check_keys(&RESOURCE_RULES, report);
    let cpu = usage(&place.field("cpu"), report);
    let memory = usage(&place.field("memory"), report);
    let window = window(&place.field("window"), report);
    Some(ResourceRules { cpu: cpu?, memory: memory?, window: window? })
}

fn usage(place: &Place<'_>, report: &mut Report) -> Option<UsageRule> {
    place.check_keys(&USAGE, report);
    let containers = template(&place.field("containerQuery"), report);
    let nodes = place.field("nodeQuery");
    let nodes = if nodes.is_absent() { None } else { Some(template(&nodes, report)) };
    let mapping = place.field("resources");
    let (resources, _) = resources(&mapping, report);
    if resources.is_empty() {
        report.error(&mapping, "must say which labels hold namespace, pod and node");
        return None;
    }
    let container_label = required(&place.field("containerLabel"), report)?;
    let nodes = match nodes {
        Some(read) => Some(read?),
        None => None,
    };
    Some(UsageRule {
        containers: containers?,
        nodes,
        resources,
        container_label: container_label.into(),
    })
}

/// A duration as Prometheus writes it: `5m`, `1h30m`; nothing is no window.
fn window(place: &Place<'_>, report: &mut Report) -> Option<Duration> {
    let text = place.text(report);
    let window = prometheus_duration(&text);
    if window.is_none() {
        report.error(place, format!("{text:?} is not a duration such as 5m or 1h30m"));
    }
    window
}

pub(super) fn prometheus_duration(text: &str) -> Option<Duration> {
    const UNITS: [(&str, u64); 7] = [
        ("ms", 1),
        ("s", 1000),
        ("m", 60_000),
        ("h", 3_600_000),
        ("d", 86_400_000),
        ("w", 604_800_000),
        ("y", 31_536_000_000),
    ];
    let mut rest = text.trim();
    let mut millis = 0_u64;
    while !rest.is_empty() && rest != "0" {
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, after) = rest.split_at_checked(end)?;
        let unit_end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, next) = after.split_at_checked(unit_end)?;
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
        millis = millis.checked_add(number.parse::<u64>().ok()?.checked_mul(*factor)?)?;
        rest = next;
    }
    Some(Duration::from_millis(millis))
}
