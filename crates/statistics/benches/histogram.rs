//! Cost of recording and merging latencies.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use statistics::{Histogram, PartHistograms, SparseHistogram};

const VALUES: usize = 4096;

/// Latencies spread over 10 us to 10 ms, in no order.
fn latencies() -> Vec<u64> {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    (0..VALUES).map(|_| (10_000.0 * 1000_f64.powf(next())) as u64).collect()
}

fn benchmark(criterion: &mut Criterion) {
    let values = latencies();
    let mut filled = Histogram::new();
    values.iter().for_each(|value| filled.record(*value));
    let sparse = SparseHistogram::from(&filled);

    let mut group = criterion.benchmark_group("histogram");
    group.throughput(Throughput::Elements(VALUES as u64));
    group.bench_function("record", |bencher| {
        let mut histogram = Histogram::new();
        bencher.iter(|| values.iter().for_each(|value| histogram.record(black_box(*value))));
        black_box(histogram.count());
    });
    group.throughput(Throughput::Elements(1));
    group.bench_function("merge", |bencher| {
        let mut histogram = Histogram::new();
        bencher.iter(|| histogram.merge(black_box(&filled)));
    });
    group.bench_function("merge_sparse", |bencher| {
        let mut histogram = Histogram::new();
        bencher.iter(|| histogram.merge_sparse(black_box(&sparse)));
    });
    group.bench_function("to_sparse", |bencher| bencher.iter(|| SparseHistogram::from(black_box(&filled))));
    group.bench_function("percentile", |bencher| bencher.iter(|| black_box(&filled).percentile(99.0)));
    group.bench_function("clear_one_value", |bencher| {
        let mut histogram = Histogram::new();
        bencher.iter(|| {
            histogram.record(black_box(5000));
            histogram.clear();
        });
    });
    group.finish();
    benchmark_parts(criterion, &values);
}

/// Values of many parts in turns: a histogram each, and histograms from one pool.
fn benchmark_parts(criterion: &mut Criterion, values: &[u64]) {
    for parts in [1, 16, 256, 4096] {
        let mut group = criterion.benchmark_group(format!("parts_{parts}"));
        group.throughput(Throughput::Elements(VALUES as u64));
        let part = |at: usize| (at * 7919) % parts;
        group.bench_function("full", |bencher| {
            let mut histograms = vec![Histogram::new(); parts];
            bencher.iter(|| {
                values.iter().enumerate().for_each(|(at, ns)| histograms[part(at)].record(black_box(*ns)));
            });
            black_box(histograms[0].count());
        });
        group.bench_function("pooled", |bencher| {
            let mut histograms = PartHistograms::new(parts);
            bencher.iter(|| {
                values.iter().enumerate().for_each(|(at, ns)| histograms.record(part(at), black_box(*ns)));
            });
            black_box(histograms.sparse(0).count());
        });
        group.finish();
    }
}

criterion_group!(benches, benchmark);
criterion_main!(benches);
