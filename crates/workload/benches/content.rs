//! Rates of content generation and verification, one core.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use workload::content::{Backend, BlockChecker, BlockWriter, ContentSpec, Expected, Filler, Refill, Stream};

const SIZES: [(usize, &str); 2] = [(4096, "4KiB"), (1 << 20, "1MiB")];

fn fill(c: &mut Criterion) {
    let mut group = c.benchmark_group("fill");
    for (size, name) in SIZES {
        group.throughput(Throughput::Bytes(size as u64));
        let mut buf = vec![0; size];
        for backend in Backend::ALL {
            let Some(stream) = Stream::new(1, 2).with_backend(backend) else { continue };
            let mut generation = 0;
            group.bench_function(BenchmarkId::new(format!("{backend:?}"), name), |b| {
                b.iter(|| {
                    generation += 1;
                    stream.fill(black_box(&mut buf), generation, 4096);
                });
            });
        }
    }
    group.finish();
}

fn contents(c: &mut Criterion) {
    let mut group = c.benchmark_group("content");
    let specs = [
        ("random", ContentSpec::Random),
        ("zero", ContentSpec::Zero),
        ("pattern", ContentSpec::Pattern { bytes: vec![0xde, 0xad, 0xbe, 0xef] }),
        ("compressible50", ContentSpec::compressible(50)),
        ("dedupable50", ContentSpec::dedupable(50)),
    ];
    for (size, name) in SIZES {
        group.throughput(Throughput::Bytes(size as u64));
        let mut buf = vec![0; size];
        for (label, spec) in &specs {
            let filler = Filler::new(spec, Refill::Full, 1, 2).expect("a valid spec");
            let mut generation = 0;
            group.bench_function(BenchmarkId::new(*label, name), |b| {
                b.iter(|| {
                    generation += 1;
                    filler.fill_block(black_box(&mut buf), 4096, generation);
                });
            });
        }
        let filler = Filler::new(&ContentSpec::Random, Refill::Stamp, 1, 2).expect("a valid spec");
        let mut generation = 0;
        group.bench_function(BenchmarkId::new("stamp", name), |b| {
            b.iter(|| {
                generation += 1;
                filler.stamp(black_box(&mut buf), 4096, generation);
            });
        });
    }
    group.finish();
}

fn verification(c: &mut Criterion) {
    let mut group = c.benchmark_group("verify");
    for (size, name) in SIZES {
        group.throughput(Throughput::Bytes(size as u64));
        let mut buf = vec![0; size];
        for interval in [512, 4096] {
            let writer = BlockWriter::new(1, 2, interval).expect("a valid interval");
            let mut checker = BlockChecker::new(Some(1), 2, interval).expect("a valid interval");
            group.bench_function(BenchmarkId::new(format!("write_block/{interval}"), name), |b| {
                b.iter(|| writer.write_block(black_box(&mut buf), 4096, 7));
            });
            group.bench_function(BenchmarkId::new(format!("check_block/{interval}"), name), |b| {
                b.iter(|| checker.check_block(black_box(&buf), 4096, Expected::Exactly(7)).expect("sound"));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, fill, contents, verification);
criterion_main!(benches);
