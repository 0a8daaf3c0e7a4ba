//! Where a simulated workload runs: how long everything takes, how metrics reach the autoscaler, and
//! what goes wrong on the way. All of it is configured, and drawn from one seed where it varies.

use crate::random;
use podscale_core::Span;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The longest delay of any kind, in seconds (a day).
const MAX_DELAY_SECONDS: f64 = 86_400.0;
/// How many outages one pipeline may have.
const MAX_OUTAGES: usize = 1_000;
/// How many rollouts one run may have.
const MAX_ROLLOUTS: usize = 1_000;

/// Where a simulated workload runs, as written in scenario files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Environment {
    /// How often an autoscaler decides.
    pub sync_period_seconds: f64,
    /// Its own moment within the period; drawn from the seed if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_moment_seconds: Option<f64>,
    /// From a decision until the new size is written and pods are created or deleted.
    pub api_latency_seconds: f64,
    /// From a pod's creation until its containers run.
    pub start_up: Delay,
    /// From running containers until the pod is ready.
    pub readiness: Delay,
    /// How long a pod takes to end; it serves nothing meanwhile.
    pub termination: Delay,
    /// How cpu and memory reach the autoscaler.
    pub resource_metrics: Pipeline,
    /// How metrics of pods, objects and queues reach the autoscaler.
    pub custom_metrics: Pipeline,
    /// How metrics of pods, objects and queues reach PodAutoscalers, which ask their sources themselves and as often
    /// as they decide; as they reach everybody else if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direct_metrics: Option<Pipeline>,
    /// The machines, if there are not always enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<NodePool>,
    /// When all pods are replaced by those of a new version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rollouts: Vec<Rollout>,
    /// Whether requests come evenly or at random.
    pub arrivals: Arrivals,
    /// The time that is computed in one step, in seconds; shorter is finer and slower.
    pub slot_seconds: f64,
}

impl Default for Environment {
    fn default() -> Environment {
        Environment {
            sync_period_seconds: 15.0,
            sync_moment_seconds: None,
            api_latency_seconds: 0.2,
            start_up: Delay::Lognormal { median_seconds: 8.0, p95_seconds: 20.0 },
            readiness: Delay::Fixed { seconds: 5.0 },
            termination: Delay::Fixed { seconds: 10.0 },
            resource_metrics: Pipeline::default(),
            custom_metrics: Pipeline { window_seconds: 30.0, ..Pipeline::default() },
            direct_metrics: None,
            nodes: None,
            rollouts: Vec::new(),
            arrivals: Arrivals::Random,
            slot_seconds: 1.0,
        }
    }
}

/// A length of time that may vary from pod to pod.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Delay {
    /// Always the same.
    Fixed {
        /// How long.
        seconds: f64,
    },
    /// Anything between two bounds, equally likely.
    Uniform {
        /// The shortest.
        least_seconds: f64,
        /// The longest.
        most_seconds: f64,
    },
    /// Mostly near the median, sometimes much longer, as pulling images and starting programs are.
    Lognormal {
        /// Half take less.
        median_seconds: f64,
        /// One in twenty takes longer.
        p95_seconds: f64,
    },
}

/// How metrics reach the autoscaler, and what goes wrong on the way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Pipeline {
    /// How often pods are scraped.
    pub resolution_seconds: f64,
    /// Over how long rates are computed; at least from one scrape to the next.
    pub window_seconds: f64,
    /// When the first scrape is, in seconds from the start; drawn from the seed if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moment_seconds: Option<f64>,
    /// How long after a scrape its samples can be read.
    pub delay_seconds: f64,
    /// Which part of the scrapes of a pod is lost.
    pub missing: f64,
    /// Which part of the scrapes of a pod can only be read later.
    pub late: f64,
    /// By how much those are later.
    pub late_by_seconds: f64,
    /// When the source does not answer at all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
}

impl Default for Pipeline {
    fn default() -> Pipeline {
        Pipeline {
            resolution_seconds: 15.0,
            window_seconds: 15.0,
            moment_seconds: None,
            delay_seconds: 0.5,
            missing: 0.0,
            late: 0.0,
            late_by_seconds: 15.0,
            outages: Vec::new(),
        }
    }
}

/// A time in which a source does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Outage {
    /// When it begins, in seconds from the start.
    pub at_seconds: f64,
    /// How long it lasts.
    pub for_seconds: f64,
}

/// Machines of which there are not always enough.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodePool {
    /// How many pods one node takes.
    pub pods_per_node: u32,
    /// How many nodes there always are.
    pub min_nodes: u32,
    /// How many nodes there may be.
    pub max_nodes: u32,
    /// From a pod that has no place until its new node takes pods.
    pub start_up: Delay,
    /// How long a node above the minimum must be empty before it is removed.
    pub empty_seconds: f64,
}

/// A new version of the workload, to which its pods are replaced step by step, as a Deployment does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rollout {
    /// When it begins, in seconds from the start.
    pub at_seconds: f64,
    /// How many pods more than wanted there may be, as a part of those.
    #[serde(default = "quarter")]
    pub max_surge: f64,
    /// How many pods fewer than wanted may be ready, as a part of those.
    #[serde(default = "quarter")]
    pub max_unavailable: f64,
}

fn quarter() -> f64 {
    0.25
}

/// How requests come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Arrivals {
    /// Independently of each other, so that their number varies around the load (Poisson).
    #[default]
    Random,
    /// Exactly as many as the load says.
    Even,
}

/// What is wrong with an [`Environment`].
#[derive(Clone, Debug, Error, PartialEq)]
#[error("{field}: {value} is not between {least} and {most}")]
pub struct EnvironmentError {
    /// The field's path in scenario files.
    pub field: String,
    /// The number found.
    pub value: f64,
    /// The smallest allowed.
    pub least: f64,
    /// The largest allowed.
    pub most: f64,
}

impl Environment {
    /// Checks every number.
    ///
    /// # Errors
    /// Names the first field that is out of range.
    pub fn check(&self) -> Result<(), EnvironmentError> {
        range("syncPeriodSeconds", self.sync_period_seconds, 0.1, 3600.0)?;
        let moment = self.sync_moment_seconds.unwrap_or(0.0);
        range("syncMomentSeconds", moment, 0.0, self.sync_period_seconds)?;
        range("apiLatencySeconds", self.api_latency_seconds, 0.0, MAX_DELAY_SECONDS)?;
        range("slotSeconds", self.slot_seconds, 0.01, 3600.0)?;
        self.start_up.check("startUp")?;
        self.readiness.check("readiness")?;
        self.termination.check("termination")?;
        self.resource_metrics.check("resourceMetrics")?;
        self.custom_metrics.check("customMetrics")?;
        if let Some(direct) = &self.direct_metrics {
            direct.check("directMetrics")?;
        }
        if let Some(nodes) = &self.nodes {
            nodes.check()?;
        }
        range("rollouts", self.rollouts.len() as f64, 0.0, MAX_ROLLOUTS as f64)?;
        for Rollout { at_seconds, max_surge, max_unavailable } in &self.rollouts {
            range("rollouts.atSeconds", *at_seconds, 0.0, 1e9)?;
            range("rollouts.maxSurge", *max_surge, 0.0, 1.0)?;
            range("rollouts.maxUnavailable", *max_unavailable, 0.0, 1.0)?;
        }
        Ok(())
    }

    /// The same as a PodAutoscaler finds it.
    #[must_use]
    pub fn asked_directly(&self) -> Environment {
        let custom_metrics = self.direct_metrics.as_ref().unwrap_or(&self.custom_metrics).clone();
        Environment { custom_metrics, ..self.clone() }
    }

    /// How long a new pod needs to become ready: as long as most pods do.
    #[must_use]
    pub fn lead(&self) -> Span {
        let node = self.nodes.map_or(0.0, |nodes| nodes.start_up.long_seconds());
        let pod = self.start_up.long_seconds() + self.readiness.long_seconds();
        seconds(self.api_latency_seconds + node + pod)
    }
}

fn range(field: &str, value: f64, least: f64, most: f64) -> Result<(), EnvironmentError> {
    if value >= least && value <= most {
        return Ok(());
    }
    Err(EnvironmentError { field: field.to_owned(), value, least, most })
}

impl Delay {
    fn check(&self, field: &str) -> Result<(), EnvironmentError> {
        let check = |name: &str, value, least| {
            range(&format!("{field}.{name}"), value, least, MAX_DELAY_SECONDS)
        };
        match *self {
            Delay::Fixed { seconds } => check("fixed.seconds", seconds, 0.0),
            Delay::Uniform { least_seconds, most_seconds } => {
                check("uniform.leastSeconds", least_seconds, 0.0)?;
                check("uniform.mostSeconds", most_seconds, least_seconds)
            }
            Delay::Lognormal { median_seconds, p95_seconds } => {
                check("lognormal.medianSeconds", median_seconds, 0.001)?;
                check("lognormal.p95Seconds", p95_seconds, median_seconds)
            }
        }
    }

    /// One draw, which depends on nothing but the three given.
    #[must_use]
    pub fn draw(&self, seed: u64, index: u64, purpose: u64) -> Span {
        seconds(match *self {
            Delay::Fixed { seconds } => seconds,
            Delay::Uniform { least_seconds, most_seconds } => {
                let part = (random::unit(seed, index, purpose) + 1.0) / 2.0;
                least_seconds + (most_seconds - least_seconds) * part
            }
            Delay::Lognormal { median_seconds, p95_seconds } => {
                let sigma = (p95_seconds / median_seconds).ln() / P95_DEVIATIONS;
                let deviation = random::normal(seed, index, purpose);
                median_seconds * (sigma * deviation).exp()
            }
        })
    }

    /// As long as most take: the longest, or what one in twenty exceeds.
    #[must_use]
    pub fn long_seconds(&self) -> f64 {
        match *self {
            Delay::Fixed { seconds } => seconds,
            Delay::Uniform { most_seconds, .. } => most_seconds,
            Delay::Lognormal { p95_seconds, .. } => p95_seconds,
        }
    }
}

/// How many standard deviations the 95th percentile of a normal distribution is above its mean.
const P95_DEVIATIONS: f64 = 1.644_853_626_951_472_2;

impl Pipeline {
    fn check(&self, field: &str) -> Result<(), EnvironmentError> {
        let check =
            |name: &str, value, least, most| range(&format!("{field}.{name}"), value, least, most);
        check("resolutionSeconds", self.resolution_seconds, 0.1, 3600.0)?;
        check("windowSeconds", self.window_seconds, 0.1, 3600.0)?;
        check("momentSeconds", self.moment_seconds.unwrap_or(0.0), 0.0, 3600.0)?;
        check("delaySeconds", self.delay_seconds, 0.0, 3600.0)?;
        check("missing", self.missing, 0.0, 1.0)?;
        check("late", self.late, 0.0, 1.0)?;
        check("lateBySeconds", self.late_by_seconds, 0.0, 3600.0)?;
        check("outages", self.outages.len() as f64, 0.0, MAX_OUTAGES as f64)?;
        for outage in &self.outages {
            check("outages.atSeconds", outage.at_seconds, 0.0, 1e9)?;
            check("outages.forSeconds", outage.for_seconds, 0.0, 1e9)?;
        }
        Ok(())
    }

    /// Whether the source answers so long after the start.
    #[must_use]
    pub fn answers_at(&self, since_start: Span) -> bool {
        let at = since_start.0 as f64 / 1e6;
        let hit = |outage: &Outage| {
            (outage.at_seconds..outage.at_seconds + outage.for_seconds).contains(&at)
        };
        !self.outages.iter().any(hit)
    }
}

impl NodePool {
    fn check(&self) -> Result<(), EnvironmentError> {
        range("nodes.podsPerNode", f64::from(self.pods_per_node), 1.0, 10_000.0)?;
        range("nodes.minNodes", f64::from(self.min_nodes), 0.0, 100_000.0)?;
        let least = f64::from(self.min_nodes.max(1));
        range("nodes.maxNodes", f64::from(self.max_nodes), least, 100_000.0)?;
        range("nodes.emptySeconds", self.empty_seconds, 0.0, MAX_DELAY_SECONDS)?;
        self.start_up.check("nodes.startUp")
    }
}

/// A span of so many seconds; what is no length of time is none.
#[must_use]
pub(crate) fn seconds(seconds: f64) -> Span {
    // The cast saturates, and takes what is no number as zero.
    Span((seconds.max(0.0) * 1e6).round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_drawn_around_what_they_say() {
        let draws = |delay: Delay| {
            let mut all: Vec<f64> =
                (0..4000).map(|index| delay.draw(7, index, 1).0 as f64 / 1e6).collect();
            all.sort_by(f64::total_cmp);
            (all[0], all[2000], all[3800], all[3999])
        };
        assert_eq!(draws(Delay::Fixed { seconds: 3.0 }), (3.0, 3.0, 3.0, 3.0));
        let (least, median, _, most) =
            draws(Delay::Uniform { least_seconds: 2.0, most_seconds: 4.0 });
        assert!(least >= 2.0 && most <= 4.0 && (median - 3.0).abs() < 0.1, "{median}");
        let (_, median, p95, _) =
            draws(Delay::Lognormal { median_seconds: 10.0, p95_seconds: 30.0 });
        assert!((median - 10.0).abs() < 1.0 && (p95 - 30.0).abs() < 4.0, "{median} {p95}");
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        assert_eq!(Environment::default().check(), Ok(()));
        for (json, expected) in [
            (r#"{"syncPeriodSeconds":0}"#, "syncPeriodSeconds: 0 is not between 0.1 and 3600"),
            (
                r#"{"startUp":{"uniform":{"leastSeconds":5,"mostSeconds":2}}}"#,
                "startUp.uniform.mostSeconds: 2 is not between 5 and 86400",
            ),
            (
                r#"{"resourceMetrics":{"missing":2}}"#,
                "resourceMetrics.missing: 2 is not between 0 and 1",
            ),
            (
                r#"{"nodes":{"podsPerNode":0,"minNodes":1,"maxNodes":2,"emptySeconds":0,"startUp":{"fixed":{"seconds":1}}}}"#,
                "nodes.podsPerNode: 0 is not between 1 and 10000",
            ),
        ] {
            let environment: Environment = serde_json::from_str(json).unwrap();
            assert_eq!(environment.check().unwrap_err().to_string(), expected);
        }
    }
}
