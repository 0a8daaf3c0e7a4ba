use super::*;
use crate::load::{Shape, Step, Steps};
use proptest::prelude::*;

const START: Time = Time(1_000_000_000_000);

fn spec(json: &str) -> WorkloadSpec {
    serde_json::from_str(json).unwrap()
}

fn service() -> WorkloadSpec {
    spec(
        r#"{"rpsPerPod":100,"cpuMsPerRequest":5,"baseCpuMillis":10,"baseMemoryBytes":1000,
            "memoryBytesPerRequest":10,"latencySeconds":0.1,"timeoutSeconds":2}"#,
    )
}

fn pod(id: &str, ready: bool, cpu_limit_millis: Option<f64>) -> PodInput {
    PodInput { id: id.into(), ready, cpu_limit_millis, memory_limit_bytes: None }
}

fn after(seconds: i64) -> Time {
    START.after(Span::seconds(seconds))
}

#[test]
fn a_service_within_capacity_shares_the_load() {
    let mut workload = Workload::new(service(), Load::constant(60.0), START).unwrap();
    let pods = [pod("a", true, None), pod("b", true, None), pod("c", false, None)];
    let usage = workload.advance(START, after(10), &pods);
    let rates: Vec<f64> = usage.pods.iter().map(|pod| pod.rps.round()).collect();
    assert_eq!(rates, [30.0, 30.0, 0.0]);
    let cpu: Vec<f64> = usage.pods.iter().map(|pod| pod.cpu_millis.round()).collect();
    assert_eq!(cpu, [160.0, 160.0, 10.0], "5 ms × 30 + 10, and the base of the unready one");
    assert!((usage.pods[0].cpu_seconds_total - 1.6).abs() < 1e-9);
    assert!((usage.pods[0].memory_bytes - 1030.0).abs() < 1e-9, "3 requests in flight");
    assert_eq!((usage.queue, usage.dropped_rps), (0.0, 0.0));
    assert!((usage.latency_seconds - 0.1 / 0.7).abs() < 1e-9, "{}", usage.latency_seconds);
}

#[test]
fn the_cpu_limit_caps_capacity_and_requests_give_up() {
    let mut workload = Workload::new(service(), Load::constant(100.0), START).unwrap();
    let pods = [pod("a", true, Some(260.0))];
    let usage = workload.advance(START, after(10), &pods);
    assert!((usage.pods[0].cpu_millis - 260.0).abs() < 1e-6);
    assert!((usage.served_rps - 50.0).abs() < 1e-6, "(260 − 10) / 5");
    assert!((usage.queue - 100.0).abs() < 1e-6, "what 2 s of capacity can take");
    assert!((usage.dropped_rps - 40.0).abs() < 1e-6);
    assert_eq!(usage.latency_seconds, 2.0, "the timeout");
}

#[test]
fn a_queue_builds_and_drains() {
    let mut spec = service();
    spec.timeout_seconds = 100.0;
    let steps = vec![Step { at_seconds: 0.0, rps: 150.0 }, Step { at_seconds: 10.0, rps: 50.0 }];
    let shape = Shape::Steps(Steps { steps, repeat_seconds: None });
    let load = shape.resolve(|_| Err("no traces")).unwrap();
    let mut workload = Workload::new(spec, load, START).unwrap();
    let pods = [pod("a", true, None)];
    let queues: Vec<f64> = (0..25)
        .map(|second| workload.advance(after(second), after(second + 1), &pods).queue)
        .collect();
    assert_eq!((queues[0], queues[9], queues[14], queues[19]), (50.0, 500.0, 250.0, 0.0));
}

#[test]
fn a_service_without_ready_pods_refuses_and_a_consumer_keeps() {
    let mut service = Workload::new(service(), Load::constant(10.0), START).unwrap();
    let usage = service.advance(START, after(10), &[pod("a", false, None)]);
    assert_eq!((usage.queue, usage.dropped_rps, usage.latency_seconds), (0.0, 10.0, 2.0));

    let consumer =
        spec(r#"{"kind":"consumer","rpsPerPod":20,"cpuMsPerRequest":1,"queueLimit":150}"#);
    let mut consumer = Workload::new(consumer, Load::constant(10.0), START).unwrap();
    assert_eq!(consumer.advance(START, after(10), &[]).queue, 100.0);
    assert_eq!(consumer.advance(after(10), after(20), &[]).queue, 150.0);
    assert_eq!(consumer.totals().dropped, 50.0);
    let usage = consumer.advance(after(20), after(30), &[pod("a", true, None)]);
    assert_eq!((usage.queue, usage.served_rps), (50.0, 20.0));
    consumer.enqueue(25.0);
    consumer.enqueue(f64::NAN);
    assert_eq!(consumer.totals().waiting, 75.0);
}

#[test]
fn how_time_is_cut_hardly_matters() {
    let mut spec = service();
    spec.jitter = 0.2;
    let pods = [pod("a", true, Some(300.0)), pod("b", true, None)];
    let load = Load::constant(170.0);
    let mut once = Workload::new(spec.clone(), load.clone(), START).unwrap();
    let mut often = Workload::new(spec, load, START).unwrap();
    let whole = once.advance(START, after(30), &pods);
    let mut last = Usage::default();
    let mut at = START;
    while at < after(30) {
        let next = at.after(Span(700_000)).min(after(30));
        last = often.advance(at, next, &pods);
        at = next;
    }
    assert!((whole.queue - last.queue).abs() < 1.0, "{} {}", whole.queue, last.queue);
    for (one, other) in whole.pods.iter().zip(&last.pods) {
        assert!((one.cpu_seconds_total - other.cpu_seconds_total).abs() < 0.2, "{one:?} {other:?}");
    }
}

#[test]
fn counters_begin_anew_with_a_new_container_and_time_never_runs_back() {
    let mut workload = Workload::new(service(), Load::constant(10.0), START).unwrap();
    let first = workload.advance(START, after(10), &[pod("a", true, None)]);
    let still = workload.advance(after(10), after(5), &[pod("a", true, None)]);
    assert_eq!(first.pods[0].cpu_seconds_total, still.pods[0].cpu_seconds_total);
    assert_eq!(still.pods[0].cpu_millis, 0.0);
    let restarted = workload.advance(after(10), after(11), &[pod("a/1", true, None)]);
    assert!(restarted.pods[0].cpu_seconds_total < first.pods[0].cpu_seconds_total);
}

#[test]
fn numbers_out_of_range_are_named() {
    for (change, expected) in [
        (
            r#"{"rpsPerPod":-1,"cpuMsPerRequest":1}"#,
            "rpsPerPod: -1 is not between 0 and 1000000000",
        ),
        (r#"{"rpsPerPod":1,"cpuMsPerRequest":1,"jitter":2}"#, "jitter: 2 is not between 0 and 0.5"),
    ] {
        let error = Workload::new(spec(change), Load::none(), START).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    assert!(serde_json::from_str::<WorkloadSpec>(r#"{"rpsPerPod":1,"cpuMs":1}"#).is_err());
}

#[test]
fn latency_rises_with_load_and_falls_with_capacity() {
    let spec = service();
    let mut before = 0.0;
    for step in 0..400 {
        let latency = spec.latency(f64::from(step) * 0.5, f64::from(step / 4), 100.0);
        assert!(latency >= before, "{step}: {latency} < {before}");
        before = latency;
    }
    assert!(spec.latency(50.0, 10.0, 200.0) < spec.latency(50.0, 10.0, 100.0));
}

#[derive(Clone, Debug)]
struct Tick {
    millis: i64,
    rps: f64,
    pods: Vec<(u8, bool, Option<f64>)>,
}

fn ticks() -> impl Strategy<Value = Vec<Tick>> {
    let pod = (0..6u8, any::<bool>(), prop::option::of(0.0..2000.0));
    let tick = (0..30_000i64, 0.0..5000.0, prop::collection::vec(pod, 0..6))
        .prop_map(|(millis, rps, pods)| Tick { millis, rps, pods });
    prop::collection::vec(tick, 1..20)
}

fn specs() -> impl Strategy<Value = WorkloadSpec> {
    (any::<bool>(), 0.0..500.0, 0.0..50.0, 0.0..100.0, 0.0..0.5, 0.0..20.0, any::<u64>()).prop_map(
        |(consumer, rps, cpu, base, jitter, timeout, seed)| WorkloadSpec {
            kind: if consumer { Kind::Consumer } else { Kind::Service },
            rps_per_pod: rps,
            cpu_ms_per_request: cpu,
            memory_bytes_per_request: 1000.0,
            base_cpu_millis: base,
            base_memory_bytes: 5000.0,
            latency_seconds: 0.1,
            timeout_seconds: timeout,
            queue_limit: 20_000.0,
            jitter,
            seed,
        },
    )
}

proptest! {
    #[test]
    fn work_is_conserved_and_limits_hold(spec in specs(), ticks in ticks()) {
        let mut workload = Workload::new(spec.clone(), Load::none(), START).unwrap();
        let mut again = workload.clone();
        let mut at = START;
        let mut counters: HashMap<Arc<str>, f64> = HashMap::new();
        for tick in ticks {
            let mut pods: Vec<PodInput> = tick.pods.iter().map(|(id, ready, limit)| PodInput {
                id: format!("pod-{id}").into(), ready: *ready, cpu_limit_millis: *limit,
                memory_limit_bytes: limit.map(|limit| limit * 10.0),
            }).collect();
            pods.sort_by(|a, b| a.id.cmp(&b.id));
            pods.dedup_by(|a, b| a.id == b.id);
            workload.set_load(Load::constant(tick.rps), START);
            again.set_load(Load::constant(tick.rps), START);
            let next = at.after(Span(tick.millis * 1000));
            let usage = workload.advance(at, next, &pods);
            prop_assert_eq!(&usage, &again.advance(at, next, &pods), "the same twice");
            at = next;

            let totals = workload.totals();
            let accounted = totals.served + totals.dropped + totals.waiting;
            prop_assert!((totals.arrived - accounted).abs() <= 1e-6 * totals.arrived.max(1.0), "{totals:?}");
            prop_assert!(totals.served >= 0.0 && totals.dropped >= 0.0 && totals.waiting >= 0.0);
            prop_assert!(usage.latency_seconds >= 0.0 && usage.latency_seconds.is_finite());
            prop_assert_eq!(usage.pods.len(), pods.len());
            for (pod, used) in pods.iter().zip(&usage.pods) {
                let room = 1.0 + 1e-9;
                prop_assert!(used.cpu_millis >= 0.0 && used.memory_bytes >= 0.0 && used.rps >= 0.0);
                prop_assert!(used.rps <= spec.capacity(pod.cpu_limit_millis) * room + 1e-9);
                prop_assert!(pod.ready || used.rps == 0.0);
                if let Some(limit) = pod.cpu_limit_millis {
                    prop_assert!(used.cpu_millis <= limit * room + 1e-9, "{used:?} limit {limit}");
                    prop_assert!(used.memory_bytes <= limit * 10.0);
                }
                let before = counters.insert(Arc::clone(&pod.id), used.cpu_seconds_total);
                prop_assert!(used.cpu_seconds_total >= before.unwrap_or(0.0));
            }
            counters.retain(|id, _| pods.iter().any(|pod| pod.id == *id));
        }
    }
}
