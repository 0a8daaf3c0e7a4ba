//! `podscale adopt`: puts a PodAutoscaler in the place of an HPA, and back.

mod left_behind;

use super::{conclude, print};
use clap::Args;
use kube::Client;
use podscale_api::hpa::v2::HorizontalPodAutoscaler;
use podscale_api::meta::ObjectMeta;
use podscale_api::pod_autoscaler::adopt::{ADOPTED, AdoptError, adopted, restored};
use podscale_api::pod_autoscaler::{API_VERSION, PLURAL, PodAutoscaler};
use podscale_api::selector::Selector;
use podscale_client::call::{self, About, CallError, query, segment};
use podscale_client::connect::{self, ConnectError};
use podscale_client::instrument::Instruments;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

const HPA_VERSION: &str = "autoscaling/v2";
const HPAS: &str = "horizontalpodautoscalers";
/// How many objects a page of a list has.
const PAGE: &str = "500";

/// Replace HorizontalPodAutoscalers by PodAutoscalers of the same meaning.
///
/// The PodAutoscaler is created first and waits while the HPA is there; it takes over when the HPA is
/// removed, from the size that it finds, so the size does not jump. The last changes of the size count on,
/// as far as the HPA's events tell of them. The HPA is kept in an annotation:
/// --undo creates that again and removes the PodAutoscaler. Needs `podscale install --crds`.
///
/// Exit codes: 0 all done, 1 something failed, 2 usage error.
#[derive(Debug, Args)]
#[group(id = "adopted")]
pub struct Arguments {
    /// The object, as NAMESPACE/NAME.
    #[arg(value_name = "NAMESPACE/NAME", required_unless_present_any = ["all", "selector"], conflicts_with_all = ["all", "selector"], value_parser = place)]
    object: Option<(String, String)>,

    /// All of them.
    #[arg(long)]
    all: bool,

    /// Those with these labels, such as team=shop.
    #[arg(long, short = 'l', value_name = "SELECTOR", value_parser = selector)]
    selector: Option<String>,

    /// With --all or --selector: only those of this namespace.
    #[arg(long, short, value_name = "NAME", conflicts_with = "object")]
    namespace: Option<String>,

    /// Put the HPAs back, and remove the PodAutoscalers that took their places.
    #[arg(long)]
    undo: bool,

    /// Print what would be removed and created, and change nothing.
    #[arg(long)]
    dry_run: bool,

    /// The kubeconfig; $KUBECONFIG, ~/.kube/config or the surrounding cluster if not given.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// The kubeconfig's context; its current one if not given.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

fn place(text: &str) -> Result<(String, String), String> {
    match text.split_once('/') {
        Some((namespace, name))
            if !namespace.is_empty() && !name.is_empty() && !name.contains('/') =>
        {
            Ok((namespace.to_owned(), name.to_owned()))
        }
        _ => Err("not a namespace and a name such as shop/web".to_owned()),
    }
}

fn selector(text: &str) -> Result<String, String> {
    Selector::parse(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// Why an object was not replaced.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(transparent)]
    Adopt(#[from] AdoptError),
    #[error("cannot be shown: {0}")]
    Yaml(String),
    #[error("{0}; {1} was removed again")]
    RolledBack(CallError, &'static str),
    #[error("{0}; {1} could not be removed again: {2}")]
    Stuck(Box<CallError>, &'static str, Box<CallError>),
    #[error("{0} of {1} objects were not replaced")]
    Some(usize, usize),
    #[error("cannot start: {0}")]
    Runtime(std::io::Error),
}

/// Runs the command.
#[must_use]
pub fn run(arguments: &Arguments) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    conclude(
        runtime.map_err(Failure::Runtime).and_then(|runtime| runtime.block_on(adopt(arguments))),
    )
}

async fn adopt(arguments: &Arguments) -> Result<(), Failure> {
    let (kubeconfig, context) = (arguments.kubeconfig.as_deref(), arguments.context.as_deref());
    let instruments: Instruments = Arc::new(());
    let cluster = connect::connect(kubeconfig, context, None, &instruments).await?;
    replace_all(&cluster.client, arguments).await
}

/// Replaces each object, whatever becomes of the others.
async fn replace_all(client: &Client, arguments: &Arguments) -> Result<(), Failure> {
    let places = match &arguments.object {
        Some(place) => vec![place.clone()],
        None => list(client, arguments).await?,
    };
    let mut failed = 0;
    for (namespace, name) in &places {
        let place = Place { client, namespace, name };
        let done = if arguments.undo {
            place.undo(arguments.dry_run).await
        } else {
            place.adopt(arguments.dry_run).await
        };
        match done {
            Ok(text) => print(&text),
            Err(error) if places.len() == 1 => return Err(error),
            Err(error) => {
                super::print_error(format!("{namespace}/{name}: {error}"));
                failed += 1;
            }
        }
    }
    if failed == 0 { Ok(()) } else { Err(Failure::Some(failed, places.len())) }
}

/// The objects that --all or --selector mean.
async fn list(client: &Client, arguments: &Arguments) -> Result<Vec<(String, String)>, Failure> {
    #[derive(Deserialize)]
    struct List {
        #[serde(default)]
        metadata: Value,
        items: Vec<Item>,
    }
    #[derive(Deserialize)]
    struct Item {
        metadata: ObjectMeta,
    }
    let (version, plural) =
        if arguments.undo { (API_VERSION, PLURAL) } else { (HPA_VERSION, HPAS) };
    let within = arguments.namespace.as_ref().map(|n| format!("namespaces/{}/", segment(n)));
    let path = format!("/apis/{version}/{}{plural}", within.unwrap_or_default());
    let labels = arguments.selector.as_deref().unwrap_or_default();
    let (mut found, mut next) = (Vec::new(), String::new());
    loop {
        let query = query(&[("labelSelector", labels), ("limit", PAGE), ("continue", &next)]);
        let about = About { resource: plural, name: "" };
        let page: List = call::get(client, &format!("{path}{query}"), about).await?;
        let meant =
            |item: &Item| !arguments.undo || item.metadata.annotations.get(ADOPTED).is_some();
        let meant = page.items.into_iter().filter(meant).map(|item| item.metadata);
        found.extend(meant.map(|metadata| (metadata.namespace, metadata.name)));
        next = page.metadata["continue"].as_str().unwrap_or_default().to_owned();
        if next.is_empty() {
            return Ok(found);
        }
    }
}

/// One name in one namespace.
struct Place<'a> {
    client: &'a Client,
    namespace: &'a str,
    name: &'a str,
}

impl Place<'_> {
    fn path(&self, version: &str, plural: &str) -> String {
        format!("/apis/{version}/namespaces/{}/{plural}", segment(self.namespace))
    }

    async fn read<T: for<'de> Deserialize<'de>>(
        &self,
        version: &str,
        plural: &str,
    ) -> Result<T, CallError> {
        let path = format!("{}/{}", self.path(version, plural), segment(self.name));
        call::get(self.client, &path, About { resource: plural, name: self.name }).await
    }

    /// Removes an object, if it is still the one that was read.
    async fn remove(&self, version: &str, plural: &str, uid: &str) -> Result<(), CallError> {
        let path = format!("{}/{}", self.path(version, plural), segment(self.name));
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1",
            "propagationPolicy": "Background", "preconditions": {"uid": uid}});
        let about = About { resource: plural, name: self.name };
        call::send::<Value>(self.client, "DELETE", &path, &options, about).await.map(drop)
    }

    async fn adopt(&self, dry_run: bool) -> Result<String, Failure> {
        let hpa: HorizontalPodAutoscaler = self.read(HPA_VERSION, HPAS).await?;
        let pa = adopted(&hpa)?;
        if dry_run {
            return shown(&restored(&pa)?, &PodAutoscaler { status: None, ..pa });
        }
        let left = self.left_behind(&hpa, pa.status.clone().unwrap_or_default()).await;
        let about = About { resource: PLURAL, name: self.name };
        let path = self.path(API_VERSION, PLURAL);
        let created: PodAutoscaler = call::send(self.client, "POST", &path, &pa, about).await?;
        let uid = created.metadata.uid.clone();
        let removed = match self.leave(created, &left.status).await {
            Ok(()) => self.remove(HPA_VERSION, HPAS, &hpa.metadata.uid).await,
            Err(error) => Err(error),
        };
        self.settled(removed, (API_VERSION, PLURAL), "the PodAutoscaler", &uid).await?;
        Ok(format!(
            "{}/{}: a PodAutoscaler has taken the place of the HPA{}\n",
            self.namespace,
            self.name,
            left.words()
        ))
    }

    async fn undo(&self, dry_run: bool) -> Result<String, Failure> {
        let pa: PodAutoscaler = self.read(API_VERSION, PLURAL).await?;
        let hpa = restored(&pa)?;
        if dry_run {
            return shown(&pa, &hpa);
        }
        let about = About { resource: HPAS, name: self.name };
        let path = self.path(HPA_VERSION, HPAS);
        let created: HorizontalPodAutoscaler =
            call::send(self.client, "POST", &path, &hpa, about).await?;
        let removed = self.remove(API_VERSION, PLURAL, &pa.metadata.uid).await;
        self.settled(removed, (HPA_VERSION, HPAS), "the HPA", &created.metadata.uid).await?;
        Ok(format!("{}/{}: the HPA is back in its place\n", self.namespace, self.name))
    }

    /// Takes back what was created if what it replaces could not be removed.
    async fn settled(
        &self,
        removed: Result<(), CallError>,
        (version, plural): (&str, &str),
        what: &'static str,
        uid: &str,
    ) -> Result<(), Failure> {
        let Err(error) = removed else { return Ok(()) };
        match self.remove(version, plural, uid).await {
            Ok(()) => Err(Failure::RolledBack(error, what)),
            Err(stuck) => Err(Failure::Stuck(Box::new(error), what, Box::new(stuck))),
        }
    }
}

/// What would be removed, and what created, as YAML.
fn shown(
    removed: &impl serde::Serialize,
    created: &impl serde::Serialize,
) -> Result<String, Failure> {
    let yaml = |value: Result<Value, serde_json::Error>| {
        let value = value.map_err(|error| Failure::Yaml(error.to_string()))?;
        serde_saphyr::to_string(&value).map_err(|error| Failure::Yaml(error.to_string()))
    };
    let (removed, created) = (serde_json::to_value(removed), serde_json::to_value(created));
    Ok(format!(
        "---\n# would be removed\n{}---\n# would be created\n{}",
        yaml(removed)?,
        yaml(created)?
    ))
}

#[cfg(test)]
mod tests;
