//! The status of objects whose kind compares it itself.

use super::super::index::ReconcileState;
use super::Reconciler;
use crate::dialect::{Managed, OwnStatus};
use podscale_core::pass::{Pass, StatusWrite, Withheld, Write};
use podscale_core::{Event, StatusChange};

impl Reconciler {
    /// Stores the status, unless it is stored already, is to be withheld or can wait; the events of the pass.
    pub(super) async fn write_own_status(
        &self,
        object: &Managed,
        pass: &mut Pass<'_>,
        own: OwnStatus<'_>,
        state: &ReconcileState,
    ) -> Vec<Event> {
        let OwnStatus { object: new, change, mut events } = own;
        let is_due = change != StatusChange::None && self.is_status_due(object, pass, change);
        let write = match self.withheld(state) {
            Some(why) => StatusWrite::Withheld(why),
            None if !is_due => StatusWrite::Withheld(Withheld::Deferred),
            None => self.store(object, new(), pass.snapshot().now).await,
        };
        if let StatusWrite::Failed(error) = &write {
            events.push(Event::warning("FailedUpdateStatus", error.to_string()));
        }
        if let Write::Status(_) = pass.next_write() {
            pass.status_ended(write);
        }
        events
    }
}
