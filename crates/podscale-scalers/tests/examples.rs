//! Triggers as people write them are understood, without a warning; together they have every field that the pages in
//! docs/triggers name, in every place that a field may be in. So has every example on those pages.

use podscale_scalers::{
    AwsIdentity, AzureIdentity, Federation, Identity, KINDS, Secret, TriggerSpec, parse,
};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A trigger with what it refers to.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Example {
    r#type: String,
    #[serde(default)]
    metric_type: String,
    #[serde(default)]
    metadata: BTreeMap<String, String>,
    #[serde(default)]
    auth: BTreeMap<String, String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// The cloud in which its authentication gives it an identity: the controller's, or the workload's.
    #[serde(default)]
    identity: String,
}

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn examples() -> Vec<Example> {
    serde_saphyr::from_str(&read("tests/examples.yaml")).expect("examples")
}

impl Example {
    fn spec(&self) -> TriggerSpec {
        let made = rcgen::generate_simple_self_signed(["web".to_owned()]).expect("a certificate");
        let secret = |(name, value): (&String, &String)| {
            let value = match value.as_str() {
                "CERT" => Secret::from(made.cert.pem()),
                "KEY" => Secret::from(made.signing_key.serialize_pem()),
                value => Secret::from(value),
            };
            (name.clone(), value)
        };
        TriggerSpec {
            kind: self.r#type.clone(),
            metric_type: self.metric_type.clone(),
            metadata: self.metadata.clone(),
            auth: self.auth.iter().map(secret).collect(),
            env: self.env.iter().map(secret).collect(),
            identity: identity(&self.identity),
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
            ..TriggerSpec::default()
        }
    }
}

fn identity(cloud: &str) -> Option<Identity> {
    let azure = AzureIdentity {
        client: None,
        tenant: None,
        authority: None,
        account: Federation::Controller,
    };
    match cloud {
        "aws" => Some(Identity::Aws(AwsIdentity::Controller { role: None, external_id: None })),
        "azure-workload" => Some(Identity::Azure(azure)),
        "azure-of-workload" => {
            let account =
                Federation::Workload { account: "shop/web".to_owned(), token: "t".into() };
            Some(Identity::Azure(AzureIdentity { account, ..azure }))
        }
        "gcp" => Some(Identity::Gcp),
        _ => None,
    }
}

/// The page that describes a type.
fn page(kind: &str) -> &str {
    match kind {
        "external-push" => "external",
        "redis-cluster" | "redis-sentinel" => "redis",
        "redis-cluster-streams" | "redis-sentinel-streams" => "redis-streams",
        kind => kind,
    }
}

fn page_of(name: &str) -> String {
    read(&format!("../../docs/triggers/{name}.md"))
}

#[test]
fn every_example_is_understood_without_a_warning() {
    let examples = examples();
    for example in &examples {
        let shown = format!("{}: {:?}", example.r#type, example.metadata);
        let parsed = parse(&example.spec()).unwrap_or_else(|errors| panic!("{shown}: {errors}"));
        assert_eq!(parsed.warnings, [""; 0], "{shown}");
    }
    let kinds: BTreeSet<&str> = examples.iter().map(|example| &*example.r#type).collect();
    assert_eq!(kinds, BTreeSet::from(KINDS), "each type has one");
}

/// A field of a page, and where it may be.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Documented {
    name: String,
    place: &'static str,
}

/// The names in a cell: those in backticks, but for values in brackets that they may have.
fn names(cell: &str) -> Vec<&str> {
    let mut rest = cell;
    let mut found = Vec::new();
    while let Some((before, after)) = rest.split_once('`') {
        let Some((name, after)) = after.split_once('`') else { break };
        let in_brackets = before.ends_with('(');
        rest = if in_brackets { after.split_once(')').map_or("", |(_, rest)| rest) } else { after };
        if !in_brackets && !name.starts_with('…') {
            found.push(name);
        }
    }
    found
}

/// The fields of both tables of a page.
fn documented(page: &str) -> BTreeSet<Documented> {
    let mut all = BTreeSet::new();
    let tables = page.split("## Example").next().unwrap_or_default();
    let rows =
        tables.lines().filter(|line| line.starts_with("| `") && !line.contains("of the trigger"));
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        // The table of parameters has two columns, and says in words where else they may be.
        let (names, from) = (names(cells[0]), if cells.len() > 2 { cells[1] } else { row });
        for name in names {
            let mut add = |name: String, place| all.extend([Documented { name, place }]);
            if from.contains("FromEnv") {
                add(format!("{name}FromEnv"), "metadata");
            }
            if cells.len() == 2 || from.contains("authentication") {
                add(name.to_owned(), "auth");
            }
            if cells.len() > 2 && from.contains("metadata") {
                add(name.to_owned(), "metadata");
            }
        }
    }
    all
}

#[test]
fn every_field_of_every_page_has_an_example() {
    let examples = examples();
    let pages: BTreeSet<&str> = KINDS.into_iter().map(page).collect();
    let mut count = 0;
    let mut missing = Vec::new();
    for name in pages {
        let documented = documented(&page_of(name));
        assert!(!documented.is_empty(), "{name}");
        let of_page = || examples.iter().filter(|example| page(&example.r#type) == name);
        for field in &documented {
            let is_there = of_page().any(|example| match field.place {
                "auth" => example.auth.contains_key(&field.name),
                _ => example.metadata.contains_key(&field.name),
            });
            if !is_there {
                missing.push(format!("{name}: {} in {}", field.name, field.place));
            }
        }
        count += documented.len();
    }
    assert!(missing.is_empty(), "no example has\n{}", missing.join("\n"));
    println!("{count} fields have examples");
}

/// Triggers that are written on a page.
#[derive(Deserialize)]
struct Written {
    triggers: Vec<WrittenTrigger>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenTrigger {
    r#type: String,
    #[serde(default)]
    metric_type: String,
    metadata: BTreeMap<String, String>,
    authentication_ref: Option<serde_json::Value>,
}

#[test]
fn every_example_of_every_page_is_understood() {
    for name in KINDS.into_iter().map(page).collect::<BTreeSet<_>>() {
        let text = page_of(name);
        let blocks: Vec<&str> = text.split("```yaml\n").skip(1).collect();
        assert!(!blocks.is_empty(), "{name} has an example");
        for block in blocks {
            let block = block.split("```").next().unwrap_or_default();
            let Ok(written) = serde_saphyr::from_str::<Written>(block) else {
                assert!(!block.contains("triggers:"), "{name}: {block}");
                continue;
            };
            for trigger in written.triggers {
                let spec = TriggerSpec {
                    kind: trigger.r#type,
                    metric_type: trigger.metric_type,
                    metadata: trigger.metadata,
                    ..TriggerSpec::default()
                };
                // What an authentication or a variable gives is not written there.
                let refers = trigger.authentication_ref.is_some()
                    || spec.metadata.keys().any(|name| name.ends_with("FromEnv"));
                let problems = match parse(&spec) {
                    Ok(parsed) => parsed.warnings,
                    Err(errors) => {
                        let own = errors.problems().iter().filter(|problem| {
                            let has = |field| spec.metadata.contains_key(field);
                            !refers || problem.field.is_some_and(has)
                        });
                        own.map(|problem| problem.text.clone()).collect()
                    }
                };
                let problems: Vec<_> =
                    problems.iter().filter(|text| !refers || !text.contains("FromEnv")).collect();
                assert!(problems.is_empty(), "{name}: {problems:?}\n{block}");
            }
        }
    }
}
