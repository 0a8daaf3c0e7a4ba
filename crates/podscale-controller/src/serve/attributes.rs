//! What a request wants to do, in the words of Kubernetes' authorizers.

use axum::http::Method;
use serde_json::{Value, json};

/// What a request wants to do, and with what.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Attributes {
    /// What is done: `get`, `list` and so on.
    pub verb: &'static str,
    /// With what.
    pub target: Target,
}

/// What something is done with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// A path that is none of objects.
    Path(String),
    /// Objects.
    Resource(Resource),
}

/// Objects of an API group. What is empty is not limited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Resource {
    /// The group.
    pub group: String,
    /// The version of the group.
    pub version: String,
    /// The namespace.
    pub namespace: String,
    /// The resource.
    pub resource: String,
    /// The part of the object.
    pub subresource: String,
    /// The name of the object.
    pub name: String,
}

impl Attributes {
    /// Reads the head of a request, as API servers do.
    #[must_use]
    pub fn of(method: &Method, path: &str, query: &str) -> Attributes {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let ["apis", group, version, rest @ ..] = parts.as_slice() else {
            return Attributes::of_path(method, path);
        };
        if rest.is_empty() {
            return Attributes::of_path(method, path);
        }
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            ["namespaces", namespace] => (*namespace, rest),
            _ => ("", rest),
        };
        let part = |at: usize| rest.get(at).copied().unwrap_or_default().to_owned();
        let resource = Resource {
            group: (*group).to_owned(),
            version: (*version).to_owned(),
            namespace: namespace.to_owned(),
            resource: part(0),
            subresource: part(2),
            name: part(1),
        };
        let verb = match verb(method) {
            "get" if resource.name.is_empty() && is_watch(query) => "watch",
            "get" if resource.name.is_empty() => "list",
            verb => verb,
        };
        Attributes { verb, target: Target::Resource(resource) }
    }

    fn of_path(method: &Method, path: &str) -> Attributes {
        let verb = match method.as_str() {
            "GET" => "get",
            "HEAD" => "head",
            "POST" => "post",
            "PUT" => "put",
            "PATCH" => "patch",
            "DELETE" => "delete",
            _ => "other",
        };
        Attributes { verb, target: Target::Path(path.to_owned()) }
    }

    /// The fields of a SubjectAccessReview that say it.
    #[must_use]
    pub fn review(&self) -> (&'static str, Value) {
        match &self.target {
            Target::Path(path) => {
                ("nonResourceAttributes", json!({"path": path, "verb": self.verb}))
            }
            Target::Resource(resource) => (
                "resourceAttributes",
                json!({
                    "verb": self.verb, "group": resource.group, "version": resource.version,
                    "namespace": resource.namespace, "resource": resource.resource,
                    "subresource": resource.subresource, "name": resource.name,
                }),
            ),
        }
    }

    /// That somebody may not do it, in Kubernetes' words, and the details of the `Status`.
    #[must_use]
    pub fn forbidden(&self, user: &str, reason: &str) -> (String, Value) {
        let verb = self.verb;
        let because = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        let resource = match &self.target {
            Target::Path(path) => {
                let text = format!("forbidden: User {user:?} cannot {verb} path {path:?}{because}");
                return (text, json!({}));
            }
            Target::Resource(resource) => resource,
        };
        let Resource { group, namespace, resource, subresource, name, .. } = resource;
        let qualified =
            if group.is_empty() { resource.clone() } else { format!("{resource}.{group}") };
        let whole = match subresource.as_str() {
            "" => resource.clone(),
            part => format!("{resource}/{part}"),
        };
        let place = match namespace.as_str() {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {namespace:?}"),
        };
        let object = if name.is_empty() { String::new() } else { format!(" {name:?}") };
        let text = format!(
            "{qualified}{object} is forbidden: User {user:?} cannot {verb} resource {whole:?} in API \
             group {group:?} {place}{because}"
        );
        let mut details = json!({"group": group, "kind": resource});
        if !name.is_empty() {
            details["name"] = name.as_str().into();
        }
        (text, details)
    }
}

fn verb(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" | "HEAD" => "get",
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "",
    }
}

fn is_watch(query: &str) -> bool {
    query.split('&').any(|part| matches!(part, "watch" | "watch=true" | "watch=1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(attributes: &Attributes) -> String {
        let verb = attributes.verb;
        match &attributes.target {
            Target::Path(path) => format!("{verb} path {path}"),
            Target::Resource(r) => {
                format!(
                    "{verb} {}|{}|{}|{}|{}",
                    r.group, r.namespace, r.resource, r.name, r.subresource
                )
            }
        }
    }

    #[test]
    fn requests_are_read_as_api_servers_read_them() {
        let custom = "/apis/custom.metrics.k8s.io/v1beta2";
        for (method, path, expected) in [
            ("GET", "/metrics", "get path /metrics"),
            ("HEAD", "/apis", "head path /apis"),
            ("GET", "/apis/metrics.k8s.io/v1beta1", "get path /apis/metrics.k8s.io/v1beta1"),
            ("GET", "/apis/metrics.k8s.io/v1beta1/nodes", "list metrics.k8s.io||nodes||"),
            ("GET", "/apis/metrics.k8s.io/v1beta1/nodes/a", "get metrics.k8s.io||nodes|a|"),
            ("GET", "/apis/metrics.k8s.io/v1beta1/pods?watch=true", "watch metrics.k8s.io||pods||"),
            (
                "GET",
                "/apis/metrics.k8s.io/v1beta1/namespaces/a/pods/b",
                "get metrics.k8s.io|a|pods|b|",
            ),
            ("DELETE", "/apis/metrics.k8s.io/v1beta1/nodes/a", "delete metrics.k8s.io||nodes|a|"),
            (
                "GET",
                &format!("{custom}/namespaces/a/pods/*/rps"),
                "get custom.metrics.k8s.io|a|pods|*|rps",
            ),
            (
                "GET",
                &format!("{custom}/namespaces/a/metrics/rps"),
                "get custom.metrics.k8s.io|a|metrics|rps|",
            ),
            ("GET", &format!("{custom}/nodes/n/rps"), "get custom.metrics.k8s.io||nodes|n|rps"),
            (
                "GET",
                "/apis/external.metrics.k8s.io/v1beta1/namespaces/a/depth",
                "list external.metrics.k8s.io|a|depth||",
            ),
        ] {
            let (path, query) = path.split_once('?').unwrap_or((path, ""));
            let method = method.parse().expect("a method");
            assert_eq!(words(&Attributes::of(&method, path, query)), expected, "{path}");
        }
    }

    #[test]
    fn a_refusal_has_kubernetes_words() {
        let root = "/apis/metrics.k8s.io/v1beta1";
        for (path, expected) in [
            (
                format!("{root}/pods"),
                "pods.metrics.k8s.io is forbidden: User \"x\" cannot list resource \"pods\" in API group \
                 \"metrics.k8s.io\" at the cluster scope",
            ),
            (
                format!("{root}/namespaces/a/pods/b"),
                "pods.metrics.k8s.io \"b\" is forbidden: User \"x\" cannot get resource \"pods\" in API \
                 group \"metrics.k8s.io\" in the namespace \"a\"",
            ),
            ("/metrics".to_owned(), "forbidden: User \"x\" cannot get path \"/metrics\""),
        ] {
            let attributes = Attributes::of(&Method::GET, &path, "");
            assert_eq!(attributes.forbidden("x", "").0, expected);
            assert_eq!(attributes.forbidden("x", "no").0, format!("{expected}: no"));
        }
    }
}
