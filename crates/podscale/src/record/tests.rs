use super::*;
use crate::controller::observer::Took;
use crate::dialect::hpa::managed;
use crate::source::Answer;
use podscale_api::hpa::v2::{MetricSpec, metric_type};
use podscale_api::recording::{Recording, RecordingReader, Step};
use podscale_api::replay::Replayer;
use podscale_api::replay::difference::differences;
use podscale_api::scale::Scale;
use podscale_core::{Snapshot, Withheld};
use std::fs::{self, File};

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

/// What a live controller would have read for a step.
fn inputs(
    step: &Step,
    snapshot: &Snapshot<'_>,
    hpa: &HorizontalPodAutoscaler,
    selector: &str,
) -> Inputs {
    let errors = step.errors.clone().unwrap_or_default();
    let scale = match snapshot.scale {
        Ok(read) => {
            let mut scale = Scale::default();
            (scale.spec.replicas, scale.status.replicas) = (read.wanted, read.existing);
            scale.status.selector = selector.into();
            Ok(scale)
        }
        Err(error) => Err(error.clone()),
    };
    let or = |error: &Option<String>, answer: Answer| match error {
        Some(error) => Answer::Failed(error.as_str().into()),
        None => answer,
    };
    // A source that is asked for one metric answers with that one.
    let named = |metric: &MetricSpec| {
        let pods = metric.pods.as_ref().map(|source| &source.metric);
        let object = metric.object.as_ref().map(|source| &source.metric);
        let external = metric.external.as_ref().map(|source| &source.metric);
        pods.or(object).or(external).map(|series| series.name.clone()).unwrap_or_default()
    };
    let answers = hpa.spec.metrics.iter().map(|metric| match metric.r#type.as_str() {
        metric_type::RESOURCE | metric_type::CONTAINER_RESOURCE => or(
            &errors.pod_metrics,
            Answer::Resource(step.pod_metrics.iter().cloned().map(Arc::new).collect()),
        ),
        metric_type::PODS | metric_type::OBJECT => {
            let values = step.custom_metrics.iter().filter(|v| *v.metric.name == *named(metric));
            or(&errors.custom_metrics, Answer::Custom(values.cloned().collect()))
        }
        metric_type::EXTERNAL => {
            let values = step.external_metrics.iter().filter(|v| *v.metric_name == *named(metric));
            or(&errors.external_metrics, Answer::External(values.cloned().collect()))
        }
        _ => Answer::Nothing,
    });
    let others = step.other_autoscalers.iter();
    Inputs {
        scale,
        pods: step.pods.iter().cloned().map(Arc::new).collect(),
        others: others.map(|o| (o.name.as_str().into(), o.selector.as_str().into())).collect(),
        answers: answers.collect(),
    }
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
        // Selectors of series are applied by the source when it is asked live; here nobody is.
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
                recorder.decided(&Decided { object, snapshot, outcome, took, inputs });
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
    fs::write(folder.0.join("notes.txt"), vec![b'x'; 100_000]).expect("a file of somebody else");
    for _ in 0..20 {
        files.write(&recordings[..20]).expect("written");
    }
    let mut total = 0;
    let kept = folder.files();
    for file in kept.iter().filter(|file| file.extension().is_some_and(|e| e == "gz")) {
        total += fs::metadata(file).expect("a file").len();
    }
    assert!(total <= limits.bytes, "{total} bytes");
    assert!(kept.len() > 3, "{kept:?}");
    assert!(kept.iter().any(|file| file.ends_with("notes.txt")), "only its own files go");
    fs::remove_file(folder.0.join("notes.txt")).expect("removed");
    assert_eq!(folder.recordings().len() % 20, 0, "every line can be read");
    let young = Limits { bytes: u64::MAX, age: Duration::ZERO };
    let mut files = Files::open(&folder.0, young).expect("a folder");
    files.write(&recordings[..1]).expect("written");
    assert_eq!(folder.files().len(), 1, "what is too old goes");
}

#[test]
fn a_folder_that_cannot_be_written_is_refused() {
    let refused = Recorder::start(Path::new("/proc/none"), Limits::default(), Metrics::new());
    let error = refused.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.starts_with("cannot write recordings into /proc/none: "), "{error}");
}
