//! Makes one size of what the metrics ask for.

use super::answer::Answer;
use super::ask::Answers;
use super::{Context, formula, propose, set};
use crate::decide::ceil;
use crate::decision::Decision;
use crate::model::{Combine, Formula, NoMetrics};
use crate::status::{ConditionKind, Finding, Note};
use crate::steps::{Agreement, CombinedBy, FormulaFailure};
use crate::text;
use crate::time::Time;

/// The size that the metrics ask for together.
pub(super) struct Combined {
    pub(super) replicas: i32,
    /// The metric that decided alone, if one did.
    pub(super) metric: Option<usize>,
    /// When what decided was measured.
    pub(super) taken: Option<Time>,
}

/// One size, or `None` if nothing may be scaled because metrics are broken.
pub(super) fn combine(
    context: &Context<'_>,
    answers: &Answers,
    decision: &mut Decision,
) -> Option<Combined> {
    let nothing = context.snapshot.autoscaler.metrics.is_empty();
    if nothing && context.extensions.no_metrics == NoMetrics::AskForZero {
        return Some(nothing_asked(context, decision));
    }
    match &context.extensions.combine {
        Combine::Max => largest(context, answers, decision),
        _ if answers.aborted => {
            blocked(context, answers, None, decision);
            None
        }
        Combine::Min => {
            let found = asked(answers).min_by_key(|(_, replicas, _)| *replicas);
            let found = found.map(|(place, replicas, answer)| Combined {
                replicas,
                metric: Some(place),
                taken: answer.taken,
            });
            unless_held(context, answers, CombinedBy::Min, found, decision)
        }
        Combine::Average => {
            let (mut sum, mut count) = (0.0, 0u32);
            for (_, replicas, _) in asked(answers) {
                sum += f64::from(replicas);
                count += 1;
            }
            let found = (count > 0).then(|| Combined {
                replicas: ceil(sum / f64::from(count)),
                metric: None,
                taken: answers.oldest(),
            });
            unless_held(context, answers, CombinedBy::Average, found, decision)
        }
        Combine::Formula(formula) => by_formula(context, formula, answers, decision),
    }
}

/// The metrics that ask for a size: their places and the sizes.
fn asked(answers: &Answers) -> impl Iterator<Item = (usize, i32, &Answer)> {
    let of_metrics = answers.of_metrics.iter().enumerate();
    of_metrics.filter_map(|(place, answer)| Some((place, answer.replicas?, answer)))
}

/// The largest. Metrics that hold the size cannot lower it, so more may be asked for despite them.
fn largest(context: &Context<'_>, answers: &Answers, decision: &mut Decision) -> Option<Combined> {
    let mut winner: Option<(usize, i32, &Answer)> = None;
    for (place, replicas, answer) in asked(answers) {
        // A proposal of zero gives way to any later one.
        if winner.is_none_or(|(_, best, _)| best == 0 || replicas > best) {
            winner = Some((place, replicas, answer));
        }
    }
    let invalid = answers.holding;
    match winner {
        Some((place, replicas, answer))
            if !answers.aborted && (invalid == 0 || replicas >= context.current()) =>
        {
            let metric = place as u32;
            let finding = Finding::ValidMetric(metric);
            set(context.snapshot, decision, ConditionKind::ScalingActive, true, finding);
            if invalid > 0 {
                decision.error = failure(context, answers).map(|(message, _)| message.into());
            }
            decision.steps.agreement = Some(Agreement::Winner { metric, replicas, invalid });
            Some(Combined { replicas, metric: Some(place), taken: answer.taken })
        }
        _ => {
            let proposed = winner.map(|(_, replicas, _)| replicas);
            blocked(context, answers, proposed, decision);
            None
        }
    }
}

/// A size that needs every metric, unless one holds.
fn unless_held(
    context: &Context<'_>,
    answers: &Answers,
    by: CombinedBy,
    found: Option<Combined>,
    decision: &mut Decision,
) -> Option<Combined> {
    let proposed = found.as_ref().map(|found| found.replicas);
    let Some(found) = found.filter(|_| answers.holding == 0) else {
        blocked(context, answers, proposed, decision);
        return None;
    };
    agree(context, by, &found, decision);
    Some(found)
}

fn agree(context: &Context<'_>, by: CombinedBy, found: &Combined, decision: &mut Decision) {
    let finding = match found.metric {
        Some(metric) => Finding::ValidMetric(metric as u32),
        None => Finding::Note(Note::text("ValidMetricFound", text::combined(by))),
    };
    set(context.snapshot, decision, ConditionKind::ScalingActive, true, finding);
    decision.steps.extend().combined = Some((by, found.replicas));
}

fn nothing_asked(context: &Context<'_>, decision: &mut Decision) -> Combined {
    // Nothing was measured, so windows end now.
    let found = Combined { replicas: 0, metric: None, taken: None };
    agree(context, CombinedBy::Nothing, &found, decision);
    found
}

fn by_formula(
    context: &Context<'_>,
    formula: &Formula,
    answers: &Answers,
    decision: &mut Decision,
) -> Option<Combined> {
    match formula::evaluate(formula, &answers.of_metrics, context.current()) {
        Ok(value) => {
            let found = Combined { replicas: ceil(value), metric: None, taken: answers.oldest() };
            agree(context, CombinedBy::Formula, &found, decision);
            Some(found)
        }
        Err(reason) => {
            decision.steps.extend().formula_failed = Some(reason);
            let message = match reason {
                FormulaFailure::Missing(metric) => {
                    text::formula_missing(context.extensions.rules(metric as usize).name.as_deref())
                }
                FormulaFailure::NotFinite => text::FORMULA_NOT_FINITE.to_owned(),
            };
            let note = Note::text("InvalidExpression", message.as_str());
            set(context.snapshot, decision, ConditionKind::ScalingActive, false, note);
            decision.compute_failed(context.snapshot, &message);
            None
        }
    }
}

/// Says that nothing may be scaled, and why.
pub(super) fn blocked(
    context: &Context<'_>,
    answers: &Answers,
    proposed: Option<i32>,
    decision: &mut Decision,
) {
    let of = context.snapshot.autoscaler.metrics.len() as u32;
    let invalid = answers.broken;
    decision.steps.agreement = Some(Agreement::Blocked { invalid, of, proposed });
    propose::block(context.snapshot, decision, failure(context, answers));
}

/// The first failure in the words of the pass. A failure that ended it all is not counted.
fn failure(context: &Context<'_>, answers: &Answers) -> Option<propose::Failure> {
    let of = context.snapshot.autoscaler.metrics.len() as u32;
    let (first, note) = answers.failure.as_ref()?;
    let message = if answers.aborted {
        first.clone()
    } else {
        text::invalid_metrics(answers.broken, of, first)
    };
    Some((message, note.clone()))
}
