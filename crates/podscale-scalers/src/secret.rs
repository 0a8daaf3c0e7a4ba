//! Values that must never be seen.

use std::fmt;

/// A password, a token, or whatever else came from a Secret. It can be compared and used, and neither printed
/// nor serialized: both forms of it say `***`.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Secret(Box<str>);

impl Secret {
    /// Hides a value.
    #[must_use]
    pub fn new(value: impl Into<Box<str>>) -> Secret {
        Secret(value.into())
    }

    /// The value itself, to prove oneself with.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl From<&str> for Secret {
    fn from(value: &str) -> Secret {
        Secret::new(value)
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Secret {
        Secret::new(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_never_printed() {
        let secret = Secret::new("hunter2");
        let shown = format!("{secret} {secret:?} {:#?} {:>20}", Some(&secret), secret);
        assert!(!shown.contains("hunter2"), "{shown}");
        assert_eq!(secret.expose(), "hunter2");
    }
}
