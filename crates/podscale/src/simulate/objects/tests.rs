use super::*;
use podscale_sim::workload::Kind;

const OBJECTS: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  template:
    spec:
      containers:
      - {name: web, resources: {requests: {cpu: 200m, memory: 64Mi}, limits: {cpu: 1}}}
      - {name: proxy, resources: {requests: {cpu: 50m}}}
---
# nothing here
---
apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 10
  targetCPUUtilizationPercentage: 60
";

fn subjects(text: &str, edits: &[&str]) -> Result<Vec<Subject>, InputError> {
    let mut objects = Objects::default();
    objects.add_text("test", text)?;
    let edits: Result<Vec<Edit>, EditError> = edits.iter().map(|edit| Edit::parse(edit)).collect();
    objects.subjects(&edits?, &ModelOptions::default())
}

#[test]
fn an_autoscaler_finds_its_targets_pods() {
    let found = subjects(OBJECTS, &[]).expect("an autoscaler");
    let [web] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((web.name().as_str(), web.plan.replicas), ("shop/web", 3));
    let containers = &web.plan.template.containers;
    assert_eq!(containers.len(), 2);
    assert_eq!(containers[0].cpu_request_millis, Some(200.0));
    assert_eq!(containers[0].memory_request_bytes, Some(64.0 * 1024.0 * 1024.0));
    assert_eq!(containers[0].cpu_limit_millis, Some(1000.0));
    assert_eq!(web.plan.workload.cpu_ms_per_request, 4.0, "200m for 50 requests a second");
    assert_eq!(web.notes.len(), 1, "{:?}", web.notes);
}

#[test]
fn fields_are_set_in_the_newest_version_and_checked() {
    let path = "spec.behavior.scaleDown.stabilizationWindowSeconds";
    let found = subjects(OBJECTS, &[&format!("{path}=60"), "spec.maxReplicas=20"]).expect("one");
    let behavior = found[0].autoscaler().behavior.as_ref().expect("a behavior");
    assert_eq!(behavior.scale_down.stabilization_window, Some(Span::seconds(60)));
    assert_eq!(found[0].autoscaler().max_replicas, 20);
    for (edit, expected) in [
        ("spec.maxReplica=3", "spec.maxReplica: there is no such field"),
        ("spec.maxReplicas=0", "spec.maxReplicas"),
        ("spec.metrics[3].type=x", "there is no such place"),
    ] {
        let error = subjects(OBJECTS, &[edit]).expect_err(edit).to_string();
        assert!(error.contains(expected), "{edit}: {error}");
    }
}

#[test]
fn what_is_missing_is_assumed_and_said() {
    let queue = "
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: worker}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: worker}
  maxReplicas: 10
  metrics:
  - type: External
    external: {metric: {name: orders_lag}, target: {type: AverageValue, averageValue: '30'}}
";
    let found = subjects(queue, &[]).expect("an autoscaler");
    assert_eq!(found[0].plan.workload.kind, Kind::Consumer);
    assert_eq!(found[0].plan.objective_seconds, 60.0);
    let notes = found[0].notes.join("\n");
    for expected in
        ["Deployment worker is not among", "a guess", "orders_lag is taken as the length"]
    {
        assert!(notes.contains(expected), "{notes}");
    }
    let error = subjects("a: 1\n", &[]).expect_err("nothing to simulate").to_string();
    assert!(error.starts_with("there is no autoscaler in what was given"), "{error}");
    let error = subjects("a: 1\n---\na: [\n", &[]).expect_err("not YAML").to_string();
    assert!(error.starts_with("test:"), "{error}");
}
