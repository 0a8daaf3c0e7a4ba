//! Puts the decisions on each autoscaler together into Recordings, for as long as each follows from
//! the one before it.

use super::Entry;
use super::jobs::{JobsEntry, JobsSegment};
use super::step::step;
use crate::dialect::Key;
use podscale_api::hpa::v2::{
    API_VERSION as HPA_VERSION, HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec,
    HorizontalPodAutoscalerStatus, KIND as HPA_KIND,
};
use podscale_api::meta::ObjectMeta;
use podscale_api::recording::{
    API_VERSION, AnyRecording, KIND, ORIGIN, RecordedHistory, Recording, RecordingMeta, Step,
};
use podscale_api::time::ExactTimestamp;
use podscale_core::{History, Settings, Time};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// A Recording ends with so many steps.
const MAX_STEPS: usize = 240;
/// What is not written yet is never older than this, so that little is lost in a crash.
const MAX_UNWRITTEN_AGE: Duration = Duration::from_secs(60);
/// What is not written yet is never larger than about this.
const MAX_UNWRITTEN_BYTES: usize = 64 * 1024 * 1024;

#[derive(Default)]
pub(super) struct Segments {
    open: HashMap<Key, Segment>,
    open_jobs: HashMap<Key, JobsSegment>,
    bytes: usize,
    done: Vec<AnyRecording>,
    oldest: Option<Instant>,
}

struct Segment {
    recording: Recording,
    gap: u64,
    settings: Settings,
    /// What the next pass must find for its decision to follow from the last one.
    uid: String,
    generation: i64,
    spec: HorizontalPodAutoscalerSpec,
    origin: Option<String>,
    status: Vec<u8>,
    history: History,
    replicas: i32,
}

impl Segments {
    /// Takes in a decision.
    pub(super) fn take(&mut self, entry: Entry, now: Instant) {
        self.oldest.get_or_insert(now);
        let key = entry.key.clone();
        if let Some(open) = self.open.get(&key)
            && (!open.continues_with(&entry) || open.recording.steps.len() >= MAX_STEPS)
        {
            self.done.extend(self.open.remove(&key).map(Segment::end));
        }
        let segment = self.open.entry(key).or_insert_with(|| Segment::begin(&entry));
        self.bytes = self.bytes.saturating_add(segment.add(entry));
    }

    /// Takes in a decision about Jobs.
    pub(super) fn take_jobs(&mut self, entry: JobsEntry, now: Instant) {
        self.oldest.get_or_insert(now);
        let key = entry.key.clone();
        if let Some(open) = self.open_jobs.get(&key)
            && (!open.continues_with(&entry) || open.step_count() >= MAX_STEPS)
        {
            self.done.extend(self.open_jobs.remove(&key).map(JobsSegment::end));
        }
        let segment = self.open_jobs.entry(key).or_insert_with(|| JobsSegment::begin(&entry));
        self.bytes = self.bytes.saturating_add(segment.add(entry));
    }

    /// What must be written now.
    pub(super) fn ready(&mut self, now: Instant) -> Vec<AnyRecording> {
        let old = self.oldest.is_some_and(|oldest| now.duration_since(oldest) >= MAX_UNWRITTEN_AGE);
        if old || self.bytes >= MAX_UNWRITTEN_BYTES { self.all() } else { Vec::new() }
    }

    /// Everything there is.
    pub(super) fn all(&mut self) -> Vec<AnyRecording> {
        (self.bytes, self.oldest) = (0, None);
        let mut all = std::mem::take(&mut self.done);
        all.extend(self.open.drain().map(|(_, segment)| segment.end()));
        all.extend(self.open_jobs.drain().map(|(_, segment)| segment.end()));
        all.sort_by(|a, b| a.name().cmp(b.name()));
        all
    }
}

/// What a Recording is called: by its object, and by when it began.
pub(super) fn recording_name(key: &Key, since: Time) -> String {
    let since = serde_json::to_string(&ExactTimestamp(since)).unwrap_or_default();
    let kind = key.kind;
    let kind = if kind.is_native() { String::new() } else { format!(" {}", kind.name) };
    format!("{key}{kind} {}", since.trim_matches('"'))
}

/// What the object was, if it was no HPA.
fn origin(metadata: &ObjectMeta) -> Option<String> {
    metadata.annotations.get(ORIGIN).map(str::to_owned)
}

/// Compared as it is stored, since times lose their fractions there.
fn stored(status: Option<&HorizontalPodAutoscalerStatus>) -> Vec<u8> {
    let nothing = HorizontalPodAutoscalerStatus::default();
    serde_json::to_vec(status.unwrap_or(&nothing)).unwrap_or_default()
}

impl Segment {
    fn begin(entry: &Entry) -> Segment {
        let mut hpa = entry.hpa.clone();
        (hpa.kind, hpa.api_version) = (HPA_KIND.to_owned(), HPA_VERSION.to_owned());
        let name = recording_name(&entry.key, entry.now);
        let HorizontalPodAutoscaler { metadata, spec, status, .. } = &entry.hpa;
        Segment {
            gap: entry.gap,
            settings: entry.settings,
            uid: metadata.uid.clone(),
            generation: metadata.generation,
            spec: spec.clone(),
            origin: origin(metadata),
            status: stored(status.as_ref()),
            history: entry.history.clone(),
            replicas: entry.inputs.scale.as_ref().map_or(0, |scale| scale.spec.replicas),
            recording: Recording {
                api_version: API_VERSION.to_owned(),
                kind: KIND.to_owned(),
                metadata: RecordingMeta { name, ..RecordingMeta::default() },
                controller: entry.settings.into(),
                history: Some(RecordedHistory::from(&entry.history)),
                autoscaler: hpa,
                steps: Vec::new(),
            },
        }
    }

    fn end(self) -> AnyRecording {
        AnyRecording::Scale(Box::new(self.recording))
    }

    fn continues_with(&self, entry: &Entry) -> bool {
        let HorizontalPodAutoscaler { metadata, spec, status, .. } = &entry.hpa;
        let next = if *spec == self.spec { self.generation } else { self.generation + 1 };
        entry.gap == self.gap
            && entry.settings == self.settings
            && metadata.uid == self.uid
            && metadata.generation == next
            && origin(metadata) == self.origin
            && stored(status.as_ref()) == self.status
            && entry.history == self.history
    }

    /// Adds a step; about how many bytes it has.
    fn add(&mut self, entry: Entry) -> usize {
        let mut step: Step = step(&entry);
        if entry.hpa.spec != self.spec {
            step.spec = Some(entry.hpa.spec.clone());
            self.spec = entry.hpa.spec;
            self.generation = entry.hpa.metadata.generation;
        }
        let mut decision = entry.decision;
        if !entry.found {
            decision.replicas = self.replicas;
        }
        self.replicas = decision.replicas;
        self.history = entry.left;
        self.status = stored(Some(&decision.status));
        step.decision = Some(decision);
        let size = serde_json::to_vec(&step).map_or(0, |text| text.len());
        self.recording.steps.push(step);
        size
    }
}
