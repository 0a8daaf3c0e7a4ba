//! Sets of a Job's indexes, written as `1,3-5,7`.

/// The ends of an interval, both within it.
type Interval = (i64, i64);

/// How many indexes a set has; the error says what is wrong with it.
pub(super) fn count(text: &str, completions: i64) -> Result<i64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    let mut last = None;
    let mut total = 0;
    for part in text.split(',') {
        let (first, end) = interval(part, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!("non-increasing order, previous: {last}, current: {first}"));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

fn interval(text: &str, completions: i64) -> Result<Interval, String> {
    let index = |text: &str| {
        let number: i64 = text
            .parse()
            .map_err(|_| format!("cannot convert string to integer for index: {text:?}"))?;
        if number >= completions {
            return Err(format!("too large index: {text:?}"));
        }
        Ok(number)
    };
    match text.split('-').collect::<Vec<_>>().as_slice() {
        [only] => index(only).map(|only| (only, only)),
        [first, last] => {
            let (first, last) = (index(first)?, index(last)?);
            if first >= last {
                return Err(format!("non-increasing order, previous: {first}, current: {last}"));
            }
            Ok((first, last))
        }
        _ => Err(format!(
            "the fragment {text:?} violates the requirement that an index interval can have at \
             most two parts separated by '-'"
        )),
    }
}

/// The first index that is in both sets; parts that cannot be read are left out.
pub(super) fn overlap(completed: &str, failed: &str, completions: i64) -> Option<i64> {
    let read = |text: &str| -> Vec<Interval> {
        text.split(',').filter_map(|part| interval(part, completions).ok()).collect()
    };
    let (completed, failed) = (read(completed), read(failed));
    let (mut left, mut right) = (completed.iter().peekable(), failed.iter().peekable());
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        if a.0 <= b.1 && b.0 <= a.1 {
            return Some(a.0.max(b.0));
        }
        if a.0 <= b.0 {
            left.next();
        } else {
            right.next();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_counted() {
        assert_eq!(count("", 3), Ok(0));
        assert_eq!(count("0,2-4,7", 10), Ok(5));
        for (text, expected) in [
            ("3", "too large index: \"3\""),
            ("2,1", "non-increasing order, previous: 2, current: 1"),
            ("2-2", "non-increasing order, previous: 2, current: 2"),
            ("x", "cannot convert string to integer for index: \"x\""),
        ] {
            assert_eq!(count(text, 3).unwrap_err(), expected);
        }
        assert!(count("0-1-2", 3).unwrap_err().contains("at most two parts"));
    }

    #[test]
    fn sets_overlap_where_they_share_an_index() {
        assert_eq!(overlap("0-3,7", "4-6", 10), None);
        assert_eq!(overlap("0-3,7", "4-7", 10), Some(7));
        assert_eq!(overlap("x,1", "1", 10), Some(1));
        assert_eq!(overlap("", "1", 10), None);
    }
}
