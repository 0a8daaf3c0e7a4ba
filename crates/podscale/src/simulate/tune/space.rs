//! What may be changed in an autoscaler.

use crate::simulate::edit::{Edit, EditError};
use podscale_api::hpa::v2;
use podscale_api::keda::{POLLING_INTERVAL_SECONDS, scaled_job, scaled_object};
use podscale_api::pod_autoscaler;
use podscale_api::quantity::Quantity;
use podscale_controller::triggers::offline::{TargetNow, TriggerTarget};
use serde_json::{Value, json};

/// Targets in percent that are tried.
const PERCENTS: [i64; 6] = [40, 50, 60, 70, 80, 90];
/// By what other targets are multiplied.
const FACTORS: [f64; 5] = [0.6, 0.75, 0.9, 1.1, 1.3];
/// Windows that hold up a scale-down, in seconds.
const WINDOWS: [i64; 5] = [0, 60, 120, 300, 600];
/// How long nothing is to do before a target becomes idle, in seconds.
const COOLDOWNS: [i64; 4] = [30, 120, 300, 900];
/// How often the triggers of a ScaledJob are asked, in seconds.
const POLLS: [i64; 5] = [5, 10, 15, 30, 60];
/// By which rules a load becomes a number of Jobs.
const STRATEGIES: [&str; 3] = ["default", "accurate", "eager"];
/// The rule that needs numbers of its own.
const CUSTOM: &str = "custom";
/// More metrics or triggers than these are left as they are.
const MOST_METRICS: usize = 4;

/// One thing that may be changed, and to what.
#[derive(Clone, Debug, PartialEq)]
struct Knob {
    path: String,
    values: Vec<Value>,
}

impl Knob {
    fn new(path: impl Into<String>, values: Vec<Value>) -> Knob {
        Knob { path: path.into(), values }
    }
}

/// For each thing that may be changed its place among the values; 0 leaves it as it is.
pub type Choice = Vec<usize>;

/// Everything that may be changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Space {
    knobs: Vec<Knob>,
}

impl Space {
    /// What may be changed in an object of the newest version of its kind, and in the targets of its triggers.
    #[must_use]
    pub fn of(object: &Value, triggers: &[TriggerTarget]) -> Space {
        let mut knobs = Vec::new();
        let metrics = object.pointer("/spec/metrics").and_then(Value::as_array);
        for (index, metric) in metrics.into_iter().flatten().enumerate().take(MOST_METRICS) {
            knobs.extend(target(index, metric));
        }
        let of_jobs = object["kind"] == scaled_job::KIND;
        // What pods use says nothing of how many Jobs there should be.
        let counts =
            |target: &&TriggerTarget| !of_jobs || matches!(target.now, TargetNow::Number { .. });
        knobs.extend(triggers.iter().filter(counts).take(MOST_METRICS).filter_map(of_trigger));
        let own = object["kind"] == pod_autoscaler::KIND;
        if own || object["kind"] == v2::KIND {
            knobs.extend(behavior("spec.behavior"));
        }
        if own {
            let profiles = ["Balanced", "Cheap", "Safe"].map(|profile| json!(profile)).to_vec();
            knobs.push(Knob::new("spec.profile", profiles));
            let window = |stable: &str| json!({"stable": stable, "panic": "6s", "panicThresholdPercent": 200});
            knobs.push(Knob::new("spec.window", vec![window("60s"), window("3m")]));
        }
        if object["kind"] == scaled_object::KIND {
            knobs.extend(of_scaled_object(&object["spec"]));
        }
        if of_jobs {
            knobs.extend(of_scaled_job(&object["spec"]));
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

/// How steadily and how fast the size changes.
fn behavior(path: &str) -> [Knob; 3] {
    let windows = WINDOWS.map(|seconds| json!(seconds)).to_vec();
    let percents = |values: [i64; 3]| {
        let policy = |value: i64| json!([{"type": "Percent", "value": value, "periodSeconds": 15}]);
        values.map(policy).to_vec()
    };
    [
        Knob::new(format!("{path}.scaleDown.stabilizationWindowSeconds"), windows),
        Knob::new(format!("{path}.scaleUp.policies"), percents([50, 100, 300])),
        Knob::new(format!("{path}.scaleDown.policies"), percents([10, 50, 100])),
    ]
}

/// What only the spec of a ScaledObject has.
fn of_scaled_object(spec: &Value) -> Vec<Knob> {
    let mut knobs = Vec::new();
    let formula = &spec["advanced"]["scalingModifiers"]["target"];
    if let Some(now) = formula.as_str().and_then(|text| text.parse::<f64>().ok()) {
        let values = FACTORS.into_iter().filter_map(|factor| number(now * factor, false));
        knobs.push(Knob::new("spec.advanced.scalingModifiers.target", values.collect()));
    }
    knobs.extend(behavior("spec.advanced.horizontalPodAutoscalerConfig.behavior"));
    // Who is never idle has nothing to cool down from.
    let least = spec["minReplicaCount"].as_i64().unwrap_or(0);
    if least == 0 || !spec["idleReplicaCount"].is_null() {
        knobs.push(Knob::new("spec.cooldownPeriod", COOLDOWNS.map(|s| json!(s)).to_vec()));
    }
    knobs
}

/// What only the spec of a ScaledJob has.
fn of_scaled_job(spec: &Value) -> [Knob; 2] {
    let strategy = &spec["scalingStrategy"];
    let share = &strategy["customScalingRunningJobPercentage"];
    let has_custom = share.as_str().is_some_and(|text| text.parse().is_ok_and(f64::is_finite));
    let now = match strategy["strategy"].as_str() {
        Some(name) if STRATEGIES.contains(&name) || name == CUSTOM && has_custom => name,
        // What is not known, or cannot be used, is decided by the first.
        _ => STRATEGIES[0],
    };
    let others = STRATEGIES.into_iter().chain(has_custom.then_some(CUSTOM));
    let others = others.filter(|name| *name != now).map(|name| json!(name)).collect();
    let interval = spec["pollingInterval"].as_i64().unwrap_or(i64::from(POLLING_INTERVAL_SECONDS));
    let polls = POLLS.into_iter().filter(|seconds| *seconds != interval);
    [
        Knob::new("spec.scalingStrategy.strategy", others),
        Knob::new("spec.pollingInterval", polls.map(|seconds| json!(seconds)).collect()),
    ]
}

/// The target of a trigger, which its metadata have as a text.
fn of_trigger(target: &TriggerTarget) -> Option<Knob> {
    let TriggerTarget { path, now } = target;
    let mut values: Vec<Value> = match now {
        TargetNow::Percent(now) => {
            let others = PERCENTS.into_iter().filter(|percent| *percent != i64::from(*now));
            others.map(|percent| json!(percent.to_string())).collect()
        }
        TargetNow::Amount(now) => amounts(now.as_approximate_f64()),
        TargetNow::Number { value, is_whole } => {
            let values = FACTORS.into_iter().filter_map(|factor| number(value * factor, *is_whole));
            let as_it_is = number(*value, *is_whole);
            values.filter(|other| Some(other) != as_it_is.as_ref()).collect()
        }
    };
    values.dedup();
    (!values.is_empty()).then(|| Knob::new(path.as_str(), values))
}

/// A number above zero as a text, with three decimals or none.
fn number(value: f64, is_whole: bool) -> Option<Value> {
    let value = if is_whole { value.round() } else { (value * 1000.0).round() / 1000.0 };
    (value > 0.0 && value < 1e12).then(|| json!(value.to_string()))
}

/// Amounts around this one.
fn amounts(now: f64) -> Vec<Value> {
    let values = FACTORS.map(|factor| (now * factor * 1000.0).round());
    let values = values.into_iter().filter(|milli| *milli >= 1.0 && *milli < 1e15);
    values.map(|milli| json!(format!("{}m", milli as i64))).collect()
}

/// Where metrics have targets in percent, and others; the first that is there counts. Behind the names of
/// `autoscaling/v2` stand those of `autoscaling/v2beta1`, which a CHPA has.
const PERCENT_FIELDS: [&str; 2] = ["target.averageUtilization", "targetAverageUtilization"];
const VALUE_FIELDS: [&str; 5] =
    ["target.averageValue", "target.value", "targetAverageValue", "averageValue", "targetValue"];

/// The target of a metric.
fn target(index: usize, metric: &Value) -> Option<Knob> {
    let sources = metric.as_object()?.iter().filter(|(_, source)| source.is_object());
    let find = |fields: &[&'static str]| {
        sources.clone().find_map(|(name, source)| {
            let mut fields = fields.iter().map(|field| (field, at(source, field)));
            let (field, now) = fields.find(|(_, now)| !now.is_null())?;
            Some((format!("spec.metrics[{index}].{name}.{field}"), now))
        })
    };
    if let Some((path, now)) = find(&PERCENT_FIELDS) {
        let others = PERCENTS.into_iter().filter(|percent| now.as_i64() != Some(*percent));
        let values = others.map(|percent| json!(percent)).collect();
        return Some(Knob { path, values });
    }
    let (path, now) = find(&VALUE_FIELDS)?;
    let now: Quantity = serde_json::from_value(now.clone()).ok()?;
    let values = amounts(now.as_approximate_f64());
    (!values.is_empty()).then_some(Knob { path, values })
}

/// A field of a source; null if it is not there.
fn at<'a>(source: &'a Value, field: &str) -> &'a Value {
    field.split('.').fold(source, |value, name| &value[name])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_windows_and_policies_may_be_changed() {
        let object = json!({"kind": "HorizontalPodAutoscaler", "spec": {"metrics": [
            {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}},
            {"type": "External", "external": {"metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "10"}}}]}});
        let space = Space::of(&object, &[]);
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
    fn triggers_behavior_and_cooldown_of_a_scaled_object_may_be_changed() {
        let path = "spec.triggers[1].metadata.lagThreshold";
        let target = |now| [TriggerTarget { path: path.to_owned(), now }];
        let object = |spec: Value| json!({"kind": "ScaledObject", "spec": spec});
        let whole = target(TargetNow::Number { value: 10.0, is_whole: true });
        let space = Space::of(&object(json!({})), &whole);
        assert_eq!(space.sizes(), [5, 5, 3, 3, 4]);
        assert_eq!(
            space.text(&[2, 1, 0, 0, 1]),
            "triggers[1].metadata.lagThreshold=\"8\" \
             advanced.horizontalPodAutoscalerConfig.behavior.scaleDown.stabilizationWindowSeconds=0 \
             cooldownPeriod=30"
        );
        // Whole numbers that are close to each other count once, and the one that there is not at all.
        let small = target(TargetNow::Number { value: 1.0, is_whole: true });
        assert_eq!(Space::of(&object(json!({"minReplicaCount": 1})), &small).sizes(), [5, 3, 3]);
        let part = target(TargetNow::Number { value: 0.5, is_whole: false });
        assert_eq!(
            Space::of(&object(json!({})), &part).text(&[1]),
            r#"triggers[1].metadata.lagThreshold="0.3""#
        );
        let percent = target(TargetNow::Percent(50));
        assert_eq!(
            Space::of(&object(json!({})), &percent).text(&[2]),
            r#"triggers[1].metadata.lagThreshold="60""#
        );
        let formula = json!({"advanced": {"scalingModifiers": {"formula": "a", "target": "20"}}});
        assert_eq!(
            Space::of(&object(formula), &[]).text(&[1]),
            r#"advanced.scalingModifiers.target="12""#
        );
    }

    #[test]
    fn triggers_strategy_and_polls_of_a_scaled_job_may_be_changed() {
        let path = "spec.triggers[0].metadata.value";
        let target = |now| TriggerTarget { path: path.to_owned(), now };
        let targets = [
            target(TargetNow::Percent(50)),
            target(TargetNow::Number { value: 20.0, is_whole: false }),
        ];
        let space = |spec: Value| Space::of(&json!({"kind": "ScaledJob", "spec": spec}), &targets);
        let custom = |strategy: &str, share: &str| {
            json!({"pollingInterval": 15, "scalingStrategy":
                {"strategy": strategy, "customScalingRunningJobPercentage": share}})
        };
        for (spec, choice, expected) in [
            (
                json!({"maxReplicaCount": 9}),
                [1, 1, 4],
                r#"triggers[0].metadata.value="12" scalingStrategy.strategy="accurate" pollingInterval=60"#,
            ),
            (json!({"pollingInterval": 7}), [0, 0, 5], "pollingInterval=60"),
            (
                json!({"scalingStrategy": {"strategy": "eager"}}),
                [0, 2, 0],
                r#"scalingStrategy.strategy="accurate""#,
            ),
            // One that has what the custom one needs may have it, and one that is it may be another.
            (custom("accurate", "0.5"), [0, 3, 0], r#"scalingStrategy.strategy="custom""#),
            (custom("custom", "0.5"), [0, 1, 0], r#"scalingStrategy.strategy="default""#),
            (custom("custom", "half"), [0, 1, 0], r#"scalingStrategy.strategy="accurate""#),
        ] {
            assert_eq!(space(spec.clone()).text(&choice), expected, "{spec}");
        }
        assert_eq!(space(json!({})).sizes(), [5, 2, 4]);
        assert_eq!(space(custom("eager", "0.5")).sizes(), [5, 3, 4]);
    }

    #[test]
    fn only_a_pod_autoscaler_has_profiles() {
        let object = |kind: &str| json!({"kind": kind, "spec": {}});
        assert_eq!(Space::of(&object("PodAutoscaler"), &[]).sizes(), [5, 3, 3, 3, 2]);
        assert_eq!(Space::of(&object("CHPA"), &[]).sizes(), [0usize; 0]);
    }

    #[test]
    fn the_targets_of_a_chpa_have_names_of_their_own() {
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
        for (metric, expected) in [
            (
                json!({"type": "Resource", "resource": {"name": "cpu", "targetAverageUtilization": 60}}),
                "metrics[0].resource.targetAverageUtilization=40",
            ),
            (
                json!({"type": "Pods", "pods": {"metricName": "qps", "targetAverageValue": "10"}}),
                r#"metrics[0].pods.targetAverageValue="6000m""#,
            ),
            (
                json!({"type": "External", "external": {"metricName": "q", "targetValue": "10"}}),
                r#"metrics[0].external.targetValue="6000m""#,
            ),
            // What it is about is called its target.
            (
                json!({"type": "Object", "object": {"target": deployment, "metricName": "q",
                    "targetValue": "10"}}),
                r#"metrics[0].object.targetValue="6000m""#,
            ),
        ] {
            let object = json!({"kind": "CHPA", "spec": {"metrics": [metric]}});
            let space = Space::of(&object, &[]);
            assert_eq!((space.sizes(), &*space.text(&[1])), (vec![5], expected), "{metric}");
        }
    }
}
