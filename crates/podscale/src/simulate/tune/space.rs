//! What may be changed in an autoscaler.

use crate::simulate::edit::{Edit, EditError};
use podscale_api::pod_autoscaler;
use podscale_api::quantity::Quantity;
use serde_json::{Value, json};

/// Targets in percent that are tried.
const PERCENTS: [i64; 6] = [40, 50, 60, 70, 80, 90];
/// By what other targets are multiplied.
const FACTORS: [f64; 5] = [0.6, 0.75, 0.9, 1.1, 1.3];
/// Windows that hold up a scale-down, in seconds.
const WINDOWS: [i64; 5] = [0, 60, 120, 300, 600];
/// More metrics than these are left as they are.
const MOST_METRICS: usize = 4;

/// One thing that may be changed, and to what.
#[derive(Clone, Debug, PartialEq)]
struct Knob {
    path: String,
    values: Vec<Value>,
}

/// For each thing that may be changed its place among the values; 0 leaves it as it is.
pub type Choice = Vec<usize>;

/// Everything that may be changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Space {
    knobs: Vec<Knob>,
}

impl Space {
    /// What may be changed in an object of the newest version of its kind.
    #[must_use]
    pub fn of(object: &Value) -> Space {
        let mut knobs = Vec::new();
        let metrics = object.pointer("/spec/metrics").and_then(Value::as_array);
        for (index, metric) in metrics.into_iter().flatten().enumerate().take(MOST_METRICS) {
            knobs.extend(target(index, metric));
        }
        let mut add = |path: &str, values: Vec<Value>| {
            knobs.push(Knob { path: path.to_owned(), values });
        };
        let own = object["kind"] == pod_autoscaler::KIND;
        if own || object["kind"] == "HorizontalPodAutoscaler" {
            let windows = WINDOWS.map(|seconds| json!(seconds)).to_vec();
            add("spec.behavior.scaleDown.stabilizationWindowSeconds", windows);
            let percent =
                |value: i64| json!([{"type": "Percent", "value": value, "periodSeconds": 15}]);
            add("spec.behavior.scaleUp.policies", vec![percent(50), percent(100), percent(300)]);
            add("spec.behavior.scaleDown.policies", vec![percent(10), percent(50), percent(100)]);
        }
        if own {
            add("spec.profile", vec![json!("Balanced"), json!("Cheap"), json!("Safe")]);
            let window = |stable: &str| json!({"stable": stable, "panic": "6s", "panicThresholdPercent": 200});
            add("spec.window", vec![window("60s"), window("3m")]);
        }
        Space { knobs }
    }

    /// How many values each thing has beside the one that it has now.
    #[must_use]
    pub fn sizes(&self) -> Vec<usize> {
        self.knobs.iter().map(|knob| knob.values.len()).collect()
    }

    /// The changes that a choice stands for.
    ///
    /// # Errors
    /// A path cannot be read, which no path of a space is.
    pub fn edits(&self, choice: &[usize]) -> Result<Vec<Edit>, EditError> {
        let changes = self.knobs.iter().zip(choice).filter_map(|(knob, place)| {
            let value = knob.values.get(place.checked_sub(1)?)?;
            Some(Edit::parse(&format!("{}={value}", knob.path)))
        });
        changes.collect()
    }

    /// A choice in words.
    #[must_use]
    pub fn text(&self, choice: &[usize]) -> String {
        let changes = self.knobs.iter().zip(choice).filter_map(|(knob, place)| {
            let value = knob.values.get(place.checked_sub(1)?)?;
            let path = knob.path.trim_start_matches("spec.");
            Some(format!("{path}={value}"))
        });
        let changes: Vec<String> = changes.collect();
        if changes.is_empty() { "as it is".to_owned() } else { changes.join(" ") }
    }
}

/// The target of a metric.
fn target(index: usize, metric: &Value) -> Option<Knob> {
    let (source, target) = metric
        .as_object()?
        .iter()
        .find_map(|(name, source)| Some((name, source.get("target")?.as_object()?)))?;
    let path = |field: &str| format!("spec.metrics[{index}].{source}.target.{field}");
    if let Some(now) = target.get("averageUtilization").and_then(Value::as_i64) {
        let others = PERCENTS.into_iter().filter(|percent| *percent != now);
        let values = others.map(|percent| json!(percent)).collect();
        return Some(Knob { path: path("averageUtilization"), values });
    }
    let (field, now) = ["averageValue", "value"]
        .into_iter()
        .find_map(|field| Some((field, target.get(field).filter(|value| !value.is_null())?)))?;
    let now: Quantity = serde_json::from_value(now.clone()).ok()?;
    let now = now.as_approximate_f64();
    let values = FACTORS.map(|factor| (now * factor * 1000.0).round());
    let values: Vec<Value> = values
        .into_iter()
        .filter(|milli| *milli >= 1.0 && *milli < 1e15)
        .map(|milli| json!(format!("{}m", milli as i64)))
        .collect();
    Some(Knob { path: path(field), values })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_windows_and_policies_may_be_changed() {
        let object = json!({"kind": "HorizontalPodAutoscaler", "spec": {"metrics": [
            {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}},
            {"type": "External", "external": {"metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "10"}}}]}});
        let space = Space::of(&object);
        assert_eq!(space.sizes(), [5, 5, 5, 3, 3]);
        assert_eq!(space.text(&[0, 0, 0, 0, 0]), "as it is");
        let choice = [1, 2, 1, 0, 0];
        assert_eq!(
            space.text(&choice),
            "metrics[0].resource.target.averageUtilization=40 \
             metrics[1].external.target.averageValue=\"7500m\" \
             behavior.scaleDown.stabilizationWindowSeconds=0"
        );
        let mut changed = object;
        for edit in space.edits(&choice).expect("changes") {
            edit.apply(&mut changed).expect("a place");
        }
        assert_eq!(
            changed.pointer("/spec/metrics/1/external/target/averageValue"),
            Some(&json!("7500m"))
        );
        assert_eq!(
            changed.pointer("/spec/behavior/scaleDown/stabilizationWindowSeconds"),
            Some(&json!(0))
        );
    }

    #[test]
    fn only_a_pod_autoscaler_has_profiles() {
        let object = |kind: &str| json!({"kind": kind, "spec": {}});
        assert_eq!(Space::of(&object("PodAutoscaler")).sizes(), [5, 3, 3, 3, 2]);
        assert_eq!(Space::of(&object("CHPA")).sizes(), [0usize; 0]);
    }
}
