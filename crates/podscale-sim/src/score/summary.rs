//! Several runs together: means, worst cases, and how sure the means are.

use super::Scores;
use serde::Serialize;

/// A mean over runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The largest.
    pub worst: f64,
    /// How far to either side of the mean its 95 % confidence interval reaches; nothing is known of it
    /// from one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
}

impl Estimate {
    /// Of these values.
    #[must_use]
    pub fn of(values: &[f64]) -> Estimate {
        let count = values.len() as f64;
        if values.is_empty() {
            return Estimate::default();
        }
        let mean = values.iter().sum::<f64>() / count;
        let worst = values.iter().copied().fold(f64::MIN, f64::max);
        let confidence = (values.len() > 1).then(|| {
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            student(values.len() - 1) * (squares / (count - 1.0) / count).sqrt()
        });
        Estimate { mean, worst, confidence }
    }
}

/// Two-sided 95 % quantiles of Student's distribution by degrees of freedom.
fn student(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    freedom.checked_sub(1).and_then(|place| TABLE.get(place).copied()).unwrap_or(1.96)
}

/// The scores of several runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// How many runs.
    pub runs: usize,
    /// See [`Scores::violations`].
    pub violations: Estimate,
    /// See [`Scores::refused`].
    pub refused: Estimate,
    /// See [`Scores::worst_minute`].
    pub worst_minute: Estimate,
    /// See [`Scores::p50_seconds`].
    pub p50_seconds: Estimate,
    /// See [`Scores::p95_seconds`].
    pub p95_seconds: Estimate,
    /// See [`Scores::p99_seconds`].
    pub p99_seconds: Estimate,
    /// See [`Scores::pod_hours`].
    pub pod_hours: Estimate,
    /// Pod-hours as a multiple of the oracle's in the same run, where it was run too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against_oracle: Option<Estimate>,
    /// See [`Scores::reversals_per_hour`].
    pub reversals_per_hour: Estimate,
    /// See [`Scores::pods_started`].
    pub pods_started: Estimate,
    /// See [`Scores::below_capacity`].
    pub below_capacity: Estimate,
    /// See [`Scores::queue_age_most_seconds`].
    pub queue_age_most_seconds: Estimate,
}

impl Summary {
    /// Of these runs under one load, one for each seed, and of the oracle's with the same seeds.
    #[must_use]
    pub fn of(runs: &[Scores], oracle: Option<&[Scores]>) -> Summary {
        match oracle {
            Some(oracle) => Summary::across(&[runs], Some(&[oracle])),
            None => Summary::across(&[runs], None),
        }
    }

    /// Over several loads, each with a run for each of the same seeds: every load counts as much as any
    /// other, and how sure the means are follows from how much they differ from seed to seed.
    #[must_use]
    pub fn across(loads: &[&[Scores]], oracle: Option<&[&[Scores]]>) -> Summary {
        let of =
            |score: fn(&Scores) -> f64| estimate(loads, |load, seed| score(&loads[load][seed]));
        let against = oracle.map(|oracle| {
            estimate(loads, |load, seed| {
                let of_oracle = oracle.get(load).and_then(|runs| runs.get(seed));
                let hours = of_oracle.map_or(0.0, |run| run.pod_hours);
                if hours > 0.0 { loads[load][seed].pod_hours / hours } else { 1.0 }
            })
        });
        Summary {
            runs: loads.iter().map(|runs| runs.len()).sum(),
            violations: of(|run| run.violations),
            refused: of(|run| run.refused),
            worst_minute: of(|run| run.worst_minute),
            p50_seconds: of(|run| run.p50_seconds),
            p95_seconds: of(|run| run.p95_seconds),
            p99_seconds: of(|run| run.p99_seconds),
            pod_hours: of(|run| run.pod_hours),
            against_oracle: against,
            reversals_per_hour: of(|run| run.reversals_per_hour),
            pods_started: of(|run| run.pods_started as f64),
            below_capacity: of(|run| run.below_capacity),
            queue_age_most_seconds: of(|run| run.queue_age_most_seconds),
        }
    }
}

/// The mean over loads for each seed, the mean of those, and the worst of all runs.
fn estimate(loads: &[&[Scores]], value: impl Fn(usize, usize) -> f64) -> Estimate {
    let seeds = loads.iter().map(|runs| runs.len()).min().unwrap_or(0);
    let mut worst = f64::MIN;
    let mut means = Vec::with_capacity(seeds);
    for seed in 0..seeds {
        let values = (0..loads.len()).map(|load| value(load, seed));
        let sum: f64 = values.inspect(|value| worst = worst.max(*value)).sum();
        means.push(sum / loads.len() as f64);
    }
    if means.is_empty() {
        return Estimate::default();
    }
    // What is not scored has no worst either.
    let worst = if means.iter().any(|mean| mean.is_nan()) { f64::NAN } else { worst };
    Estimate { worst, ..Estimate::of(&means) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_have_their_confidence() {
        assert_eq!(Estimate::of(&[]), Estimate::default());
        let one = Estimate::of(&[3.0]);
        assert_eq!((one.mean, one.worst, one.confidence), (3.0, 3.0, None));
        let three = Estimate::of(&[1.0, 2.0, 3.0]);
        assert_eq!((three.mean, three.worst), (2.0, 3.0));
        // 4.303 × 1 / √3
        assert!((three.confidence.unwrap() - 2.484).abs() < 1e-3);
    }

    #[test]
    fn what_is_not_scored_has_no_worst() {
        let run = Scores { p95_seconds: f64::NAN, pod_hours: 2.0, ..Scores::default() };
        let summary = Summary::of(&[run, run], None);
        assert!(summary.p95_seconds.mean.is_nan() && summary.p95_seconds.worst.is_nan());
        assert_eq!((summary.pod_hours.mean, summary.pod_hours.worst), (2.0, 2.0));
    }

    #[test]
    fn pod_hours_are_compared_run_by_run() {
        let run = |pod_hours| Scores { pod_hours, ..Scores::default() };
        let summary = Summary::of(&[run(2.0), run(9.0)], Some(&[run(1.0), run(3.0)]));
        assert_eq!(summary.against_oracle.unwrap().mean, 2.5);
        assert_eq!(summary.pod_hours.mean, 5.5);
        assert_eq!(summary.runs, 2);
    }

    #[test]
    fn loads_count_alike_and_only_seeds_make_means_unsure() {
        let run = |violations| Scores { violations, ..Scores::default() };
        let (calm, wild) = ([run(0.0), run(0.0)], [run(0.4), run(0.6)]);
        let summary = Summary::across(&[&calm, &wild], None);
        assert_eq!((summary.violations.mean, summary.violations.worst), (0.25, 0.6));
        // The means of both seeds are 0.2 and 0.3: 12.706 × 0.05.
        assert!((summary.violations.confidence.unwrap() - 0.6353).abs() < 1e-3);
        assert_eq!(Summary::across(&[], None), Summary::default());
    }
}
