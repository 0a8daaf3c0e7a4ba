//! What a path means.

use crate::resource::ResourceInfo;

/// A path of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/`: all paths.
    Root,
    Version,
    /// `/healthz` and its kin.
    Health,
    /// `/api`.
    Core,
    /// `/apis`.
    Groups,
    /// `/apis/{group}`, or `/apis/{group}/{version}` and `/api/v1`.
    Group {
        group: String,
        version: String,
    },
    OpenApi(String),
    Resource(ResourcePath),
    Unknown,
}

/// The path of a resource, an object, or a part of one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ResourcePath {
    pub group: String,
    pub version: String,
    pub namespace: Option<String>,
    pub resource: String,
    pub name: Option<String>,
    pub subresource: Option<String>,
    /// Whether it is one of the old watch paths.
    pub watch: bool,
}

impl ResourcePath {
    /// Whether the path names a namespace exactly where the resource has one.
    pub(crate) fn fits(&self, info: &ResourceInfo) -> bool {
        match (info.namespaced, &self.namespace) {
            (true, None) => self.name.is_none(),
            (false, Some(_)) => false,
            _ => true,
        }
    }
}

/// Takes a path apart.
pub(crate) fn route(path: &str) -> Route {
    let segments: Vec<String> =
        path.split('/').filter(|segment| !segment.is_empty()).map(decode).collect();
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    match parts.as_slice() {
        [] => Route::Root,
        ["version"] => Route::Version,
        ["healthz" | "livez" | "readyz", ..] => Route::Health,
        ["openapi", ..] => Route::OpenApi(path.to_owned()),
        ["api"] => Route::Core,
        ["apis"] => Route::Groups,
        ["api", version] => Route::Group { group: String::new(), version: (*version).to_owned() },
        ["api", version, rest @ ..] => resource("", version, rest),
        ["apis", group] => Route::Group { group: (*group).to_owned(), version: String::new() },
        ["apis", group, version] => {
            Route::Group { group: (*group).to_owned(), version: (*version).to_owned() }
        }
        ["apis", group, version, rest @ ..] => resource(group, version, rest),
        _ => Route::Unknown,
    }
}

fn resource(group: &str, version: &str, rest: &[&str]) -> Route {
    let (watch, rest) = match rest {
        ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
        rest => (false, rest),
    };
    let (namespace, rest) = match rest {
        // A namespace is also a resource of its own, with endpoints of its own.
        ["namespaces", _, "status" | "finalize"] if group.is_empty() => (None, rest),
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some(*namespace), rest),
        rest => (None, rest),
    };
    let (resource, name, subresource) = match rest {
        [resource] => (*resource, None, None),
        [resource, name] => (*resource, Some(*name), None),
        [resource, name, subresource] => (*resource, Some(*name), Some(*subresource)),
        // Forwarded groups may have longer paths; they are found by group and version alone.
        [resource, name, ..] => (*resource, Some(*name), Some("")),
        [] => return Route::Unknown,
    };
    Route::Resource(ResourcePath {
        group: group.to_owned(),
        version: version.to_owned(),
        namespace: namespace.map(str::to_owned),
        resource: resource.to_owned(),
        name: name.map(str::to_owned),
        subresource: subresource.map(str::to_owned),
        watch,
    })
}

fn decode(segment: &str) -> String {
    let bytes = segment.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let escaped = bytes
            .get(at + 1..at + 3)
            .filter(|_| *byte == b'%')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escaped {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_apart() {
        let cases = [
            ("/api/v1/pods", ",v1,-,pods,-,-"),
            ("/api/v1/namespaces/a/pods/b%2Ec", ",v1,a,pods,b.c,-"),
            ("/api/v1/namespaces/a/pods/b/status", ",v1,a,pods,b,status"),
            ("/api/v1/namespaces/a", ",v1,-,namespaces,a,-"),
            ("/api/v1/namespaces/a/finalize", ",v1,-,namespaces,a,finalize"),
            ("/apis/apps/v1/namespaces/a/deployments/", "apps,v1,a,deployments,-,-"),
            ("/apis/x.io/v1/namespaces/a/status", "x.io,v1,a,status,-,-"),
        ];
        for (path, expected) in cases {
            let Route::Resource(found) = route(path) else { panic!("{path}") };
            let part = |part: &Option<String>| part.clone().unwrap_or_else(|| "-".to_owned());
            let text = format!(
                "{},{},{},{},{},{}",
                found.group,
                found.version,
                part(&found.namespace),
                found.resource,
                part(&found.name),
                part(&found.subresource)
            );
            assert_eq!(text, expected, "{path}");
        }
        assert_eq!(route("/nonsense"), Route::Unknown);
        assert_eq!(route("/livez/ping"), Route::Health);
    }
}
