//! What is said of objects that cannot do what they are for from the beginning.

use super::*;

#[test]
fn triggers_are_polled_once_a_first_pause_ends() {
    let mut world = World::new(2, json!({}));
    world.annotate("paused", Some("true"));
    let paused = "ScaledObjectPaused: ScaledObject is paused";
    let first = [READY, "Active=Unknown", NO_FALLBACK, "Paused=True ScaledObjectPaused"];
    world.check(&[0], 2, &first, &[paused, READY_EVENT]);
    world.annotate("paused", None);
    let unpaused = "ScaledObjectUnpaused: pause annotation removed for ScaledObject";
    assert_eq!(world.pass(&[5]).events[..3], [unpaused, BUILT, STARTED]);
}

#[test]
fn triggers_that_fail_from_the_beginning_are_polled() {
    let mut world = World::new(0, json!({}));
    let first = ["Ready=False TriggerError", NOT_ACTIVE, NO_FALLBACK, "Paused=False"];
    let events = [BUILT, STARTED, READY_EVENT, FAILED, UNCOMPUTED];
    world.check(&[-1], 0, &first, &events);
    world.check(&[0], 0, &[READY], &[]);
}

#[test]
fn a_target_that_was_never_there_refuses_the_object() {
    let mut world = World::new(2, json!({}));
    world.replicas = Err(ScaleError::Unreadable("deployments.apps \"web\" not found".into()));
    let refused = "ScaledObject doesn't have correct scaleTargetRef specification: deployments.apps \
                   \"web\" not found";
    let failed = "Ready=False ScaledObjectCheckFailed";
    let first = [failed, "Active=Unknown UnknownState", NO_FALLBACK, "Paused=False"];
    let missing = "ScaledObjectCheckFailed: Target resource doesn't exist";
    world.check(&[0], -1, &first, &[missing, &format!("ScaledObjectCheckFailed: {refused}")]);
    assert_eq!((world.message("Ready"), &world.status().triggers_types), (refused, &None));
    assert_eq!(world.status().external_metric_names, [""; 0]);
    world.check(&[0], -1, &[], &[]);
    world.replicas = Ok(2);
    assert_eq!(world.pass(&[15]).events[..3], [BUILT, STARTED, READY_EVENT]);
    assert_eq!(world.status().triggers_types.as_deref(), Some("redis"));
}

#[test]
fn a_target_that_somebody_set_to_zero_is_woken() {
    // As KEDA was seen to do it: `minimum` and `hand-edits` of its timeline.
    let mut active = World::new(0, json!({}));
    active.pass(&[25]);
    assert_eq!(active.pass(&[25]).replicas, 3);
    active.replicas = Ok(0);
    assert_eq!(active.pass(&[25]).replicas, 1, "there is something to do");
    let mut idle = World::new(2, json!({"minReplicaCount": 2}));
    idle.pass(&[0]);
    idle.replicas = Ok(0);
    assert_eq!(idle.pass(&[0]).replicas, 2, "there is always the minimum");
    let mut asleep = World::new(0, json!({}));
    asleep.pass(&[0]);
    assert_eq!(asleep.pass(&[0]).replicas, 0, "nothing wakes it");
}
