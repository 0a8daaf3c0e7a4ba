//! Sequences that KEDA's operator showed: what it said in conditions, events and the rest of the status.

mod beginnings;

use super::events::events;
use super::status::{Passed, to_wire};
use super::*;
use crate::keda::scaled_object::ScaledObjectStatus;
use crate::keda::scaled_object::status::TargetResource;
use podscale_core::model::{MetricTarget, TargetKind};
use podscale_core::pass::{Pass, ScaleWrite, StatusWrite, Write};
use podscale_core::pod::{Phase, Pod, Ready, ReadyStatus};
use podscale_core::snapshot::{Reading, Scale, ScaleError, Selection};
use podscale_core::{History, Settings, Snapshot, Status, Time};
use serde_json::{Value, json};

const CREATED: Time = Time(1_800_000_000_000_000);

/// One ScaledObject of a Deployment and what its triggers say.
struct World {
    object: ScaledObject,
    triggers: Result<Vec<TriggerMetric>, String>,
    replicas: Result<i32, ScaleError>,
    history: History,
    now: Time,
    write: ScaleWrite,
}

/// What one pass left: the size, `Type=Status Reason` of each condition that changed, and the events.
#[derive(Debug, PartialEq)]
struct Left {
    replicas: i32,
    changed: Vec<String>,
    events: Vec<String>,
}

fn external(name: &str) -> TriggerMetric {
    let source = EventSource { kind: "redis".into(), key: name.into() };
    let targets = Targets {
        kind: TargetKind::AverageValue,
        average_value: Some(Milli(10_000)),
        ..Targets::default()
    };
    TriggerMetric::External { name: name.into(), source, targets }
}

fn object(spec: Value, annotations: Value) -> ScaledObject {
    let mut whole = json!({"scaleTargetRef": {"name": "web"}, "cooldownPeriod": 60,
        "triggers": [{"type": "redis", "name": "a", "metadata": {}}]});
    for (field, value) in spec.as_object().expect("fields") {
        whole[field] = value.clone();
    }
    let object = json!({"metadata": {"name": "web", "namespace": "shop", "generation": 2,
        "creationTimestamp": "2027-01-15T08:00:00Z", "annotations": annotations}, "spec": whole});
    serde_json::from_value(object).expect("an object")
}

impl World {
    fn new(replicas: i32, spec: Value) -> World {
        let object = object(spec, json!({}));
        let external_triggers = object.spec.triggers.iter().filter(|t| !t.is_resource());
        let names = external_triggers.enumerate().map(|(n, t)| format!("s{n}-{}", t.r#type));
        let triggers = Ok(names.map(|name| external(&name)).collect());
        let (replicas, history, write) = (Ok(replicas), History::default(), ScaleWrite::Written);
        World { object, triggers, replicas, history, now: CREATED, write }
    }

    fn annotate(&mut self, name: &str, value: Option<&str>) {
        let annotations = &mut self.object.metadata.annotations;
        match value {
            Some(value) => annotations.insert(format!("autoscaling.keda.sh/{name}"), value),
            None => drop(annotations.remove(&format!("autoscaling.keda.sh/{name}"))),
        }
    }

    /// One pass, thirty seconds after the one before, in which triggers give these values: above zero they
    /// are active, below it they fail.
    fn pass(&mut self, values: &[i64]) -> Left {
        self.now = self.now.after(Span::seconds(30));
        let model = autoscaler(&self.object, &self.triggers);
        let readings: Vec<Reading> = values.iter().map(|value| reading(*value)).collect();
        let is_made = model.metrics.iter().any(|metric| {
            matches!(&*metric.source, Source::Trigger(Trigger { of: TriggerOf::Formula(_), .. }))
        });
        let readings = if is_made { vec![Reading::Inputs(readings)] } else { readings };
        let scale = self
            .replicas
            .clone()
            .map(|replicas| Scale { spec_replicas: replicas, status_replicas: replicas });
        let count = self.replicas.as_ref().copied().unwrap_or(0).max(0);
        let pods = Selection::Pods(vec![pod(); count.unsigned_abs() as usize]);
        let status = Status::default();
        let snapshot = Snapshot {
            now: self.now,
            settings: &Settings { downscale_stabilization: Span(0), ..Settings::default() },
            autoscaler: &model,
            status: &status,
            history: &self.history,
            scale: &scale,
            pods: &pods,
            readings: &readings,
        };
        let mut pass = Pass::begin(&snapshot);
        loop {
            match pass.next_write() {
                Write::Scale(_) => pass.scale_ended(self.write.clone(), self.now),
                Write::Status(_) => pass.status_ended(StatusWrite::Written),
                Write::Nothing => break,
            }
        }
        let outcome = pass.finish();
        let checked = checked(&self.object, &self.triggers);
        let target = TargetResource {
            group: "apps".into(),
            version: "v1".into(),
            kind: "Deployment".into(),
            resource: "deployments".into(),
        };
        let object = &self.object;
        let (snapshot, outcome) = (&snapshot, &outcome);
        let passed = Passed { object, checked: &checked, snapshot, outcome, target: Some(&target) };
        let new = to_wire(passed);
        let events = events(passed, &new);
        let changed = changed(self.object.status.as_ref(), &new);
        let found = outcome.decision.replicas();
        self.history.commit(&outcome.decision.learned);
        if let (Ok(replicas), Some(found)) = (&mut self.replicas, found) {
            *replicas = found;
        }
        self.object.status = Some(new);
        let text = |event: &podscale_core::Event| format!("{}: {}", event.reason, event.message);
        Left { replicas: found.unwrap_or(-1), changed, events: events.iter().map(text).collect() }
    }

    #[track_caller]
    fn check(&mut self, values: &[i64], replicas: i32, changed: &[&str], events: &[&str]) {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let expected = Left { replicas, changed: texts(changed), events: texts(events) };
        assert_eq!(self.pass(values), expected);
    }

    fn status(&self) -> &ScaledObjectStatus {
        self.object.status.as_ref().expect("a status")
    }

    fn message(&self, kind: &str) -> &str {
        &status::get(self.status(), kind).expect("a condition").message
    }
}

fn reading(value: i64) -> Reading {
    match value {
        ..0 => Reading::Failed("redis does not answer".into()),
        _ => Reading::Trigger { value: Milli(value * 1000), active: value > 0, taken: None },
    }
}

fn pod() -> Pod {
    let started = CREATED.before(Span::seconds(3600));
    let ready = Some(Ready { status: ReadyStatus::True, since: started });
    Pod { started: Some(started), ready, phase: Phase::Running, deleting: false }
}

fn changed(old: Option<&ScaledObjectStatus>, new: &ScaledObjectStatus) -> Vec<String> {
    let text = |c: &crate::keda::Condition| {
        format!("{}={} {}", c.r#type, c.status, c.reason).trim_end().to_owned()
    };
    let old: Vec<String> =
        old.map(|old| old.conditions.iter().map(text).collect()).unwrap_or_default();
    new.conditions.iter().map(text).filter(|text| !old.contains(text)).collect()
}

const READY: &str = "Ready=True ScaledObjectReady";
const NOT_ACTIVE: &str = "Active=False ScalerNotActive";
const ACTIVE: &str = "Active=True ScalerActive";
const ACTIVE_MESSAGE: &str = "Scaling is performed because triggers are active";
const NO_FALLBACK: &str = "Fallback=False NoFallbackFound";
const READY_EVENT: &str = "ScaledObjectReady: ScaledObject is ready for scaling";
const BUILT: &str = "KEDAScalersStarted: Scaler redis is built";
const STARTED: &str = "KEDAScalersStarted: Started scalers watch";
const STOPPED: &str = "KEDAScalersStopped: Stopped scalers watch";
const FAILED: &str = "KEDAScalerFailed: redis does not answer";
const UNCOMPUTED: &str = "FailedComputeMetricsReplicas: invalid metrics (1 invalid out of 1), first error \
                          is: failed to get s0-redis: redis does not answer";

#[test]
fn activation_and_cool_down() {
    let mut world = World::new(2, json!({}));
    let down = "KEDAScaleTargetDeactivated: Deactivated apps/v1.Deployment shop/web from 2 to 0";
    let first = [READY, NOT_ACTIVE, NO_FALLBACK, "Paused=False"];
    world.check(&[0], 0, &first, &[BUILT, STARTED, READY_EVENT, down]);
    world.check(&[0], 0, &[], &[]);
    let up = "KEDAScaleTargetActivated: Scaled apps/v1.Deployment shop/web from 0 to 1, triggered by \
              s0-redis";
    world.check(&[25], 1, &[ACTIVE], &[up]);
    let more = "SuccessfulRescale: New size: 3; reason: external metric s0-redis above target";
    world.check(&[25], 3, &[], &[more]);
    let fewer = "SuccessfulRescale: New size: 1; reason: All metrics below target";
    world.check(&[0], 1, &["Active=False ScalerCooldown"], &[fewer]);
    let down = "KEDAScaleTargetDeactivated: Deactivated apps/v1.Deployment shop/web from 1 to 0";
    world.check(&[0], 0, &[NOT_ACTIVE], &[down]);

    let status = serde_json::to_value(world.status()).expect("JSON");
    assert_eq!(status["scaleTargetKind"], "apps/v1.Deployment");
    assert_eq!(status["originalReplicaCount"], 2);
    assert_eq!(status["externalMetricNames"], json!(["s0-redis"]));
    assert_eq!(status["triggersActivity"], json!({"s0-redis": {"isActive": false}}));
    assert_eq!(
        (&status["triggersTypes"], &status["authenticationsTypes"]),
        (&json!("redis"), &json!(""))
    );
    assert_eq!(status["lastActiveTime"], "2027-01-15T08:02:00Z");
    assert_eq!(status.get("health"), None);
    assert_eq!(
        world.message("Ready"),
        "ScaledObject is defined correctly and is ready for scaling"
    );
}

#[test]
fn errors_of_triggers() {
    let two =
        json!({"triggers": [{"type": "redis", "metadata": {}}, {"type": "kafka", "metadata": {}}]});
    let mut world = World::new(3, two);
    world.pass(&[30, 30]);
    world.check(&[-1, 30], 3, &["Ready=Unknown PartialTriggerError"], &[FAILED]);
    let failed = "FailedComputeMetricsReplicas: invalid metrics (1 invalid out of 2), first error is: \
                  failed to get s0-redis: redis does not answer";
    let changed = ["Ready=False TriggerError", NOT_ACTIVE];
    world.check(&[-1, 0], 3, &changed, &[FAILED, failed]);
    assert_eq!(
        world.message("Ready"),
        "Triggers defined in ScaledObject are not working correctly"
    );
    world.check(&[30, 30], 3, &[READY, ACTIVE], &[]);

    world.write = ScaleWrite::Failed("conflict".into());
    world.pass(&[0, 0]);
    let failed = "KEDAScaleTargetDeactivationFailed: Failed to deactivate apps/v1.Deployment shop/web \
                  from 3 to 0: conflict";
    world.check(&[0, 0], 3, &["Ready=False ErrorScalingTarget", NOT_ACTIVE], &[failed]);
    assert_eq!(world.message("Ready"), "error deactivating ScaleTarget: conflict");

    world.replicas = Err(ScaleError::Unreadable("deployments.apps \"web\" not found".into()));
    let left = world.pass(&[0, 0]);
    assert_eq!(left.changed, ["Ready=False ErrorGettingCurrentReplicas"]);
    let message =
        "Error getting current replicas count for ScaleTarget: deployments.apps \"web\" not found";
    assert_eq!(world.message("Ready"), message);
}

#[test]
fn a_fallback_is_taken_and_left() {
    let mut world = World::new(1, json!({"fallback": {"failureThreshold": 1, "replicas": 3}}));
    world.pass(&[5]);
    world.check(&[-1], 1, &[NOT_ACTIVE], &[FAILED, UNCOMPUTED]);
    let status = serde_json::to_value(world.status()).expect("JSON");
    assert_eq!(status["health"], json!({"s0-redis": {"numberOfFailures": 1, "status": "Failing"}}));
    let taken = "ScaledObjectFallbackActivated: ScaledObject fallback is active";
    let more = "SuccessfulRescale: New size: 3; reason: external metric s0-redis above target";
    world.check(&[-1], 3, &[ACTIVE, "Fallback=True FallbackExists"], &[taken, more]);
    let over = "ScaledObjectFallbackDeactivated: ScaledObject fallback is no longer active";
    let fewer = "SuccessfulRescale: New size: 1; reason: All metrics below target";
    world.check(&[5], 1, &[NO_FALLBACK], &[over, fewer]);
    let status = serde_json::to_value(world.status()).expect("JSON");
    assert_eq!(status["health"], json!({"s0-redis": {"numberOfFailures": 0, "status": "Happy"}}));
}

#[test]
fn a_formula_is_one_metric() {
    let modifiers = json!({"formula": "a + b", "target": "10", "activationTarget": "5"});
    let triggers = json!([{"type": "redis", "name": "a", "metadata": {}},
        {"type": "redis", "name": "b", "metadata": {}}]);
    let spec = json!({"advanced": {"scalingModifiers": modifiers}, "triggers": triggers});
    let mut world = World::new(0, spec);
    world.pass(&[2, 3]);
    let up = "KEDAScaleTargetActivated: Scaled apps/v1.Deployment shop/web from 0 to 1, triggered by \
              composite-metric";
    world.check(&[3, 20], 1, &[ACTIVE], &[up]);
    assert_eq!(world.pass(&[3, 20]).replicas, 3);
    let failed = "KEDAMetricSourceFailed: redis does not answer";
    assert_eq!(world.pass(&[-1, 20]).events[0], failed);
    let status = serde_json::to_value(world.status()).expect("JSON");
    assert_eq!(status["compositeScalerName"], "composite-metric");
    assert_eq!(status["externalMetricNames"], json!(["s0-redis", "s1-redis"]));
    let none = json!({"s0-redis": {"isActive": false}, "s1-redis": {"isActive": false}});
    assert_eq!(status["triggersActivity"], none);
    // A target that is no whole number leaves no room for a fallback.
    let fraction = json!({"advanced": {"scalingModifiers": {"formula": "a", "target": "2.5"}},
        "fallback": {"failureThreshold": 0, "replicas": 3}});
    assert_eq!(stand_in(&object(fraction, json!({})).spec), None);
}

#[test]
fn people_pause_and_force() {
    let mut world = World::new(1, json!({}));
    world.pass(&[10]);
    world.annotate("paused-replicas", Some("4"));
    let paused = "ScaledObjectPaused: ScaledObject is paused";
    let held = "SuccessfulRescale: New size: 4; reason: Size held by the spec";
    world.check(&[0], 4, &["Paused=True ScaledObjectPaused"], &[paused, STOPPED, held]);
    assert_eq!(
        (world.message("Ready"), world.status().paused_replica_count),
        ("ScaledObject is paused", Some(4))
    );
    world.annotate("paused-replicas", Some("abc"));
    let failed = "failed to scale target to paused replica count: failed to parse paused replica count: \
                  strconv.ParseInt: parsing \"abc\": invalid syntax";
    let event = format!("ScaledObjectCheckFailed: {failed}");
    let changed = ["Ready=False ScaledObjectCheckFailed", "Active=Unknown UnknownState"];
    world.check(&[0], 4, &changed, &[event.as_str()]);
    assert_eq!((world.message("Ready"), world.status().paused_replica_count), (failed, Some(4)));
    world.annotate("paused-replicas", None);
    let left = world.pass(&[40]);
    assert_eq!(left.changed, [READY, ACTIVE, "Paused=False ScaledObjectUnpaused"]);
    let unpaused = "ScaledObjectUnpaused: pause annotation removed for ScaledObject";
    assert_eq!(left.events[..3], [unpaused, BUILT, STARTED]);
    assert_eq!((left.replicas, world.status().paused_replica_count), (4, None));

    world.annotate("paused-scale-in", Some("true"));
    let left = world.pass(&[0]);
    assert_eq!((left.replicas, left.changed.len()), (4, 2));
    assert_eq!(left.changed, [NOT_ACTIVE, "Paused=True ScaledObjectPaused"]);
    world.annotate("paused-scale-in", None);
    world.annotate("paused-scale-out", Some("true"));
    assert_eq!(world.pass(&[90]).replicas, 4, "up is held, down is not");
    world.annotate("paused-scale-out", None);
    world.annotate("paused", Some("true"));
    let left = world.pass(&[90]);
    assert_eq!((left.replicas, world.message("Ready")), (4, "ScaledObject is paused"));
    world.annotate("paused", None);
    assert_eq!(world.pass(&[90]).replicas, 8);

    let mut asleep = World::new(0, json!({}));
    asleep.annotate("paused-scale-out", Some("true"));
    assert_eq!(asleep.pass(&[5]).replicas, 0);
    assert_eq!(
        (asleep.status().last_active_time, asleep.message("Active")),
        (None, ACTIVE_MESSAGE)
    );

    let mut zero = World::new(0, json!({}));
    zero.pass(&[0]);
    zero.annotate("force-activation", Some("true"));
    let up = "KEDAScaleTargetActivated: Scaled apps/v1.Deployment shop/web from 0 to 1, caused by forced \
              activation annotation";
    zero.check(&[0], 1, &[ACTIVE], &[up]);
    let message = "Scaling is performed because activation is being forced by annotation";
    assert_eq!(zero.message("Active"), message);
}

#[test]
fn what_cannot_be_acted_on_is_left_alone() {
    let mut world = World::new(3, json!({}));
    world.triggers = Err("error parsing redis metadata: no listName given".to_owned());
    let left = world.pass(&[0]);
    assert_eq!(left.replicas, -1);
    let failed = "failed to ensure HPA is correctly created for ScaledObject: error parsing redis \
                  metadata: no listName given";
    assert_eq!(world.message("Ready"), failed);
    assert_eq!(world.message("Active"), "ScaledObject check failed");
    assert_eq!(left.events[0], format!("ScaledObjectCheckFailed: {failed}"));
    assert_eq!(world.status().external_metric_names, [""; 0]);
    assert_eq!(world.status().original_replica_count, Some(3));
    world.triggers = Ok(vec![external("s0-redis")]);
    assert_eq!(world.pass(&[0]).events[..3], [BUILT, STARTED, READY_EVENT]);
}

#[test]
fn the_model_has_the_bounds_of_the_hpa() {
    let model = |spec| autoscaler(&object(spec, json!({})), &Ok(vec![external("s0-redis")]));
    let least = model(json!({}));
    assert_eq!((least.min_replicas, least.max_replicas), (1, 100));
    assert_eq!((&*least.target.api_version, &*least.target.kind), ("apps/v1", "Deployment"));
    assert_eq!(least.metrics[0].target, MetricTarget::AverageValue(Milli(10_000)));
    let extensions = least.extensions.expect("extensions");
    let cooldown = Span::seconds(60);
    assert_eq!(extensions.scale_to_zero, Some(ScaleToZero { idle_replicas: 0, cooldown }));
    assert_eq!(extensions.activation.idle_from, Some(CREATED));
    let down = json!({"scaleDown": {"stabilizationWindowSeconds": 7}});
    let spec = json!({"minReplicaCount": 3, "maxReplicaCount": 9, "initialCooldownPeriod": 5,
        "advanced": {"horizontalPodAutoscalerConfig": {"behavior": down}}});
    let kept = model(spec);
    assert_eq!((kept.min_replicas, kept.max_replicas), (3, 9));
    let behavior = kept.behavior.expect("a behavior");
    assert_eq!(behavior.scale_down.stabilization_window, Some(Span::seconds(7)));
    assert_eq!(behavior.scale_up.policies.len(), 2);
    let extensions = kept.extensions.expect("extensions");
    assert_eq!(extensions.scale_to_zero, None);
    assert_eq!(extensions.activation.idle_from, Some(CREATED.after(Span::seconds(5))));
}
