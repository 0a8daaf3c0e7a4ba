//! An autoscaler object and what its controller remembers of it: drives the pass of `podscale-core` that
//! production drives. There is no second implementation of any rule.

use podscale_core::snapshot::{Reading, Scale, ScaleError, Selection};
use podscale_core::{
    Autoscaler, History, Outcome, Pass, ScaleWrite, Settings, Snapshot, Status, StatusChange,
    StatusWrite, Time, Withheld, Write,
};

/// An object between two passes.
#[derive(Clone, Debug)]
pub struct Controlled {
    autoscaler: Autoscaler,
    settings: Settings,
    status: Status,
    history: History,
}

/// What one pass is made on.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The moment.
    pub now: Time,
    /// When a size that is written now takes effect.
    pub written_at: Time,
    /// The target's size, or why it is not known.
    pub scale: &'a Result<Scale, ScaleError>,
    /// The target's pods, or why they are not known.
    pub pods: &'a Selection,
    /// What the metrics say, in the order of the autoscaler's metrics.
    pub readings: &'a [Reading],
}

impl Controlled {
    /// A new object, with the settings of its controller.
    #[must_use]
    pub fn new(autoscaler: Autoscaler, settings: Settings) -> Controlled {
        let (status, history) = (Status::default(), History::default());
        Controlled { autoscaler, settings, status, history }
    }

    /// The same with what earlier passes left.
    #[must_use]
    pub fn after(self, status: Status, history: History) -> Controlled {
        Controlled { status, history, ..self }
    }

    /// The object.
    #[must_use]
    pub fn autoscaler(&self) -> &Autoscaler {
        &self.autoscaler
    }

    /// Its status as it is stored.
    #[must_use]
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// Another spec of the same object, from now on.
    pub fn edit(&mut self, autoscaler: Autoscaler) {
        self.autoscaler = autoscaler;
    }

    /// Makes one pass whose writes succeed, and remembers what it left. What only refreshes measured
    /// values of the status is left for later, as a controller with many objects does: no rule reads
    /// them. `observe` is given the pass before anything is remembered, and says what is wanted of it: an
    /// outcome is large, and is not moved.
    pub fn pass<T>(
        &mut self,
        seen: &Seen<'_>,
        observe: impl FnOnce(&Snapshot<'_>, &Outcome) -> T,
    ) -> T {
        let snapshot = Snapshot {
            now: seen.now,
            settings: &self.settings,
            autoscaler: &self.autoscaler,
            status: &self.status,
            history: &self.history,
            scale: seen.scale,
            pods: seen.pods,
            readings: seen.readings,
        };
        let mut pass = Pass::begin(&snapshot);
        let mut stored = None;
        loop {
            match pass.next_write() {
                Write::Scale(_) => pass.scale_ended(ScaleWrite::Written, seen.written_at),
                Write::Status(StatusChange::Values) => {
                    pass.status_ended(StatusWrite::Withheld(Withheld::Deferred));
                }
                Write::Status(_) => {
                    stored = Some(pass.status());
                    pass.status_ended(StatusWrite::Written);
                }
                Write::Nothing => break,
            }
        }
        let wanted = observe(&snapshot, pass.outcome());
        let learned = pass.take_learned();
        if let Some(status) = stored {
            self.status = status;
        }
        self.history.commit(&learned);
        wanted
    }
}
