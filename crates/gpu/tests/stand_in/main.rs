//! Buffers, copies and kernels on the libraries of the tests (`testkit::gpu`).
#![allow(unsafe_code)]

mod content;
mod staged;

use std::path::Path;
use std::sync::Arc;

use gpu::{Context, Device, DeviceBuffers, GpuFacts, GpuPer, Share, Stream, WorkerNotes};

/// A worker's part of a device.
fn share(numbers: &[u32], worker: u32) -> Result<Share, driver::Error> {
    Share::of_worker(numbers, GpuPer::Worker, worker, &WorkerNotes::default())
}

/// The context of the device of the tests.
fn context() -> Arc<Context> {
    testkit::gpu::load(Path::new(env!("CARGO_TARGET_TMPDIR")), "devices=3 lazy=2");
    let share = share(&[], 0).expect("a device");
    Context::of(share.device()).expect("its context")
}

/// Bytes of a buffer of the device.
fn fetched(buffers: &DeviceBuffers, slot: u32, bytes: usize) -> Vec<u8> {
    let mut there = vec![0; bytes];
    let mut stream = Stream::new(buffers.context()).expect("a stream");
    // SAFETY: a vector and a buffer of that length.
    unsafe { stream.copy_out(there.as_mut_ptr(), buffers.slot_address(slot), bytes) }.expect("copied");
    stream.wait().expect("done");
    there
}

#[test]
fn devices_have_names_and_places() {
    drop(context());
    let all = Device::all().expect("devices");
    assert_eq!(all.len(), 3);
    assert_eq!((all[1].name.as_str(), all[1].pci_address.as_str()), ("Stand-in 1", "fff0:f1:00.0"));
    assert_eq!(share(&[2, 1], 3).expect("the second of the list").device().number, 1);
    assert_eq!(share(&[9], 0).expect_err("none").exit_code(), 2);
    let facts = GpuFacts::read().expect("facts");
    assert_eq!((facts.cuda_version.as_str(), facts.devices.len()), ("13.0", 3));
    let pairs: Vec<_> = facts.pairs.iter().map(|pair| (pair.devices, pair.peer_access)).collect();
    assert_eq!(pairs, [([0, 1], true), ([0, 2], false), ([1, 2], false)]);
}

#[test]
fn buffers_are_apart_and_memory_that_is_not_there_is_told() {
    let context = context();
    let buffers = DeviceBuffers::new(&context, 4, 5000).expect("buffers");
    assert_eq!((buffers.slots(), buffers.slot_bytes()), (4, 64 << 10));
    let mut stream = Stream::new(&context).expect("a stream");
    for slot in 0..4 {
        let bytes = vec![slot as u8 + 1; 5000];
        // SAFETY: a vector and a buffer of that length.
        unsafe { stream.copy_in(buffers.slot_address(slot), bytes.as_ptr(), bytes.len()) }.expect("copied");
        stream.wait().expect("done");
    }
    // SAFETY: two buffers of that length.
    unsafe { stream.copy_within(buffers.slot_address(0), buffers.slot_address(3), 5000) }.expect("copied");
    stream.wait().expect("done");
    for (slot, byte) in [(0, 4), (1, 2), (2, 3), (3, 4)] {
        assert!(fetched(&buffers, slot, 5000).iter().all(|&there| there == byte), "slot {slot}");
    }
    let error = DeviceBuffers::new(&context, 1, 1 << 40).expect_err("too much").to_string();
    assert!(
        error.contains("code=CUDA_ERROR_OUT_OF_MEMORY") && error.contains("use a smaller block size"),
        "{error}"
    );
    // SAFETY: the library of the tests looks whether the address is a buffer's.
    let error =
        unsafe { stream.copy_in(buffers.slot_address(3), [0; 1].as_ptr(), 1 << 20) }.expect_err("too far");
    assert!(error.to_string().contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{error}");
}

#[test]
fn the_text_of_the_kernels_is_made_of_their_source() {
    let wanted = KernelHash::of(gpu::KERNEL_SOURCE);
    let first = gpu::KERNELS.lines().next().unwrap_or_default();
    assert!(first.ends_with(&wanted.0), "{first}: run scripts/kernels.sh");
}

/// SHA-256 of a text as `sha256sum` prints it.
struct KernelHash(String);

impl KernelHash {
    fn of(text: &str) -> Self {
        let hash = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        Self(hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}
