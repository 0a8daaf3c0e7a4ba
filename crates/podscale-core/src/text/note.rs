//! The reasons and messages of conditions.

use crate::status::Note;
use std::borrow::Cow;

impl Note {
    /// The reason, for programs.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Note::SucceededGetScale => "SucceededGetScale",
            Note::ReadyForNewScale => "ReadyForNewScale",
            Note::ScaleDownStabilized => "ScaleDownStabilized",
            Note::ScaleUpStabilized => "ScaleUpStabilized",
            Note::SucceededRescale(_) => "SucceededRescale",
            Note::ScalingDisabled => "ScalingDisabled",
            Note::ValidMetricFound(_) => "ValidMetricFound",
            Note::DesiredWithinRange => "DesiredWithinRange",
            Note::TooFewReplicas => "TooFewReplicas",
            Note::TooManyReplicas => "TooManyReplicas",
            Note::ScaleUpLimit => "ScaleUpLimit",
            Note::ScaleDownLimit => "ScaleDownLimit",
            Note::ScaledToZero => "ScaledToZero",
            Note::NotScaledToZero => "NotScaledToZero",
            Note::Text(text) => &text.reason,
        }
    }

    /// The message, for people.
    #[must_use]
    pub fn message(&self) -> Cow<'_, str> {
        Cow::Borrowed(match self {
            Note::SucceededGetScale => {
                "the HPA controller was able to get the target's current scale"
            }
            Note::ReadyForNewScale => "recommended size matches current size",
            Note::ScaleDownStabilized => {
                "recent recommendations were higher than current one, applying the highest recent \
                 recommendation"
            }
            Note::ScaleUpStabilized => {
                "recent recommendations were lower than current one, applying the lowest recent \
                 recommendation"
            }
            Note::SucceededRescale(replicas) => {
                return Cow::Owned(format!(
                    "the HPA controller was able to update the target scale to {replicas}"
                ));
            }
            Note::ScalingDisabled => {
                "scaling is disabled since the replica count of the target is zero"
            }
            Note::ValidMetricFound(title) => {
                return Cow::Owned(format!(
                    "the HPA was able to successfully calculate a replica count from {title}"
                ));
            }
            Note::DesiredWithinRange => "the desired count is within the acceptable range",
            Note::TooFewReplicas => {
                "the desired replica count is less than the minimum replica count"
            }
            Note::TooManyReplicas => {
                "the desired replica count is more than the maximum replica count"
            }
            Note::ScaleUpLimit => {
                "the desired replica count is increasing faster than the maximum scale rate"
            }
            Note::ScaleDownLimit => {
                "the desired replica count is decreasing faster than the maximum scale rate"
            }
            Note::ScaledToZero => "the HPA controller scaled the workload to zero",
            Note::NotScaledToZero => "the HPA controller did not scale the workload to zero",
            Note::Text(text) => &text.message,
        })
    }
}
