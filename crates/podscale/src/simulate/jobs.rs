//! ScaledJobs that are tried: what they decide by, and what is assumed of their Jobs where nothing is said.

use super::edit::Edit;
use super::model::{self as assume, ModelOptions};
use super::objects::{self, InputError, Objects, pods_of};
use super::{Subject, Tried};
use podscale_api::keda::Trigger;
use podscale_api::pod::PodSpec;
use podscale_api::translate::scaled_job::rules;
use podscale_api::translate::scaled_object::TriggerMetric;
use podscale_cluster::nodes::pod::RUN_TIME;
use podscale_controller::dialect::read::{UnderstoodJobs, read_jobs};
use podscale_controller::settings::duration;
use podscale_core::model::{Milli, Source, TargetRef, Trigger as ModelTrigger, TriggerOf};
use podscale_core::{Autoscaler, Metric, Span};
use podscale_sim::jobs::{Inherited, JobPolicy, JobSpec, JobWork, Measured};
use podscale_sim::plan::{PodTemplate, Quantity};
use podscale_sim::workload::Kind;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How long a Job takes for its part of the load if nothing is said.
const JOB_SECONDS: f64 = 60.0;

/// A ScaledJob that is tried.
#[derive(Clone, Debug)]
pub struct TriedJobs {
    /// The object, and how it was understood.
    pub object: UnderstoodJobs,
    /// Its bounds and its metrics, for those who run pods in the place of Jobs.
    pub model: Autoscaler,
    /// What it decides by, and what its Jobs do.
    pub policy: JobPolicy,
}

impl TriedJobs {
    /// Jobs that do this, and of which this is there already.
    pub(super) fn new(
        object: UnderstoodJobs,
        names: &BTreeMap<String, Quantity>,
        work: JobWork,
        inherited: Inherited,
    ) -> TriedJobs {
        let model = model(&object);
        let spec = &object.job.spec;
        let triggers = externals(&object).map(|(name, targets, _)| Measured {
            metric: Arc::clone(name),
            quantity: names.get(&**name).copied().unwrap_or(Quantity::guess(name, Kind::Consumer)),
            per_job: targets.average_value.unwrap_or_default(),
            activation: object.activations.get(name).copied().unwrap_or_default(),
        });
        let conditions = &spec.scaling_strategy.pending_pod_conditions;
        let policy = JobPolicy {
            rules: rules(spec),
            triggers: triggers.collect(),
            polling: Span::seconds(i64::from(spec.polling_interval_seconds())),
            pending_until_ready: conditions.iter().any(|kind| kind.ends_with("Ready")),
            work,
            inherited,
        };
        TriedJobs { object, model, policy }
    }

    /// The same Jobs with another object.
    pub(super) fn with_object(
        &self,
        object: &Value,
        edits: &[Edit],
        names: &BTreeMap<String, Quantity>,
    ) -> Result<TriedJobs, InputError> {
        let object = read(object, edits)?;
        let JobPolicy { work, inherited, .. } = self.policy;
        // Of a recorded one it is not known how many pods its Jobs had: a Job then stays what it was.
        let is_recorded = self.object.job.spec.job_target_ref.get("template").is_none();
        let pods = if is_recorded { work.pods } else { parallelism(&object) };
        Ok(TriedJobs::new(object, names, JobWork { pods, ..work }, inherited))
    }
}

fn read(object: &Value, edits: &[Edit]) -> Result<UnderstoodJobs, InputError> {
    objects::edited(object, edits, read_jobs, |understood| &understood.object)
}

/// The triggers that ask an event source: name, targets, and which trigger it is.
pub(super) fn externals(
    object: &UnderstoodJobs,
) -> impl Iterator<Item = (&Arc<str>, &podscale_core::model::Targets, &Trigger)> {
    let triggers = object.metrics.iter().zip(&object.job.spec.triggers);
    triggers.filter_map(|(metric, trigger)| match metric {
        TriggerMetric::External { name, targets, .. } => Some((name, targets, trigger)),
        // What pods use says nothing of how many Jobs there should be.
        TriggerMetric::Resource { .. } => None,
    })
}

/// What peers need to know of it.
fn model(object: &UnderstoodJobs) -> Autoscaler {
    let (metadata, spec) = (&object.job.metadata, &object.job.spec);
    let metric = |metric: &TriggerMetric| match metric {
        TriggerMetric::External { name, source, targets } => {
            let of = TriggerOf::Source(source.clone());
            let trigger = ModelTrigger { name: Arc::clone(name), of };
            Some(Metric::new(Source::Trigger(trigger), targets))
        }
        TriggerMetric::Resource { .. } => None,
    };
    Autoscaler {
        namespace: metadata.namespace.as_str().into(),
        name: metadata.name.as_str().into(),
        generation: metadata.generation,
        target: TargetRef {
            api_version: object.job.api_version.as_str().into(),
            kind: object.job.kind.as_str().into(),
            name: metadata.name.as_str().into(),
        },
        min_replicas: spec.min(),
        max_replicas: spec.min().saturating_add(spec.max_beside_min()).max(1),
        metrics: object.metrics.iter().filter_map(metric).collect(),
        behavior: None,
        extensions: None,
    }
}

/// How many pods a Job has at a time.
fn parallelism(object: &UnderstoodJobs) -> u32 {
    let given = object.job.spec.job_target_ref.get("parallelism").and_then(Value::as_u64);
    given.and_then(|pods| u32::try_from(pods).ok()).unwrap_or(1).max(1)
}

impl Objects {
    /// A ScaledJob with what its Jobs are like, after these changes.
    pub(super) fn subject_of_jobs(
        &self,
        object: &Value,
        edits: &[Edit],
        options: &ModelOptions,
    ) -> Result<Subject, InputError> {
        let object = read(object, edits)?;
        let mut notes = Vec::new();
        let metadata = &object.job.metadata;
        let workload = self.workload(&metadata.namespace, &metadata.name);
        let container = workload.and_then(|workload| workload.container.as_deref());
        let template = template(&object, container, &mut notes);
        let names = &self.simulation().metrics;
        let work = work(&self.simulation().jobs, &object, &mut notes);
        let tried = TriedJobs::new(object, names, work, Inherited::default());
        let mut spec = workload.map(|workload| workload.model.clone());
        if let Some(service) = spec.as_mut().filter(|spec| spec.kind == Kind::Service) {
            service.kind = Kind::Consumer;
            notes.push(
                "Jobs take items from a queue: the workload is taken as a consumer".to_owned(),
            );
        }
        let mut options = ModelOptions { kind: Some(Kind::Consumer), ..options.clone() };
        if spec.is_none() && options.rps_per_pod.is_none() {
            options.rps_per_pod = Some(assumed_rate(&tried.policy, &mut notes));
        }
        let spec =
            assume::workload(spec, &tried.model, &template, names, &options, &mut Vec::new());
        assume::note_metrics(&tried.model, Kind::Consumer, names, &mut notes);
        let replicas = tried.model.min_replicas;
        let plan = self.plan(&tried.model, template, spec, replicas, &options);
        Ok(Subject {
            object: Tried::Jobs(Box::new(tried)),
            settings: options.settings,
            plan,
            notes,
        })
    }
}

fn template(object: &UnderstoodJobs, busy: Option<&str>, notes: &mut Vec<String>) -> PodTemplate {
    let spec = object.job.spec.job_target_ref.pointer("/template/spec");
    let spec = spec.and_then(|spec| PodSpec::deserialize(spec).ok());
    spec.and_then(|spec| pods_of(&spec, busy)).unwrap_or_else(|| {
        notes.push(
            "its Jobs have no containers: one that requests 500m and 256Mi is assumed".to_owned(),
        );
        PodTemplate::default()
    })
}

/// What one Job does: as the scenario says, else as the object suggests.
fn work(spec: &JobSpec, object: &UnderstoodJobs, notes: &mut Vec<String>) -> JobWork {
    let annotations = object.job.spec.job_target_ref.pointer("/template/metadata/annotations");
    let run_time = annotations.and_then(|all| all.get(RUN_TIME)).and_then(Value::as_str);
    let run_time = run_time.and_then(|text| duration(text).ok()).map(|time| time.as_secs_f64());
    let run_time = run_time.filter(|_| spec.items_per_job.is_none());
    let run_seconds = spec.run_seconds.or(run_time);
    let items = match (spec.items_per_job, run_seconds) {
        (Some(items), _) => Some(items),
        (None, Some(_)) => None,
        (None, None) => Some(items_by_target(object)),
    };
    match (items, run_seconds) {
        (Some(items), None) if spec.items_per_job.is_none() => notes.push(format!(
            "one Job is taken to do {items} items and to end then, as the target of its trigger suggests: \
             simulation.jobs.itemsPerJob of a scenario replaces that"
        )),
        (None, Some(seconds)) if spec.run_seconds.is_none() => notes.push(format!(
            "one Job works for {seconds} s, as the annotation {RUN_TIME} says"
        )),
        _ => {}
    }
    let counts_taken = spec.counts_taken.unwrap_or_else(|| {
        let counts = counts_taken(object);
        let what = if counts {
            "still counts in the queue until it is done"
        } else {
            "leaves the queue at once"
        };
        notes.push(format!("what a Job has taken {what} (simulation.jobs.countsTaken)"));
        counts
    });
    // Who works for a time stays for all of it, unless the scenario says otherwise.
    let stays = items.is_none();
    let idle_seconds = spec.idle_seconds.unwrap_or(if stays { f64::INFINITY } else { 0.0 });
    JobWork { items, run_seconds, idle_seconds, counts_taken, pods: parallelism(object) }
}

/// How many items the target of its first trigger says are for one Job.
pub(super) fn items_by_target(object: &UnderstoodJobs) -> u64 {
    let targets = externals(object).map(|(_, targets, _)| targets.average_value);
    let target = targets.flatten().find(|target| *target > Milli(0));
    // The cast saturates.
    target.map_or(1, |Milli(target)| (target as f64 / 1e3).ceil() as u64)
}

/// Whether what a Job has taken still counts in what triggers say, if nobody says it.
pub(super) fn counts_taken(object: &UnderstoodJobs) -> bool {
    !externals(object).all(|(_, _, trigger)| pops(&trigger.r#type))
}

/// Whether taking an item from what triggers of this type ask removes it: lists of Redis are popped, and brokers keep an
/// item until it is acknowledged.
fn pops(kind: &str) -> bool {
    matches!(kind, "redis" | "redis-cluster" | "redis-sentinel")
}

/// Items a second that one pod does if nobody says it.
fn assumed_rate(policy: &JobPolicy, notes: &mut Vec<String>) -> f64 {
    let JobWork { items, pods, .. } = policy.work;
    // The conversion keeps what matters.
    let items = items.map_or(JOB_SECONDS, |items| items as f64);
    let each = JOB_SECONDS * f64::from(pods) / items;
    notes.push(format!(
        "one pod is taken to need {each:.2} s for an item: a guess, which --scenario and --rps-per-pod replace"
    ));
    1.0 / each
}

#[cfg(test)]
mod tests;
