//! How many megabytes a second are read of what kubelets and Prometheus say and of rules, beside parsers
//! that others use for it.
//!
//! `cargo bench -p podscale-metrics --bench exposition`

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use podscale_metrics::exposition::samples;
use podscale_metrics::prometheus::answer::{read_query, read_series};
use podscale_metrics::rules::RuleSet;
use podscale_metrics::scrape::Scrape;
use serde_json::{Value, json};
use std::fmt::Write;
use std::hint::black_box;
use std::time::Duration;

/// How many pods a node may have.
const PODS: usize = 110;
/// How many series Prometheus gives for a metric of a large application.
const SERIES: usize = 1000;
/// How many rules a large file has.
const RULES: usize = 60;

fn pod(number: usize) -> String {
    format!("web-7d4b9c6f5b-{number:05}")
}

/// What a node says in exposition text.
fn exposition_text() -> String {
    let mut text = String::from("# HELP container_cpu_usage_seconds_total Cumulative cpu time\n");
    for (family, value) in [
        ("container_cpu_usage_seconds_total", "1234.567891"),
        ("container_memory_working_set_bytes", "1.34217728e+08"),
        ("container_start_time_seconds", "1.7313e+09"),
    ] {
        writeln!(text, "# TYPE {family} gauge").expect("a string takes everything");
        for number in 0..PODS {
            let name = pod(number);
            writeln!(
                text,
                "{family}{{container=\"app\",namespace=\"shop\",pod=\"{name}\"}} {value} 1731300000123"
            )
            .expect("a string takes everything");
        }
    }
    text
}

/// What a node says of its pods in plain JSON.
fn plain_pods() -> String {
    let one = |number: usize| {
        json!({"metadata": {"name": pod(number), "namespace": "shop"},
            "timestamp": "2026-01-01T00:00:00Z", "window": "15s",
            "containers": [{"name": "app", "resources": {"cpu": 250, "memory": 134_217_728}}]})
    };
    Value::from_iter((0..PODS).map(one)).to_string()
}

fn labels(number: usize) -> Value {
    json!({"__name__": "http_requests_total", "namespace": "shop", "pod": pod(number), "code": "200",
        "instance": "10.0.0.1:9090", "job": "web"})
}

/// What Prometheus answers a query with.
fn query_answer() -> String {
    let one =
        |number: usize| json!({"metric": labels(number), "value": [1_731_300_000.123, "12.75"]});
    let result = Value::from_iter((0..SERIES).map(one));
    json!({"status": "success", "data": {"resultType": "vector", "result": result}}).to_string()
}

/// What Prometheus answers with when it is asked which series there are.
fn series_answer() -> String {
    json!({"status": "success", "data": Value::from_iter((0..SERIES).map(labels))}).to_string()
}

/// prometheus-adapter's configuration.
fn rules_file() -> String {
    let mut text = String::from("rules:\n");
    for number in 0..RULES {
        write!(
            text,
            "- seriesQuery: 'http_requests_{number}_total{{namespace!=\"\",pod!=\"\"}}'\n  \
               resources:\n    overrides:\n      namespace: {{resource: namespace}}\n      \
               pod: {{resource: pod}}\n  name:\n    matches: ^(.*)_total$\n    \
               as: ${{1}}_per_second\n  metricsQuery: sum(rate(<<.Series>>{{<<.LabelMatchers>>}}[2m])) \
             by (<<.GroupBy>>)\n"
        )
        .expect("a string takes everything");
    }
    text
}

/// Measures parsers of the same text, and says how many bytes of it they read.
fn compare(criterion: &mut Criterion, name: &str, text: &str, add: fn(&mut Group<'_>, &str)) {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(3));
    add(&mut group, text);
    group.finish();
}

type Group<'a> = BenchmarkGroup<'a, WallTime>;

fn exposition(criterion: &mut Criterion) {
    compare(criterion, "exposition text of 110 pods", &exposition_text(), |group, text| {
        group.bench_function("samples", |bencher| {
            let sum = || samples(black_box(text)).flatten().map(|sample| sample.value).sum::<f64>();
            bencher.iter(sum);
        });
        group.bench_function("scrape", |bencher| bencher.iter(|| Scrape::read(black_box(text))));
        group.bench_function("prometheus-parse", |bencher| {
            bencher.iter(|| {
                let lines = black_box(text).lines().map(|line| Ok(line.to_owned()));
                prometheus_parse::Scrape::parse(lines).map(|scrape| scrape.samples.len())
            });
        });
    });
}

fn value(bencher: &mut criterion::Bencher<'_>, text: &str) {
    bencher.iter(|| serde_json::from_str::<Value>(black_box(text)).expect("JSON"));
}

fn json_of_kubelets(criterion: &mut Criterion) {
    compare(criterion, "plain JSON of 110 pods", &plain_pods(), |group, text| {
        let scrape = Scrape::read_plain(text.as_bytes(), None).expect("a scrape");
        assert_eq!(scrape.containers(), PODS, "all of it is read");
        group.bench_function("scrape", |bencher| {
            bencher.iter(|| Scrape::read_plain(black_box(text.as_bytes()), None));
        });
        group.bench_function("serde_json::Value", |bencher| value(bencher, text));
    });
}

fn json_of_prometheus(criterion: &mut Criterion) {
    compare(criterion, "Prometheus' vector of 1,000 series", &query_answer(), |group, text| {
        let read = || read_query(200, black_box(text.as_bytes()), SERIES).expect("an answer");
        assert_eq!(read().vector.samples.len(), SERIES, "all of it is read");
        group.bench_function("answer", |bencher| bencher.iter(read));
        group.bench_function("serde_json::Value", |bencher| value(bencher, text));
    });
    compare(criterion, "Prometheus' list of 1,000 series", &series_answer(), |group, text| {
        let read = || read_series(200, black_box(text.as_bytes()), SERIES).expect("an answer");
        assert_eq!(read().len(), 1, "they have the same labels");
        group.bench_function("answer", |bencher| bencher.iter(read));
        group.bench_function("serde_json::Value", |bencher| value(bencher, text));
    });
}

fn rules(criterion: &mut Criterion) {
    compare(criterion, "a file of 60 rules", &rules_file(), |group, text| {
        group.bench_function("rules", |bencher| {
            bencher.iter(|| RuleSet::parse(black_box(text)).expect("rules"));
        });
        group.bench_function("serde-saphyr, only the YAML", |bencher| {
            bencher.iter(|| serde_saphyr::from_str::<Value>(black_box(text)).expect("YAML"));
        });
    });
}

criterion_group!(benches, exposition, json_of_kubelets, json_of_prometheus, rules);
criterion_main!(benches);
