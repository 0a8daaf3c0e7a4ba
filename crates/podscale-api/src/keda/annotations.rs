//! What annotations order a ScaledObject or ScaledJob to do.

use crate::labels::Labels;

/// Leaves the workload alone.
pub const PAUSED: &str = "autoscaling.keda.sh/paused";
/// Sets the workload to so many replicas and leaves it alone.
pub const PAUSED_REPLICAS: &str = "autoscaling.keda.sh/paused-replicas";
/// Does not make the workload smaller.
pub const PAUSED_SCALE_IN: &str = "autoscaling.keda.sh/paused-scale-in";
/// Does not make the workload larger.
pub const PAUSED_SCALE_OUT: &str = "autoscaling.keda.sh/paused-scale-out";
/// Treats the workload as active.
pub const FORCE_ACTIVATION: &str = "autoscaling.keda.sh/force-activation";
/// Takes over an HPA that exists.
pub const TRANSFER_HPA_OWNERSHIP: &str = "scaledobject.keda.sh/transfer-hpa-ownership";
/// Labels that the HPA does not get.
pub const HPA_EXCLUDED_LABELS: &str = "scaledobject.keda.sh/hpa-excluded-labels";
/// Labels that Jobs do not get.
pub const JOB_EXCLUDED_LABELS: &str = "scaledjob.keda.sh/job-excluded-labels";
/// On an HPA, `false` takes it out of the check for two autoscalers of one workload.
pub const HPA_OWNERSHIP_CHECK: &str = "validations.keda.sh/hpa-ownership";

/// What annotations order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// Whether, and how, everything is paused.
    pub pause: Pause,
    /// Whether going down is paused.
    pub scale_in_paused: bool,
    /// Whether going up is paused.
    pub scale_out_paused: bool,
    /// Whether it counts as active whatever triggers say.
    pub force_activation: bool,
    /// Whether an HPA that exists is taken over.
    pub transfer_hpa_ownership: bool,
    /// Labels that the HPA does not get.
    pub excluded_labels: Vec<String>,
}

/// Whether everything is paused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Pause {
    /// It is not.
    #[default]
    No,
    /// At the size it has.
    AsItIs,
    /// At this size.
    At(i32),
    /// At a size that cannot be read, and why.
    Unreadable(String),
}

impl Orders {
    /// What these annotations order.
    #[must_use]
    pub fn read(annotations: &Labels) -> Orders {
        let set = |name| annotations.get(name).is_some_and(is_on);
        Orders {
            pause: match annotations.get(PAUSED_REPLICAS) {
                Some(text) => replicas(text),
                None if set(PAUSED) => Pause::AsItIs,
                None => Pause::No,
            },
            scale_in_paused: set(PAUSED_SCALE_IN),
            scale_out_paused: set(PAUSED_SCALE_OUT),
            force_activation: set(FORCE_ACTIVATION),
            transfer_hpa_ownership: annotations.get(TRANSFER_HPA_OWNERSHIP) == Some("true"),
            excluded_labels: annotations
                .get(HPA_EXCLUDED_LABELS)
                .map(|text| text.split(',').map(str::to_owned).collect())
                .unwrap_or_default(),
        }
    }

    /// Whether the condition Paused is true: a pause of one direction counts.
    #[must_use]
    pub fn is_any_paused(&self) -> bool {
        self.pause != Pause::No || self.scale_in_paused || self.scale_out_paused
    }
}

/// Whether a ScaledJob is paused: of all orders to pause it knows only the plain one.
#[must_use]
pub fn is_job_paused(annotations: &Labels) -> bool {
    annotations.get(PAUSED).is_some_and(is_on)
}

/// Whether a text means yes: everything does that Go does not read as no.
fn is_on(text: &str) -> bool {
    !matches!(text, "0" | "f" | "F" | "false" | "FALSE" | "False")
}

/// A number as Go reads one of 32 bits, with Go's words if it is none.
fn replicas(text: &str) -> Pause {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let problem = match text.parse::<i32>() {
        Ok(number) => return Pause::At(number),
        Err(_) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
            "value out of range"
        }
        Err(_) => "invalid syntax",
    };
    let quoted = crate::quote::quote(text);
    Pause::Unreadable(format!("strconv.ParseInt: parsing {quoted}: {problem}"))
}
