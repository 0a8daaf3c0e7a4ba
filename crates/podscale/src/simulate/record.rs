//! A simulated run as a Recording, in the form of one of a live cluster: `podscale replay` decides it
//! again.

mod jobs;

use jobs::JobsRecorder;
use podscale_api::Labels;
use podscale_api::hpa::v2::HorizontalPodAutoscaler;
use podscale_api::pod::{
    self, ConditionStatus, Pod, PodMeta, PodPhase, PodSpec, PodStatus, ReadyCondition,
};
use podscale_api::quantity::Quantity;
use podscale_api::recording::{
    API_VERSION, AnyRecording, KIND, RecordedAnswer, RecordedDecision, RecordedScale,
    RecordedScaleSpec, RecordedScaleStatus, RecordedValue, Recording, RecordingMeta, Step,
};
use podscale_api::resources::ResourceList;
use podscale_api::time::{ExactTimestamp, GoDuration, Timestamp};
use podscale_api::translate;
use podscale_controller::dialect::read::Understood;
use podscale_core::model::Milli;
use podscale_core::pod::{Phase, ReadyStatus, Sample};
use podscale_core::snapshot::{Reading, Selection};
use podscale_core::{Outcome, Snapshot, Time};
use podscale_sim::plan::{Container, PodTemplate, pod_name};
use podscale_sim::policy::PassObserver;
use podscale_sim::{Plan, PlanError, simulate, simulate_jobs};

use super::{Subject, Tried};

/// What selects the pods of a simulated target.
const SELECTOR: (&str, &str) = ("podscale.dev/simulated", "true");

/// Writes down every pass of a run.
struct RunRecorder {
    recording: Recording,
    /// The object as it is stored between two passes.
    hpa: HorizontalPodAutoscaler,
    spec: PodSpec,
}

impl Subject {
    /// Runs a plan, decided by the object, and gives the run as a Recording of this name.
    ///
    /// # Errors
    /// The plan makes no sense.
    pub fn recorded(&self, plan: &Plan, name: &str) -> Result<AnyRecording, PlanError> {
        let plan = self.seen(plan);
        match &self.object {
            Tried::Scale(understood) => {
                let mut recorder = RunRecorder::new(self, understood, name);
                let mut policy = self.policy(understood).observed(&mut recorder);
                simulate(&plan, &mut policy)?;
                drop(policy);
                Ok(AnyRecording::Scale(Box::new(recorder.recording)))
            }
            Tried::Jobs(tried) => {
                let mut recorder = JobsRecorder::new(&tried.object.job, name);
                simulate_jobs(&plan, &tried.policy, Some(&mut recorder))?;
                Ok(AnyRecording::Jobs(Box::new(recorder.finish())))
            }
        }
    }
}

impl RunRecorder {
    /// At the beginning of a run of this object.
    fn new(subject: &Subject, object: &Understood, name: &str) -> RunRecorder {
        let mut hpa = object.managed.wire.recorded();
        hpa.status = None;
        let recording = Recording {
            api_version: API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            metadata: RecordingMeta { name: name.to_owned(), ..RecordingMeta::default() },
            controller: subject.settings.into(),
            autoscaler: hpa.clone(),
            history: None,
            steps: Vec::new(),
        };
        RunRecorder { recording, hpa, spec: pod_spec(&subject.plan.template) }
    }

    fn pods(&self, snapshot: &Snapshot<'_>, ids: &[u64]) -> Vec<Pod> {
        let Selection::Pods(pods) = snapshot.pods else { return Vec::new() };
        let pod = |(pod, id): (&podscale_core::pod::Pod, &u64)| Pod {
            metadata: PodMeta {
                name: pod_name(*id).into(),
                namespace: (*snapshot.autoscaler.namespace).into(),
                deletion_timestamp: pod.deleting.then_some(Timestamp(snapshot.now.whole_seconds())),
                labels: [SELECTOR].into_iter().collect(),
                ..PodMeta::default()
            },
            spec: self.spec.clone(),
            status: PodStatus {
                phase: Some(match pod.phase {
                    Phase::Pending => PodPhase::Pending,
                    Phase::Running => PodPhase::Running,
                    Phase::Succeeded => PodPhase::Succeeded,
                    Phase::Failed => PodPhase::Failed,
                    Phase::Unknown => PodPhase::Unknown,
                }),
                ready: pod.ready.map(|ready| ReadyCondition {
                    status: match ready.status {
                        ReadyStatus::True => ConditionStatus::True,
                        ReadyStatus::False => ConditionStatus::False,
                        ReadyStatus::Unknown => ConditionStatus::Unknown,
                    },
                    last_transition_time: Some(Timestamp(ready.since)),
                }),
                start_time: pod.started.map(Timestamp),
            },
        };
        pods.iter().zip(ids).map(pod).collect()
    }
}

impl PassObserver for RunRecorder {
    fn passed(&mut self, snapshot: &Snapshot<'_>, outcome: &Outcome, pods: &[u64]) {
        let decision = &outcome.decision;
        let written = outcome.is_status_written();
        let stored = if written {
            translate::status::to_wire(decision, snapshot, &self.hpa)
        } else {
            self.hpa.status.clone().unwrap_or_default()
        };
        let replicas = decision.replicas().unwrap_or(0);
        let answers = snapshot.readings.iter().enumerate().map(|(place, reading)| {
            answer(u32::try_from(place).unwrap_or(u32::MAX), reading, pods)
        });
        let scale = snapshot.scale.as_ref().ok().map(|scale| RecordedScale {
            spec: Some(RecordedScaleSpec { replicas: Some(scale.spec_replicas) }),
            status: Some(RecordedScaleStatus {
                replicas: Some(scale.status_replicas),
                selector: Some(format!("{}={}", SELECTOR.0, SELECTOR.1)),
            }),
        });
        self.hpa.status = Some(stored.clone());
        let step = Step {
            time: ExactTimestamp(snapshot.now),
            spec: None,
            scale,
            other_autoscalers: Vec::new(),
            pods: self.pods(snapshot, pods),
            pod_metrics: Vec::new(),
            custom_metrics: Vec::new(),
            external_metrics: Vec::new(),
            answers: answers.collect(),
            written_at: outcome.scale_ended_at.map(ExactTimestamp),
            scale_withheld: outcome.scale_withheld(),
            status_withheld: outcome.status_withheld(),
            errors: None,
            decision: Some(RecordedDecision::of(decision, replicas, written, stored)),
            decision_saturating: None,
        };
        self.recording.steps.push(step);
    }
}

/// What one metric said.
fn answer(metric: u32, reading: &Reading, pods: &[u64]) -> RecordedAnswer {
    let own =
        RecordedAnswer { metric, source: "simulation".to_owned(), ..RecordedAnswer::default() };
    let values = match reading {
        Reading::Failed(error) => return RecordedAnswer { error: Some(error.to_string()), ..own },
        Reading::Empty => Vec::new(),
        Reading::Inputs(readings) => {
            let places = (0_u32..).zip(readings);
            let inputs = places.map(|(place, reading)| answer(place, reading, pods)).collect();
            return RecordedAnswer { inputs: Some(inputs), ..own };
        }
        Reading::Trigger { value, active, taken } => {
            let values = Some(vec![taken_at(*value, *taken)]);
            return RecordedAnswer { values, active: Some(*active), ..own };
        }
        Reading::Total { value, taken } => vec![taken_at(*value, *taken)],
        Reading::Series { values, taken } => {
            values.iter().map(|value| taken_at(*value, *taken)).collect()
        }
        Reading::PerPod(readings) => {
            let of_pod = |(sample, id): (&Option<Sample>, &u64)| {
                let sample = sample.as_ref()?;
                Some(RecordedValue {
                    time: Some(ExactTimestamp(sample.taken)),
                    window: Some(GoDuration::from_span(sample.window)),
                    pod: Some(pod_name(*id)),
                    ..value(sample.value)
                })
            };
            readings.samples.iter().zip(pods).filter_map(of_pod).collect()
        }
    };
    RecordedAnswer { values: Some(values), ..own }
}

fn taken_at(amount: Milli, taken: Option<Time>) -> RecordedValue {
    RecordedValue { time: taken.map(ExactTimestamp), ..value(amount) }
}

fn value(amount: Milli) -> RecordedValue {
    RecordedValue {
        value: quantity(amount.0),
        time: None,
        window: None,
        labels: Labels::default(),
        pod: None,
        object: None,
    }
}

fn quantity(milli: i64) -> Quantity {
    // A number with a unit that exists can always be read.
    Quantity::parse(&format!("{milli}m")).unwrap_or_default()
}

fn pod_spec(template: &PodTemplate) -> PodSpec {
    let container = |container: &Container| {
        let list = |cpu_millis: Option<f64>, memory_bytes: Option<f64>| {
            let mut list = ResourceList::default();
            // The casts saturate.
            if let Some(cpu) = cpu_millis {
                list.insert("cpu", quantity(cpu.round() as i64));
            }
            if let Some(memory) = memory_bytes {
                list.insert("memory", quantity((memory * 1000.0).round() as i64));
            }
            list
        };
        pod::Container {
            name: (*container.name).into(),
            resources: pod::ResourceRequirements {
                requests: list(container.cpu_request_millis, container.memory_request_bytes),
                limits: list(container.cpu_limit_millis, container.memory_limit_bytes),
            },
            restart_policy: None,
        }
    };
    PodSpec {
        containers: template.containers.iter().map(container).collect(),
        ..PodSpec::default()
    }
}
