//! `podscale adopt`: puts a PodAutoscaler in the place of an HPA, and back.

mod left_behind;

use super::{conclude, print};
use clap::Args;
use kube::Client;
use podscale_api::hpa::v2::HorizontalPodAutoscaler;
use podscale_api::meta::ObjectMeta;
use podscale_api::pod_autoscaler::adopt::{
    ADOPTED, AdoptError, adopted, as_written, edits, restored,
};
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

/// Replace HorizontalPodAutoscalers with equivalent PodAutoscalers, and back.
///
/// The PodAutoscaler is created first and waits while the HPA exists. Then the HPA is deleted, and the
/// PodAutoscaler takes over from the current size, so the size does not jump. Recent size changes still count
/// for rate policies, as far as the HPA's events show them. The HPA is kept in an annotation: --undo recreates
/// it and deletes the PodAutoscaler. PodAutoscalers must be defined in the cluster (`podscale install --crds`).
///
/// HPAs that another object owns, such as KEDA's, and those of singlecloud's API are not replaced.
///
/// Exit codes: 0 all done, 1 something failed, 2 usage error.
#[derive(Debug, Args)]
#[group(id = "adopted")]
pub struct Arguments {
    /// The object, as NAMESPACE/NAME.
    #[arg(value_name = "NAMESPACE/NAME", required_unless_present_any = ["all", "selector"], conflicts_with_all = ["all", "selector"], value_parser = place)]
    object: Option<(String, String)>,

    /// All objects in the cluster, or in --namespace.
    #[arg(long)]
    all: bool,

    /// The objects with these labels, such as team=shop.
    #[arg(long, short = 'l', value_name = "SELECTOR", value_parser = selector)]
    selector: Option<String>,

    /// With --all or --selector: only objects in this namespace.
    #[arg(long, short, value_name = "NAME", conflicts_with = "object")]
    namespace: Option<String>,

    /// Recreate the HPAs as they were, and delete the PodAutoscalers that replaced them.
    #[arg(long)]
    undo: bool,

    /// With --undo: proceed even if the PodAutoscaler was changed in the meantime; these changes are lost.
    #[arg(long, requires = "undo")]
    force: bool,

    /// Print what would be deleted and created, and change nothing.
    #[arg(long)]
    dry_run: bool,

    /// The kubeconfig; if not given, $KUBECONFIG, ~/.kube/config or the cluster it runs in.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// The kubeconfig context; the current one if not given.
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
    #[error(
        "this cluster does not know PodAutoscalers; define them first: podscale install --crds | kubectl \
         apply -f -, with the other flags of your installation"
    )]
    NotDefined,
    #[error(
        "the PodAutoscaler was changed since it took the place of the HPA:{0}\n  With --force the HPA \
         comes back as it was, without these changes"
    )]
    Edited(String),
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
    replace_all(&cluster.client, arguments, &mut print).await
}

/// Replaces each object, whatever becomes of the others, and says what was done.
async fn replace_all(
    client: &Client,
    arguments: &Arguments,
    say: &mut impl FnMut(&str),
) -> Result<(), Failure> {
    // What would be created can be shown without.
    if arguments.undo || !arguments.dry_run {
        check_defined(client).await?;
    }
    if let Some((namespace, name)) = &arguments.object {
        say(&Place { client, namespace, name }.replace(arguments).await?);
        return Ok(());
    }
    let places = list(client, arguments).await?;
    if places.is_empty() {
        say(&nothing_to_do(arguments));
    }
    let mut failed = 0;
    for (namespace, name) in &places {
        match (Place { client, namespace, name }).replace(arguments).await {
            Ok(text) => say(&text),
            Err(Failure::Adopt(why @ (AdoptError::Owned { .. } | AdoptError::Singlecloud))) => {
                say(&format!("{namespace}/{name}: skipped, {why}\n"));
            }
            Err(error) => {
                super::print_error(format!("{namespace}/{name}: {error}"));
                failed += 1;
            }
        }
    }
    if failed == 0 { Ok(()) } else { Err(Failure::Some(failed, places.len())) }
}

/// Whether the cluster knows PodAutoscalers; what else is wrong shows later.
async fn check_defined(client: &Client) -> Result<(), Failure> {
    let about = About { resource: PLURAL, name: "" };
    match call::get::<Value>(client, &format!("/apis/{API_VERSION}"), about).await {
        Err(error) if error.is_not_found() => Err(Failure::NotDefined),
        _ => Ok(()),
    }
}

/// What is said where there is nothing to replace.
fn nothing_to_do(arguments: &Arguments) -> String {
    let within = arguments.namespace.as_ref().map(|name| format!(" in namespace {name}"));
    let labels = arguments.selector.as_ref().map(|labels| format!(" with labels {labels}"));
    let what = match arguments.undo {
        true => "PodAutoscaler that has taken the place of an HPA",
        false => "HorizontalPodAutoscaler",
    };
    let (within, labels) = (within.unwrap_or_default(), labels.unwrap_or_default());
    format!("nothing to do: there is no {what}{labels}{within}\n")
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

    async fn replace(&self, arguments: &Arguments) -> Result<String, Failure> {
        match arguments.undo {
            true => self.undo(arguments).await,
            false => self.adopt(arguments.dry_run).await,
        }
    }

    async fn adopt(&self, dry_run: bool) -> Result<String, Failure> {
        let hpa: HorizontalPodAutoscaler = self.read(HPA_VERSION, HPAS).await?;
        let pa = adopted(&hpa)?;
        if dry_run {
            return shown(&restored(&pa)?, &as_written(&pa));
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

    async fn undo(&self, arguments: &Arguments) -> Result<String, Failure> {
        let pa: PodAutoscaler = self.read(API_VERSION, PLURAL).await?;
        let (hpa, edits) = (restored(&pa)?, edits(&pa)?);
        let lines = |before: &str| -> String {
            edits.iter().map(|edit| format!("\n{before}{edit}")).collect()
        };
        if arguments.dry_run {
            let shown = shown(&as_written(&pa), &hpa)?;
            return Ok(match edits.is_empty() {
                true => shown,
                false => {
                    format!("# changed since, and lost with --force:{}\n{shown}", lines("#   "))
                }
            });
        }
        if !edits.is_empty() && !arguments.force {
            return Err(Failure::Edited(lines("  ")));
        }
        let about = About { resource: HPAS, name: self.name };
        let path = self.path(HPA_VERSION, HPAS);
        let created: HorizontalPodAutoscaler =
            call::send(self.client, "POST", &path, &hpa, about).await?;
        let removed = self.remove(API_VERSION, PLURAL, &pa.metadata.uid).await;
        self.settled(removed, (HPA_VERSION, HPAS), "the HPA", &created.metadata.uid).await?;
        let lost = match edits.is_empty() {
            true => String::new(),
            false => format!("; without these changes of the PodAutoscaler:{}", lines("  ")),
        };
        Ok(format!("{}/{}: the HPA is back in its place{lost}\n", self.namespace, self.name))
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

/// What would be deleted, and what created, as YAML.
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
        "---\n# would be deleted\n{}---\n# would be created\n{}",
        yaml(removed)?,
        yaml(created)?
    ))
}

#[cfg(test)]
mod tests;
