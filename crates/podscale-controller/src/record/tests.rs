use super::*;
use crate::controller::observer::{OtherSelector, Took};
use crate::dialect::hpa::managed;
use crate::source::Answer;
use podscale_api::hpa::v2::{self, MetricSpec, metric_type};
use podscale_api::labels::Labels;
use podscale_api::metrics::MetricValue;
use podscale_api::observe::Other;
use podscale_api::pod::Pod;
use podscale_api::recording::{OtherAutoscaler, Recording, RecordingReader, Step};
use podscale_api::replay::Replayer;
use podscale_api::replay::difference::differences;
use podscale_api::scale::Scale;
use podscale_api::selector::Selector;
use podscale_core::decide::reads_metrics;
use podscale_core::snapshot::ScaleError;
use podscale_core::{Snapshot, Withheld};
use std::fs::{self, File};
use std::io::Read;

/// A folder of its own, removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("podscale-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        Folder(folder)
    }

    fn files(&self) -> Vec<PathBuf> {
        let found = fs::read_dir(&self.0).expect("a folder");
        let mut files: Vec<PathBuf> = found.map(|f| f.expect("a file").path()).collect();
        files.sort();
        files
    }

    fn recordings(&self) -> Vec<Recording> {
        let read = |path: PathBuf| {
            let file = File::open(path).expect("a file");
            RecordingReader::new(file).expect("lines").collect::<Vec<_>>()
        };
        self.files().into_iter().flat_map(read).map(|r| r.expect("a recording")).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn named() -> Vec<Recording> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = path.join("../podscale-api/testdata/named-1.37.jsonl");
    let lines = RecordingReader::new(File::open(path).expect("a file")).expect("lines");
    lines.map(|recording| recording.expect("a recording")).collect()
}

/// What the controller gathers for a step, as in `controller/observe.rs`: nothing besides the scale where
/// a decision reads no metrics, and otherwise the pods that the selector selects, the autoscalers that
/// may overlap on them, and what each metric's source answers when it is asked with the selector.
fn inputs(
    step: &Step,
    snapshot: &Snapshot<'_>,
    hpa: &HorizontalPodAutoscaler,
    selector: &str,
) -> Inputs {
    let mut inputs = Inputs {
        scale: Err(ScaleError::Unreadable("not read yet".into())),
        pods: Vec::new(),
        others: Vec::new(),
        answers: Vec::new(),
    };
    let read = match snapshot.scale {
        Ok(read) => *read,
        Err(error) => return Inputs { scale: Err(error.clone()), ..inputs },
    };
    let mut scale = Scale::default();
    (scale.spec.replicas, scale.status.replicas) = (read.spec_replicas, read.status_replicas);
    scale.status.selector = selector.into();
    inputs.scale = Ok(scale);
    if !reads_metrics(snapshot.autoscaler, read, || snapshot.status) {
        return inputs;
    }
    let parsed = Selector::parse(selector).ok().filter(|_| !selector.is_empty());
    let selects = |labels: &Labels| parsed.as_ref().is_some_and(|s| s.matches(|k| labels.get(k)));
    let in_namespace = |pod: &&Pod| *pod.metadata.namespace == *snapshot.autoscaler.namespace;
    let (pods, unselected): (Vec<&Pod>, Vec<&Pod>) =
        step.pods.iter().filter(in_namespace).partition(|pod| selects(&pod.metadata.labels));
    let other = |other: &OtherAutoscaler| {
        let Other { kind, name, selector } = other.as_other();
        assert_eq!(kind, v2::KIND, "the only kind of these recordings");
        OtherSelector { kind: v2::KIND, name: name.into(), selector: selector.into() }
    };
    inputs.others = step.other_autoscalers.iter().map(other).collect();
    inputs.answers = answers(step, hpa, selects, &unselected);
    inputs.pods = pods.into_iter().cloned().map(Arc::new).collect();
    inputs
}

/// What the sources answer, metric by metric.
fn answers(
    step: &Step,
    hpa: &HorizontalPodAutoscaler,
    selects: impl Fn(&Labels) -> bool,
    unselected: &[&Pod],
) -> Vec<Answer> {
    let errors = step.errors.clone().unwrap_or_default();
    let or = |error: &Option<String>, answer: Answer| match error {
        Some(error) => Answer::Failed(error.as_str().into()),
        None => answer,
    };
    let name = |metric: &MetricSpec| {
        let pods = metric.pods.as_ref().map(|source| &source.metric);
        let object = metric.object.as_ref().map(|source| &source.metric);
        let external = metric.external.as_ref().map(|source| &source.metric);
        pods.or(object).or(external).map(|series| series.name.clone()).unwrap_or_default()
    };
    let of_pods = step.pod_metrics.iter().filter(|of_pod| selects(&of_pod.metadata.labels));
    let of_pods: Arc<[_]> = of_pods.cloned().map(Arc::new).collect();
    let is_of_others = |value: &MetricValue| {
        let object = &value.described_object;
        &*object.kind == "Pod" && unselected.iter().any(|pod| *pod.metadata.name == *object.name)
    };
    let answer = |metric: &MetricSpec| match metric.r#type.as_str() {
        metric_type::RESOURCE | metric_type::CONTAINER_RESOURCE => {
            or(&errors.pod_metrics, Answer::Resource(Arc::clone(&of_pods)))
        }
        kind @ (metric_type::PODS | metric_type::OBJECT) => {
            let values = step.custom_metrics.iter().filter(|v| *v.metric.name == *name(metric));
            let values = values.filter(|value| kind == metric_type::OBJECT || !is_of_others(value));
            or(&errors.custom_metrics, Answer::Custom(values.cloned().collect()))
        }
        metric_type::EXTERNAL => {
            let values = step.external_metrics.iter().filter(|v| *v.metric_name == *name(metric));
            or(&errors.external_metrics, Answer::External(values.cloned().collect()))
        }
        _ => Answer::Nothing,
    };
    hpa.spec.metrics.iter().map(answer).collect()
}

/// Recordings of Kubernetes' own controller, recorded once more from what they replay to, must give
/// the same decisions again.
#[test]
fn what_is_recorded_replays_to_the_same_decisions() {
    record_again(false);
}

#[test]
fn a_dry_run_is_recorded_as_well() {
    record_again(true);
}

fn record_again(dry: bool) {
    let folder = Folder::new(if dry { "record-dry" } else { "record-again" });
    let (recorder, writing) =
        Recorder::start(&folder.0, Limits::default(), Metrics::new()).expect("a folder");
    let mut expected = 0;
    for (number, recording) in named().into_iter().enumerate() {
        // The source applies the selectors of series itself; here there is none.
        let selects = |m: &MetricSpec| {
            let text = serde_json::to_string(m).expect("JSON");
            text.contains("matchLabels") || text.contains("matchExpressions")
        };
        let specs = recording.steps.iter().filter_map(|s| s.spec.as_ref());
        let specs = specs.chain([&recording.autoscaler.spec]);
        if specs.flat_map(|spec| &spec.metrics).any(selects) {
            continue;
        }
        let mut hpa = recording.autoscaler.clone();
        hpa.metadata.uid = number.to_string();
        hpa.metadata.name = format!("{}-{number}", hpa.metadata.name);
        let recording = Recording { autoscaler: hpa.clone(), ..recording };
        let (mut replayer, mut selector) = (Replayer::new(&recording), String::new());
        for step in &recording.steps {
            let withheld = dry.then_some(Withheld::DryRun);
            let step =
                &Step { scale_withheld: withheld, status_withheld: withheld, ..step.clone() };
            let status = step.scale.as_ref().and_then(|s| s.status.as_ref());
            if let Some(new) = status.and_then(|s| s.selector.as_ref()) {
                selector.clone_from(new);
            }
            if let Some(spec) = &step.spec {
                hpa.spec = spec.clone();
                hpa.metadata.generation += 1;
            }
            let stored = replayer.step(step, |replayed| {
                let (snapshot, outcome) = (replayed.snapshot, replayed.pass);
                let inputs = Some(inputs(step, snapshot, &hpa, &selector));
                let (object, took) = (managed(hpa.clone()), Took::default());
                let (object, took, inputs) = (&object, &took, inputs.as_ref());
                let conflict = None;
                recorder.decided(&Decided { object, snapshot, outcome, took, inputs, conflict });
                expected += 1;
                replayed.outcome.status
            });
            hpa.status = Some(stored);
        }
    }
    writing.finish();
    let mut replayed = 0;
    for recording in folder.recordings() {
        let mut replayer = Replayer::new(&recording);
        for step in &recording.steps {
            let wanted = step.expected().expect("a decision");
            let found = replayer.step(step, |replayed| differences(wanted, &replayed.outcome));
            assert!(found.is_empty(), "{} {:?}: {found:?}", recording.metadata.name, step.time);
            replayed += 1;
        }
    }
    assert_eq!(replayed, expected);
    assert!(expected > 100, "{expected} steps are not many");
}

#[test]
fn files_stay_within_their_limits() {
    let folder = Folder::new("record-files");
    let recordings = named();
    let limits = Limits { bytes: 60_000, age: Duration::from_secs(3600) };
    let mut files = Files::open(&folder.0, limits).expect("a folder");
    fs::write(folder.0.join("notes.txt"), vec![b'x'; 100_000]).expect("a file of another program");
    for _ in 0..20 {
        files.write(&recordings[..20]).expect("written");
    }
    let mut total = 0;
    let files_left = folder.files();
    for file in files_left.iter().filter(|file| file.extension().is_some_and(|e| e == "gz")) {
        total += fs::metadata(file).expect("a file").len();
    }
    assert!(total <= limits.bytes, "{total} bytes");
    assert!(files_left.len() > 3, "{files_left:?}");
    assert!(files_left.iter().any(|file| file.ends_with("notes.txt")), "only its own files go");
    fs::remove_file(folder.0.join("notes.txt")).expect("removed");
    assert_eq!(folder.recordings().len() % 20, 0, "every line can be read");
    let young = Limits { bytes: u64::MAX, age: Duration::ZERO };
    let mut files = Files::open(&folder.0, young).expect("a folder");
    files.write(&recordings[..1]).expect("written");
    assert_eq!(folder.files().len(), 1, "what is too old goes");
}

/// What another program sees of a file: a gzip stream that is complete, with whole lines.
fn lines_for_others(file: &Path) -> usize {
    let mut text = String::new();
    let mut decoder = flate2::read::MultiGzDecoder::new(File::open(file).expect("a file"));
    decoder.read_to_string(&mut text).expect("complete gzip");
    assert!(text.ends_with('\n'), "{}", file.display());
    text.lines().count()
}

#[test]
fn other_programs_can_read_a_recording_that_has_just_begun() {
    let folder = Folder::new("record-begun");
    let recordings = named();
    let mut files = Files::open(&folder.0, Limits::default()).expect("a folder");
    assert!(folder.files().is_empty(), "an empty file is not gzip: {:?}", folder.files());
    for written in 1..=3 {
        files.write(&recordings[written..=written]).expect("written");
        let found = folder.files();
        assert_eq!(found.len(), 1);
        assert_eq!(lines_for_others(&found[0]), written);
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_refused() {
    let refused = Recorder::start(Path::new("/proc/none"), Limits::default(), Metrics::new());
    let error = refused.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.starts_with("cannot write recordings into /proc/none: "), "{error}");
}
