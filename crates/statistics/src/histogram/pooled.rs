//! Histograms of many parts that take their memory from one pool, each as much as it has seen.

use std::hint::black_box;

use super::{Histogram, LEN, SparseHistogram, index_of, sparse::Packer};

/// Buckets of a chunk: 512 bytes, a sixteenth of a power of two.
const CHUNK: usize = 64;
/// Chunks of a histogram whose buckets are all filled.
const CHUNKS: usize = LEN.div_ceil(CHUNK);
/// Chunks of a slab, 64 MiB: the system gives so much address space without memory behind it.
const SLAB_CHUNKS: usize = 1 << 17;
/// Chunks that a part has memory for from the beginning.
const CHUNKS_READY: usize = 16;
/// Parts that have full histograms, which are the quickest: 17 MiB for as many.
const FULL_PARTS_MAX: usize = 64;
/// Counters in a page of memory.
const PAGE: usize = 4096 / size_of::<u64>();

/// Latency histograms of the parts of a target, such as endpoints, for one worker.
///
/// Up to 64 parts have a [`Histogram`] each. Of more of them, which have the same buckets, each takes a chunk of 64 buckets from the pool when a value first falls into one of
/// them, so that its memory follows what it has seen: about 10 KiB to begin with, not 272 KiB. The pool has address space for the case that every part
/// fills all of its buckets; memory stands behind the first 16 chunks a part, and behind the others from their first use on. Recording never
/// allocates.
#[derive(Debug)]
pub struct PartHistograms {
    /// One a part, where there are few.
    full: Vec<Histogram>,
    /// Number of each chunk of each part in the pool, plus 1; 0 where it was not taken.
    places: Vec<u32>,
    slabs: Vec<Vec<u64>>,
    taken: u32,
    figures: Vec<Figures>,
}

/// Exact figures of a part.
#[derive(Clone, Copy, Debug)]
struct Figures {
    min_ns: u64,
    max_ns: u64,
    sum_ns: u128,
}

impl PartHistograms {
    /// Empty histograms for `parts` parts; the only call that allocates.
    #[must_use]
    pub fn new(parts: usize) -> Self {
        if parts <= FULL_PARTS_MAX {
            let full = vec![Histogram::new(); parts];
            return Self { full, places: Vec::new(), slabs: Vec::new(), taken: 0, figures: Vec::new() };
        }
        let chunks = parts * CHUNKS;
        let slab = |at: usize| vec![0; (chunks - at).min(SLAB_CHUNKS) * CHUNK];
        let mut slabs: Vec<Vec<u64>> = (0..chunks).step_by(SLAB_CHUNKS).map(slab).collect();
        let mut places = vec![0; chunks];
        let ready = parts * CHUNKS_READY * CHUNK;
        // A value that the compiler does not know: zeros over zeros would be left out.
        let counters = slabs.iter_mut().flatten().take(ready);
        counters.step_by(PAGE).for_each(|counter| *counter = black_box(0));
        places.iter_mut().step_by(PAGE).for_each(|place| *place = black_box(0));
        let figures = vec![Figures { min_ns: u64::MAX, max_ns: 0, sum_ns: 0 }; parts];
        Self { full: Vec::new(), places, slabs, taken: 0, figures }
    }

    /// Counts one value of a part.
    ///
    /// # Panics
    /// When there is no such part.
    #[inline]
    pub fn record(&mut self, part: usize, ns: u64) {
        if let Some(full) = self.full.get_mut(part) {
            return full.record(ns);
        }
        let figures = &mut self.figures[part];
        figures.min_ns = figures.min_ns.min(ns);
        figures.max_ns = figures.max_ns.max(ns);
        figures.sum_ns += u128::from(ns);
        let index = index_of(ns);
        let place = &mut self.places[part * CHUNKS + index / CHUNK];
        if *place == 0 {
            self.taken += 1;
            *place = self.taken;
        }
        let chunk = *place as usize - 1;
        self.slabs[chunk / SLAB_CHUNKS][chunk % SLAB_CHUNKS * CHUNK + index % CHUNK] += 1;
    }

    /// The filled buckets of a part.
    ///
    /// # Panics
    /// When there is no such part.
    #[must_use]
    pub fn sparse(&self, part: usize) -> SparseHistogram {
        if let Some(full) = self.full.get(part) {
            return SparseHistogram::from(full);
        }
        let Figures { min_ns, max_ns, sum_ns } = self.figures[part];
        if min_ns > max_ns {
            return SparseHistogram::default();
        }
        let mut packer = Packer::default();
        for (number, place) in self.places[part * CHUNKS..][..CHUNKS].iter().enumerate() {
            let Some(chunk) = (*place as usize).checked_sub(1) else { continue };
            let counts = &self.slabs[chunk / SLAB_CHUNKS][chunk % SLAB_CHUNKS * CHUNK..][..CHUNK];
            let filled = counts.iter().enumerate().filter(|(_, count)| **count > 0);
            filled.for_each(|(at, count)| packer.push(number * CHUNK + at, *count));
        }
        packer.finish(min_ns, max_ns, sum_ns)
    }

    /// Bytes of counters that parts have taken from the pool so far.
    #[must_use]
    pub fn taken_bytes(&self) -> usize {
        self.taken as usize * CHUNK * size_of::<u64>()
    }
}
