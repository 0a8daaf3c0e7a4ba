//! Compares resource versions. Kubernetes allows that since 1.35: they are whole numbers, and within
//! one resource the larger one is the later one.

/// Whether the first version is later than the second; false if either is not a number.
#[must_use]
pub fn is_newer(version: &str, than: &str) -> bool {
    // Numbers without leading zeros compare by their length first, however long they are.
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let significant = |text: &str| text.trim_start_matches('0').len();
    number(version)
        && number(than)
        && (significant(version), version.trim_start_matches('0'))
            > (significant(than), than.trim_start_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_versions_are_larger_numbers() {
        for (version, than, expected) in [
            ("10", "9", true),
            ("9", "10", false),
            ("10", "10", false),
            ("010", "9", true),
            ("340282366920938463463374607431768211456", "18446744073709551615", true),
            ("", "1", false),
            ("2", "", false),
            ("b", "1", false),
            ("2", "a", false),
        ] {
            assert_eq!(is_newer(version, than), expected, "{version:?} {than:?}");
        }
    }
}
