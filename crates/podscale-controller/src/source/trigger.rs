//! Polls the event sources of triggers.

use super::MetricSource;
use super::answer::Answer;
use super::question::Question;
use super::subscriptions::Topic;
use crate::metrics::Metrics;
use crate::triggers::{Polled, Triggers, topic};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use podscale_core::model::{EventSource, Source, TriggerOf};
use std::sync::Arc;
use std::time::Instant;

/// The type of triggers whose sources say by themselves that there is something to do.
const PUSHING: &str = "external-push";

/// Answers for triggers, and for the inputs of formulas.
pub(super) struct TriggerPolls {
    triggers: Arc<Triggers>,
    metrics: Metrics,
}

impl TriggerPolls {
    /// Polls these.
    pub(super) fn new(triggers: Arc<Triggers>, metrics: Metrics) -> TriggerPolls {
        TriggerPolls { triggers, metrics }
    }

    async fn poll(&self, source: &EventSource) -> Answer {
        let began = Instant::now();
        let polled = self.triggers.poll(&source.key).await;
        self.metrics.source_answered("trigger", polled.is_ok(), began.elapsed());
        match polled {
            Ok(Polled { value, active, taken }) => Answer::Trigger { value, active, taken },
            Err(error) => Answer::Failed(error),
        }
    }
}

impl MetricSource for TriggerPolls {
    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Answer> {
        async move {
            let Source::Trigger(trigger) = question.metric else { return Answer::Nothing };
            match &trigger.of {
                TriggerOf::Source(source) => self.poll(source).await,
                TriggerOf::Formula(composite) => {
                    let polls = composite.inputs.iter().map(|(_, source)| self.poll(source));
                    Answer::Inputs(join_all(polls).await)
                }
            }
        }
        .boxed()
    }

    fn topic(&self, question: &Question<'_>) -> Option<Topic> {
        let Source::Trigger(trigger) = question.metric else { return None };
        let pushing = |source: &&EventSource| &*source.kind == PUSHING;
        let source = match &trigger.of {
            TriggerOf::Source(source) => Some(source).filter(pushing),
            TriggerOf::Formula(composite) => {
                composite.inputs.iter().map(|(_, source)| source).find(pushing)
            }
        };
        source.map(|source| Topic(topic(&source.key)))
    }
}
