//! The events that a node records of its pods. They are for people: when too many are under way,
//! further ones are dropped.

use super::lifecycle::{Life, Stage};
use super::pod::Facts;
use crate::call::call;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Client;
use kube::api::{Api, PostParams};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Semaphore;
use tracing::debug;

const MAX_UNDER_WAY: usize = 16;
const COMPONENT: &str = "kubelet";

/// Something that people may want to know of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    Nothing,
    Started,
    Unready,
    BackOff,
    Killing,
}

impl Note {
    /// What is worth an event in a step of a pod's life.
    pub(super) fn between(before: &Life, after: &Life) -> Note {
        match (before.stage, after.stage) {
            (Stage::Creating | Stage::BackOff, Stage::Running { .. }) => Note::Started,
            (Stage::Running { ready: true }, Stage::Running { ready: false }) => Note::Unready,
            (_, Stage::BackOff) => Note::BackOff,
            (Stage::Running { .. }, Stage::Stopping) => Note::Killing,
            _ => Note::Nothing,
        }
    }
}

/// Where events go.
#[derive(Clone)]
pub(super) struct EventSink {
    client: Option<Client>,
    permits: Arc<Semaphore>,
    counter: Arc<AtomicU64>,
}

impl EventSink {
    /// Records events through this client; none at all without one.
    pub(super) fn new(client: Option<Client>) -> EventSink {
        let permits = Arc::new(Semaphore::new(MAX_UNDER_WAY));
        EventSink { client, permits, counter: Arc::default() }
    }

    /// Records one event of each container.
    pub(super) fn note(&self, facts: &Facts, note: Note, now: Timestamp) {
        let Some(client) = &self.client else { return };
        for container in &facts.containers {
            let name = &container.name;
            let (kind, reason, message) = match note {
                Note::Nothing => return,
                Note::Started => ("Normal", "Started", format!("Started container {name}")),
                Note::Unready => ("Warning", "Unhealthy", "Readiness probe failed".to_owned()),
                Note::BackOff => {
                    let pod = format!("{}_{}({})", facts.name, facts.namespace, facts.uid);
                    let message =
                        format!("Back-off restarting failed container {name} in pod {pod}");
                    ("Warning", "BackOff", message)
                }
                Note::Killing => ("Normal", "Killing", format!("Stopping container {name}")),
            };
            let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
                debug!(pod = %facts.name, reason, "too many events at once: dropped");
                return;
            };
            let serial = self.counter.fetch_add(1, Ordering::Relaxed);
            let event = event(facts, name, (kind, reason, message), now, serial);
            let events: Api<Event> = Api::namespaced(client.clone(), &facts.namespace);
            tokio::spawn(async move {
                let params = PostParams::default();
                let what = || "recording an event".to_owned();
                if let Err(error) = call(what, events.create(&params, &event)).await {
                    debug!(%error, "dropped");
                }
                drop(permit);
            });
        }
    }
}

fn event(
    facts: &Facts,
    container: &str,
    (kind, reason, message): (&str, &str, String),
    now: Timestamp,
    serial: u64,
) -> Event {
    let unique = now.as_microsecond().unsigned_abs().rotate_left(16) ^ serial;
    let time = Timestamp::from_second(now.as_second()).map(Time).ok();
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{}.{unique:016x}", facts.name)),
            namespace: Some(facts.namespace.to_string()),
            ..ObjectMeta::default()
        },
        involved_object: ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            namespace: Some(facts.namespace.to_string()),
            name: Some(facts.name.to_string()),
            uid: Some(facts.uid.to_string()),
            field_path: Some(format!("spec.containers{{{container}}}")),
            ..ObjectReference::default()
        },
        type_: Some(kind.to_owned()),
        reason: Some(reason.to_owned()),
        message: Some(message),
        source: Some(EventSource {
            component: Some(COMPONENT.to_owned()),
            host: Some(facts.node.to_string()),
        }),
        reporting_component: Some(COMPONENT.to_owned()),
        reporting_instance: Some(facts.node.to_string()),
        first_timestamp: time.clone(),
        last_timestamp: time,
        count: Some(1),
        ..Event::default()
    }
}
