//! What a comparison says.

use std::fmt;

/// How an observed choice compares with ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is the same.
    Agreed,
    /// It is another one, on the same.
    Disagreed(Disagreement),
    /// It cannot be judged.
    Unknown(Reason),
}

/// Why a choice cannot be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It was made on other values of the metrics, or on another spec.
    Values,
    /// The same, many times in a row.
    ValuesRepeatedly,
    /// The pods changed at about that time.
    Pods,
    /// It may remember what was not seen here.
    Past,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Values => "it was made on other values of the metrics",
            Reason::ValuesRepeatedly => {
                "the other controller keeps seeing other values of the metrics than Podscale"
            }
            Reason::Pods => "the pods changed meanwhile",
            Reason::Past => "the other controller may remember what was not seen here",
        })
    }
}

/// A choice that was another than ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disagreement {
    /// It chose a size that we would not have.
    Chose {
        /// Its size.
        observed: i32,
        /// Ours.
        ours: i32,
    },
    /// It kept a size that we would have changed.
    Kept {
        /// Its size.
        observed: i32,
        /// Ours.
        ours: i32,
    },
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Disagreement::Chose { observed, ours } => {
                write!(
                    f,
                    "the other controller chose {observed} replicas, Podscale would have chosen {ours}"
                )
            }
            Disagreement::Kept { observed, ours } => write!(
                f,
                "the other controller stays at {observed} replicas, Podscale would have gone to {ours}"
            ),
        }
    }
}
