//! What the server says about itself.

use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode, header};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::accept::wants_aggregated;
use super::path::Route;
use super::{plain, respond};
use crate::openapi::{Form, Resource};
use crate::registry::{Registry, Served, View};
use crate::resource::{ResourceInfo, Subresource, api_version};
use crate::server::Inner;
use crate::status::{ApiError, ApiResult};

const AGGREGATED: HeaderValue = HeaderValue::from_static(
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
);

/// Answers requests that are about the server and not about objects.
pub(super) async fn answer(server: &Inner, route: &Route, request: &Parts) -> ApiResult<Response> {
    if *route == Route::Unknown {
        return Err(ApiError::no_such_path());
    }
    if !matches!(request.method, Method::GET | Method::HEAD) {
        return Err(ApiError::method_not_allowed());
    }
    let registry = server.registry();
    let aggregated = wants_aggregated(&request.headers);
    let found = match route {
        Route::Health => return Ok(health(request)),
        Route::Version => version(),
        Route::Root => json!({ "paths": paths(&registry) }),
        Route::Core if aggregated => return Ok(all_groups(server, &registry, true).await),
        Route::Groups if aggregated => return Ok(all_groups(server, &registry, false).await),
        Route::Core => json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [
                { "clientCIDR": "0.0.0.0/0", "serverAddress": host(request) }
            ],
        }),
        Route::Groups => json!({
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": registry.groups().iter().map(group).collect::<Vec<_>>(),
        }),
        Route::Group { group: name, version } if version.is_empty() => {
            let groups = registry.groups();
            let found = groups.iter().find(|(group, _)| group == name);
            let mut found = group(found.ok_or_else(ApiError::no_such_path)?);
            let fields = crate::value::fields(&mut found);
            fields.insert("kind".to_owned(), json!("APIGroup"));
            fields.insert("apiVersion".to_owned(), json!("v1"));
            found
        }
        Route::Group { group, version } => resources(&registry, group, version)?,
        Route::OpenApi(path) => return open_api(server, path, request),
        Route::Resource(_) | Route::Unknown => return Err(ApiError::no_such_path()),
    };
    Ok(respond::json(StatusCode::OK, &found))
}

/// The documents that describe the types.
fn open_api(server: &Inner, path: &str, request: &Parts) -> ApiResult<Response> {
    let registry = server.registry();
    let resources: Vec<Resource<'_>> = registry
        .resources()
        .iter()
        .map(|served| Resource {
            info: &served.info,
            schema: served.custom.as_ref().and_then(|custom| custom.raw_schema.as_ref()),
        })
        .collect();
    let rest = path.trim_start_matches("/openapi/").trim_end_matches('/');
    match rest {
        "v3" => Ok(respond::json(StatusCode::OK, &server.documents.index(&resources))),
        "v2" => {
            let accept =
                request.headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
            let form = Form::accepted(accept.unwrap_or_default());
            let form = form.ok_or_else(ApiError::not_acceptable)?;
            let bytes = server.documents.version_2(form, &resources);
            let kind = HeaderValue::from_static(form.content_type());
            Ok(respond::typed(StatusCode::OK, kind, bytes.to_vec()))
        }
        _ => {
            let path = rest.strip_prefix("v3/").ok_or_else(ApiError::no_such_path)?;
            let found = server.documents.group_version(path, &resources);
            Ok(document(&found.ok_or_else(ApiError::no_such_path)?))
        }
    }
}

fn document(bytes: &[u8]) -> Response {
    respond::bytes(StatusCode::OK, bytes.to_vec())
}

fn host(request: &Parts) -> String {
    let host = request.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    host.or_else(|| request.uri.authority().map(|authority| authority.as_str()))
        .unwrap_or("localhost")
        .to_owned()
}

fn health(request: &Parts) -> Response {
    let name = request.uri.path().split('/').nth(1).unwrap_or_default().to_owned();
    if request.uri.query().is_some_and(|query| query.contains("verbose")) {
        let text = format!("[+]ping ok\n[+]log ok\n[+]etcd ok\n{name} check passed\n");
        return plain(StatusCode::OK, text);
    }
    plain(StatusCode::OK, "ok")
}

fn version() -> Value {
    json!({
        "major": "1",
        "minor": "37",
        "emulationMajor": "1",
        "emulationMinor": "37",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "36",
        "gitVersion": "v1.37.0",
        "gitCommit": "0000000000000000000000000000000000000000",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, platform()),
    })
}

fn platform() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn paths(registry: &Registry) -> Vec<String> {
    let mut paths: Vec<String> = [
        "/api",
        "/api/v1",
        "/apis",
        "/healthz",
        "/livez",
        "/openapi/v2",
        "/openapi/v3",
        "/readyz",
        "/version",
    ]
    .map(str::to_owned)
    .into();
    for (group, versions) in registry.groups() {
        paths.push(format!("/apis/{group}"));
        paths.extend(versions.iter().map(|version| format!("/apis/{group}/{version}")));
    }
    paths.sort();
    paths
}

fn group((name, versions): &(String, Vec<String>)) -> Value {
    let entry = |version: &String| json!({ "groupVersion": api_version(name, version), "version": version });
    json!({
        "name": name,
        "versions": versions.iter().map(entry).collect::<Vec<_>>(),
        "preferredVersion": versions.first().map(entry),
    })
}

/// The kind that a subresource speaks, and its verbs.
fn part(
    info: &ResourceInfo,
    part: &Subresource,
) -> (String, String, String, &'static [&'static str]) {
    let own = || (info.group.clone(), info.version.clone(), info.kind.clone());
    let other = |group: &str, version: &str, kind: &str| {
        (group.to_owned(), version.to_owned(), kind.to_owned())
    };
    let (kind, verbs): (_, &'static [&'static str]) = match part {
        Subresource::Status => (own(), &["get", "patch", "update"]),
        Subresource::Scale(_) => (other("autoscaling", "v1", "Scale"), &["get", "patch", "update"]),
        Subresource::Finalize => (own(), &["update"]),
        Subresource::Eviction => (other("policy", "v1", "Eviction"), &["create"]),
        Subresource::Binding => (other("", "v1", "Binding"), &["create"]),
        Subresource::Log => (own(), &["get"]),
        Subresource::Token => (other("authentication.k8s.io", "v1", "TokenRequest"), &["create"]),
    };
    (kind.0, kind.1, kind.2, verbs)
}

/// Custom resources list their verbs in an order of their own.
fn verbs(info: &ResourceInfo) -> &'static [&'static str] {
    if info.custom {
        return &[
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "create",
            "update",
            "watch",
        ];
    }
    info.verbs
}

/// Changes when objects are stored in another version.
fn storage_hash(served: &Served) -> Option<String> {
    let info = &served.info;
    if info.verbs == ["create"] {
        return None;
    }
    let version = match (served.view, &served.custom) {
        (View::Autoscaling(_), _) => "autoscaling/v2".to_owned(),
        (View::EventsV1, _) => "/v1".to_owned(),
        (_, Some(custom)) => custom.storage_api_version.clone(),
        _ => format!("{}/{}", info.group, info.version),
    };
    let digest = Sha256::digest(format!("{version}/{}", info.kind));
    Some(STANDARD.encode(digest.get(..8)?))
}

fn resources(registry: &Registry, group: &str, version: &str) -> ApiResult<Value> {
    let served = registry.of_version(group, version);
    if served.is_empty() {
        return Err(ApiError::no_such_path());
    }
    let list_is_custom = served.iter().all(|served| served.info.custom);
    let mut list = Vec::new();
    for served in served {
        let info = &served.info;
        let mut entry = json!({
            "name": info.plural,
            "singularName": info.singular,
            "namespaced": info.namespaced,
            "kind": info.kind,
            "verbs": verbs(info),
        });
        let fields = crate::value::fields(&mut entry);
        if let Some(hash) = storage_hash(&served) {
            fields.insert("storageVersionHash".to_owned(), json!(hash));
        }
        for (name, values) in [("shortNames", &info.short_names), ("categories", &info.categories)]
        {
            if !values.is_empty() {
                fields.insert(name.to_owned(), json!(values));
            }
        }
        list.push(entry);
        for below in &info.subresources {
            let (group, version, kind, verbs) = part(info, below);
            let mut entry = json!({
                "name": format!("{}/{}", info.plural, below.name()),
                "singularName": "",
                "namespaced": info.namespaced,
                "kind": kind,
                "verbs": verbs,
            });
            if (&group, &version) != (&info.group, &info.version) {
                let fields = crate::value::fields(&mut entry);
                if !group.is_empty() {
                    fields.insert("group".to_owned(), json!(group));
                }
                fields.insert("version".to_owned(), json!(version));
            }
            list.push(entry);
        }
    }
    // Built-in resources are listed by name, custom ones in the order of their parts.
    if !list_is_custom {
        list.sort_by_key(|entry| entry.get("name").and_then(Value::as_str).map(str::to_owned));
    }
    Ok(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": api_version(group, version),
        "resources": list,
    }))
}

/// All groups, versions and resources in one answer.
async fn all_groups(server: &Inner, registry: &Registry, core: bool) -> Response {
    let groups =
        if core { vec![(String::new(), vec!["v1".to_owned()])] } else { registry.groups() };
    let mut items = Vec::new();
    for (group, versions) in groups {
        let mut list = Vec::new();
        for version in versions {
            let forwarded = registry.forwarded(&group, &version).is_some();
            let (resources, freshness) = if forwarded {
                match crate::aggregate::discover(server, &group, &version).await {
                    Some(found) => (foreign_resources(&group, &version, &found), "Current"),
                    None => (Vec::new(), "Stale"),
                }
            } else {
                let served = registry.of_version(&group, &version);
                (served.iter().map(|served| aggregated(&served.info)).collect(), "Current")
            };
            list.push(
                json!({ "version": version, "resources": resources, "freshness": freshness }),
            );
        }
        let metadata = if group.is_empty() { json!({}) } else { json!({ "name": group }) };
        items.push(json!({ "metadata": metadata, "versions": list }));
    }
    let answer = json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    });
    let mut response = respond::json(StatusCode::OK, &answer);
    response.headers_mut().insert(header::CONTENT_TYPE, AGGREGATED);
    response
}

fn response_kind(group: &str, version: &str, kind: &str) -> Value {
    json!({ "group": group, "version": version, "kind": kind })
}

fn aggregated(info: &ResourceInfo) -> Value {
    let mut entry = json!({
        "resource": info.plural,
        "responseKind": response_kind(&info.group, &info.version, &info.kind),
        "scope": if info.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": info.singular,
        "verbs": info.verbs,
    });
    let subresources: Vec<Value> = info
        .subresources
        .iter()
        .map(|below| {
            let (group, version, kind, verbs) = part(info, below);
            json!({
                "subresource": below.name(),
                "responseKind": response_kind(&group, &version, &kind),
                "verbs": verbs,
            })
        })
        .collect();
    let fields = crate::value::fields(&mut entry);
    for (name, values) in [("shortNames", &info.short_names), ("categories", &info.categories)] {
        if !values.is_empty() {
            fields.insert(name.to_owned(), json!(values));
        }
    }
    if !subresources.is_empty() {
        fields.insert("subresources".to_owned(), Value::Array(subresources));
    }
    entry
}

/// The resources that another server lists, in the form of aggregated discovery.
fn foreign_resources(group: &str, version: &str, list: &Value) -> Vec<Value> {
    let mut found: Vec<Value> = Vec::new();
    let entries = list.get("resources").and_then(Value::as_array);
    for entry in entries.into_iter().flatten() {
        let get = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let or = |name: &str, other: &str| match get(name) {
            "" => other.to_owned(),
            given => given.to_owned(),
        };
        let kind = response_kind(&or("group", group), &or("version", version), get("kind"));
        let namespaced = entry.get("namespaced").and_then(Value::as_bool).unwrap_or_default();
        if let Some((parent, below)) = get("name").split_once('/') {
            let part = json!({
                "subresource": below, "responseKind": kind, "verbs": entry.get("verbs"),
            });
            let parent = found.iter_mut().find(|one| one.get("resource") == Some(&json!(parent)));
            if let Some(parent) = parent {
                let parts =
                    crate::value::fields(parent).entry("subresources").or_insert_with(|| json!([]));
                if let Some(parts) = parts.as_array_mut() {
                    parts.push(part);
                }
                continue;
            }
        }
        let mut one = Map::new();
        one.insert("resource".to_owned(), json!(get("name")));
        one.insert("responseKind".to_owned(), kind);
        one.insert("scope".to_owned(), json!(if namespaced { "Namespaced" } else { "Cluster" }));
        one.insert("singularResource".to_owned(), json!(get("singularName")));
        for name in ["verbs", "shortNames", "categories"] {
            if let Some(value) = entry.get(name) {
                one.insert(name.to_owned(), value.clone());
            }
        }
        found.push(Value::Object(one));
    }
    found
}
