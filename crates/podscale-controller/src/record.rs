//! Records what was decided, and on what, as Recordings that `podscale replay` decides again.
//!
//! Deciding never waits for the disk: whatever is to be recorded goes through a bounded queue to one
//! thread, and what finds no place is dropped and counted. Each line of a file is complete in
//! itself; a gap only begins another line.

mod files;
mod jobs;
mod segment;
mod step;

pub use files::Limits;

use crate::controller::observer::{Decided, Inputs, JobsDecided, Observer};
use crate::dialect::Key;
use crate::metrics::Metrics;
use files::Files;
use jobs::JobsEntry;
use podscale_api::hpa::v2::HorizontalPodAutoscaler;
use podscale_api::recording::{AnyRecording, RecordedDecision};
use podscale_api::translate;
use podscale_core::pass::{ScaleWrite, StatusWrite, WriteOutcome};
use podscale_core::{History, Settings, Time};
use segment::Segments;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How many decisions may wait to be written.
const QUEUED_DECISIONS: usize = 4_096;
/// How often it is checked whether something must be written although nothing new comes.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Recordings cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write recordings into {}: {source}", folder.display())]
pub struct RecordError {
    /// Where to.
    pub folder: PathBuf,
    /// Why not.
    pub source: std::io::Error,
}

/// Takes decisions to be recorded. Clones share one queue.
#[derive(Clone)]
pub struct Recorder(Arc<Shared>);

struct Shared {
    queue: SyncSender<Taken>,
    /// Goes up whenever something was dropped, so that what follows is not taken for what came next.
    gaps: AtomicU64,
    closing: Arc<AtomicBool>,
    metrics: Metrics,
}

/// What is to be recorded.
enum Taken {
    /// A decision about the size of a target.
    Size(Box<Entry>),
    /// A decision about Jobs.
    Jobs(Box<JobsEntry>),
}

/// One decision with what it was made on.
struct Entry {
    key: Key,
    gap: u64,
    hpa: HorizontalPodAutoscaler,
    settings: Settings,
    /// What earlier decisions left behind, and what this one leaves.
    history: History,
    left: History,
    now: Time,
    inputs: Inputs,
    decision: RecordedDecision,
    /// Whether the target's size is known, so that the decision's count is one.
    found: bool,
    writes: Writes,
}

/// What became of the writes of a pass.
struct Writes {
    scale: WriteOutcome<ScaleWrite>,
    scale_ended_at: Option<Time>,
    status: WriteOutcome<StatusWrite>,
}

/// The thread that writes.
pub struct Writing {
    closing: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Recorder {
    /// Begins to record into a folder, which is made if need be.
    ///
    /// # Errors
    /// The folder cannot be made or written into.
    pub fn start(
        folder: &Path,
        limits: Limits,
        metrics: Metrics,
    ) -> Result<(Recorder, Writing), RecordError> {
        let fail = |source| RecordError { folder: folder.to_owned(), source };
        let files = Files::open(folder, limits).map_err(fail)?;
        let (queue, entries) = sync_channel(QUEUED_DECISIONS);
        let closing = Arc::new(AtomicBool::new(false));
        let (ending, counting) = (Arc::clone(&closing), metrics.clone());
        let thread = std::thread::Builder::new().name("record".to_owned());
        let thread = thread.spawn(move || write(&entries, files, &counting, &ending));
        let thread = thread.map_err(fail)?;
        let shared =
            Shared { queue, gaps: AtomicU64::new(0), closing: Arc::clone(&closing), metrics };
        Ok((Recorder(Arc::new(shared)), Writing { closing, thread }))
    }
}

impl Recorder {
    fn take(&self, taken: Taken) {
        let shared = &self.0;
        match shared.queue.try_send(taken) {
            Ok(()) => {}
            Err(TrySendError::Disconnected(_)) if shared.closing.load(Ordering::Relaxed) => {}
            Err(_) => {
                shared.gaps.fetch_add(1, Ordering::Relaxed);
                shared.metrics.record_dropped();
            }
        }
    }
}

impl Observer for Recorder {
    fn wants_inputs(&self) -> bool {
        true
    }

    fn decided(&self, decided: &Decided<'_>) {
        let Decided { object, snapshot, outcome, inputs: Some(inputs), .. } = decided else {
            return;
        };
        let (hpa, decision) = (object.wire.recorded(), &outcome.decision);
        let written = outcome.is_status_written();
        let stored = if written {
            translate::status::to_wire(decision, snapshot, &hpa)
        } else {
            hpa.status.clone().unwrap_or_default()
        };
        let replicas = decision.replicas();
        let mut left = snapshot.history.clone();
        left.commit(&decision.learned);
        let shared = &self.0;
        let entry = Entry {
            key: object.key.clone(),
            gap: shared.gaps.load(Ordering::Relaxed),
            hpa,
            settings: *snapshot.settings,
            history: snapshot.history.clone(),
            left,
            now: snapshot.now,
            inputs: (*inputs).clone(),
            decision: RecordedDecision::of(decision, replicas.unwrap_or(0), written, stored),
            found: replicas.is_some(),
            writes: Writes {
                scale: outcome.scale.clone(),
                scale_ended_at: outcome.scale_ended_at,
                status: outcome.status.clone(),
            },
        };
        self.take(Taken::Size(Box::new(entry)));
    }

    fn jobs_decided(&self, decided: &JobsDecided<'_>) {
        let gap = self.0.gaps.load(Ordering::Relaxed);
        self.take(Taken::Jobs(Box::new(JobsEntry::of(decided, gap))));
    }
}

impl Writing {
    /// Writes what has been taken so far, and ends.
    pub fn finish(self) {
        self.closing.store(true, Ordering::Relaxed);
        if self.thread.join().is_err() {
            tracing::error!("recording ended in a crash");
        }
    }
}

fn write(entries: &Receiver<Taken>, mut files: Files, metrics: &Metrics, closing: &AtomicBool) {
    let mut segments = Segments::default();
    let mut failing = false;
    loop {
        let ended = match entries.recv_timeout(CHECK_INTERVAL) {
            Ok(Taken::Size(entry)) => {
                segments.take(*entry, Instant::now());
                false
            }
            Ok(Taken::Jobs(entry)) => {
                segments.take_jobs(*entry, Instant::now());
                false
            }
            Err(RecvTimeoutError::Timeout) => closing.load(Ordering::Relaxed),
            Err(RecvTimeoutError::Disconnected) => true,
        };
        let ready = if ended { segments.all() } else { segments.ready(Instant::now()) };
        if !ready.is_empty() {
            let steps: usize = ready.iter().map(AnyRecording::step_count).sum();
            match files.write(&ready) {
                Ok(()) => {
                    metrics.recorded(steps as u64);
                    failing = false;
                }
                Err(error) => {
                    metrics.record_failed();
                    // Once is enough until it works again.
                    if !failing {
                        let folder = files.folder().display();
                        tracing::warn!(%error, "cannot write recordings into {folder}");
                    }
                    failing = true;
                }
            }
        }
        if ended {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
