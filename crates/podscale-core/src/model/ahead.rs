//! How sizes are raised ahead of the demand.

use crate::time::Span;

/// What is done before the demand is there. All of it may only raise the size that the metrics ask for;
/// bounds, rates and windows apply as ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// How long a pod that is added needs to become ready; `None` is measured on the pods that are there.
    pub start_up: Option<Span>,
    /// Whether forecasts are used.
    pub predict: Option<Predict>,
    /// Whether the size follows where the demand is going.
    pub lead: Option<Lead>,
    /// Whether there is room for what the demand usually gains.
    pub headroom: Option<Headroom>,
}

impl Ahead {
    /// Whether anything is done ahead, so that demands have to be remembered.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.predict.is_some() || self.lead.is_some() || self.headroom.is_some()
    }
}

/// How forecasts are used, where their backtest lets them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Predict {
    /// How many percent of the demands that came after a forecast the margin for bursts covers.
    pub confidence_percent: u8,
    /// Pods that a season says will be needed again within this time are not removed.
    pub scale_in_guard: Span,
}

/// How the size follows where the demand is going.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lead {
    /// How many percent of the demand may be added at most.
    pub most_percent: u32,
}

/// Room for what the demand has gained in the past while a pod became ready, or as much as it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headroom {
    /// How many percent of such gains it is enough for.
    pub confidence_percent: u8,
    /// How many percent of the demand it may be at most.
    pub most_percent: u32,
    /// In how many thousandths of the time the demand may be more than the ready pods are for. The room is learned
    /// so that it is, whatever was gained in the past; `None` goes by the gains.
    pub overload_permille: Option<u16>,
}
