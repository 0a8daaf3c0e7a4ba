//! The times in which the sizes of two runs differ.

use crate::simulate::Course;
use crate::simulate::course::Step;
use podscale_core::Span;

/// A time in which the sizes differ.
pub(super) struct Moment {
    pub(super) from: Span,
    pub(super) until: Span,
    pub(super) unchanged: i32,
    pub(super) changed: i32,
    pub(super) why: Vec<String>,
}

/// All of them, in runs of this length.
pub(super) fn between(length: Span, unchanged: &Course, changed: &Course) -> Vec<Moment> {
    let mut events: Vec<(Span, bool, &Step)> = Vec::new();
    for (is_changed, course) in [(false, unchanged), (true, changed)] {
        events.extend(course.steps.iter().map(|step| (step.at, is_changed, step)));
    }
    events.sort_by_key(|(at, is_changed, _)| (*at, *is_changed));
    let mut found: Vec<Moment> = Vec::new();
    let mut sizes = [unchanged.first, changed.first];
    let mut open: Option<Moment> = None;
    for (place, (at, is_changed, step)) in events.iter().enumerate() {
        sizes[usize::from(*is_changed)] = step.size;
        // Changes of the same moment count together.
        if events.get(place + 1).is_some_and(|next| next.0 == *at) {
            continue;
        }
        if let Some(mut moment) = open.take() {
            moment.until = *at;
            found.push(moment);
        }
        if sizes[0] != sizes[1] {
            open = Some(Moment {
                from: *at,
                until: length,
                unchanged: sizes[0],
                changed: sizes[1],
                why: step.why.clone(),
            });
        }
    }
    found.extend(open);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use podscale_core::Time;

    #[test]
    fn moments_begin_and_end_where_sizes_differ_and_agree() {
        let course = |sizes: &[(i64, i32)]| {
            let mut course = Course::new(Time(0), 1);
            let step = |(at, size): &(i64, i32)| Step {
                at: Span::seconds(*at),
                size: *size,
                why: vec![format!("{size}")],
            };
            course.steps.extend(sizes.iter().map(step));
            course
        };
        let unchanged = course(&[(10, 4), (40, 2)]);
        let changed = course(&[(10, 3), (20, 4), (50, 2)]);
        let found = between(Span::seconds(60), &unchanged, &changed);
        let found: Vec<(i64, i64, i32, i32, &str)> = found
            .iter()
            .map(|m| {
                let seconds = |span: Span| span.0 / 1_000_000;
                (seconds(m.from), seconds(m.until), m.unchanged, m.changed, m.why[0].as_str())
            })
            .collect();
        assert_eq!(found, [(10, 20, 4, 3, "3"), (40, 50, 2, 4, "2")]);
        assert!(between(Span::seconds(60), &changed, &changed).is_empty());
    }
}
