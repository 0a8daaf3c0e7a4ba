//! How many megabytes of a kubelet's exposition text are read in a second, beside another parser.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use podscale_metrics::exposition::samples;
use podscale_metrics::scrape::Scrape;
use std::fmt::Write;
use std::hint::black_box;

/// What a node with so many pods says.
fn text(pods: usize) -> String {
    let mut text = String::from("# HELP container_cpu_usage_seconds_total Cumulative cpu time\n");
    for (family, value) in [
        ("container_cpu_usage_seconds_total", "1234.567891"),
        ("container_memory_working_set_bytes", "1.34217728e+08"),
        ("container_start_time_seconds", "1.7313e+09"),
    ] {
        writeln!(text, "# TYPE {family} gauge").expect("a string takes everything");
        for pod in 0..pods {
            writeln!(
                text,
                "{family}{{container=\"app\",namespace=\"shop\",pod=\"web-7d4b9c6f5b-{pod:05}\"}} {value} 1731300000123"
            )
            .expect("a string takes everything");
        }
    }
    text
}

fn parse(criterion: &mut Criterion) {
    let text = text(110);
    let mut group = criterion.benchmark_group("exposition text of 110 pods");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("samples", |bencher| {
        bencher
            .iter(|| samples(black_box(&text)).flatten().map(|sample| sample.value).sum::<f64>());
    });
    group.bench_function("scrape", |bencher| bencher.iter(|| Scrape::read(black_box(&text))));
    group.bench_function("prometheus-parse", |bencher| {
        bencher.iter(|| {
            let lines = black_box(&text).lines().map(|line| Ok(line.to_owned()));
            prometheus_parse::Scrape::parse(lines).map(|scrape| scrape.samples.len())
        });
    });
    group.finish();
}

criterion_group!(benches, parse);
criterion_main!(benches);
