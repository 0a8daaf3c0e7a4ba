//! Follows the objects of a resource: lists them, then takes in each change, for ever. Decodes
//! straight into small types, so that fields that are not needed are never stored.

mod absence;
mod lines;

use crate::call::{self, About, CallError, DEADLINE, query};
use crate::instrument::{Instruments, WatchEnd};
use absence::is_absent;
use lines::Lines;

use kube::Client;
use podscale_api::node::Node;
use podscale_api::pod::Pod;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// How many objects one page of a list has.
const PAGE_OBJECTS: &str = "500";
/// How long the server keeps a watch open; wall-clock.
const WATCH_TIMEOUT: Duration = Duration::from_secs(290);
/// How long a watch may be silent; wall-clock. Servers give a sign of life every minute. One that
/// gives none may have been forgotten on the way while its connection, which is shared, lives on; to open
/// a watch again costs little.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// The backoff after a first failure; it doubles with each further one.
const FIRST_BACKOFF: Duration = Duration::from_millis(100);
/// How often a resource that is not served is listed again.
const MISSING_RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// The longest backoff after failures.
const LONGEST_BACKOFF: Duration = Duration::from_secs(20);

/// What became of a resource's objects.
#[derive(Clone, Debug, PartialEq)]
pub enum Change<T> {
    /// These are all there are; what was known before and is not among them is gone.
    All(Vec<T>),
    /// This one is new or has changed.
    Applied(T),
    /// This one is gone.
    Deleted(T),
}

impl<T> Change<T> {
    /// The same change of what each object stands for.
    pub fn map<U>(self, of: impl Fn(T) -> U) -> Change<U> {
        match self {
            Change::All(all) => Change::All(all.into_iter().map(of).collect()),
            Change::Applied(object) => Change::Applied(of(object)),
            Change::Deleted(object) => Change::Deleted(of(object)),
        }
    }
}

/// Why a watch ended.
#[derive(Debug, PartialEq)]
enum End {
    /// The server closed it, as it does from time to time.
    Closed,
    /// The changes since are no longer available: everything must be listed again.
    Expired,
    /// It did not even begin.
    Refused(CallError),
    /// Something went wrong.
    Failed(CallError),
}

impl End {
    fn kind(&self) -> WatchEnd {
        match self {
            End::Closed => WatchEnd::Closed,
            End::Expired => WatchEnd::Expired,
            End::Refused(_) | End::Failed(_) => WatchEnd::Failed,
        }
    }
}

/// Whether a resource is always served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Presence {
    /// The API server always has it; that it does not is a failure.
    Always,
    /// It may be missing, come later or go away, as that of a custom resource definition.
    Optional,
}

/// Follows the objects at a path such as `/api/v1/pods`, applying each change, until dropped. Where an
/// optional resource is missing there are no objects, and it is tried again from time to time.
pub async fn follow<T: Watched>(
    client: &Client,
    path: &str,
    resource: &'static str,
    presence: Presence,
    instruments: &Instruments,
    mut apply: impl FnMut(Change<T>),
) {
    let about = About { resource, name: "" };
    let (mut backoff, mut missing) = (Backoff::default(), false);
    loop {
        let mut version = match list(client, path, about).await {
            Ok((objects, version)) => {
                if std::mem::take(&mut missing) {
                    tracing::info!(resource, "resource is served now");
                }
                apply(Change::All(objects));
                version
            }
            Err(error)
                if presence == Presence::Optional && is_absent(client, path, &error).await =>
            {
                if !std::mem::replace(&mut missing, true) {
                    tracing::info!(resource, "resource is not served; waiting for it");
                    apply(Change::All(Vec::new()));
                }
                tokio::time::sleep(MISSING_RETRY_INTERVAL).await;
                continue;
            }
            // Whoever may not list a resource is not told whether there is one.
            Err(error) if presence == Presence::Optional && error.code() == Some(403) => {
                if !std::mem::replace(&mut missing, true) {
                    tracing::info!(resource, %error, "resource may not be listed; waiting for it");
                }
                tokio::time::sleep(MISSING_RETRY_INTERVAL).await;
                continue;
            }
            Err(error) => {
                tracing::warn!(resource, %error, "cannot list the resource");
                backoff.wait().await;
                continue;
            }
        };
        watch_until_lost(client, path, about, instruments, &mut version, &mut backoff, &mut apply)
            .await;
    }
}

/// Watches from a version on, again and again, until everything must be listed anew.
async fn watch_until_lost<T: Watched>(
    client: &Client,
    path: &str,
    about: About<'static>,
    instruments: &Instruments,
    version: &mut String,
    backoff: &mut Backoff,
    apply: &mut impl FnMut(Change<T>),
) {
    let resource = about.resource;
    loop {
        let before = version.clone();
        let end = watch(client, path, about, version, apply).await;
        instruments.watch_ended(resource, end.kind());
        if *version != before {
            backoff.reset();
        }
        match end {
            End::Closed => backoff.reset(),
            End::Expired => return,
            End::Refused(error) => {
                // Whoever may list and not watch would else list again and again.
                let lasting = error.code().is_some_and(|c| (400..500).contains(&c) && c != 429);
                if lasting {
                    tracing::warn!(resource, %error, "cannot watch the resource");
                }
                backoff.wait().await;
                if lasting {
                    return;
                }
            }
            End::Failed(error) => {
                tracing::debug!(resource, %error, "a watch ended early");
                let lasting = error.code().is_some_and(|c| (400..500).contains(&c) && c != 429);
                backoff.wait().await;
                if lasting {
                    return;
                }
            }
        }
    }
}

/// A pause that grows with each failure in a row.
#[derive(Default)]
struct Backoff(u32);

impl Backoff {
    fn reset(&mut self) {
        self.0 = 0;
    }

    async fn wait(&mut self) {
        let factor = 2u32.saturating_pow(self.0);
        self.0 = self.0.saturating_add(1);
        tokio::time::sleep(FIRST_BACKOFF.saturating_mul(factor).min(LONGEST_BACKOFF)).await;
    }
}

#[derive(Deserialize)]
struct List<T> {
    #[serde(default)]
    metadata: ListMeta,
    items: Option<Vec<T>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ListMeta {
    resource_version: String,
    r#continue: String,
}

/// A path and a query, which goes on where the path has one already.
fn joined(path: &str, query: &str) -> String {
    if path.contains('?') {
        format!("{path}{}", query.replacen('?', "&", 1))
    } else {
        format!("{path}{query}")
    }
}

/// All objects, page by page, and the version of the list.
async fn list<T: DeserializeOwned>(
    client: &Client,
    path: &str,
    about: About<'_>,
) -> Result<(Vec<T>, String), CallError> {
    let (mut objects, mut next) = (Vec::new(), String::new());
    loop {
        let query = query(&[("limit", PAGE_OBJECTS), ("continue", &next)]);
        let page: List<T> = call::get(client, &joined(path, &query), about).await?;
        objects.extend(page.items.unwrap_or_default());
        next = page.metadata.r#continue;
        if next.is_empty() {
            return Ok((objects, page.metadata.resource_version));
        }
    }
}

/// What can be watched.
pub trait Watched: DeserializeOwned {
    /// Its version, if it keeps that; small objects need not, at the price of being read twice.
    fn version(&self) -> Option<&str>;
}

impl Watched for Pod {
    fn version(&self) -> Option<&str> {
        None
    }
}

impl Watched for Node {
    fn version(&self) -> Option<&str> {
        Some(&self.metadata.resource_version)
    }
}

impl Watched for serde_json::Value {
    fn version(&self) -> Option<&str> {
        self.pointer("/metadata/resourceVersion")?.as_str()
    }
}

/// One line of a watch; the object is read in the form that its kind calls for.
#[derive(Deserialize)]
struct Line<T> {
    r#type: String,
    object: T,
}

#[derive(Deserialize)]
struct Head {
    r#type: String,
    #[serde(default)]
    object: HeadObject,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HeadObject {
    metadata: HeadMeta,
    code: u16,
    reason: String,
    message: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct HeadMeta {
    resource_version: String,
}

/// Applies each change after `version`, and advances `version` to the last one.
async fn watch<T: Watched>(
    client: &Client,
    path: &str,
    about: About<'_>,
    version: &mut String,
    apply: &mut impl FnMut(Change<T>),
) -> End {
    let seconds = WATCH_TIMEOUT.as_secs().to_string();
    let query = query(&[
        ("watch", "true"),
        ("allowWatchBookmarks", "true"),
        ("timeoutSeconds", &seconds),
        ("resourceVersion", version),
    ]);
    let path = joined(path, &query);
    let opening = call::open(client, "GET", &path, Vec::new(), about);
    let body = match tokio::time::timeout(DEADLINE, opening).await {
        Ok(Ok(body)) => body,
        Ok(Err(error)) if error.code() == Some(410) => return End::Expired,
        Ok(Err(error)) => return End::Refused(error),
        Err(_) => return End::Refused(CallError::Late(DEADLINE)),
    };
    let mut lines = Lines::of(body);
    loop {
        let line = match tokio::time::timeout(IDLE_TIMEOUT, lines.next()).await {
            Ok(Ok(Some(line))) => line,
            Ok(Ok(None)) => return End::Closed,
            Ok(Err(error)) => return End::Failed(error),
            Err(_) => return End::Failed(CallError::Late(IDLE_TIMEOUT)),
        };
        if let Err(end) = take_in(&line, version, apply) {
            return end;
        }
    }
}

fn take_in<T: Watched>(
    line: &[u8],
    version: &mut String,
    apply: &mut impl FnMut(Change<T>),
) -> Result<(), End> {
    let unreadable = |error: serde_json::Error| {
        End::Failed(CallError::Unreadable(format!("a line of a watch cannot be read: {error}")))
    };
    let head = || serde_json::from_slice::<Head>(line).map_err(unreadable);
    // Other lines, such as errors, have no such object.
    let read: Result<Line<T>, serde_json::Error> = serde_json::from_slice(line);
    let change: fn(T) -> Change<T> = match &read {
        Ok(line) if matches!(line.r#type.as_str(), "ADDED" | "MODIFIED") => Change::Applied,
        Ok(line) if line.r#type == "DELETED" => Change::Deleted,
        _ => {
            let Head { r#type, object } = head()?;
            match (r#type.as_str(), read) {
                ("BOOKMARK", _) => advance(version, &object.metadata.resource_version),
                ("ADDED" | "MODIFIED" | "DELETED", Err(error)) => return Err(unreadable(error)),
                _ if object.code == 410 => return Err(End::Expired),
                _ => {
                    let HeadObject { code, reason, message, .. } = object;
                    return Err(End::Failed(CallError::Refused { code, reason, message }));
                }
            }
            return Ok(());
        }
    };
    let object = read.map_err(unreadable)?.object;
    match object.version() {
        Some(new) => advance(version, new),
        None => advance(version, &head()?.object.metadata.resource_version),
    }
    apply(change(object));
    Ok(())
}

fn advance(version: &mut String, new: &str) {
    if !new.is_empty() {
        new.clone_into(version);
    }
}

#[cfg(test)]
mod tests;
