//! Reads the fields of a trigger: from its metadata, its authentication and the environment, in an order that
//! each field has. What is missing or wrong is collected, not only the first of it, in KEDA's words.

mod errors;
mod json;
#[cfg(test)]
mod tests;

use crate::secret::Secret;
use crate::trigger::{MetricType, TriggerSpec};
use json::Type;
use podscale_api::time::GoDuration;
use std::time::Duration;

pub use errors::{MetadataErrors, Problem};

/// Where a field may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the trigger's metadata.
    Metadata,
    /// In what its authentication gives.
    Auth,
    /// In the variable that `…FromEnv` of the metadata names.
    Env,
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Place::Metadata => "triggerMetadata",
            Place::Auth => "authParams",
            Place::Env => "resolvedEnv",
        }
    }
}

/// In the metadata only.
pub(crate) const METADATA: &[Place] = &[Place::Metadata];
/// In the authentication only.
pub(crate) const AUTH: &[Place] = &[Place::Auth];

/// Whether a parameter of an authentication is a file that need not be a text; sources expect it in base64.
#[must_use]
pub fn is_file(parameter: &str) -> bool {
    parameter == "keytab"
}

/// The fields of one trigger, and what was found to be wrong with them.
pub(crate) struct Fields<'a> {
    spec: &'a TriggerSpec,
    /// Every name that was asked for.
    known: Vec<&'static str>,
    /// Those that were read as whole numbers.
    whole: Vec<&'static str>,
    problems: Vec<Problem>,
    /// Those that KEDA finds only if there are no others.
    late: Vec<Problem>,
    warnings: Vec<String>,
    /// Whether every name is known.
    open: bool,
}

/// One field that is asked for.
pub(crate) struct Field<'f, 'a> {
    fields: &'f mut Fields<'a>,
    names: &'static [&'static str],
    order: &'static [Place],
    found: Option<Found>,
}

#[derive(Clone)]
struct Found {
    value: Secret,
    place: Place,
}

impl Found {
    /// As errors show it: what came from elsewhere may be secret.
    fn shown(&self) -> &str {
        if self.place == Place::Metadata { self.value.expose() } else { "***" }
    }
}

impl<'a> Fields<'a> {
    /// Nothing was asked for yet.
    pub(crate) fn new(spec: &'a TriggerSpec) -> Fields<'a> {
        let (problems, late, warnings) = (Vec::new(), Vec::new(), Vec::new());
        let (known, whole) = (Vec::new(), Vec::new());
        Fields { spec, known, whole, problems, late, warnings, open: false }
    }

    /// The trigger.
    pub(crate) fn spec(&self) -> &'a TriggerSpec {
        self.spec
    }

    /// A field by its names, of which the first is the usual one.
    pub(crate) fn field<'f>(
        &'f mut self,
        names: &'static [&'static str],
        order: &'static [Place],
    ) -> Field<'f, 'a> {
        self.known.extend(names);
        let places = order.iter().flat_map(|place| names.iter().map(move |name| (*place, *name)));
        let mut found = None;
        for (place, name) in places {
            let value = match place {
                Place::Metadata => self.spec.metadata.get(name).map(|text| Secret::new(&**text)),
                Place::Auth => self.spec.auth.get(name).cloned(),
                Place::Env => self.environment(name),
            };
            let value = value.map(|value| Secret::new(value.expose().trim()));
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                found = Some(Found { value, place });
                break;
            }
        }
        Field { fields: self, names, order, found }
    }

    /// The variable that `…FromEnv` names.
    fn environment(&mut self, name: &str) -> Option<Secret> {
        let reference = format!("{name}FromEnv");
        let variable = self.spec.metadata.get(&reference)?;
        let value = self.spec.env.get(variable.trim());
        if value.is_none() {
            self.warnings.push(format!(
                "metadata {reference:?} names the variable {variable:?}, which the container's environment \
                 does not have; set it there, or name one that it has"
            ));
        }
        value.cloned()
    }

    /// Whoever has a token is whom it is of, so that one of the controller does not go to a server that nobody has verified.
    #[cfg(any(feature = "kafka", feature = "prometheus", feature = "rabbitmq"))]
    pub(crate) fn refuse_unverified(&mut self, insecure: bool) {
        if insecure {
            self.refuse(
                "unsafeSsl: the controller's token is only sent to servers whose certificates are verified",
                "leave unsafeSsl out",
            );
        }
    }

    /// Adds what is wrong with several fields together.
    pub(crate) fn refuse(&mut self, text: impl Into<String>, hint: &str) {
        let hint = (!hint.is_empty()).then(|| hint.to_owned());
        self.problems.push(Problem { field: None, text: text.into(), hint });
    }

    /// Adds what is wrong only where every field by itself is right.
    pub(crate) fn refuse_late(&mut self, text: impl Into<String>, hint: &str) {
        self.late.push(Problem { field: None, text: text.into(), hint: Some(hint.to_owned()) });
    }

    /// Adds what has no effect.
    pub(crate) fn warn(&mut self, text: impl Into<String>) {
        self.warnings.push(text.into());
    }

    /// Names that are known although this build has no use for them.
    pub(crate) fn allow(&mut self, names: &[&'static str]) {
        self.known.extend(names);
    }

    /// Every name is known: others than we understand them.
    pub(crate) fn allow_all(&mut self) {
        self.open = true;
    }

    /// Whether a field is read as a whole number.
    pub(crate) fn is_whole(&self, name: &str) -> bool {
        self.whole.contains(&name)
    }

    /// Whether nothing is wrong so far.
    pub(crate) fn is_right(&self) -> bool {
        self.problems.is_empty()
    }

    /// The metric type, which no source but those of resources may have as `Utilization`.
    ///
    /// # Errors
    /// It is another.
    pub(crate) fn external_type(&self) -> Result<MetricType, MetadataErrors> {
        match self.spec.metric_type.as_str() {
            "" | "AverageValue" => Ok(MetricType::AverageValue),
            "Value" => Ok(MetricType::Value),
            "Utilization" => Err(MetadataErrors::one(
                "error getting scaler metric type: 'Utilization' metric type is unsupported for external \
                 metrics, allowed values are 'Value' or 'AverageValue'",
                Some("set metricType to AverageValue, or leave it out".to_owned()),
            )),
            other => Err(MetadataErrors::one(
                format!(
                    "metric type {other:?} is unknown, allowed values are 'Value' or 'AverageValue'"
                ),
                Some("set metricType to AverageValue, or leave it out".to_owned()),
            )),
        }
    }

    /// Ends the reading: names what nobody asked for.
    ///
    /// # Errors
    /// Something is wrong with fields by themselves, or together; each has its own text of what was tried.
    pub(crate) fn finish(
        mut self,
        context: &str,
        late_context: &str,
    ) -> Result<Vec<String>, MetadataErrors> {
        for name in self.spec.metadata.keys() {
            let plain = name.strip_suffix("FromEnv").unwrap_or(name);
            if !self.open && !self.known.contains(&plain) {
                self.warnings.push(unknown(name, plain, &self.known, &self.spec.kind));
            }
        }
        self.warnings.dedup();
        let (context, problems) = match self.problems.is_empty() {
            false => (context, self.problems),
            true if self.late.is_empty() => return Ok(self.warnings),
            true => (late_context, self.late),
        };
        Err(MetadataErrors::new(context, problems))
    }
}

/// That a field is not known, and which one may have been meant.
fn unknown(name: &str, plain: &str, known: &[&'static str], kind: &str) -> String {
    let near = known.iter().map(|known| (strsim::damerau_levenshtein(plain, known), known)).min();
    let advice = match near {
        Some((distance, near)) if distance <= 2.max(plain.len() / 4) => {
            format!("did you mean {near:?}?")
        }
        _ => "remove it".to_owned(),
    };
    format!("metadata {name:?} is not known to triggers of type {kind} and has no effect; {advice}")
}

impl Field<'_, '_> {
    fn name(&self) -> &'static str {
        self.names.first().copied().unwrap_or_default()
    }

    fn refuse(&mut self, text: String, hint: String) {
        let field = Some(self.name());
        self.fields.problems.push(Problem { field, text, hint: Some(hint) });
    }

    fn unusable(&mut self, found: &Found, problem: &str, hint: String) {
        let text =
            format!("unable to set param {:?} value {:?}: {problem}", self.name(), found.shown());
        self.refuse(text, hint);
    }

    /// Records that it is missing, if it is.
    pub(crate) fn required(mut self) -> Self {
        if self.found.is_none() {
            let places: Vec<&str> = self.order.iter().map(|place| place.name()).collect();
            let text =
                format!("missing required parameter {:?} in [{}]", self.name(), places.join(" "));
            let hint = self.order.iter().map(|place| match place {
                Place::Metadata => format!("metadata.{}", self.name()),
                Place::Auth => format!("parameter {} of the authentication", self.name()),
                Place::Env => format!("metadata.{}FromEnv", self.name()),
            });
            let hint = format!("set {}", hint.collect::<Vec<_>>().join(" or "));
            self.refuse(text, hint);
        }
        self
    }

    /// Whether it is there.
    pub(crate) fn is_given(&self) -> bool {
        self.found.is_some()
    }

    /// Its text; empty if it is not there.
    pub(crate) fn text(self) -> String {
        self.found.map(|found| found.value.expose().to_owned()).unwrap_or_default()
    }

    /// Its text as a secret.
    pub(crate) fn secret(self) -> Option<Secret> {
        self.found.map(|found| found.value)
    }

    /// The parts between commas.
    pub(crate) fn list(self) -> Vec<String> {
        let text = self.text();
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        parts.map(str::to_owned).collect()
    }

    /// Names with values, `a=b,c=d`.
    pub(crate) fn map(mut self) -> Vec<(String, String)> {
        let Some(found) = self.found.clone() else { return Vec::new() };
        let mut pairs = Vec::new();
        for part in found.value.expose().split(',').map(str::trim) {
            let mut halves = part.split('=').map(str::trim);
            match (halves.next(), halves.next(), halves.next()) {
                (Some(name), Some(value), None) => pairs.push((name.to_owned(), value.to_owned())),
                _ => {
                    let shown = if found.place == Place::Metadata { part } else { "***" };
                    let problem = format!("expected format key=value, got {shown:?}");
                    self.unusable(&found, &problem, "write name=value,name=value".to_owned());
                    break;
                }
            }
        }
        pairs
    }

    /// A number, or this one if it is not there.
    pub(crate) fn number_or(mut self, default: f64) -> f64 {
        let read = self.read(Type::Float, "a number such as 5 or 0.5");
        read.and_then(|value| value.as_f64()).unwrap_or(default)
    }

    /// A whole number, or this one if it is not there.
    pub(crate) fn integer_or(mut self, default: i64) -> i64 {
        self.fields.whole.push(self.name());
        let read = self.read(Type::Integer, "a whole number such as 5");
        read.and_then(|value| value.as_i64()).unwrap_or(default)
    }

    /// A switch, or this if it is not there.
    pub(crate) fn bool_or(mut self, default: bool) -> bool {
        let read = self.read(Type::Bool, "true or false");
        read.and_then(|value| value.as_bool()).unwrap_or(default)
    }

    fn read(&mut self, wanted: Type, example: &str) -> Option<serde_json::Value> {
        let found = self.found.clone()?;
        match json::read(found.value.expose(), wanted) {
            Ok(value) => Some(value),
            Err(problem) => {
                // What Go says of a value has characters of it.
                let problem = match found.place {
                    Place::Metadata => problem,
                    _ => format!("it is not {example}"),
                };
                self.unusable(&found, &problem, format!("write {example}"));
                None
            }
        }
    }

    /// How long: `30s`, or a number of milliseconds.
    pub(crate) fn duration(mut self) -> Option<Duration> {
        let found = self.found.clone()?;
        let text = found.value.expose();
        let nanos = match GoDuration::parse(text) {
            Ok(duration) => Some(duration.0),
            Err(_) => text.parse::<i64>().ok().map(|ms| ms.saturating_mul(1_000_000)),
        };
        let problem = match nanos.map(u64::try_from) {
            Some(Ok(nanos)) => return Some(Duration::from_nanos(nanos)),
            Some(Err(_)) => format!("duration cannot be negative: {:?}", found.shown()),
            None => format!(
                "unable to parse duration value {:?}: must be either a duration string (e.g. '30s', '5m') or \
                 a number of milliseconds",
                found.shown()
            ),
        };
        self.unusable(&found, &problem, "write 30s, 1m30s or a number of milliseconds".to_owned());
        None
    }

    /// One of these words, of which the first is the default.
    pub(crate) fn one_of(mut self, words: &[&'static str], default: &'static str) -> &'static str {
        let Some(found) = self.found.clone() else { return default };
        let text = found.value.expose();
        if let Some(word) = words.iter().find(|word| **word == text) {
            return word;
        }
        let shown = found.shown();
        let text = format!(
            "parameter {:?} value {shown:?} must be one of [{}]",
            self.name(),
            words.join(" ")
        );
        self.refuse(text, format!("write one of {}", words.join(", ")));
        default
    }
}

/// The name of a metric as KEDA makes it, without the characters that the metrics API has no place for.
pub(crate) fn metric_name(index: usize, name: &str) -> String {
    format!("s{index}-{}", name.replace(['/', '.', ':', '%', '(', ')'], "-"))
}
