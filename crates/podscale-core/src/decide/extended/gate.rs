//! What keeps a size although another one was decided: forbidden windows, and pauses of a direction.

use super::{Context, Wanted, set};
use crate::decision::Decision;
use crate::model::{ForbiddenWindows, Wording};
use crate::status::{ConditionKind, Note};
use crate::steps::{Direction, DirectionPaused, Forbidden};
use crate::text;
use crate::time::{Span, Time};

/// The direction of a change, if it is one.
fn direction(from: i32, to: i32) -> Option<Direction> {
    match to.cmp(&from) {
        std::cmp::Ordering::Greater => Some(Direction::Up),
        std::cmp::Ordering::Less => Some(Direction::Down),
        std::cmp::Ordering::Equal => None,
    }
}

/// The size that may be set, given when the last change was. What decides must have been measured
/// after the window: a value from before the last change has not seen it.
pub(super) fn forbidden(
    context: &Context<'_>,
    wanted: &Wanted,
    desired: i32,
    decision: &mut Decision,
) -> i32 {
    let ForbiddenWindows { up, down } = context.extensions.forbidden_windows;
    let (snapshot, current) = (context.snapshot, context.current());
    let taken = wanted.taken.unwrap_or(snapshot.now);
    let closed = |window: Option<Span>| -> Option<(Time, Span)> {
        let (last, window) = (snapshot.status.last_scale?, window?);
        (last.after(window) >= taken).then_some((last, window))
    };
    let (up, down) = (closed(up), closed(down));
    if context.extensions.wording == Wording::ConfigurableHpa {
        let (holds, (reason, message)) = match (up.is_some(), down.is_some()) {
            (false, false) => (true, text::READY_AFTER_WINDOWS),
            (true, false) => (false, text::BACKOFF_UPSCALE),
            (false, true) => (false, text::BACKOFF_DOWNSCALE),
            (true, true) => (false, text::BACKOFF_BOTH),
        };
        let note = Note::text(reason, message);
        set(snapshot, decision, ConditionKind::AbleToScale, holds, note);
    }
    let Some(direction) = direction(current, desired) else {
        return desired;
    };
    let (kept, (reason, message)) = match direction {
        Direction::Up => (up, text::BACKOFF_UPSCALE),
        Direction::Down => (down, text::BACKOFF_DOWNSCALE),
    };
    let Some((last_scale, window)) = kept else {
        return desired;
    };
    if context.extensions.wording != Wording::ConfigurableHpa {
        let note = Note::text(reason, message);
        set(snapshot, decision, ConditionKind::AbleToScale, false, note);
    }
    decision.steps.extend().forbidden =
        Some(Forbidden { direction, from: desired, to: current, last_scale, window });
    current
}

/// The size that may be set, given which directions a person paused.
pub(super) fn direction_paused(context: &Context<'_>, to: i32, decision: &mut Decision) -> i32 {
    let (now, current) = (context.snapshot.now, context.current());
    let control = &context.extensions.control;
    let Some(direction) = direction(current, to) else {
        return to;
    };
    let (pause, (reason, message)) = match direction {
        Direction::Up => (control.pause_up_at(now), text::UP_PAUSED),
        Direction::Down => (control.pause_down_at(now), text::DOWN_PAUSED),
    };
    let Some(pause) = pause else {
        return to;
    };
    let note = Note::text(reason, message);
    set(context.snapshot, decision, ConditionKind::AbleToScale, false, note);
    decision.steps.extend().direction_paused =
        Some(DirectionPaused { direction, from: to, to: current, until: pause.until });
    current
}
