//! The events of triggers that begin to be polled, or are polled no more, in KEDA's words.

use crate::keda::trigger::Trigger;
use podscale_core::Event;
use std::collections::BTreeSet;

/// They are polled from now on; those of the same type are one event.
#[must_use]
pub fn started(triggers: &[Trigger]) -> Vec<Event> {
    let types: BTreeSet<&str> = triggers.iter().map(|trigger| &*trigger.r#type).collect();
    let built = types.into_iter().map(|kind| format!("Scaler {kind} is built"));
    let messages = built.chain(["Started scalers watch".to_owned()]);
    messages.map(|message| Event::normal("KEDAScalersStarted", message)).collect()
}

/// They are polled no more.
#[must_use]
pub fn stopped() -> Event {
    Event::normal("KEDAScalersStopped", "Stopped scalers watch")
}
