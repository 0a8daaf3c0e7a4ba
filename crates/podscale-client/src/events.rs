//! Records events about objects, as Kubernetes' controllers do: the same event again only raises its
//! count, many similar ones are combined, and one source may not flood one object.

mod correlate;

use crate::call::{self, About, CallError, segment};
use crate::clock::{Clock, stamp};
use correlate::{Correlator, Place};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Client, Resource};
use serde::de::IgnoredAny;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Events that wait to be written; when there are more, the newest are dropped.
const QUEUED_EVENTS: usize = 4096;
/// How often an event is sent while the API server cannot be reached.
const MAX_ATTEMPTS: u32 = 12;
/// The time between two attempts; wall-clock.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// The resource that errors name.
const RESOURCE: &str = "events";

/// Whether an event is worth a person's attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// All is well.
    Normal,
    /// Something went wrong.
    Warning,
}

impl Severity {
    fn name(self) -> &'static str {
        match self {
            Severity::Normal => "Normal",
            Severity::Warning => "Warning",
        }
    }
}

/// One thing that happened, to be recorded.
#[derive(Clone, Debug)]
pub struct PendingEvent {
    component: &'static str,
    about: ObjectReference,
    severity: Severity,
    reason: &'static str,
    message: String,
}

/// Sends events to the task that writes them; never waits.
#[derive(Clone, Debug)]
pub struct Recorder {
    component: &'static str,
    sender: mpsc::Sender<PendingEvent>,
}

impl Recorder {
    /// The same recorder for another component.
    #[must_use]
    pub fn named(&self, component: &'static str) -> Recorder {
        Recorder { component, sender: self.sender.clone() }
    }

    /// Records that something happened to an object.
    pub fn record(
        &self,
        about: ObjectReference,
        severity: Severity,
        reason: &'static str,
        message: impl Into<String>,
    ) {
        let component = self.component;
        let pending = PendingEvent { component, about, severity, reason, message: message.into() };
        if self.sender.try_send(pending).is_err() {
            tracing::debug!(reason, "event dropped: too many wait to be written");
        }
    }
}

/// A recorder and what its writing task needs.
#[must_use]
pub fn channel(component: &'static str) -> (Recorder, mpsc::Receiver<PendingEvent>) {
    let (sender, receiver) = mpsc::channel(QUEUED_EVENTS);
    (Recorder { component, sender }, receiver)
}

/// The reference by which an event names an object.
#[must_use]
pub fn reference<K: Resource<DynamicType = ()>>(object: &K) -> ObjectReference {
    let meta = object.meta();
    ObjectReference {
        api_version: Some(K::api_version(&()).into_owned()),
        kind: Some(K::kind(&()).into_owned()),
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        ..ObjectReference::default()
    }
}

/// Writes what is recorded until all recorders are gone. Once stopped it waits for nothing any more,
/// but still sends what is queued.
pub async fn write(
    client: Client,
    clock: Clock,
    mut pending: mpsc::Receiver<PendingEvent>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut correlator = Correlator::default();
    while let Some(pending) = pending.recv().await {
        let now = clock.now();
        if let Some(place) = correlator.correlate(&pending, now) {
            insist(&client, &event(&pending, place, now), &mut stopped).await;
        }
    }
}

/// Sends an event, again while the API server cannot be reached. A refusal is final.
async fn insist(client: &Client, event: &Event, stopped: &mut watch::Receiver<bool>) {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let error = match store(client, event).await {
            Ok(()) => return,
            Err(error) => error,
        };
        let lost = matches!(error, CallError::Unreachable(_) | CallError::Late(_));
        if !lost || attempts >= MAX_ATTEMPTS {
            tracing::debug!(%error, "event not recorded");
            return;
        }
        tokio::select! {
            biased;
            _ = stopped.wait_for(|stop| *stop) => return,
            () = tokio::time::sleep(RETRY_INTERVAL) => {}
        }
    }
}

/// Raises the count of an event that was written before, or creates it.
async fn store(client: &Client, event: &Event) -> Result<(), CallError> {
    let (namespace, name) = (&event.metadata.namespace, &event.metadata.name);
    let name = name.as_deref().unwrap_or_default();
    let about = About { resource: RESOURCE, name };
    let path =
        format!("/api/v1/namespaces/{}/events", segment(namespace.as_deref().unwrap_or_default()));
    if event.count > Some(1) {
        let change = serde_json::json!({"count": event.count, "message": event.message,
            "lastTimestamp": event.last_timestamp});
        let path = format!("{path}/{}", segment(name));
        match call::send::<IgnoredAny>(client, "PATCH", &path, &change, about).await {
            // It has outlived its time on the server, or was never sent.
            Err(error) if error.is_not_found() => {}
            result => return result.map(drop),
        }
    }
    call::send::<IgnoredAny>(client, "POST", &path, event, about).await.map(drop)
}

fn event(pending: &PendingEvent, place: Place, now: Timestamp) -> Event {
    let about = &pending.about;
    let namespace = about.namespace.as_deref().filter(|namespace| !namespace.is_empty());
    Event {
        metadata: ObjectMeta {
            name: Some(place.name),
            namespace: Some(namespace.unwrap_or("default").to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: about.clone(),
        type_: Some(pending.severity.name().into()),
        reason: Some(pending.reason.into()),
        message: Some(place.message),
        source: Some(EventSource { component: Some(pending.component.into()), host: None }),
        // Those that stand for several name no reporter, as upstream's.
        reporting_component: Some(if place.combined { "" } else { pending.component }.into()),
        reporting_instance: Some(String::new()),
        first_timestamp: Some(stamp(place.first)),
        last_timestamp: Some(stamp(now)),
        count: Some(place.count),
        ..Event::default()
    }
}

#[cfg(test)]
mod tests;
