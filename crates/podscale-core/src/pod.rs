//! The little that a decision needs to know of a pod, and how pods are sorted into groups.

use crate::model::{Milli, Settings};
use crate::time::{Span, Time};

/// One measurement of one pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// How much.
    pub value: Milli,
    /// When the measurement ended.
    pub taken: Time,
    /// How long it lasted.
    pub window: Span,
}

/// A pod as the rules see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pod {
    /// When its node began to run it.
    pub started: Option<Time>,
    /// What its Ready condition says, if it has one.
    pub ready: Option<Ready>,
    /// Where it is in its life.
    pub phase: Phase,
    /// Whether it is being deleted.
    pub deleting: bool,
}

/// What a pod's Ready condition says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The condition's status.
    pub status: ReadyStatus,
    /// Since when.
    pub since: Time,
}

/// The status of a Ready condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadyStatus {
    /// Takes traffic.
    True,
    /// Does not take traffic.
    False,
    /// Its node does not answer, or something else is written there.
    Unknown,
}

/// Where a pod is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Not started yet.
    Pending,
    /// At least one container runs.
    Running,
    /// All containers ended well.
    Succeeded,
    /// All containers ended, at least one badly.
    Failed,
    /// Not known.
    Unknown,
}

/// What a pod counts as for one metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// It counts, with its sample.
    Ready,
    /// Not ready to be judged: its sample is dropped, and it counts as idle on the way up.
    Unready,
    /// It has no sample.
    Missing,
    /// Failed or being deleted: as if it did not exist.
    Ignored,
}

impl Pod {
    /// Whether it runs and takes traffic.
    #[must_use]
    #[inline]
    pub fn is_serving(&self) -> bool {
        self.phase == Phase::Running
            && matches!(self.ready, Some(Ready { status: ReadyStatus::True, .. }))
    }

    /// Whether it runs, takes traffic and had started before this time. If that is as long ago as a cpu sample may be
    /// distrusted after a start, its sample counts for every metric.
    #[inline]
    pub(crate) fn is_settled(&self, started_before: Time) -> bool {
        !self.deleting
            && self.is_serving()
            && self.started.is_some_and(|started| started < started_before)
    }

    /// The group of this pod for a metric. `ignores_startup` is true for cpu only: what a pod burns
    /// while starting says nothing of its load, but its memory or a custom value does.
    #[must_use]
    pub fn group(
        &self,
        sample: Option<&Sample>,
        ignores_startup: bool,
        settings: &Settings,
        now: Time,
    ) -> Group {
        if self.deleting || self.phase == Phase::Failed {
            return Group::Ignored;
        }
        if self.phase == Phase::Pending {
            return Group::Unready;
        }
        match sample {
            None => Group::Missing,
            Some(sample) if ignores_startup && self.is_starting(sample, settings, now) => {
                Group::Unready
            }
            Some(_) => Group::Ready,
        }
    }

    /// Whether a cpu sample must be distrusted because the pod has not come up yet.
    fn is_starting(&self, sample: &Sample, settings: &Settings, now: Time) -> bool {
        let (Some(ready), Some(started)) = (self.ready, self.started) else {
            return true;
        };
        let unready = ready.status == ReadyStatus::False;
        if started.after(settings.cpu_initialization_period) > now {
            // A whole window must have been measured since the pod last changed.
            unready || sample.taken < ready.since.after(sample.window)
        } else {
            // Unready since its first moments: it never was ready at all.
            unready && started.after(settings.initial_readiness_delay) > ready.since
        }
    }
}

/// The places of the pods that a rollout has on top of those that its target is to have, in order: of more
/// pods than wanted those that are not ready, the youngest first. Ready ones stay: they carry a part of
/// the load.
#[must_use]
pub fn surge(pods: &[Pod], wanted: i32) -> Vec<usize> {
    let count = pods.iter().filter(|pod| !pod.deleting).count();
    let surplus = count.saturating_sub(usize::try_from(wanted).unwrap_or(0));
    if surplus == 0 {
        return Vec::new();
    }
    let is_ready = |pod: &Pod| pod.ready.is_some_and(|ready| ready.status == ReadyStatus::True);
    let mut unready: Vec<(usize, &Pod)> =
        pods.iter().enumerate().filter(|(_, pod)| !pod.deleting && !is_ready(pod)).collect();
    // One that has not started at all is the youngest.
    unready.sort_by_key(|(_, pod)| std::cmp::Reverse((pod.started.is_none(), pod.started)));
    let mut places: Vec<usize> =
        unready.into_iter().take(surplus).map(|(place, _)| place).collect();
    places.sort_unstable();
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What settled pods are spared must lead to the same: with a sample they count for every metric.
    #[test]
    fn the_sample_of_a_settled_pod_counts() {
        let (settings, now) = (Settings::default(), Time(0).after(Span::seconds(10_000)));
        let settled_by = now.before(settings.cpu_initialization_period);
        let sample = Sample { value: Milli(1), taken: now, window: Span::seconds(15) };
        let mut settled = 0;
        for started in [None, Some(Time(0)), Some(settled_by), Some(now)] {
            for status in [ReadyStatus::True, ReadyStatus::False, ReadyStatus::Unknown] {
                for phase in [Phase::Pending, Phase::Running, Phase::Failed, Phase::Unknown] {
                    for deleting in [false, true] {
                        let ready = Some(Ready { status, since: now });
                        let pod = Pod { started, ready, phase, deleting };
                        if pod.is_settled(settled_by) {
                            settled += 1;
                            for ignores_startup in [false, true] {
                                let group =
                                    pod.group(Some(&sample), ignores_startup, &settings, now);
                                assert_eq!(group, Group::Ready, "{pod:?}");
                            }
                        }
                        assert!(!pod.is_settled(Time(i64::MIN)), "{pod:?}");
                    }
                }
            }
        }
        assert_eq!(settled, 1, "one that serves and started long ago");
    }
}
