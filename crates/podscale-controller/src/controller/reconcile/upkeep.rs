//! What is done for an object besides deciding: its metadata before it is decided for the first time, and what it leaves
//! when it is deleted.

use super::super::target::Freshness;
use super::Reconciler;
use crate::dialect::{Managed, Upkeep};
use podscale_core::pass::ScaleWrite;
use podscale_core::snapshot::ScaleError;
use std::sync::Arc;

/// The reason of the event that a target did not get its size back.
const NOT_RESTORED: &str = "TargetNotRestored";

/// What became of a target that is to get its size back.
enum Restored {
    /// It has it, or is gone.
    Done,
    /// It does not, and why.
    Failed(Arc<str>),
}

impl Reconciler {
    /// Whether anything may be written for an object.
    pub(super) fn may_maintain(&self, object: &Managed) -> bool {
        !self.dry_run && self.index.is_ours(&object.key, object.uid())
    }

    /// Does what is to be done; the object as it is to be decided on, if it is.
    pub(super) async fn maintain(&self, object: Managed, upkeep: Upkeep) -> Option<Managed> {
        match upkeep {
            Upkeep::Prepare { patch, object: mut prepared } => {
                match self.actor.patch(&object, &patch).await {
                    Ok(version) => {
                        prepared.set_resource_version(version);
                        let prepared = Managed { wire: prepared.into(), ..object };
                        self.index.prepared(prepared.clone());
                        Some(prepared)
                    }
                    Err(error) if error.is_not_found() => None,
                    // The next reconcile tries again, on the version that the watch brings.
                    Err(error) => {
                        tracing::warn!(autoscaler = %object.key, %error, "cannot be prepared");
                        Some(object)
                    }
                }
            }
            Upkeep::Read(parse) => match self.actor.read(&object).await {
                Ok(found) => {
                    let found = found.and_then(|found| parse(found).ok());
                    let found = found.filter(|found| found.uid() == object.uid())?;
                    self.index.prepared(found.clone());
                    Some(found)
                }
                // It is not decided without; the next reconcile tries again.
                Err(error) => {
                    tracing::warn!(autoscaler = %object.key, %error, "cannot be read");
                    None
                }
            },
            Upkeep::Release { restore, patch, events } => {
                if let Some(replicas) = restore
                    && let Restored::Failed(why) = self.restore(&object, replicas).await
                {
                    let message = format!("cannot give the target {replicas} replicas back: {why}");
                    tracing::warn!(autoscaler = %object.key, "{message}");
                    self.actor.warn(&object, NOT_RESTORED, message);
                    return None;
                }
                let patch = patch?;
                match self.actor.patch(&object, &patch).await {
                    Ok(_) => self.actor.record_own(&object, &events),
                    Err(error) if error.is_not_found() => {}
                    Err(error) => {
                        tracing::warn!(autoscaler = %object.key, %error, "cannot be let go");
                    }
                }
                None
            }
        }
    }

    /// Gives the target of an object its size back.
    async fn restore(&self, object: &Managed, replicas: i32) -> Restored {
        let (namespace, target) = (&object.key.namespace, &object.model.target);
        let read = self.observatory.targets.read(namespace, target, Freshness::Current).await;
        let target = match read {
            Ok(target) => target,
            Err(ScaleError::Unreadable(why)) if why.ends_with("not found") => {
                return Restored::Done;
            }
            // Its kind is gone, and all of its objects with it.
            Err(ScaleError::ApiVersion(_) | ScaleError::NoResource(_)) => return Restored::Done,
            Err(ScaleError::Unreadable(why)) => return Restored::Failed(why),
        };
        if target.scale.spec.replicas == replicas {
            return Restored::Done;
        }
        match self.actor.resize(&target, replicas).await {
            Some((ScaleWrite::Failed(why), _)) => Restored::Failed(why),
            _ => Restored::Done,
        }
    }
}
