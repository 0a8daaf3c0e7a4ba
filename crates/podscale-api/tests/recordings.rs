//! Every recorded decision of the real Kubernetes controller must be ours too.
//!
//! A PodAutoscaler with the spec of the HPA must give the same replica counts.
//!
//! The named recordings are one test each. The large file is not part of the repository: it is run
//! where it lies beside it, and must be there when `CI=true`.

use libtest_mimic::{Arguments, Failed, Trial};
use podscale_api::hpa::v2::HorizontalPodAutoscaler;
use podscale_api::pod_autoscaler::{PodAutoscaler, PodAutoscalerSpec};
use podscale_api::recording::{Recording, RecordingReader};
use podscale_api::replay::Replayer;
use podscale_api::replay::difference::differences;
use podscale_api::translate;
use podscale_core::Autoscaler;
use std::fs::File;
use std::path::{Path, PathBuf};

fn main() {
    let arguments = Arguments::from_args();
    let mut trials: Vec<Trial> = named().into_iter().map(trial).collect();
    let present = large_file().exists();
    if !present {
        let path = large_file();
        eprintln!("\n*** {} IS MISSING: 24,929 DECISIONS ARE NOT CHECKED ***\n", path.display());
    }
    // Where it may be missing it shows as ignored, never as passed.
    let required = std::env::var("CI").as_deref() == Ok("true");
    let large = Trial::test("all of upstream-1.37.jsonl.gz", replay_large_file);
    trials.push(large.with_ignored_flag(!present && !required));
    let named = || named().iter().try_for_each(|recording| replay_translated(recording).map(drop));
    trials.push(Trial::test("all named as PodAutoscalers", named));
    let large =
        Trial::test("all of upstream-1.37.jsonl.gz as PodAutoscalers", translated_large_file);
    trials.push(large.with_ignored_flag(!present && !required));
    libtest_mimic::run(&arguments, trials).exit();
}

fn large_file() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("../shared/recordings/upstream-1.37.jsonl.gz")
}

fn named() -> Vec<Recording> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/named-1.37.jsonl");
    read(&path).map(|recording| recording.expect("a readable recording")).collect()
}

fn read(path: &Path) -> impl Iterator<Item = Result<Recording, Failed>> + use<> {
    let file = File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let reader = RecordingReader::new(file).expect("the first bytes");
    reader.map(|recording| recording.map_err(Failed::from))
}

fn trial(recording: Recording) -> Trial {
    Trial::test(recording.metadata.name.clone(), move || replay(&recording).map(|_| ()))
}

/// Decides a recording anew; the number of decisions if all agree.
fn replay(recording: &Recording) -> Result<usize, Failed> {
    let mut replayer = Replayer::new(recording);
    for (place, step) in recording.steps.iter().enumerate() {
        let outcome = replayer.step(step, |replayed| replayed.outcome);
        let expected = step.expected().ok_or("a step without a decision")?;
        let differences = differences(expected, &outcome);
        if !differences.is_empty() {
            let name = &recording.metadata.name;
            return Err(format!("{name} step {place}: {differences:#?}").into());
        }
    }
    Ok(recording.steps.len())
}

fn replay_large_file() -> Result<(), Failed> {
    with_large_file(replay)
}

fn translated_large_file() -> Result<(), Failed> {
    with_large_file(replay_translated)
}

/// A PodAutoscaler whose spec is that of the HPA as it stands: it counts the pods that its target owns,
/// which are all in a recording, and is decided by the rules that go beyond the HPA's.
fn as_pod_autoscaler(hpa: &HorizontalPodAutoscaler) -> Autoscaler {
    let spec = serde_json::to_value(&hpa.spec).expect("JSON");
    let spec: PodAutoscalerSpec =
        serde_json::from_value(spec).expect("the spec is valid as it stands");
    let pa = PodAutoscaler { metadata: hpa.metadata.clone(), spec, ..PodAutoscaler::default() };
    let model = translate::pod_autoscaler::autoscaler(&pa, &[]);
    assert!(model.extensions.is_some(), "it would be decided as the HPA");
    model
}

/// Decides a recording as if its autoscaler were a PodAutoscaler; replica counts must be the same.
fn replay_translated(recording: &Recording) -> Result<usize, Failed> {
    let mut replayer = Replayer::translated(recording, as_pod_autoscaler);
    for (place, step) in recording.steps.iter().enumerate() {
        let outcome = replayer.step(step, |replayed| replayed.outcome);
        let expected = step.expected().ok_or("a step without a decision")?;
        let (wanted, found) =
            ((expected.replicas, expected.rescaled), (outcome.replicas, outcome.rescaled));
        if wanted != found {
            let name = &recording.metadata.name;
            return Err(format!("{name} step {place}: {found:?} instead of {wanted:?}").into());
        }
    }
    Ok(recording.steps.len())
}

fn with_large_file(replay: fn(&Recording) -> Result<usize, Failed>) -> Result<(), Failed> {
    let path = large_file();
    if !path.exists() {
        return Err(format!("{} must be there in CI", path.display()).into());
    }
    let mut decisions = 0;
    for recording in read(&path) {
        decisions += replay(&recording?)?;
    }
    if decisions == 24_929 { Ok(()) } else { Err(format!("{decisions} decisions").into()) }
}
