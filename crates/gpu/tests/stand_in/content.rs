//! Kernels make the bytes of the host.
#![allow(unsafe_code)]

use gpu::{BlockTerms, ContentKernels, DeviceBuffers, Stream};
use proptest::prelude::*;
use workload::content::{BlockWriter, ContentSpec, Filler, Recipe, Refill};

use crate::{context, fetched};

const SLOT_BYTES: usize = 16 << 10;

fn terms(recipe: &Recipe, generation: u64, position: u64, length: usize) -> BlockTerms {
    BlockTerms {
        interval_bytes: u64::from(recipe.interval_bytes),
        run: recipe.run,
        target: recipe.target,
        ..BlockTerms::of_stream(recipe.keys, generation, position, length as u64)
    }
}

/// Makes the block on the device, and compares it there with itself.
fn made(recipe: &Recipe, generation: u64, position: u64, length: usize) -> Vec<u8> {
    let context = context();
    let buffers = DeviceBuffers::new(&context, 1, SLOT_BYTES).expect("a buffer");
    let mut kernels = ContentKernels::new(&context).expect("kernels");
    let terms = terms(recipe, generation, position, length);
    assert!(terms.fit());
    // SAFETY: a buffer of that length.
    unsafe {
        kernels.fill(buffers.slot_address(0), &terms).expect("filled");
        assert_eq!(kernels.check(buffers.slot_address(0), &terms).expect("checked"), None);
    }
    fetched(&buffers, 0, length)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn random_blocks_are_the_hosts(seed: u64, generation: u64, lane in 0..1u64 << 40, lanes in 1..600usize) {
        let filler = Filler::new(&ContentSpec::Random, Refill::Full, seed, 3).expect("a filler");
        let (position, length) = (lane * 16, lanes * 16);
        let mut wanted = vec![0; length];
        filler.fill_block(&mut wanted, position, generation);
        let recipe = filler.recipe().expect("random bytes");
        prop_assert!(made(&recipe, generation, position, length) == wanted);
    }

    #[test]
    fn sealed_blocks_are_the_hosts(run: u64, target: u64, sequence: u64, lane in 0..1u64 << 40, sixteens in 4..64u32, intervals in 1..16usize) {
        let interval = sixteens * 16;
        let length = interval as usize * intervals;
        let writer = BlockWriter::new(run, target, interval).expect("a writer");
        let position = lane * 16;
        let mut wanted = vec![0; length];
        writer.write_block(&mut wanted, position, sequence);
        prop_assert!(made(&writer.recipe(), sequence, position, length) == wanted);
    }
}

#[test]
fn every_bit_that_differs_is_found() {
    let context = context();
    let buffers = DeviceBuffers::new(&context, 1, SLOT_BYTES).expect("a buffer");
    let mut kernels = ContentKernels::new(&context).expect("kernels");
    let mut stream = Stream::new(&context).expect("a stream");
    let writer = BlockWriter::new(7, 9, 4096).expect("a writer");
    let terms = terms(&writer.recipe(), 5, 8192, 8192);
    for byte in [0, 17, 40, 47, 48, 511, 512, 520, 4095, 4096, 8191] {
        let mut block = vec![0; 8192];
        writer.write_block(&mut block, 8192, 5);
        block[byte] ^= 4;
        // SAFETY: a vector and a buffer of that length.
        let found = unsafe {
            stream.copy_in(buffers.slot_address(0), block.as_ptr(), block.len()).expect("copied");
            stream.wait().expect("done");
            kernels.check(buffers.slot_address(0), &terms).expect("checked")
        };
        assert_eq!(found, Some(byte as u64 / 16 * 16), "byte {byte}");
    }
}

#[test]
fn other_content_has_no_recipe() {
    for (content, refill) in [
        (ContentSpec::Zero, Refill::Full),
        (ContentSpec::Random, Refill::Stamp),
        (ContentSpec::Random, Refill::Once),
        (ContentSpec::compressible(50), Refill::Full),
    ] {
        assert_eq!(Filler::new(&content, refill, 1, 1).expect("a filler").recipe(), None);
    }
    let odd = BlockTerms::of_stream([0; 5], 0, 8, 64);
    assert!(!odd.fit());
}
