//! From a shape as it is written to a load that can be asked: every number is checked, every trace
//! fetched.

use super::{
    Load, LoadError, MAX_RPS, MAX_SECONDS, MAX_SHAPES, MAX_STEPS, Part, Shape, Sine, Spike, Steps,
    TraceShape,
};
use crate::trace::Trace;
use std::sync::Arc;

/// How deep sums may be nested.
const MAX_DEPTH: usize = 8;

impl Shape {
    /// Checks every number and gets each trace by its name from `traces`.
    ///
    /// # Errors
    /// Says where in the shape what is wrong.
    pub fn resolve<E: std::fmt::Display>(
        &self,
        mut traces: impl FnMut(&str) -> Result<Arc<Trace>, E>,
    ) -> Result<Load, LoadError> {
        let mut parts = Vec::new();
        let mut fetch = |name: &str| traces(name).map_err(|error| error.to_string());
        resolve_into(self, "load", 0, &mut fetch, &mut parts)?;
        Ok(Load { parts })
    }
}

type Fetch<'a> = dyn FnMut(&str) -> Result<Arc<Trace>, String> + 'a;

fn resolve_into(
    shape: &Shape,
    path: &str,
    depth: usize,
    traces: &mut Fetch<'_>,
    parts: &mut Vec<Part>,
) -> Result<(), LoadError> {
    if parts.len() >= MAX_SHAPES || depth > MAX_DEPTH {
        let (what, most) =
            if depth > MAX_DEPTH { ("nested sums", MAX_DEPTH) } else { ("shapes", MAX_SHAPES) };
        return Err(LoadError::TooMany { path: path.to_owned(), what, most });
    }
    let part = match shape {
        Shape::Constant(constant) => {
            Check { path }.rate("rps", constant.rps)?;
            Part::Constant(constant.rps)
        }
        Shape::Steps(steps) => {
            check_steps(steps, path)?;
            Part::Steps(steps.clone())
        }
        Shape::Sine(sine) => {
            check_sine(sine, path)?;
            Part::Sine(*sine)
        }
        Shape::Spike(spike) => {
            check_spike(spike, path)?;
            Part::Spike(*spike)
        }
        Shape::Trace(shape) => resolve_trace(shape, path, traces)?,
        Shape::Sum(shapes) => {
            for (index, shape) in shapes.iter().enumerate() {
                let path = format!("{path}.sum[{index}]");
                resolve_into(shape, &path, depth + 1, traces, parts)?;
            }
            return Ok(());
        }
    };
    parts.push(part);
    Ok(())
}

fn check_sine(sine: &Sine, path: &str) -> Result<(), LoadError> {
    let check = Check { path };
    check.rate("meanRps", sine.mean_rps)?;
    check.rate("amplitudeRps", sine.amplitude_rps)?;
    check.range("periodSeconds", sine.period_seconds, 0.001, MAX_SECONDS)?;
    check.range("phaseSeconds", sine.phase_seconds, -MAX_SECONDS, MAX_SECONDS)
}

fn check_spike(spike: &Spike, path: &str) -> Result<(), LoadError> {
    let check = Check { path };
    check.rate("baseRps", spike.base_rps)?;
    check.rate("peakRps", spike.peak_rps)?;
    check.seconds("atSeconds", spike.at_seconds)?;
    check.seconds("riseSeconds", spike.rise_seconds)?;
    check.seconds("holdSeconds", spike.hold_seconds)?;
    check.seconds("fallSeconds", spike.fall_seconds)?;
    match spike.every_seconds {
        Some(every) => check.range("everySeconds", every, 0.001, MAX_SECONDS),
        None => Ok(()),
    }
}

/// Checks how a trace is played, fetches it and finds by how much its values are scaled.
fn resolve_trace(
    shape: &TraceShape,
    path: &str,
    traces: &mut Fetch<'_>,
) -> Result<Part, LoadError> {
    let check = Check { path };
    check.range("compress", shape.compress, 0.001, 1e6)?;
    check.seconds("skipSeconds", shape.skip_seconds)?;
    let trace = traces(&shape.file).map_err(|problem| LoadError::Trace {
        path: path.to_owned(),
        file: shape.file.clone(),
        problem,
    })?;
    let scale = match shape.peak_rps {
        Some(peak) => {
            check.rate("peakRps", peak)?;
            if trace.peak() > 0.0 { peak / trace.peak() } else { 0.0 }
        }
        None => 1.0,
    };
    Ok(Part::Trace { trace, shape: shape.clone(), scale })
}

fn check_steps(steps: &Steps, path: &str) -> Result<(), LoadError> {
    let path = format!("{path}.steps");
    if steps.steps.is_empty() {
        return Err(LoadError::None { path, what: "steps" });
    }
    if steps.steps.len() > MAX_STEPS {
        return Err(LoadError::TooMany { path, what: "steps", most: MAX_STEPS });
    }
    let mut before = None;
    for (index, step) in steps.steps.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let check = Check { path: &path };
        check.seconds("atSeconds", step.at_seconds)?;
        check.rate("rps", step.rps)?;
        if before.is_some_and(|before| step.at_seconds <= before) {
            return Err(LoadError::Order { path, at: step.at_seconds });
        }
        before = Some(step.at_seconds);
    }
    match steps.repeat_seconds {
        Some(repeat) => Check { path: &path }.range("repeatSeconds", repeat, 0.001, MAX_SECONDS),
        None => Ok(()),
    }
}

struct Check<'a> {
    path: &'a str,
}

impl Check<'_> {
    fn rate(&self, field: &str, value: f64) -> Result<(), LoadError> {
        self.range(field, value, 0.0, MAX_RPS)
    }

    fn seconds(&self, field: &str, value: f64) -> Result<(), LoadError> {
        self.range(field, value, 0.0, MAX_SECONDS)
    }

    fn range(&self, field: &str, value: f64, least: f64, most: f64) -> Result<(), LoadError> {
        if value >= least && value <= most {
            return Ok(());
        }
        Err(LoadError::Range { path: format!("{}.{field}", self.path), value, least, most })
    }
}
