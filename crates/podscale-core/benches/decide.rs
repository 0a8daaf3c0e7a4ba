//! One decision on one autoscaler with a cpu utilization metric, all data in memory: nothing to do,
//! and twice the load.

#![allow(missing_docs, unreachable_pub, reason = "nothing here is used from elsewhere")]

#[path = "../tests/support/fixture.rs"]
mod fixture;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fixture::Fixture;
use podscale_core::decide;
use std::hint::black_box;

fn bench(criterion: &mut Criterion) {
    for (name, percent) in [("steady", 50), ("rescaling", 100)] {
        let mut group = criterion.benchmark_group(name);
        for pods in [1, 10, 100, 1000] {
            let mut fixture = Fixture::of(pods).cpu(percent, 50).limits(1, 10_000);
            fixture.run_in();
            group.throughput(Throughput::Elements(1));
            group.bench_function(BenchmarkId::from_parameter(pods), |bencher| {
                bencher.iter(|| {
                    let snapshot = black_box(fixture.snapshot());
                    black_box(&decide(&snapshot));
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
