//! Objects of KEDA's.

use super::checked;
use super::kinds::{NONE, changed};

const SCALED_OBJECT: &str = "\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: web
spec:
  minReplicaCount: 1
  maxReplicaCount: 5
  scaleTargetRef:
    name: web
  triggers:
  - type: cron
    metadata:
      timezone: Etc/UTC
      start: 0 8 * * *
      end: 0 18 * * *
      desiredReplicas: \"4\"
";

const SCALED_JOB: &str = "\
apiVersion: keda.sh/v1alpha1
kind: ScaledJob
metadata:
  name: mail
spec:
  maxReplicaCount: 5
  scalingStrategy:
    strategy: accurate
  jobTargetRef:
    template: {spec: {containers: [{name: c, image: mail}]}}
  triggers:
  - type: cron
    metadata:
      timezone: Etc/UTC
      start: 0 8 * * *
      end: 0 18 * * *
      desiredReplicas: \"4\"
";

#[test]
fn good_ones_are_good() {
    for text in [SCALED_OBJECT, SCALED_JOB] {
        assert_eq!(checked(text), NONE, "{text}");
    }
}

#[test]
fn scaled_objects_are_refused_in_the_words_of_keda() {
    for (from, to, expected) in [
        (
            "minReplicaCount: 1",
            "idleReplicaCount: 1",
            "spec: IdleReplicaCount=1 must be less than MinReplicaCount=0",
        ),
        ("type: cron", "type: crom", "spec.triggers[0]: no scaler found for type: crom"),
        ("start: 0 8", "start: 61 8", "error parsing start schedule"),
        ("  - type: cron", "  - type: cron\n    useCachedMetrics: true", "spec.triggers: property"),
        ("maxReplicaCount: 5", "maxReplicas: 5", "unknown field \"spec.maxReplicas\""),
    ] {
        let found = changed(SCALED_OBJECT, from, to);
        assert!(found.contains(expected), "{to}: {found}");
    }
}

#[test]
fn scaled_jobs_are_refused_in_the_words_of_keda() {
    for (from, to, expected) in [
        (
            "strategy: accurate",
            "strategy: fast",
            "spec.scalingStrategy.strategy: Unsupported value",
        ),
        ("type: cron", "type: crom", "spec.triggers[0]: no scaler found for type: crom"),
        ("start: 0 8", "start: 61 8", "error parsing start schedule"),
        ("  - type: cron", "  - type: cron\n    useCachedMetrics: true", "spec.triggers: property"),
        ("maxReplicaCount: 5", "maxReplicas: 5", "unknown field \"spec.maxReplicas\""),
    ] {
        let found = changed(SCALED_JOB, from, to);
        assert!(found.contains(expected), "{to}: {found}");
    }
}
