//! Variables of the environment of a target's container, as its pod template has them. Only those are looked up that
//! a trigger names, so that no other Secret is read.

use super::Triggers;
use super::lookup::{Key, LookupError, Reads, Store};
use futures::FutureExt;
use futures::future::BoxFuture;
use podscale_api::keda::scaled_object::ScaleTarget;
use podscale_client::call::{About, segment};
use podscale_scalers::Secret;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// How deep variables may refer to each other.
const DEEPEST: usize = 32;
/// How long a value is at most, with all that it refers to.
const LONGEST_BYTES: usize = 64 << 10;

/// What listed variables are, by their place: none is worked out twice, however often it is referred to.
type Known = HashMap<usize, Option<Secret>>;

/// What a reference reaches: variables that are listed before the one that has it, as in Kubernetes.
#[derive(Clone, Copy)]
struct Reach {
    before: usize,
    depth: usize,
}

/// Where workloads have their containers, and where ScaledJobs have those of their Jobs.
const CONTAINERS: [&str; 2] =
    ["/spec/template/spec/containers", "/spec/jobTargetRef/template/spec/containers"];

/// The container that variables are looked up in.
pub(super) struct Environment {
    namespace: String,
    container: Value,
}

impl Triggers {
    /// What an object scales, as the cluster has it.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) async fn target(
        &self,
        reads: &Reads,
        namespace: &str,
        target: &ScaleTarget,
    ) -> Result<Arc<Value>, LookupError> {
        let (kind, name) = (target.kind(), target.name.as_str());
        let what = format!("{kind} {name:?}");
        let group = target.api_version().split_once('/').map_or("", |(group, _)| group);
        let resource = self.mapper.of_group(group, kind).await.map_err(|error| {
            LookupError::Unsure { what: what.clone(), problem: error.to_string() }
        })?;
        let path = format!("{}/{}", resource.path(namespace), segment(name));
        let about = About { resource: &resource.plural, name };
        self.read(reads, &what, &path, about).await
    }

    /// The environment of a container of a target: the one of this name, or the one that the object names, or the
    /// first.
    ///
    /// # Errors
    /// The target cannot be read, or has no such container.
    pub(super) async fn environment(
        &self,
        reads: &Reads,
        namespace: &str,
        target: &ScaleTarget,
        container: &str,
    ) -> Result<Environment, LookupError> {
        let what = format!("{} {:?}", target.kind(), target.name);
        let target_object = self.target(reads, namespace, target).await?;
        let containers = CONTAINERS
            .iter()
            .find_map(|place| target_object.pointer(place)?.as_array())
            .ok_or_else(|| LookupError::Missing(format!("{what} has no containers")))?;
        let wanted = match container {
            "" => target.env_source_container_name.as_str(),
            named => named,
        };
        let is_wanted =
            |container: &&Value| wanted.is_empty() || text(container, "name") == Some(wanted);
        let found = containers.iter().find(is_wanted).cloned();
        let container = found
            .ok_or_else(|| LookupError::Missing(format!("{what} has no container {wanted:?}")))?;
        Ok(Environment { namespace: namespace.to_owned(), container })
    }

    /// The value of a variable, if the container has it.
    ///
    /// # Errors
    /// What it refers to cannot be read.
    pub(super) async fn variable(
        &self,
        reads: &Reads,
        environment: &Environment,
        name: &str,
    ) -> Result<Option<Secret>, LookupError> {
        let reach = Reach { before: usize::MAX, depth: DEEPEST };
        self.variable_within(reads, environment, name, reach, &mut Known::new()).await
    }

    fn variable_within<'a>(
        &'a self,
        reads: &'a Reads,
        environment: &'a Environment,
        name: &'a str,
        reach: Reach,
        known: &'a mut Known,
    ) -> BoxFuture<'a, Result<Option<Secret>, LookupError>> {
        async move {
            // Of two of the same name the later one counts; those that are listed count more than imported ones.
            let listed = list(&environment.container, "env").iter().enumerate().take(reach.before);
            let mut of_it = listed.filter(|(_, variable)| text(variable, "name") == Some(name));
            if let Some((place, variable)) = of_it.next_back() {
                if let Some(value) = known.get(&place) {
                    return Ok(value.clone());
                }
                let Some(depth) = reach.depth.checked_sub(1) else {
                    let problem = format!("variables refer to each other more than {DEEPEST} deep");
                    return Err(LookupError::Missing(problem));
                };
                let inside = Reach { before: place, depth };
                let value = self.listed(reads, environment, variable, inside, known).await?;
                known.insert(place, value.clone());
                return Ok(value);
            }
            for import in list(&environment.container, "envFrom").iter().rev() {
                let prefix = text(import, "prefix").unwrap_or_default();
                let Some(key) = name.strip_prefix(prefix) else { continue };
                let value = self.imported(reads, environment, import, key).await?;
                if value.is_some() {
                    return Ok(value);
                }
            }
            Ok(None)
        }
        .boxed()
    }

    /// The value of a variable that the container lists. What pods know of themselves is not known here.
    async fn listed(
        &self,
        reads: &Reads,
        environment: &Environment,
        variable: &Value,
        reach: Reach,
        known: &mut Known,
    ) -> Result<Option<Secret>, LookupError> {
        if let Some(value) = text(variable, "value") {
            return self.expand(reads, environment, value, reach, known).await.map(Some);
        }
        let from = variable.get("valueFrom").unwrap_or(&Value::Null);
        for (field, store) in
            [("secretKeyRef", Store::Secret), ("configMapKeyRef", Store::ConfigMap)]
        {
            if let Some(reference) = from.get(field) {
                let key = text(reference, "key").unwrap_or_default();
                return self.referred(reads, environment, reference, store, key).await;
            }
        }
        Ok(None)
    }

    /// The value of a key of all that are imported.
    async fn imported(
        &self,
        reads: &Reads,
        environment: &Environment,
        import: &Value,
        key: &str,
    ) -> Result<Option<Secret>, LookupError> {
        for (field, store) in [("secretRef", Store::Secret), ("configMapRef", Store::ConfigMap)] {
            if let Some(reference) = import.get(field) {
                return self.referred(reads, environment, reference, store, key).await;
            }
        }
        Ok(None)
    }

    async fn referred(
        &self,
        reads: &Reads,
        environment: &Environment,
        reference: &Value,
        store: Store,
        key: &str,
    ) -> Result<Option<Secret>, LookupError> {
        let name = text(reference, "name").unwrap_or_default();
        let value = self.value(reads, store, &environment.namespace, name, Key::Text(key)).await;
        match value {
            Err(LookupError::Missing(_))
                if reference.get("optional") == Some(&Value::Bool(true)) =>
            {
                Ok(None)
            }
            other => other,
        }
    }

    /// A value with the variables that it refers to as `$(NAME)`; what is not known stays as it is.
    async fn expand(
        &self,
        reads: &Reads,
        environment: &Environment,
        value: &str,
        reach: Reach,
        known: &mut Known,
    ) -> Result<Secret, LookupError> {
        let mut expanded = String::new();
        for part in parts(value) {
            let found;
            let text = match part {
                Part::Text(text) => text,
                Part::Variable { name, written } => {
                    found = self.variable_within(reads, environment, name, reach, known).await?;
                    found.as_ref().map_or(written, Secret::expose)
                }
            };
            if expanded.len() + text.len() > LONGEST_BYTES {
                return Err(LookupError::Missing(format!(
                    "a variable is longer than {LONGEST_BYTES} bytes, with those that it refers to"
                )));
            }
            expanded.push_str(text);
        }
        Ok(Secret::from(expanded))
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Part<'a> {
    Text(&'a str),
    Variable { name: &'a str, written: &'a str },
}

/// The parts of a value: texts, and references such as `$(NAME)`. `$$` is one dollar sign.
fn parts(value: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = value;
    while let Some(at) = rest.find('$') {
        let (before, dollar) = rest.split_at(at);
        if !before.is_empty() {
            parts.push(Part::Text(before));
        }
        let reference = dollar.strip_prefix("$(").and_then(|inside| inside.split_once(')'));
        if let Some((name, after)) = reference {
            let written = &dollar[..dollar.len() - after.len()];
            parts.push(Part::Variable { name, written });
            rest = after;
        } else {
            parts.push(Part::Text("$"));
            rest = dollar.strip_prefix("$$").unwrap_or(&dollar[1..]);
        }
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest));
    }
    parts
}

fn text<'a>(object: &'a Value, field: &str) -> Option<&'a str> {
    object.get(field)?.as_str()
}

fn list<'a>(object: &'a Value, field: &str) -> &'a [Value] {
    object.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_refer_to_variables_as_kubernetes_reads_them() {
        let shown = |value: &str| -> String {
            let show = |part| match part {
                Part::Text(text) => text.to_owned(),
                Part::Variable { name, written } => format!("[{name}|{written}]"),
            };
            parts(value).into_iter().map(show).collect()
        };
        for (value, expected) in [
            ("", ""),
            ("plain", "plain"),
            ("$(A)", "[A|$(A)]"),
            ("a$(A)b$(B)", "a[A|$(A)]b[B|$(B)]"),
            ("$$(A)", "$(A)"),
            ("$(A", "$(A"),
            ("5$", "5$"),
            ("$a$$b", "$a$b"),
        ] {
            assert_eq!(shown(value), expected, "{value}");
        }
    }
}
