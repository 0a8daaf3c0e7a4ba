//! Loads as the command line names them: shapes in short form or as in scenario files, and traces.

use podscale_controller::settings::duration;
use podscale_core::Span;
use podscale_sim::load::{Constant, Sine, Spike, Step, Steps, TraceShape};
use podscale_sim::{Load, Shape, Trace, trace};
use serde_json::Value;
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// How long a shape is played if nothing is said.
const SHAPE_LENGTH: Span = Span::seconds(3600);

/// A load with its name.
#[derive(Clone, Debug)]
pub(super) struct NamedLoad {
    pub(super) name: String,
    pub(super) load: Load,
    pub(super) length: Span,
    /// How long it can be played, if not for ever.
    pub(super) longest: Option<Span>,
}

/// How traces are played.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TraceOptions {
    pub(super) peak_rps: Option<f64>,
    pub(super) compress: f64,
    pub(super) skip_seconds: f64,
    pub(super) interpolate: bool,
}

/// Reads a shape such as `constant:100`, `sine:mean=100,amplitude=80,period=10m` or, in the form of
/// scenario files, `{constant: {rps: 100}}`.
pub(super) fn shape(text: &str) -> Result<NamedLoad, String> {
    let shape = if text.trim_start().starts_with('{') {
        let value: Value = serde_saphyr::from_str(text).map_err(|error| first_line(&error))?;
        serde_json::from_value(value).map_err(|error| first_line(&error))?
    } else {
        short(text)?
    };
    let load = shape.resolve(|_| Err("a trace is given with --trace"));
    let load = load.map_err(|error| error.to_string())?;
    Ok(NamedLoad { name: text.to_owned(), load, length: SHAPE_LENGTH, longest: None })
}

/// The load of a workload of a scenario.
pub(super) fn of_scenario(
    name: &str,
    shape: &Shape,
    traces: &HashMap<String, Arc<Trace>>,
) -> Result<NamedLoad, String> {
    let fetch = |file: &str| traces.get(file).map(Arc::clone).ok_or("there is no such trace");
    let load = shape.resolve(fetch).map_err(|error| error.to_string())?;
    let name = format!("load of {name}");
    Ok(NamedLoad { name, load, length: SHAPE_LENGTH, longest: None })
}

/// The trace of this name, or the traces of this folder in the order of their names.
pub(super) fn traces(name: &str) -> Result<Vec<String>, String> {
    let path = Path::new(name);
    if trace::built_in(name).is_some() || !path.is_dir() {
        return Ok(vec![name.to_owned()]);
    }
    let fail = |error: std::io::Error| format!("cannot read {name}: {error}");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).map_err(fail)? {
        let file = entry.map_err(fail)?.path().display().to_string();
        if file.ends_with(".csv") || file.ends_with(".csv.gz") {
            found.push(file);
        }
    }
    found.sort();
    if found.is_empty() {
        return Err(format!("{name} has no files that end in .csv or .csv.gz"));
    }
    Ok(found)
}

/// A trace that comes with the program, or one of a file.
pub(super) fn of_trace(name: &str, options: TraceOptions) -> Result<NamedLoad, String> {
    let read = match trace::built_in(name) {
        Some(read) => read,
        None => {
            let opened = File::open(name).map_err(|error| {
                let known = trace::BUILT_IN.map(|(name, _)| name).join(", ");
                format!("cannot read trace {name}: {error}; built-in traces: {known}")
            })?;
            Trace::read(opened)
        }
    };
    let read = Arc::new(read.map_err(|error| format!("trace {name}: {error}"))?);
    let shape = Shape::Trace(TraceShape {
        file: name.to_owned(),
        peak_rps: options.peak_rps,
        compress: options.compress,
        skip_seconds: options.skip_seconds,
        repeat: false,
        interpolate: options.interpolate,
    });
    let load = shape.resolve(|_| Ok::<_, String>(Arc::clone(&read)));
    let load = load.map_err(|error| format!("trace {name}: {error}"))?;
    let seconds = (read.length().0 as f64 / 1e6 - options.skip_seconds) / options.compress;
    let stem = Path::new(name).file_name().map_or(name.into(), |name| name.to_string_lossy());
    let stem = stem.trim_end_matches(".gz").trim_end_matches(".csv").to_owned();
    let length = Span((seconds.max(1.0) * 1e6) as i64);
    Ok(NamedLoad { name: stem, load, length, longest: Some(length) })
}

fn first_line(error: &dyn std::fmt::Display) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// Parameters of a short form: each is a number, or a duration in seconds.
struct Parameters<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Parameters<'a> {
    fn read(text: &'a str, known: &[&str]) -> Result<Parameters<'a>, String> {
        let mut found = Vec::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (name, value) =
                part.split_once('=').ok_or_else(|| format!("{part:?} is not name=value"))?;
            if !known.contains(&name) {
                return Err(format!("there is no parameter {name:?}: {}", known.join(", ")));
            }
            found.push((name, value));
        }
        Ok(Parameters(found))
    }

    fn get(&self, name: &str) -> Result<Option<f64>, String> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| amount(value)).transpose()
    }

    fn or(&self, name: &str, default: f64) -> Result<f64, String> {
        Ok(self.get(name)?.unwrap_or(default))
    }

    fn must(&self, name: &str) -> Result<f64, String> {
        self.get(name)?.ok_or_else(|| format!("{name} is missing"))
    }
}

/// A number, or a duration in seconds.
fn amount(text: &str) -> Result<f64, String> {
    if let Ok(number) = text.parse::<f64>() {
        return Ok(number);
    }
    let read = duration(text).map_err(|_| format!("{text:?} is not a number or a duration"))?;
    Ok(read.as_secs_f64())
}

fn short(text: &str) -> Result<Shape, String> {
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    Ok(match name {
        "constant" => Shape::Constant(Constant { rps: amount(rest)? }),
        "sine" => {
            let given = Parameters::read(rest, &["mean", "amplitude", "period", "phase"])?;
            let mean_rps = given.must("mean")?;
            Shape::Sine(Sine {
                mean_rps,
                amplitude_rps: given.or("amplitude", mean_rps / 2.0)?,
                period_seconds: given.or("period", 1800.0)?,
                phase_seconds: given.or("phase", 0.0)?,
            })
        }
        "spike" => {
            let known = ["base", "peak", "at", "rise", "hold", "fall", "every"];
            let given = Parameters::read(rest, &known)?;
            Shape::Spike(Spike {
                base_rps: given.or("base", 0.0)?,
                peak_rps: given.must("peak")?,
                at_seconds: given.or("at", 600.0)?,
                rise_seconds: given.or("rise", 30.0)?,
                hold_seconds: given.or("hold", 600.0)?,
                fall_seconds: given.or("fall", 60.0)?,
                every_seconds: given.get("every")?,
            })
        }
        "steps" => {
            let mut steps = Vec::new();
            for part in rest.split(',').filter(|part| !part.is_empty()) {
                let (at, rps) =
                    part.split_once('=').ok_or_else(|| format!("{part:?} is not time=rate"))?;
                steps.push(Step { at_seconds: amount(at)?, rps: amount(rps)? });
            }
            Shape::Steps(Steps { steps, repeat_seconds: None })
        }
        _ => {
            return Err(format!(
                "there is no shape {name:?}: constant, sine, spike, steps, or {{…}} as in scenarios"
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str, minute: i64) -> f64 {
        shape(text).expect(text).load.rate(Span::seconds(minute * 60))
    }

    #[test]
    fn shapes_have_a_short_form() {
        assert_eq!(rate("constant:30", 5), 30.0);
        assert_eq!(rate("steps:0=10,10m=50", 9), 10.0);
        assert_eq!(rate("steps:0=10,10m=50", 10), 50.0);
        assert_eq!(rate("spike:base=5,peak=100,at=10m,rise=0,hold=5m", 12), 100.0);
        assert_eq!(rate("spike:base=5,peak=100,at=10m,rise=0,hold=5m,fall=0", 16), 5.0);
        assert_eq!(rate("sine:mean=100,amplitude=50,period=1h", 15), 150.0);
        assert_eq!(rate("{constant: {rps: 7}}", 1), 7.0);
        for (text, expected) in [
            ("square:3", "there is no shape \"square\""),
            ("sine:amplitude=3", "mean is missing"),
            ("sine:middle=3", "there is no parameter \"middle\""),
            ("constant:many", "\"many\" is not a number or a duration"),
            ("constant:-1", "load.rps: -1 is not between 0"),
            ("{constant: {rsp: 7}}", "unknown field `rsp`"),
        ] {
            let error = shape(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn traces_come_with_the_program() {
        let options =
            TraceOptions { peak_rps: Some(500.0), compress: 2.0, ..TraceOptions::default() };
        for (name, _) in trace::BUILT_IN {
            let load = of_trace(name, options).expect(name);
            assert_eq!(load.name, name);
            assert!(load.length > Span::seconds(600), "{name}");
        }
        let error = of_trace("/nowhere/none.csv", options).expect_err("no such file");
        assert!(error.contains("built-in traces: azure"), "{error}");
    }
}
