//! The cost of one draw from each generator.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use units::Rate;
use workload::access::Access;
use workload::arrival::{Arrivals, Spacing};
use workload::block_size::BlockSizes;
use workload::mix::Mix;
use workload::random::Random;

/// Draws per measured iteration, so that the harness adds nothing that counts.
const DRAWS: u64 = 1000;

fn time(criterion: &mut Criterion, name: &str, mut draw: impl FnMut() -> u64) {
    let mut group = criterion.benchmark_group("generators");
    group.throughput(criterion::Throughput::Elements(DRAWS));
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            for _ in 0..DRAWS {
                black_box(draw());
            }
        });
    });
    group.finish();
}

fn draws(criterion: &mut Criterion) {
    let mut random = Random::new(1);
    time(criterion, "random", || random.next_u64());
    time(criterion, "random_below", || random.below(1_000_003));
    for pattern in [
        "sequential",
        "backward",
        "strided:8",
        "permutation",
        "uniform",
        "zipf:0.99",
        "zipf:1",
        "zipf:1.2",
        "pareto:0.2",
        "normal:10",
        "zoned:60/10,30/20,10/70",
    ] {
        // The worst case of the permutation: just above a power of two, and a size in between.
        for blocks in [(1 << 20) + 1, 3_000_000] {
            let mut access = Access::new(&pattern.parse().unwrap(), blocks, 1).unwrap();
            time(criterion, &format!("{pattern} over {blocks}"), || access.next().block);
        }
    }
    for weights in [&[100][..], &[70, 30], &[50, 30, 15, 5]] {
        let mut mix = Mix::new(weights).unwrap();
        time(criterion, &format!("mix {weights:?}"), || mix.next() as u64);
    }
    for sizes in ["4k", "4k:70,64k:30", "4k-64k"] {
        let blocks: BlockSizes = sizes.parse().unwrap();
        time(criterion, &format!("block size {sizes}"), || blocks.next(&mut random));
    }
    for spacing in [Spacing::Constant, Spacing::Poisson] {
        let mut arrivals = Arrivals::new(spacing, Rate::new(1e6).unwrap(), 0, 1, 1).unwrap();
        time(criterion, &format!("arrivals {spacing}"), || arrivals.next());
    }
}

criterion_group!(benches, draws);
criterion_main!(benches);
