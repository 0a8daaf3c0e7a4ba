//! The calls about native objects: autoscalers, and the workloads that they are for.

use kube::Client;
use podscale_api::hpa::v2::HorizontalPodAutoscaler;
use podscale_api::selector::LabelSelector;
use podscale_client::call::{self, About, CallError, query, segment};
use serde::Deserialize;
use serde_json::{Value, json};

const HPAS: &str = "horizontalpodautoscalers.autoscaling";
/// How many objects one page of a list has.
const PAGE_OBJECTS: &str = "500";
/// The most pages of a list that are read.
const MOST_PAGES: usize = 100;

/// A workload, as far as it matters here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Workload {
    pub(super) metadata: WorkloadMeta,
    pub(super) spec: WorkloadSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WorkloadMeta {
    pub(super) uid: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WorkloadSpec {
    pub(super) selector: LabelSelector,
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMeta,
    #[serde(default)]
    items: Vec<HorizontalPodAutoscaler>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PageMeta {
    r#continue: String,
}

fn path(namespace: &str, name: &str) -> String {
    let root = format!("/apis/autoscaling/v2/namespaces/{}", segment(namespace));
    let collection = format!("{root}/horizontalpodautoscalers");
    if name.is_empty() { collection } else { format!("{collection}/{}", segment(name)) }
}

/// One autoscaler.
pub(super) async fn get(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<HorizontalPodAutoscaler, CallError> {
    call::get(client, &path(namespace, name), About { resource: HPAS, name }).await
}

/// All autoscalers of a namespace.
pub(super) async fn list(
    client: &Client,
    namespace: &str,
) -> Result<Vec<HorizontalPodAutoscaler>, CallError> {
    let (mut all, mut next) = (Vec::new(), String::new());
    for _ in 0..MOST_PAGES {
        let page = query(&[("limit", PAGE_OBJECTS), ("continue", &next)]);
        let path = format!("{}{page}", path(namespace, ""));
        let page: Page = call::get(client, &path, About { resource: HPAS, name: "" }).await?;
        all.extend(page.items);
        next = page.metadata.r#continue;
        if next.is_empty() {
            return Ok(all);
        }
    }
    let text = format!("there are more than {MOST_PAGES} pages of autoscalers");
    Err(CallError::Unreadable(text))
}

/// Stores a new autoscaler.
pub(super) async fn create(
    client: &Client,
    hpa: &HorizontalPodAutoscaler,
) -> Result<HorizontalPodAutoscaler, CallError> {
    let meta = &hpa.metadata;
    let about = About { resource: HPAS, name: &meta.name };
    call::send(client, "POST", &path(&meta.namespace, ""), hpa, about).await
}

/// Stores an autoscaler in the place of the version that it was made from.
pub(super) async fn replace(
    client: &Client,
    hpa: &HorizontalPodAutoscaler,
) -> Result<HorizontalPodAutoscaler, CallError> {
    let meta = &hpa.metadata;
    let about = About { resource: HPAS, name: &meta.name };
    call::send(client, "PUT", &path(&meta.namespace, &meta.name), hpa, about).await
}

/// Deletes an autoscaler, unless another one has its name by now; that it is gone already is fine.
pub(super) async fn delete(
    client: &Client,
    hpa: &HorizontalPodAutoscaler,
) -> Result<(), CallError> {
    let meta = &hpa.metadata;
    let about = About { resource: HPAS, name: &meta.name };
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions",
        "preconditions": {"uid": meta.uid}});
    let path = path(&meta.namespace, &meta.name);
    match call::send::<Value>(client, "DELETE", &path, &options, about).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error),
    }
}

/// A workload of apps/v1; none if there is none of that name.
pub(super) async fn workload(
    client: &Client,
    resource: &str,
    namespace: &str,
    name: &str,
) -> Result<Option<Workload>, CallError> {
    let path =
        format!("/apis/apps/v1/namespaces/{}/{resource}/{}", segment(namespace), segment(name));
    let full = format!("{resource}.apps");
    match call::get(client, &path, About { resource: &full, name }).await {
        Ok(workload) => Ok(Some(workload)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}
