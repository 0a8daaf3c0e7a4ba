//! What is wrong with a trigger, in words for people.

use std::fmt;

/// What is wrong with a trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataErrors {
    /// What was tried, as KEDA says it.
    context: String,
    problems: Vec<Problem>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The field, if it is one.
    pub field: Option<&'static str>,
    /// What is wrong, in KEDA's words where it has some.
    pub text: String,
    /// What to do.
    pub hint: Option<String>,
}

impl MetadataErrors {
    /// Problems, and what was tried.
    pub(super) fn new(context: &str, problems: Vec<Problem>) -> MetadataErrors {
        MetadataErrors { context: context.to_owned(), problems }
    }

    /// One problem of the trigger as a whole.
    pub(crate) fn one(text: impl Into<String>, hint: Option<String>) -> MetadataErrors {
        let problem = Problem { field: None, text: text.into(), hint };
        MetadataErrors { context: String::new(), problems: vec![problem] }
    }

    /// The same with only these of its problems; nothing if there are none.
    pub(crate) fn only(self, is_wanted: impl FnMut(&Problem) -> bool) -> Option<MetadataErrors> {
        let MetadataErrors { context, mut problems } = self;
        problems.retain(is_wanted);
        (!problems.is_empty()).then_some(MetadataErrors { context, problems })
    }

    /// All that is wrong; at least one.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The texts with what to do about each.
    #[must_use]
    pub fn with_hints(&self) -> String {
        let lines = self.problems.iter().map(|problem| match &problem.hint {
            Some(hint) => format!("{}: {hint}", problem.text),
            None => problem.text.clone(),
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

impl fmt::Display for MetadataErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.context)?;
        for (place, problem) in self.problems.iter().enumerate() {
            let between = if place == 0 { "" } else { "\n" };
            write!(f, "{between}{}", problem.text)?;
        }
        Ok(())
    }
}

impl std::error::Error for MetadataErrors {}
