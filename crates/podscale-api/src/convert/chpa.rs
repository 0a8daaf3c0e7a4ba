//! The CHPA of postmates as a form: bounds and metrics as in `autoscaling/v2beta1`, and a pace of its own. What it
//! has beyond `autoscaling/v2` is told by the names that a PodAutoscaler has for it, with its defaults filled in:
//! without them its meaning would be another one.

use serde_json::{Map, Value, json};

use super::{Form, Hub, Loss, Written, losses};
use crate::chpa::{API_VERSION, KIND, TARGET_API_VERSION, TARGET_KIND, default};
use crate::hpa::convert::{self, ConvertError, Version};
use crate::hpa::v2::{self, HorizontalPodAutoscaler, metric_type};
use crate::quantity::Quantity;

/// Fields of it with their defaults, and what a PodAutoscaler calls them.
const PACE: [(&str, f64, &str); 4] = [
    (
        "downscaleForbiddenWindowSeconds",
        default::FORBIDDEN_WINDOW_SECONDS as f64,
        "spec.behavior.scaleDown.forbiddenWindowSeconds",
    ),
    (
        "upscaleForbiddenWindowSeconds",
        default::FORBIDDEN_WINDOW_SECONDS as f64,
        "spec.behavior.scaleUp.forbiddenWindowSeconds",
    ),
    (FACTOR, default::SCALE_UP_LIMIT_FACTOR, "spec.behavior.scaleUp.limit.factor"),
    (
        "scaleUpLimitMinimum",
        default::SCALE_UP_LIMIT_MINIMUM as f64,
        "spec.behavior.scaleUp.limit.minimum",
    ),
];
const FACTOR: &str = "scaleUpLimitFactor";
/// What it has in common with `autoscaling/v2beta1`.
const SHARED: [&str; 4] = ["scaleTargetRef", "minReplicas", "maxReplicas", "metrics"];

/// The form.
pub(super) struct Chpa;

impl Form for Chpa {
    fn name(&self) -> &'static str {
        "chpa"
    }

    fn describes(&self, object: &Value) -> bool {
        object["apiVersion"] == API_VERSION && object["kind"] == KIND
    }

    /// The status is left out: the controller writes another one for another kind.
    fn read(&self, object: &Value) -> Result<Hub, ConvertError> {
        let given = &object["spec"];
        let shared: Map<String, Value> = SHARED
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), given.get(name)?.clone())))
            .collect();
        let hpa = json!({"apiVersion": Version::V2beta1.api_version(), "kind": v2::KIND,
            "metadata": object["metadata"], "spec": shared});
        let mut hpa = convert::as_written(&hpa)?;
        hpa.spec.scale_target_ref.api_version = TARGET_API_VERSION.to_owned();
        let tolerance = number(given, "tolerance", default::TOLERANCE)?;
        if tolerance != default::TOLERANCE {
            let behavior = hpa.spec.behavior.get_or_insert_default();
            for rules in [&mut behavior.scale_up, &mut behavior.scale_down] {
                rules.get_or_insert_default().tolerance =
                    Quantity::parse(&tolerance.to_string()).ok();
            }
        }
        let mut beyond = Vec::new();
        for (name, usual, field) in PACE {
            let number = number(given, name, usual)?;
            // The factor is an amount there; the others are whole numbers.
            let value = if name == FACTOR {
                number.to_string().into()
            } else {
                given.get(name).filter(|_| number != usual).cloned().unwrap_or_else(|| whole(usual))
            };
            beyond.push(Loss { field: field.to_owned(), value });
        }
        Ok(Hub { hpa, beyond, foreign: Vec::new() })
    }

    fn write(&self, hub: &Hub) -> Result<Written, ConvertError> {
        let kind = &hub.hpa.spec.scale_target_ref.kind;
        if kind != TARGET_KIND {
            return Err(ConvertError::Unsuitable(format!("a CHPA cannot scale a {kind}")));
        }
        let mut known = HorizontalPodAutoscaler { status: None, ..hub.hpa.clone() };
        // It refuses what it does not know.
        known.spec.metrics.retain(|metric| metric.r#type != metric_type::CONTAINER_RESOURCE);
        known.spec.behavior = None;
        let mut object = convert::write(&known, Version::V2beta1)?;
        object["apiVersion"] = API_VERSION.into();
        object["kind"] = KIND.into();
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
        }
        if let Some(tolerance) = tolerance(&hub.hpa) {
            object["spec"]["tolerance"] = json!(tolerance.as_approximate_f64());
        }
        let mut others: Vec<Loss> = Vec::new();
        for loss in &hub.beyond {
            let Some((name, ..)) = PACE.iter().find(|(.., field)| *field == loss.field) else {
                others.push(loss.clone());
                continue;
            };
            let amount = loss.value.as_str().and_then(|text| Quantity::parse(text).ok());
            let amount = amount.map(|amount| json!(amount.as_approximate_f64()));
            object["spec"][name] = amount.unwrap_or_else(|| loss.value.clone());
        }
        let asked = HorizontalPodAutoscaler { status: None, ..hub.hpa.clone() };
        let mut lost = losses(&asked, &self.read(&object)?.hpa);
        lost.extend(others);
        Ok(Written { object, losses: lost })
    }
}

/// A number of a spec; 0 stands for its default, too.
fn number(spec: &Value, name: &str, usual: f64) -> Result<f64, ConvertError> {
    match spec.get(name) {
        None | Some(Value::Null) => Ok(usual),
        Some(given) => match given.as_f64() {
            Some(0.0) => Ok(usual),
            Some(number) => Ok(number),
            None => Err(ConvertError::Unsuitable(format!("spec.{name} is no number: {given}"))),
        },
    }
}

fn whole(number: f64) -> Value {
    serde_json::from_str(&number.to_string()).unwrap_or_default()
}

/// The tolerance, if it is the same in both directions.
fn tolerance(hpa: &HorizontalPodAutoscaler) -> Option<&Quantity> {
    let behavior = hpa.spec.behavior.as_ref()?;
    let up = behavior.scale_up.as_ref()?.tolerance.as_ref();
    let down = behavior.scale_down.as_ref()?.tolerance.as_ref();
    up.filter(|_| up == down)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::{convert, form};

    fn object() -> Value {
        json!({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "web"},
            "spec": {"minReplicas": 1, "maxReplicas": 9, "tolerance": 0.25, "scaleUpLimitFactor": 1.5,
                "upscaleForbiddenWindowSeconds": 60,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "metrics": [{"type": "Resource",
                    "resource": {"name": "cpu", "targetAverageUtilization": 80}}]}})
    }

    #[test]
    fn a_pod_autoscaler_can_say_all_of_it() {
        let pa = convert(&object(), form("pa").expect("a form")).expect("a CHPA").expect("another");
        assert_eq!(pa.losses, []);
        assert_eq!(
            pa.object["spec"]["behavior"],
            json!({"scaleDown": {"tolerance": "250m", "forbiddenWindowSeconds": 300},
                "scaleUp": {"tolerance": "250m", "forbiddenWindowSeconds": 60,
                    "limit": {"factor": "1.5", "minimum": 4}}})
        );
        let back = convert(&pa.object, &Chpa).expect("a PodAutoscaler").expect("another");
        assert_eq!(back.losses, []);
        let mut expected = object();
        expected["spec"]["downscaleForbiddenWindowSeconds"] = 300.into();
        expected["spec"]["scaleUpLimitMinimum"] = 4.into();
        assert_eq!(back.object, expected);
    }

    #[test]
    fn its_target_is_where_deployments_are_now() {
        for version in ["extensions/v1beta1", ""] {
            let mut chpa = object();
            chpa["spec"]["scaleTargetRef"]["apiVersion"] = version.into();
            let pa = convert(&chpa, form("pa").expect("a form")).expect("a CHPA").expect("another");
            assert_eq!(pa.object["spec"]["scaleTargetRef"]["apiVersion"], "apps/v1");
        }
    }

    #[test]
    fn an_hpa_cannot_say_its_pace() {
        let hpa = convert(&object(), form("hpa.v2").expect("a form")).expect("a CHPA");
        let hpa = hpa.expect("another");
        let lost: Vec<&str> = hpa.losses.iter().map(|loss| loss.field.as_str()).collect();
        assert_eq!(lost, PACE.map(|(.., field)| field));
        assert_eq!(hpa.object["spec"]["behavior"]["scaleUp"], json!({"tolerance": "250m"}));
        let back = convert(&hpa.object, &Chpa).expect("an HPA").expect("another");
        assert_eq!(back.losses, []);
        assert_eq!(back.object["spec"]["tolerance"], 0.25);
    }

    #[test]
    fn what_it_cannot_say_is_lost_or_refused() {
        let mut hpa =
            convert(&object(), form("hpa.v2").expect("a form")).expect("a CHPA").expect("one");
        hpa.object["spec"]["behavior"]["scaleUp"]["selectPolicy"] = "Min".into();
        let lost = convert(&hpa.object, &Chpa).expect("an HPA").expect("another").losses;
        let lost: Vec<String> = lost.iter().map(ToString::to_string).collect();
        assert_eq!(lost, [r#"spec.behavior.scaleUp.selectPolicy: "Min""#]);
        hpa.object["spec"]["scaleTargetRef"]["kind"] = "StatefulSet".into();
        let error = convert(&hpa.object, &Chpa).expect_err("no Deployment");
        assert_eq!(error.to_string(), "a CHPA cannot scale a StatefulSet");
        let mut wrong = object();
        wrong["spec"]["tolerance"] = "much".into();
        assert!(convert(&wrong, form("pa").expect("a form")).is_err());
    }
}
