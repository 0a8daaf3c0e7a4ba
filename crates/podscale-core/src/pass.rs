//! One pass over one autoscaler, from a snapshot to what is left behind: decide, write the scale,
//! write the status, learn.
//!
//! A [`Pass`] performs nothing itself. It says what is to be written next, and is given the result:
//!
//! ```text
//! begin(snapshot) ─> next_write() ─> Scale ──> scale_ended(written | failed | withheld)
//!                                ─> Status ─> status_ended(written | failed | withheld)
//!                                ─> Nothing ─> finish() ─> Outcome
//! ```
//!
//! ```
//! # use podscale_core::pass::{Outcome, Pass, ScaleWrite, StatusWrite, Write};
//! # use podscale_core::{Snapshot, Time};
//! # fn resize(_: i32) -> (ScaleWrite, Time) { (ScaleWrite::Written, Time(0)) }
//! # fn store(_: podscale_core::Status) -> StatusWrite { StatusWrite::Written }
//! fn run(snapshot: &Snapshot<'_>) -> Outcome {
//!     let mut pass = Pass::begin(snapshot);
//!     loop {
//!         match pass.next_write() {
//!             Write::Scale(rescale) => {
//!                 let (write, at) = resize(rescale.to);
//!                 pass.scale_ended(write, at);
//!             }
//!             Write::Status(_) => {
//!                 let write = store(pass.status());
//!                 pass.status_ended(write);
//!             }
//!             Write::Nothing => return pass.finish(),
//!         }
//!     }
//! }
//! ```
//!
//! What the history learns ([`Pass::learned`]) is settled once the scale is: it stands whatever
//! becomes of the status, so a driver may commit it before it writes the status. A driver that only
//! observes discards it by not committing it.

use crate::decide::decide_into;
use crate::decision::{Decision, Rescale, StatusChange};
use crate::history::Learned;
use crate::snapshot::Snapshot;
use crate::status::Status;
use crate::steps::Costs;
pub use crate::steps::Withheld;
use crate::time::Time;
use std::sync::Arc;

/// What a pass wants written next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// The target's new size; [`Pass::scale_ended`] takes the result.
    Scale(Rescale),
    /// The status, as [`Pass::status`] gives it; [`Pass::status_ended`] takes the result.
    Status(StatusChange),
    /// Nothing; the pass is complete.
    Nothing,
}

/// How the write of the target's new size ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScaleWrite {
    /// Done.
    Written,
    /// Refused or lost, and why.
    Failed(Arc<str>),
    /// Not attempted, on purpose.
    Withheld(Withheld),
}

/// How the write of the status ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusWrite {
    /// Done.
    Written,
    /// Refused or lost, and why.
    Failed(Arc<str>),
    /// Not attempted, or given up, on purpose.
    Withheld(Withheld),
}

/// How it ended to give pods deletion costs before the size goes down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CostsWrite {
    /// How many pods got another cost.
    pub pods: u32,
    /// What went wrong with some of them, or with all.
    pub error: Option<Arc<str>>,
}

/// What became of something that a pass may write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WriteOutcome<W> {
    /// It stays as it was, so there was nothing to write.
    #[default]
    Unchanged,
    /// It differs, and the result of the write was not reported.
    Pending,
    /// It was to be written, with this result.
    Ended(W),
}

/// What a pass led to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was decided, with what became of it.
    pub decision: Decision,
    /// What became of the target's size.
    pub scale: WriteOutcome<ScaleWrite>,
    /// What became of the status.
    pub status: WriteOutcome<StatusWrite>,
    /// When the write of the scale ended, if it was attempted.
    pub scale_ended_at: Option<Time>,
}

impl Outcome {
    /// Whether the new status is stored now.
    #[must_use]
    pub fn is_status_written(&self) -> bool {
        self.status == WriteOutcome::Ended(StatusWrite::Written)
    }

    /// Why the target was not given the size that was decided, if that was on purpose.
    #[must_use]
    pub fn scale_withheld(&self) -> Option<Withheld> {
        match self.scale {
            WriteOutcome::Ended(ScaleWrite::Withheld(why)) => Some(why),
            _ => None,
        }
    }

    /// Why the status was not written, if that was on purpose.
    #[must_use]
    pub fn status_withheld(&self) -> Option<Withheld> {
        match self.status {
            WriteOutcome::Ended(StatusWrite::Withheld(why)) => Some(why),
            _ => None,
        }
    }
}

/// One pass over one autoscaler. A result that was not asked for is ignored, so that no driver can
/// lead it astray.
#[derive(Clone, Debug)]
pub struct Pass<'a> {
    snapshot: &'a Snapshot<'a>,
    outcome: Outcome,
}

impl<'a> Pass<'a> {
    /// Decides on a snapshot.
    #[must_use]
    #[inline]
    pub fn begin(snapshot: &'a Snapshot<'a>) -> Pass<'a> {
        // Decided in its place: a decision is large to move.
        let mut pass = Pass {
            snapshot,
            outcome: Outcome {
                decision: Decision::undecided(),
                scale: WriteOutcome::Unchanged,
                status: WriteOutcome::Unchanged,
                scale_ended_at: None,
            },
        };
        let Outcome { decision, scale, .. } = &mut pass.outcome;
        decide_into(snapshot, decision);
        if decision.rescale.is_some() {
            *scale = WriteOutcome::Pending;
            if decision.steps.is_dry_run() {
                decision.steps.withheld = Some(Withheld::DryRun);
                *scale = WriteOutcome::Ended(ScaleWrite::Withheld(Withheld::DryRun));
            }
        }
        pass
    }

    /// What is to be written now.
    #[must_use]
    pub fn next_write(&mut self) -> Write {
        if let (Some(rescale), WriteOutcome::Pending) =
            (self.outcome.decision.rescale, &self.outcome.scale)
        {
            return Write::Scale(rescale);
        }
        if let WriteOutcome::Ended(_) = self.outcome.status {
            return Write::Nothing;
        }
        match self.outcome.decision.status_change(self.snapshot) {
            StatusChange::None => Write::Nothing,
            change => {
                self.outcome.status = WriteOutcome::Pending;
                Write::Status(change)
            }
        }
    }

    /// Takes in how the write of the target's new size ended, and when.
    pub fn scale_ended(&mut self, write: ScaleWrite, at: Time) {
        let Outcome { decision, scale, scale_ended_at, .. } = &mut self.outcome;
        if *scale != WriteOutcome::Pending {
            return;
        }
        match &write {
            ScaleWrite::Written => decision.scale_written(self.snapshot, at),
            ScaleWrite::Failed(error) => decision.scale_write_failed(self.snapshot, error, at),
            ScaleWrite::Withheld(why) => decision.steps.withheld = Some(*why),
        }
        *scale_ended_at = (!matches!(write, ScaleWrite::Withheld(_))).then_some(at);
        *scale = WriteOutcome::Ended(write);
    }

    /// Takes in what became of the deletion costs that a driver gave the pods before it wrote the size.
    /// Nothing follows from it: a size is set whether pods have costs or not.
    pub fn costs_ended(&mut self, metric: u32, write: CostsWrite) {
        let CostsWrite { pods, error } = write;
        self.outcome.decision.steps.extend().costs = Some(Costs { metric, pods, error });
    }

    /// Takes in how the write of the status ended.
    pub fn status_ended(&mut self, write: StatusWrite) {
        if self.outcome.status != WriteOutcome::Pending {
            return;
        }
        if let StatusWrite::Failed(error) = &write {
            self.outcome.decision.status_write_failed(self.snapshot, error);
        }
        self.outcome.status = WriteOutcome::Ended(write);
    }

    /// What was decided so far.
    #[must_use]
    pub fn decision(&self) -> &Decision {
        &self.outcome.decision
    }

    /// What it led to so far.
    #[must_use]
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// What it was decided on.
    #[must_use]
    pub fn snapshot(&self) -> &'a Snapshot<'a> {
        self.snapshot
    }

    /// The status to be stored.
    #[must_use]
    pub fn status(&self) -> Status {
        self.outcome.decision.status(self.snapshot)
    }

    /// What the history learns; settled once the scale is.
    #[must_use]
    pub fn learned(&self) -> &Learned {
        &self.outcome.decision.learned
    }

    /// Hands out what the history learns, for whom nothing else of it is of use: an outcome is large to move.
    #[must_use]
    #[inline]
    pub fn take_learned(&mut self) -> Learned {
        std::mem::take(&mut self.outcome.decision.learned)
    }

    /// What it led to.
    #[must_use]
    pub fn finish(self) -> Outcome {
        self.outcome
    }
}
