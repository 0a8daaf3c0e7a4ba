//! Tells a resource that is not served from one that may not be read.

use crate::call::{self, About, CallError};
use kube::Client;
use serde::Deserialize;

/// Whether a list failed because the resource is not served. To those who may not list it, an API server
/// says that it is forbidden, served or not; what there is, it tells everybody.
pub(super) async fn is_absent(client: &Client, path: &str, error: &CallError) -> bool {
    #[derive(Deserialize)]
    struct Served {
        resources: Vec<Named>,
    }
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    let (true, Some((version, name))) = (error.code() == Some(403), path.rsplit_once('/')) else {
        return error.is_not_found();
    };
    let about = About { resource: "", name: "" };
    match call::get::<Served>(client, version, about).await {
        Ok(served) => served.resources.iter().all(|resource| resource.name != name),
        Err(error) => error.is_not_found(),
    }
}
