//! Doubts about buffers on GPUs.

use gpu::{GpuActivity, GpuPath, GpuPlan, MemoryPlan, Transport};

use super::{DRIVE, detail, phase, plan};

/// The detail of a kind where the devices were seen like this.
fn told(kind: &str, path: GpuPath, seen: GpuActivity) -> Option<String> {
    detail(kind, &DRIVE, |record| {
        plan(record).memory = MemoryPlan::Gpu(GpuPlan { path, ..GpuPlan::default() });
        phase(record).observations.gpu = Some(seen);
    })
}

#[test]
fn data_that_did_not_go_directly() {
    let seen = |transport, direct_bytes| GpuActivity {
        cufile_transport: Some(transport),
        cufile_requests: 100,
        cufile_bytes: 100 << 20,
        direct_bytes,
        ..GpuActivity::default()
    };
    let told = |path, seen| told("gpu_staged", path, seen);
    let some = told(GpuPath::Cufile, seen(Transport::Module, Some(25 << 20))).expect("a doubt");
    assert_eq!(some, "25.0% of the data went to the GPU directly: the rest went through memory of the host");
    let compatible = told(GpuPath::CufileStream, seen(Transport::Compatibility, None)).expect("a doubt");
    assert!(compatible.contains("compatibility mode"), "{compatible}");
    for silent in [
        seen(Transport::Module, Some(95 << 20)),
        // Others moved data too, or nothing counts.
        seen(Transport::Module, Some(300 << 20)),
        seen(Transport::Module, None),
        seen(Transport::PeerToPeer, None),
        GpuActivity { cufile_bytes: 1 << 20, ..seen(Transport::Module, Some(0)) },
    ] {
        assert_eq!(told(GpuPath::Cufile, silent), None);
    }
    assert_eq!(told(GpuPath::Staged, seen(Transport::Compatibility, None)), None);
    let unaligned = GpuActivity { unaligned_requests: 50, ..seen(Transport::PeerToPeer, None) };
    let some = told(GpuPath::CufileBatch, unaligned).expect("a doubt");
    assert!(some.starts_with("50.0% of the requests were not on multiples of 4096 bytes"), "{some}");
}
