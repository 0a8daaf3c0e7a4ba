//! What a request is about, and the rights that it takes: those to do the same with the native objects.

use crate::serve::attributes::{Attributes, Resource, Target};
use axum::http::Method;
use podscale_api::singlecloud::RESOURCES;

/// Workloads whose metrics can be picked from.
const WORKLOADS: [&str; 3] = ["deployments", "statefulsets", "daemonsets"];

/// What a path is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// All autoscalers of a namespace.
    Autoscalers {
        /// The namespace.
        namespace: String,
    },
    /// One autoscaler.
    Autoscaler {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// The metrics that the pods of a workload have.
    Metrics {
        /// The namespace of the workload.
        namespace: String,
        /// Its resource, such as `deployments`.
        resource: &'static str,
        /// Its name.
        name: String,
    },
}

/// A request that makes sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// The cluster that it is about.
    pub(super) cluster: String,
    /// What it is about.
    pub(super) subject: Subject,
}

impl Wanted {
    /// Reads a path. Names in it are never escaped: none that Kubernetes has needs to be, and so the right
    /// that is asked about is the one for what is done.
    pub(super) fn of(path: &str) -> Option<Wanted> {
        let parts: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
        let plain = |part: &&str| !part.is_empty() && !part.contains('%') && !part.starts_with('.');
        if !parts.iter().all(plain) {
            return None;
        }
        let ["apis", "zcloud.cn", "v1", "clusters", cluster, "namespaces", namespace, rest @ ..] =
            parts.as_slice()
        else {
            return None;
        };
        let namespace = (*namespace).to_owned();
        let subject = match rest {
            [all] if *all == RESOURCES => Subject::Autoscalers { namespace },
            [all, name] if *all == RESOURCES => {
                Subject::Autoscaler { namespace, name: (*name).to_owned() }
            }
            [resource, name, "metrics"] => {
                let resource = WORKLOADS.into_iter().find(|known| known == resource)?;
                Subject::Metrics { namespace, resource, name: (*name).to_owned() }
            }
            _ => return None,
        };
        Some(Wanted { cluster: (*cluster).to_owned(), subject })
    }
}

impl Subject {
    /// What must be allowed; nothing if the method has no meaning here.
    pub(super) fn attributes(&self, method: &Method) -> Option<Attributes> {
        let verb = match (self, method.as_str()) {
            (Subject::Autoscalers { .. }, "GET") => "list",
            (Subject::Autoscalers { .. }, "POST") => "create",
            (Subject::Autoscaler { .. } | Subject::Metrics { .. }, "GET") => "get",
            (Subject::Autoscaler { .. }, "PUT") => "update",
            (Subject::Autoscaler { .. }, "DELETE") => "delete",
            _ => return None,
        };
        let (group, version, resource, namespace, name) = match self {
            Subject::Autoscalers { namespace } => ("autoscaling", "v2", RESOURCES, namespace, ""),
            Subject::Autoscaler { namespace, name } => {
                ("autoscaling", "v2", RESOURCES, namespace, name.as_str())
            }
            Subject::Metrics { namespace, resource, name } => {
                ("apps", "v1", *resource, namespace, name.as_str())
            }
        };
        let resource = Resource {
            group: group.to_owned(),
            version: version.to_owned(),
            namespace: namespace.clone(),
            resource: resource.to_owned(),
            subresource: String::new(),
            name: name.to_owned(),
        };
        Some(Attributes { verb, target: Target::Resource(resource) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_take_the_rights_of_native_objects() {
        let root = "/apis/zcloud.cn/v1/clusters/local/namespaces/shop";
        for (method, path, expected) in [
            ("GET", "horizontalpodautoscalers", "list autoscaling horizontalpodautoscalers "),
            ("POST", "horizontalpodautoscalers", "create autoscaling horizontalpodautoscalers "),
            ("GET", "horizontalpodautoscalers/a", "get autoscaling horizontalpodautoscalers a"),
            ("PUT", "horizontalpodautoscalers/a", "update autoscaling horizontalpodautoscalers a"),
            (
                "DELETE",
                "horizontalpodautoscalers/a",
                "delete autoscaling horizontalpodautoscalers a",
            ),
            ("GET", "deployments/w/metrics", "get apps deployments w"),
            ("GET", "daemonsets/w/metrics", "get apps daemonsets w"),
            ("PUT", "horizontalpodautoscalers", "no such method"),
            ("POST", "deployments/w/metrics", "no such method"),
            ("PATCH", "horizontalpodautoscalers/a", "no such method"),
            ("GET", "jobs/w/metrics", "no such path"),
            ("GET", "deployments/w", "no such path"),
            ("GET", "horizontalpodautoscalers/a/b", "no such path"),
            ("GET", "horizontalpodautoscalers/", "no such path"),
            ("GET", "horizontalpodautoscalers/%61", "no such path"),
            ("GET", "horizontalpodautoscalers/..", "no such path"),
        ] {
            let wanted = Wanted::of(&format!("{root}/{path}"));
            let method: Method = method.parse().expect("a method");
            let text = wanted.map_or("no such path".to_owned(), |wanted| {
                assert_eq!(wanted.cluster, "local");
                match wanted.subject.attributes(&method).map(|a| (a.verb, a.target)) {
                    Some((verb, Target::Resource(r))) => {
                        assert_eq!(r.namespace, "shop");
                        format!("{verb} {} {} {}", r.group, r.resource, r.name)
                    }
                    Some(_) => "a path".to_owned(),
                    None => "no such method".to_owned(),
                }
            });
            assert_eq!(text, expected, "{method} {path}");
        }
    }
}
