//! Doubts about buffers on GPUs.

use gpu::{GpuActivity, GpuPath, GpuPlan, MemoryPlan};

use super::{DRIVE, detail, phase, plan};

/// The detail of a kind where the devices were seen like this.
fn told(kind: &str, path: GpuPath, seen: GpuActivity) -> Option<String> {
    detail(kind, &DRIVE, |record| {
        plan(record).memory = MemoryPlan::Gpu(GpuPlan { path, ..GpuPlan::default() });
        phase(record).observations.gpu = Some(seen);
    })
}

#[test]
fn requests_that_did_not_go_directly() {
    let direct = |direct_requests| GpuActivity { direct_requests, ..GpuActivity::default() };
    let some = told("gpu_staged", GpuPath::Cufile, direct(Some(1))).expect("a doubt");
    assert!(
        some.ends_with(
            "of the requests went to the GPU directly: the others went through memory of the host"
        ),
        "{some}"
    );
    assert!(
        told("gpu_staged", GpuPath::Cufile, direct(None))
            .is_some_and(|told| told.contains("compatibility mode"))
    );
    assert_eq!(told("gpu_staged", GpuPath::Cufile, direct(Some(u64::MAX))), None);
    assert_eq!(told("gpu_staged", GpuPath::Staged, direct(None)), None);
    let unaligned = GpuActivity { unaligned_requests: u64::MAX, ..direct(Some(u64::MAX)) };
    let some = told("gpu_staged", GpuPath::CufileBatch, unaligned).expect("a doubt");
    assert!(some.starts_with("100% of the requests were not on multiples of 4096 bytes"), "{some}");
}
