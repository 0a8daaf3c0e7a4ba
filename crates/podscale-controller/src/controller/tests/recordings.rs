//! Recordings of a test: each decision must come out the same when it is made anew.

use podscale_api::recording::RecordingReader;
use podscale_api::replay::Replayer;
use podscale_api::replay::difference::differences;
use std::path::{Path, PathBuf};

/// An empty folder for the recordings of a test.
pub(super) fn folder(test: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("podscale-{test}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

/// Replays everything in a folder and removes it: the names of the Recordings, and the sizes of all steps.
pub(super) fn replay(folder: &Path) -> (Vec<String>, Vec<i32>) {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|file| file.expect("a file").path())
        .collect();
    files.sort();
    let (mut names, mut sizes) = (Vec::new(), Vec::new());
    for file in files {
        let file = std::fs::File::open(file).expect("a file");
        for recording in RecordingReader::new(file).expect("lines") {
            let recording = recording.expect("a recording");
            let mut replayer = Replayer::new(&recording);
            for step in &recording.steps {
                let wanted = step.expected().expect("a decision");
                let found = replayer.step(step, |replayed| differences(wanted, &replayed.outcome));
                assert!(found.is_empty(), "{}: {found:?}", recording.metadata.name);
                sizes.push(wanted.replicas);
            }
            names.push(recording.metadata.name);
        }
    }
    std::fs::remove_dir_all(folder).expect("removed");
    (names, sizes)
}
