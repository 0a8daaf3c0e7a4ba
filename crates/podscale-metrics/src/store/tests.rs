use super::*;
use std::fmt::Write;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000 + second).unwrap()
}

fn key(pod: &str) -> PodKey {
    ("shop".into(), pod.into())
}

/// Exposition text of containers: pod, container, start, cpu, memory, all read at one second.
fn text(second: i64, containers: &[(&str, &str, f64, f64, f64)]) -> String {
    let mut text = String::new();
    let ms = (1_000 + second) * 1000;
    writeln!(text, "node_cpu_usage_seconds_total {} {ms}", second as f64 * 2.0).unwrap();
    writeln!(text, "node_memory_working_set_bytes 4096 {ms}").unwrap();
    for (pod, container, start, cpu, memory) in containers {
        let labels = format!("{{container=\"{container}\",namespace=\"shop\",pod=\"{pod}\"}}");
        writeln!(text, "container_cpu_usage_seconds_total{labels} {cpu} {ms}").unwrap();
        writeln!(text, "container_memory_working_set_bytes{labels} {memory} {ms}").unwrap();
        writeln!(text, "container_start_time_seconds{labels} {}", 1000.0 + start).unwrap();
    }
    text
}

fn scrape(store: &Store, second: i64, containers: &[(&str, &str, f64, f64, f64)]) {
    let scrape = Scrape::read(&text(second, containers));
    store.replace(vec![("n1".into(), scrape)], at(second));
}

fn store() -> Store {
    Store::new(Duration::from_secs(15))
}

#[test]
fn two_samples_make_a_rate() {
    let store = store();
    scrape(&store, 100, &[("web", "app", 0.0, 10.0, 500.0), ("web", "proxy", 0.0, 1.0, 50.0)]);
    assert_eq!(store.pod(&key("web")), None, "one sample is none");
    scrape(&store, 115, &[("web", "app", 0.0, 13.75, 700.0), ("web", "proxy", 0.0, 1.0, 50.0)]);
    let used = store.pod(&key("web")).unwrap();
    assert_eq!((used.time, used.window), (at(115), Duration::from_secs(15)));
    let numbers: Vec<_> = used
        .containers
        .iter()
        .map(|(name, used)| (&**name, used.cpu_nanos, used.memory_bytes))
        .collect();
    assert_eq!(numbers, [("app", 250_000_000, 700), ("proxy", 0, 50)]);
    let node = store.node("n1").unwrap();
    assert_eq!((node.cpu_nanos, node.memory_bytes), (2_000_000_000, 4096));
    assert_eq!(store.pod(&key("other")), None);
    assert_eq!(store.node("n2"), None);
}

#[test]
fn a_kubelet_without_news_keeps_the_pair() {
    let store = store();
    scrape(&store, 100, &[("web", "app", 0.0, 10.0, 500.0)]);
    scrape(&store, 115, &[("web", "app", 0.0, 13.0, 500.0)]);
    let before = store.pod(&key("web"));
    scrape(&store, 115, &[("web", "app", 0.0, 13.0, 500.0)]);
    assert_eq!(store.pod(&key("web")), before);
    assert!(before.is_some());
}

#[test]
fn pods_without_a_sound_pair_are_unknown() {
    type Containers<'a> = &'a [(&'a str, &'a str, f64, f64, f64)];
    let cases: [(&str, Containers<'_>, Containers<'_>, bool); 6] = [
        ("restarted", &[("web", "app", 0.0, 10.0, 5.0)], &[("web", "app", 112.0, 0.5, 5.0)], false),
        (
            "restarted, 12 s old",
            &[("web", "app", 0.0, 10.0, 5.0)],
            &[("web", "app", 103.0, 0.5, 5.0)],
            true,
        ),
        ("new, 12 s old", &[], &[("web", "app", 103.0, 0.5, 5.0)], true),
        (
            "counter fell",
            &[("web", "app", 0.0, 10.0, 5.0)],
            &[("web", "app", 0.0, 9.0, 5.0)],
            false,
        ),
        ("no memory", &[("web", "app", 0.0, 10.0, 5.0)], &[("web", "app", 0.0, 11.0, 0.0)], false),
        (
            "one container is new",
            &[("web", "app", 0.0, 10.0, 5.0)],
            &[("web", "app", 0.0, 11.0, 5.0), ("web", "proxy", 50.0, 1.0, 5.0)],
            false,
        ),
    ];
    for (name, first, second, known) in cases {
        let store = store();
        scrape(&store, 100, first);
        scrape(&store, 115, second);
        assert_eq!(store.pod(&key("web")).is_some(), known, "{name}");
    }
}

#[test]
fn a_node_that_failed_is_forgotten() {
    let store = store();
    let containers = [("web", "app", 0.0, 10.0, 500.0)];
    scrape(&store, 100, &containers);
    scrape(&store, 115, &containers);
    assert!(store.pod(&key("web")).is_some());
    store.replace(Vec::new(), at(130));
    assert!(store.pod(&key("web")).is_none() && store.node("n1").is_none());
    scrape(&store, 145, &containers);
    assert!(store.pod(&key("web")).is_none(), "it needs two samples again");
}

#[test]
fn a_pod_that_moved_is_found_where_it_is() {
    let store = store();
    for second in [100, 115] {
        let one = Scrape::read(&text(second, &[("a", "app", 0.0, second as f64, 5.0)]));
        let two = Scrape::read(&text(second, &[("b", "app", 0.0, second as f64, 6.0)]));
        store.replace(vec![("n1".into(), one), ("n2".into(), two)], at(second));
    }
    let memory = |pod| store.pod(&key(pod)).unwrap().containers[0].1.memory_bytes;
    assert_eq!((memory("a"), memory("b")), (5, 6));
}

#[test]
fn a_malformed_line_costs_its_own_sample_only() {
    let well = text(100, &[("web", "app", 0.0, 1.0, 5.0)]);
    assert_eq!(Scrape::read(&well).malformed(), None);
    let mut lines: Vec<&str> = well.lines().collect();
    let broken = "container_memory_working_set_bytes{container=\"other\",namespace=\"n\",pod=\"p";
    lines.insert(1, broken);
    lines.push("node_memory_working_set_bytes many");
    let mut scrape = Scrape::read(&lines.join("\n"));
    let malformed = scrape.malformed.take().expect("two lines");
    assert_eq!(
        malformed.to_string(),
        "2 malformed lines were skipped, the first is line 2: the labels are broken"
    );
    assert_eq!(scrape, Scrape::read(&well));
}

#[test]
fn absurd_numbers_are_no_usage() {
    let store = store();
    let absurd = "container_cpu_usage_seconds_total{container=\"c\",namespace=\"n\",pod=\"p\"} 1e300 9223372036854775807\n\
        container_memory_working_set_bytes{container=\"c\",namespace=\"n\",pod=\"p\"} NaN\n\
        container_start_time_seconds{container=\"c\",namespace=\"n\",pod=\"p\"} 1e300\n\
        container_cpu_usage_seconds_total 1\n";
    for second in [0, 15] {
        store.replace(vec![("n1".into(), Scrape::read(absurd))], at(second));
    }
    assert_eq!(store.pod(&("n".into(), "p".into())), None);
}
