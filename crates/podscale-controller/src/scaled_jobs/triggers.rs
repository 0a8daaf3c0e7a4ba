//! The triggers of one ScaledJob: what they refer to, looked up again when that may have changed, and what they say.

use super::known::name_of;
use crate::triggers::{Polled, Reads, Resolution, Triggered, Triggers};
use futures::future::join_all;
use podscale_api::keda::ScaledJob;
use podscale_api::translate::scaled_object::TriggerMetric;
use podscale_core::jobs::{JobTrigger, Load};
use podscale_core::model::{EventSource, Targets};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long looking up may take.
const DEADLINE: Duration = Duration::from_secs(20);
/// How long what was looked up is used.
const MAX_AGE: Duration = Duration::from_secs(300);
/// How long it is used at least, however often polls fail.
const MIN_AGE: Duration = Duration::from_secs(10);

/// What is known of an object's triggers.
#[derive(Default)]
pub(super) struct OfObject {
    resolved: Option<Resolved>,
    /// Where its sources say by themselves that there is something to do, if that is others than before.
    pub(super) pushes: Option<Vec<watch::Receiver<u64>>>,
}

/// What was looked up.
struct Resolved {
    generation: i64,
    metrics: Result<Vec<TriggerMetric>, String>,
    /// Whether it depends on authentications, and how often these had changed.
    authentications: Option<u64>,
    /// Whether anything outside of the object has a part in it.
    refers: bool,
    at: Instant,
}

impl Resolved {
    /// Whether it can still be used.
    fn holds(&self, object: &ScaledJob, changes: u64) -> bool {
        let max_age = if self.metrics.is_ok() { MAX_AGE } else { MIN_AGE };
        let is_old = self.refers && self.at.elapsed() >= max_age;
        let has_changed = self.authentications.is_some_and(|known| known != changes);
        self.generation == object.metadata.generation && !has_changed && !is_old
    }
}

impl OfObject {
    /// Forgets what was looked up.
    pub(super) fn forget(&mut self) {
        *self = OfObject { resolved: None, pushes: Some(Vec::new()) };
    }

    /// Asks all triggers. If one fails, perhaps what it proves itself with has changed: then that is looked up, and
    /// all are asked once more.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(super) async fn ask(
        &mut self,
        triggers: &Triggers,
        object: &ScaledJob,
    ) -> Result<Vec<JobTrigger>, String> {
        self.resolve(triggers, object, false).await;
        let answers = self.answers(triggers).await?;
        let may_be_outdated =
            self.resolved.as_ref().is_some_and(|it| it.refers && it.at.elapsed() >= MIN_AGE);
        if answers.iter().all(|trigger| trigger.answer.is_ok()) || !may_be_outdated {
            return Ok(answers);
        }
        self.resolve(triggers, object, true).await;
        self.answers(triggers).await
    }

    async fn answers(&self, triggers: &Triggers) -> Result<Vec<JobTrigger>, String> {
        let Some(resolved) = &self.resolved else { return Ok(Vec::new()) };
        let metrics = resolved.metrics.as_ref().map_err(String::clone)?;
        let asked = metrics.iter().filter_map(|metric| match metric {
            TriggerMetric::External { name, source, targets } => {
                Some(ask_one(triggers, name, source, targets))
            }
            // What pods use says nothing of how many Jobs there should be.
            TriggerMetric::Resource { .. } => None,
        });
        Ok(join_all(asked).await)
    }

    async fn resolve(&mut self, triggers: &Triggers, object: &ScaledJob, again: bool) {
        let changes = triggers.authentication_changes();
        if !again && self.resolved.as_ref().is_some_and(|known| known.holds(object, changes)) {
            return;
        }
        let (triggered, reads) = (Triggered::from(object), Reads::default());
        let resolving = tokio::time::timeout(DEADLINE, triggers.resolve(&triggered, &reads)).await;
        let mut resolution = resolving.unwrap_or_else(|_| {
            let seconds = DEADLINE.as_secs();
            let late = format!("what triggers refer to cannot be read within {seconds} s");
            Resolution::failed(late)
        });
        let generation = object.metadata.generation;
        let worked = self
            .resolved
            .as_mut()
            .filter(|known| known.metrics.is_ok() && known.generation == generation);
        if let Some(known) = worked.filter(|_| resolution.is_unsure) {
            // What worked goes on while the API server cannot be asked.
            known.at = Instant::now();
            return;
        }
        let metrics = std::mem::replace(&mut resolution.metrics, Ok(Vec::new()));
        let has_authentications = !resolution.authentications.is_empty();
        self.pushes = Some(std::mem::take(&mut resolution.pushes));
        self.resolved = Some(Resolved {
            generation,
            metrics,
            authentications: has_authentications.then_some(changes),
            refers: resolution.refers,
            at: Instant::now(),
        });
        triggers.connect(&name_of(object), resolution);
    }
}

async fn ask_one(
    triggers: &Triggers,
    name: &Arc<str>,
    source: &EventSource,
    targets: &Targets,
) -> JobTrigger {
    let polled = triggers.poll(&source.key).await;
    let answer = polled.map(|Polled { value, active, .. }| Load {
        amount: value,
        per_job: targets.average_value.unwrap_or_default(),
        active,
    });
    JobTrigger { metric: Arc::clone(name), answer }
}
