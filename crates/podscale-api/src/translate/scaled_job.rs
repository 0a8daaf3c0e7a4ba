//! From ScaledJobs to the core's rules for Jobs, and from what came of them to their status.

pub mod made;
pub mod status;

use crate::keda::check::number;
use crate::keda::scaled_job::ScaledJobSpec;
use podscale_core::jobs::{Calculation, JobRules, JobStrategy};

/// How many Jobs a load asks for.
#[must_use]
pub fn rules(spec: &ScaledJobSpec) -> JobRules {
    let strategy = &spec.scaling_strategy;
    let share = number(&strategy.custom_scaling_running_job_percentage);
    JobRules {
        min: spec.min(),
        max_beside_min: spec.max_beside_min(),
        strategy: match (strategy.strategy.as_str(), share) {
            // A share that cannot be read makes it the default one.
            ("custom", Some(running_share)) => {
                let deduction = strategy.custom_scaling_queue_length_deduction.unwrap_or(0);
                JobStrategy::Custom { deduction, running_share }
            }
            ("accurate", _) => JobStrategy::Accurate,
            ("eager", _) => JobStrategy::Eager,
            _ => JobStrategy::Default,
        },
        calculation: match strategy.multiple_scalers_calculation.as_str() {
            "min" => Calculation::Min,
            "avg" => Calculation::Average,
            "sum" => Calculation::Sum,
            _ => Calculation::Max,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_spec_says_how_many_jobs() {
        let found = |strategy: Value| {
            let spec =
                json!({"minReplicaCount": 2, "maxReplicaCount": 9, "scalingStrategy": strategy});
            rules(&serde_json::from_value(spec).expect("a spec"))
        };
        let least = found(json!({}));
        let expected = JobRules {
            min: 2,
            max_beside_min: 7,
            strategy: JobStrategy::Default,
            calculation: Calculation::Max,
        };
        assert_eq!(least, expected);
        let custom = json!({"strategy": "custom", "customScalingQueueLengthDeduction": 1,
            "customScalingRunningJobPercentage": "0.5", "multipleScalersCalculation": "avg"});
        let expected = JobRules {
            strategy: JobStrategy::Custom { deduction: 1, running_share: 0.5 },
            calculation: Calculation::Average,
            ..expected
        };
        assert_eq!(found(custom), expected);
        assert_eq!(found(json!({"strategy": "custom"})).strategy, JobStrategy::Default);
        assert_eq!(found(json!({"strategy": "eager"})).strategy, JobStrategy::Eager);
        let accurate = json!({"strategy": "accurate", "multipleScalersCalculation": "sum"});
        let expected =
            JobRules { strategy: JobStrategy::Accurate, calculation: Calculation::Sum, ..least };
        assert_eq!(found(accurate), expected);
    }
}
