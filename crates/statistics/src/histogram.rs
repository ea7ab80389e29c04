//! Log-linear latency histogram: one nanosecond per bucket below 2048 ns, 1024 buckets per power of two above.

mod pooled;
mod sparse;

pub use pooled::PartHistograms;
pub use sparse::{InvalidHistogram, SparseHistogram};
pub(crate) use sparse::{push_varint, read_varint};

/// Buckets per power of two, as a power of two: 1024 buckets keep a midpoint within 0.05 % of every value in it.
const SUB_BITS: u32 = 10;
/// Highest power of two that has buckets; values below `2^(TOP_EXPONENT + 1)` (2.4 h) are told apart.
const TOP_EXPONENT: u32 = 42;
/// The bucket after the last regular one counts what lies above the range.
const SATURATED: usize = ((TOP_EXPONENT as usize - SUB_BITS as usize) << SUB_BITS) + (2 << SUB_BITS);
const LEN: usize = SATURATED + 1;

/// One bucket of a histogram: values from `low_ns` to `high_ns`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Smallest value of the bucket, nanoseconds.
    pub low_ns: u64,
    /// Largest value of the bucket, nanoseconds; `u64::MAX` for the saturated bucket.
    pub high_ns: u64,
    /// How many values were recorded in it.
    pub count: u64,
}

impl Bucket {
    fn at(index: usize, count: u64) -> Self {
        let (low_ns, high_ns) = bounds_of(index);
        Self { low_ns, high_ns, count }
    }

    /// The value that stands for the bucket, within 0.05 % of every value in it (the saturated bucket excepted).
    pub fn midpoint_ns(&self) -> u64 {
        self.low_ns + (self.high_ns - self.low_ns) / 2
    }
}

/// Latency histogram with three significant digits from 1 ns to 2.4 h.
///
/// [`record`](Self::record) touches one counter and three running figures and never allocates; 272 KiB in all.
/// Values above the range are counted apart ([`saturated`](Self::saturated)); minimum, maximum and sum stay exact for
/// them too. The layout is that of a log-linear (HDR) histogram with 1024 buckets per power of two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    counts: Box<[u64; LEN]>,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u128,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

/// The bucket of a value: below 2048 the value itself, above it the top eleven bits under the exponent.
#[inline(always)]
fn index_of(ns: u64) -> usize {
    let shift = (63 - SUB_BITS) - (ns | (1 << SUB_BITS)).leading_zeros();
    let index = ((shift as usize) << SUB_BITS) + (ns >> shift) as usize;
    index.min(SATURATED)
}

/// Smallest and largest value of a bucket.
fn bounds_of(index: usize) -> (u64, u64) {
    if index >= SATURATED {
        return (Histogram::RANGE_NS_MAX + 1, u64::MAX);
    }
    let shift = (index >> SUB_BITS).saturating_sub(1);
    let low = ((index - (shift << SUB_BITS)) as u64) << shift;
    (low, low + ((1 << shift) - 1))
}

impl Histogram {
    /// Largest value that has a bucket of its own, nanoseconds.
    pub const RANGE_NS_MAX: u64 = (1 << (TOP_EXPONENT + 1)) - 1;

    /// An empty histogram; the only call that allocates.
    pub fn new() -> Self {
        let counts = match Box::<[u64; LEN]>::try_from(vec![0; LEN].into_boxed_slice()) {
            Ok(counts) => counts,
            Err(_) => unreachable!("the vector was made with LEN elements"),
        };
        Self { counts, min_ns: u64::MAX, max_ns: 0, sum_ns: 0 }
    }

    /// Counts one value.
    #[inline(always)]
    pub fn record(&mut self, ns: u64) {
        self.counts[index_of(ns)] += 1;
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns += u128::from(ns);
    }

    /// Counts one value `count` times.
    #[inline(always)]
    pub fn record_n(&mut self, ns: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.counts[index_of(ns)] += count;
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns += u128::from(ns) * u128::from(count);
    }

    /// The buckets between minimum and maximum: no other can be filled.
    fn touched(&self) -> std::ops::Range<usize> {
        if self.is_empty() { 0..0 } else { index_of(self.min_ns)..index_of(self.max_ns) + 1 }
    }

    /// Adds everything that `other` counted; nothing is lost. Costs time in proportion to the range `other` spans.
    pub fn merge(&mut self, other: &Self) {
        let range = other.touched();
        for (mine, theirs) in self.counts[range.clone()].iter_mut().zip(&other.counts[range]) {
            *mine += theirs;
        }
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns += other.sum_ns;
    }

    /// Adds everything that a sparse histogram holds; nothing is lost.
    pub fn merge_sparse(&mut self, other: &SparseHistogram) {
        for (index, count) in other.entries() {
            self.counts[index] += count;
        }
        if let (Some(min_ns), Some(max_ns)) = (other.min_ns(), other.max_ns()) {
            self.min_ns = self.min_ns.min(min_ns);
            self.max_ns = self.max_ns.max(max_ns);
            self.sum_ns += other.sum_ns();
        }
    }

    /// Forgets everything; costs time in proportion to the range spanned.
    pub fn clear(&mut self) {
        let range = self.touched();
        self.counts[range].fill(0);
        self.min_ns = u64::MAX;
        self.max_ns = 0;
        self.sum_ns = 0;
    }

    /// True when nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.min_ns > self.max_ns
    }

    /// How many values were recorded, the saturated ones included. Sums the touched buckets.
    pub fn count(&self) -> u64 {
        self.counts[self.touched()].iter().sum()
    }

    /// How many values lay above [`RANGE_NS_MAX`](Self::RANGE_NS_MAX).
    pub fn saturated(&self) -> u64 {
        self.counts[SATURATED]
    }

    /// Exact smallest value; none when empty.
    pub fn min_ns(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.min_ns)
    }

    /// Exact largest value; none when empty.
    pub fn max_ns(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.max_ns)
    }

    /// Exact sum of all values.
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// Exact mean; none when empty.
    pub fn mean_ns(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum_ns as f64 / count as f64)
    }

    /// Standard deviation of the population, from bucket midpoints; none when empty.
    pub fn stddev_ns(&self) -> Option<f64> {
        let mean = self.mean_ns()?;
        let count = self.count() as f64;
        let squares: f64 = self
            .buckets()
            .map(|bucket| {
                let value = bucket.midpoint_ns().clamp(self.min_ns, self.max_ns) as f64;
                bucket.count as f64 * (value - mean).powi(2)
            })
            .sum();
        Some((squares / count).sqrt())
    }

    /// The value below or at which `percent` of the values lie, by nearest rank, within 0.05 % of the true one.
    ///
    /// Rank 1 gives the exact minimum, the last rank the exact maximum. None when empty or when `percent` is not
    /// within 0 to 100. A rank among the saturated values gives the maximum.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        self.value_at_rank(nearest_rank(percent, self.count())?)
    }

    /// The value of one rank, counted from 1 in ascending order; none outside 1 to the count.
    pub fn value_at_rank(&self, rank: u64) -> Option<u64> {
        value_at_rank(self.buckets(), rank, self.count(), self.min_ns, self.max_ns)
    }

    /// The filled buckets in ascending order; the saturated one, if filled, comes last.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        self.entries().map(|(index, count)| Bucket::at(index, count))
    }

    /// Index and count of the filled buckets.
    fn entries(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let range = self.touched();
        range
            .clone()
            .zip(&self.counts[range])
            .filter(|(_, count)| **count > 0)
            .map(|(index, count)| (index, *count))
    }
}

/// The nearest rank of a percentile among `count` values: the smallest rank that covers `percent` of them.
fn nearest_rank(percent: f64, count: u64) -> Option<u64> {
    if count == 0 || !(0.0..=100.0).contains(&percent) {
        return None;
    }
    let exact = percent / 100.0 * count as f64;
    // 99.9 % of 1000 is 999; the product may come out a few ulp above it and must not be rounded up to 1000.
    let near = exact.round();
    let rank = if (exact - near).abs() <= exact * 4.0 * f64::EPSILON { near } else { exact.ceil() };
    Some((rank as u64).clamp(1, count))
}

fn value_at_rank(
    buckets: impl Iterator<Item = Bucket>,
    rank: u64,
    count: u64,
    min_ns: u64,
    max_ns: u64,
) -> Option<u64> {
    if rank == 0 || rank > count {
        return None;
    }
    if rank == 1 {
        return Some(min_ns);
    }
    let mut seen = 0;
    for bucket in buckets {
        seen += bucket.count;
        if seen >= rank {
            let in_range = bucket.high_ns <= Histogram::RANGE_NS_MAX && rank < count;
            return Some(if in_range { bucket.midpoint_ns().clamp(min_ns, max_ns) } else { max_ns });
        }
    }
    None
}
