mod odd_samples;

use super::*;
use std::fmt::Write;

/// One container as a kubelet reports it: pod, container, start, cpu, memory, and when it was read.
/// Times are seconds after [`at`] zero.
#[derive(Clone, Copy)]
struct Line(&'static str, &'static str, f64, f64, f64, f64);

const BASE: i64 = 1_700_000_000;

fn at(second: f64) -> Timestamp {
    Timestamp::from_millisecond(BASE * 1000 + (second * 1000.0) as i64).unwrap()
}

fn key(pod: &str) -> PodKey {
    ("shop".into(), pod.into())
}

fn text(second: f64, lines: &[Line]) -> String {
    let mut text = String::new();
    let ms = at(second).as_millisecond();
    writeln!(text, "node_cpu_usage_seconds_total {} {ms}", second * 2.0).unwrap();
    writeln!(text, "node_memory_working_set_bytes 4096 {ms}").unwrap();
    for Line(pod, container, start, cpu, memory, time) in lines {
        let labels = format!("{{container=\"{container}\",namespace=\"shop\",pod=\"{pod}\"}}");
        let ms = at(*time).as_millisecond();
        writeln!(text, "container_cpu_usage_seconds_total{labels} {cpu} {ms}").unwrap();
        writeln!(text, "container_memory_working_set_bytes{labels} {memory} {ms}").unwrap();
        if !start.is_nan() {
            let start = BASE as f64 + start;
            writeln!(text, "container_start_time_seconds{labels} {start}").unwrap();
        }
    }
    text
}

fn store() -> Store {
    Store::new(Limits { resolution: Duration::from_secs(15), max_age: Duration::from_secs(60) })
}

fn scrape(store: &Store, node: &str, second: f64, lines: &[Line]) -> Applied {
    store.apply(node, &Scrape::read(&text(second, lines)), at(second))
}

/// What a store says of a pod: milli-cores and window of each container, or nothing.
fn said(store: &Store, pod: &str, second: f64) -> String {
    let Some(used) = store.pod(&key(pod), at(second)) else { return "unknown".to_owned() };
    let each = used.containers.iter().map(|(name, used)| {
        format!("{name} {}m {}s", used.cpu_nanos / 1_000_000, used.window.as_secs_f64())
    });
    each.collect::<Vec<_>>().join(", ")
}

const NAN: f64 = f64::NAN;

#[test]
fn pods_and_nodes_have_times_and_amounts() {
    let store = store();
    let line = |pod, second: f64, memory| Line(pod, "app", 0.0, second / 4.0, memory, second);
    scrape(&store, "n1", 100.0, &[line("web", 100.0, 500.0)]);
    assert_eq!(store.node("n1", at(100.0)), None);
    let applied = scrape(&store, "n1", 115.0, &[line("web", 115.0, 700.0)]);
    assert!(applied.news);
    let used = store.pod(&key("web"), at(115.0)).unwrap();
    assert_eq!((used.time, used.window), (at(115.0), Duration::from_secs(15)));
    assert_eq!(used.containers[0].1.memory_bytes, 700);
    let node = store.node("n1", at(115.0)).unwrap();
    assert_eq!((node.cpu_nanos, node.memory_bytes), (2_000_000_000, 4096));
    assert_eq!((store.nodes(), store.pods()), (1, 1));
    assert_eq!(store.node("n2", at(115.0)), None);
    let again = scrape(&store, "n1", 115.0, &[line("web", 115.0, 700.0)]);
    assert_eq!(again, Applied::default(), "nothing is new");
    assert_eq!(store.oldest(at(120.0)), Some(SignedDuration::from_secs(5)));
    let mut found = Vec::new();
    store.read(at(116.0)).pods_in("shop", |name, used| found.push((name.to_string(), used.time)));
    assert_eq!(found, [("web".to_owned(), at(115.0))]);
    store.read(at(116.0)).pods_in("other", |name, _| panic!("{name} is not there"));
}

#[test]
fn nodes_do_not_concern_one_another() {
    let store = store();
    for second in [100.0, 115.0] {
        for (node, pod) in [("n1", "a"), ("n2", "b")] {
            scrape(&store, node, second, &[Line(pod, "app", 0.0, second, 5.0, second)]);
        }
    }
    // Scrapes of n1 fail from now on.
    for second in [130.0, 145.0, 160.0] {
        scrape(&store, "n2", second, &[Line("b", "app", 0.0, second, 5.0, second)]);
    }
    assert_eq!(said(&store, "a", 175.0), "app 1000m 15s", "it is kept until it is too old");
    assert_eq!(said(&store, "a", 175.1), "unknown");
    assert_eq!(store.oldest(at(175.0)), Some(SignedDuration::from_secs(60)));
    store.remove("n2");
    assert_eq!((said(&store, "b", 160.0).as_str(), store.nodes(), store.pods()), ("unknown", 1, 1));
    scrape(&store, "n3", 175.0, &[Line("b", "app", 0.0, 175.0, 5.0, 175.0)]);
    assert_eq!(said(&store, "b", 175.0), "unknown", "what was forgotten needs a new pair");
}

#[test]
fn a_pod_of_two_nodes_is_where_it_was_started_last() {
    let store = store();
    let old = |second| [Line("web-0", "app", 0.0, second, 5.0, second)];
    let new = |second: f64| [Line("web-0", "app", 110.0, second / 2.0, 5.0, second)];
    scrape(&store, "n1", 100.0, &old(100.0));
    scrape(&store, "n1", 115.0, &old(115.0));
    assert_eq!(said(&store, "web-0", 115.0), "app 1000m 15s");
    scrape(&store, "n2", 116.0, &new(116.0));
    assert_eq!(said(&store, "web-0", 116.0), "unknown", "the old one does not speak for the new");
    scrape(&store, "n1", 130.0, &old(130.0));
    scrape(&store, "n2", 131.0, &new(131.0));
    scrape(&store, "n1", 145.0, &old(145.0));
    assert_eq!(said(&store, "web-0", 145.0), "app 500m 15s", "whichever was scraped last");
    scrape(&store, "n1", 160.0, &[]);
    assert_eq!((said(&store, "web-0", 160.0).as_str(), store.pods()), ("app 500m 15s", 1));
    store.remove("n2");
    assert_eq!(store.pods(), 0);
}

#[test]
fn pods_that_move_to_and_fro_are_found_where_they_are() {
    let store = store();
    for round in 0..20 {
        let second = 100.0 + f64::from(round) * 15.0;
        let line = |pod| Line(pod, "app", second, 1.0, 5.0, second);
        let (here, there) = if round % 2 == 0 { ("n1", "n2") } else { ("n2", "n1") };
        scrape(&store, here, second, &[line("a"), line("c")]);
        scrape(&store, there, second, &[line("b")]);
        assert_eq!(store.pods(), 3, "round {round}");
    }
}

#[test]
fn what_a_broken_scrape_does_not_mention_stays_until_it_is_too_old() {
    let store = store();
    let line = |pod, second| Line(pod, "app", 0.0, second, 5.0, second);
    for second in [100.0, 115.0] {
        scrape(&store, "n1", second, &["a", "b", "c"].map(|pod| line(pod, second)));
    }
    let broken = |second: f64| {
        let text = text(second, &[line("b", second), line("d", second)]) + "container_cpu{\n";
        store.apply("n1", &Scrape::read(&text), at(second))
    };
    let applied = broken(130.0);
    assert_eq!(applied.pods, [key("b"), key("d")]);
    let known = |second| ["a", "b", "c", "d"].map(|pod| said(&store, pod, second) != "unknown");
    assert_eq!(known(130.0), [true, true, true, false]);
    broken(175.0);
    assert_eq!((known(175.0), store.pods()), ([true, true, true, true], 4));
    broken(176.0);
    assert_eq!((known(176.0), store.pods()), ([false, true, false, true], 2), "and is forgotten");
}

#[test]
fn samples_without_a_time_have_that_of_the_scrape() {
    let store = store();
    let text = |cpu| {
        format!(
            "container_cpu_usage_seconds_total{{container=\"app\",namespace=\"shop\",pod=\"web\"}} {cpu}\n\
             container_memory_working_set_bytes{{container=\"app\",namespace=\"shop\",pod=\"web\"}} 1\n"
        )
    };
    store.apply("n1", &Scrape::read(&text(1)), at(100.0));
    store.apply("n1", &Scrape::read(&text(4)), at(110.0));
    assert_eq!(said(&store, "web", 110.0), "app 300m 10s");
}

#[test]
fn means_that_the_node_made_are_taken_as_they_are() {
    let store = store();
    let pods = |second: f64, cpu: u32| {
        let time = at(second);
        format!(
            r#"[{{"metadata":{{"name":"web","namespace":"shop"}},"timestamp":"{time}","window":"5s",
            "containers":[{{"name":"app","resources":{{"cpu":{cpu},"memory":1048576}}}}]}}]"#
        )
    };
    for (second, time, cpu, new, expected) in [
        (100.0, 100.0, 250, true, "app 250m 5s"),
        (115.0, 115.0, 10, true, "app 10m 5s"),
        (130.0, 115.0, 900, false, "app 10m 5s"),
        (145.0, 145.0, 900, true, "app 900m 5s"),
    ] {
        let scrape = Scrape::read_plain(pods(time, cpu).as_bytes(), None).unwrap();
        let applied = store.apply("n1", &scrape, at(second));
        assert_eq!(applied.pods.len(), usize::from(new), "at {second}");
        assert_eq!(said(&store, "web", second), expected);
    }
}
