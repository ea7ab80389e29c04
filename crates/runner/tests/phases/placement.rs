//! Where workers run.

use std::sync::{Arc, Mutex};

use host::topology::current_affinity;
use testkit::{Service, SimulatedTarget, TestSource, VirtualClock, closed_load};
use workload::spec::CoresPolicy;

use crate::support::{AnyDriver, BLOCK, MS, job, run};

/// The processors of each of three workers, as the kernel has them and as the samples say, with these two.
fn places(cores: &[u32], policy: CoresPolicy) -> (Vec<Vec<u32>>, Vec<Option<usize>>) {
    let clock = VirtualClock::new();
    let target = SimulatedTarget::new(&clock, Service::Fixed(MS), 1);
    let found = Arc::new(Mutex::new(vec![Vec::new(); 3]));
    let noted = Arc::clone(&found);
    let mut load = closed_load(3, 1);
    (load.cores, load.cores_policy, load.limit.operations) = (cores.to_vec(), policy, Some(3));
    let open = move |worker: u32| {
        noted.lock().expect("lock")[worker as usize] = current_affinity().unwrap_or_default();
        (Box::new(target.driver()) as AnyDriver, TestSource::reads(BLOCK))
    };
    let outcome = run(job(&load, open), clock);
    let kernel = found.lock().expect("lock").clone();
    (kernel, outcome.samples.workers.iter().map(|worker| worker.core).collect())
}

#[test]
fn processors_are_dealt_out_or_shared() {
    let allowed = current_affinity().expect("the processors of this process");
    let (first, last) = (allowed[0], allowed[allowed.len() - 1]);
    let (kernel, said) = places(&[last, first], CoresPolicy::Split);
    assert_eq!(kernel, [vec![last], vec![first], vec![last]]);
    assert_eq!(said, [last, first, last].map(|core| Some(core as usize)));
    let (kernel, said) = places(&[last, first], CoresPolicy::Shared);
    let all = if first == last { vec![first] } else { vec![first, last] };
    assert_eq!(kernel, vec![all; 3]);
    assert_eq!(said, vec![(first == last).then_some(first as usize); 3]);
    let (kernel, _) = places(&[], CoresPolicy::Shared);
    assert_eq!(kernel, vec![allowed; 3]);
}
