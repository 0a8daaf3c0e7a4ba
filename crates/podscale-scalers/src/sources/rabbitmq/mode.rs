//! What a trigger makes of the state of a queue.

/// What counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// How many messages there are.
    QueueLength,
    /// How many are published each second.
    MessageRate,
    /// How many are delivered each second.
    DeliverGetRate,
    /// How many are published for each that is delivered.
    PublishedToDeliveredRatio,
    /// In how many seconds all will have been delivered.
    ExpectedQueueConsumptionTime,
}

/// The modes by name.
pub(super) const MODES: [(&str, Mode); 5] = [
    ("QueueLength", Mode::QueueLength),
    ("MessageRate", Mode::MessageRate),
    ("DeliverGetRate", Mode::DeliverGetRate),
    ("PublishedToDeliveredRatio", Mode::PublishedToDeliveredRatio),
    ("ExpectedQueueConsumptionTime", Mode::ExpectedQueueConsumptionTime),
];

/// The state of a queue, or of several in one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct State {
    pub(super) messages: f64,
    pub(super) publish_rate: f64,
    pub(super) deliver_rate: f64,
}

impl Mode {
    /// The value of a state, and whether there is something to do.
    pub(super) fn value(self, state: State, activation: f64) -> (f64, bool) {
        let State { messages, publish_rate: published, deliver_rate: delivered } = state;
        match self {
            Mode::QueueLength => (messages, messages > activation),
            Mode::MessageRate => (published, published > activation || messages > activation),
            Mode::DeliverGetRate => (delivered, delivered > activation),
            Mode::PublishedToDeliveredRatio => {
                // Nobody takes what comes.
                let stuck = published > 0.0 && delivered == 0.0;
                let ratio = match published > 0.0 && delivered > 0.0 {
                    true => published / delivered,
                    false if stuck => activation,
                    false => 0.0,
                };
                (ratio, ratio > activation || stuck)
            }
            Mode::ExpectedQueueConsumptionTime => {
                let stuck = messages > 0.0 && delivered == 0.0;
                let seconds = match delivered == 0.0 {
                    _ if messages == 0.0 => 0.0,
                    true => activation,
                    false => (published - delivered) / delivered + messages / delivered,
                };
                (seconds, seconds > activation || stuck)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_make_values_of_states() {
        use Mode::{
            DeliverGetRate, ExpectedQueueConsumptionTime, MessageRate, PublishedToDeliveredRatio,
            QueueLength,
        };
        for (mode, state, activation, expected) in [
            (QueueLength, (5.0, 9.0, 9.0), 4.0, (5.0, true)),
            (QueueLength, (5.0, 9.0, 9.0), 5.0, (5.0, false)),
            (MessageRate, (5.0, 1.5, 0.0), 2.0, (1.5, true)),
            (MessageRate, (1.0, 1.5, 0.0), 2.0, (1.5, false)),
            (DeliverGetRate, (5.0, 0.0, 3.0), 2.0, (3.0, true)),
            (PublishedToDeliveredRatio, (5.0, 3.0, 2.0), 1.0, (1.5, true)),
            (PublishedToDeliveredRatio, (5.0, 3.0, 0.0), 2.0, (2.0, true)),
            (PublishedToDeliveredRatio, (5.0, 0.0, 2.0), 0.0, (0.0, false)),
            (ExpectedQueueConsumptionTime, (0.0, 3.0, 0.0), 2.0, (0.0, false)),
            (ExpectedQueueConsumptionTime, (9.0, 3.0, 0.0), 2.0, (2.0, true)),
            (ExpectedQueueConsumptionTime, (8.0, 4.0, 2.0), 4.0, (5.0, true)),
        ] {
            let (messages, publish_rate, deliver_rate) = state;
            let state = State { messages, publish_rate, deliver_rate };
            assert_eq!(mode.value(state, activation), expected, "{mode:?} {state:?}");
        }
    }
}
