//! Shape of the load: operation, sizes, mix, order.

use workload::class_sizes::ClassSizes;
use workload::spec::Operation;

use super::{Site, of_direction};
use crate::fio::draft::{Access, Draft, ZoneMode};
use crate::fio::fault::Fault;

/// fio's default, for every direction.
const BLOCK_SIZE_BYTES: u64 = 4096;

/// Sizes of the blocks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Blocks {
    /// Option that they come from.
    pub(super) key: &'static str,
    pub(super) text: String,
    pub(crate) min_bytes: u64,
    pub(crate) max_bytes: u64,
    pub(super) mean_bytes: f64,
}

/// `rw`, with `percentage_random=0` making it sequential.
pub(super) fn access(draft: &Draft) -> Access {
    let access = draft.access.unwrap_or(Access { operation: Operation::Read, gap_bytes: 0, run: 1 });
    let percents = draft.percentage_random.unwrap_or_default();
    let is_ordered = directions(access.operation).iter().all(|&at| percents[at] == Some(0));
    let operation = match access.operation {
        Operation::RandRead if is_ordered => Operation::Read,
        Operation::RandWrite if is_ordered => Operation::Write,
        Operation::RandRw if is_ordered => Operation::ReadWrite,
        Operation::RandDiscard if is_ordered => Operation::Discard,
        Operation::RandDiscardWrite if is_ordered => Operation::DiscardWrite,
        operation => operation,
    };
    let run = if operation.is_random() { access.run } else { 1 };
    Access { operation, run, ..access }
}

/// Places of an operation's directions in a [`Triple`](crate::fio::value::Triple).
fn directions(operation: Operation) -> &'static [usize] {
    match operation {
        Operation::Read | Operation::RandRead | Operation::Nop => &[0],
        Operation::Write | Operation::RandWrite => &[1],
        Operation::Discard | Operation::RandDiscard => &[2],
        Operation::ReadWrite | Operation::RandRw => &[0, 1],
        // A write follows its trim, whose size it has.
        Operation::DiscardWrite | Operation::RandDiscardWrite => &[2],
    }
}

/// `bssplit`, else `bsrange`, else `bs`: the option, and its sizes in the words of `--block-size` for a direction.
fn size_texts(draft: &Draft) -> (&'static str, [String; 3]) {
    let default = || BLOCK_SIZE_BYTES.to_string();
    let step = if draft.bs_unaligned == Some(true) { "/1" } else { "" };
    let range = |(low, high): (u64, u64)| {
        if low == high { low.to_string() } else { format!("{low}-{high}{step}") }
    };
    if let Some(split) = &draft.bssplit {
        ("bssplit", split.clone().map(|split| split.map_or_else(default, |split| split_text(&split))))
    } else if let Some(ranges) = draft.bsrange {
        ("bsrange", ranges.map(|given| given.map_or_else(default, range)))
    } else {
        let sizes = draft.bs.unwrap_or_default();
        ("bs", sizes.map(|size| size.map_or_else(default, |size| size.to_string())))
    }
}

/// The block sizes of a job.
pub(super) fn blocks(draft: &Draft, operation: Operation) -> Result<Blocks, Fault> {
    let (key, texts) = size_texts(draft);
    let text = if draft.bs_is_seq_rand == Some(true) {
        let percents = draft.percentage_random.unwrap_or_default();
        if operation.is_random() && percents.iter().flatten().any(|percent| *percent < 100) {
            return Err(Fault::of(
                "bs_is_seq_rand",
                "is not supported if percentage_random makes a job both sequential and random, because sizes are per direction; alternative: two jobs",
            ));
        }
        texts[usize::from(operation.is_random())].clone()
    } else {
        match directions(operation) {
            [read, write] if texts[*read] != texts[*write] => {
                format!("read={},write={}", texts[*read], texts[*write])
            }
            of => texts[of[0]].clone(),
        }
    };
    // The spec reads the same text later.
    let sizes: ClassSizes =
        text.parse().map_err(|error: units::ParseError| Fault::of(key, error.to_string()))?;
    let read_share = f64::from(draft.rwmixread.unwrap_or(50)) / 100.0;
    // Classes of one size have one mean.
    let mean_bytes = sizes.of(0).mean() * read_share + sizes.of(1).mean() * (1.0 - read_share);
    Ok(Blocks { key, min_bytes: sizes.min(), max_bytes: sizes.max(), mean_bytes, text })
}

/// Shares of the same size are one, and shares of nothing are none.
fn split_text(split: &[(u64, u8)]) -> String {
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for &(size, share) in split.iter().filter(|(_, share)| *share > 0) {
        match merged.iter_mut().find(|(known, _)| *known == size) {
            Some((_, sum)) => *sum += u64::from(share),
            None => merged.push((size, share.into())),
        }
    }
    match &merged[..] {
        [(size, _)] => size.to_string(),
        all => all.iter().map(|(size, share)| format!("{size}:{share}")).collect::<Vec<_>>().join(","),
    }
}

impl Site<'_> {
    pub(super) fn shape(&mut self, access: Access) -> Result<(), Fault> {
        let (key, text) = (self.blocks.key, self.blocks.text.clone());
        if self.draft.zonemode == Some(ZoneMode::Zbd) {
            return self.zoned_shape(access);
        }
        self.set(key, "block-size", &text)?;
        if self.operation.is_mixed() {
            let percent = self.draft.rwmixread.unwrap_or(50);
            self.set("rwmixread", "mix", &percent.to_string())?;
        }
        if self.operation.is_random() {
            return self.random_order(access);
        }
        if access.gap_bytes != 0 {
            self.set("rw", "gap", &access.gap_bytes.to_string())?;
        }
        // Each direction has a place of its own in a file.
        if self.operation.is_mixed() {
            self.set("rw", "own-positions", "true")?;
        }
        Ok(())
    }

    /// `zonemode=strided` and `zbd`.
    pub(super) fn zones(&mut self) -> Result<(), Fault> {
        let draft = self.draft;
        if draft.zonemode == Some(ZoneMode::Zbd) {
            return self.zones_of_device();
        }
        let size_bytes = draft.zonesize.unwrap_or(0);
        if draft.zonemode != Some(ZoneMode::Strided) {
            let given =
                [("zonesize", draft.zonesize), ("zonerange", draft.zonerange), ("zoneskip", draft.zoneskip)];
            return match given.iter().find(|(_, bytes)| bytes.unwrap_or(0) > 0) {
                Some((key, _)) => {
                    Err(Fault::of(key, "requires zonemode=strided or zbd, as in fio: give one of them"))
                }
                None => Ok(()),
            };
        }
        if size_bytes == 0 {
            return Err(Fault::of("zonemode", "strided requires zonesize, the bytes to transfer in a zone"));
        }
        let range_bytes = draft.zonerange.filter(|&bytes| bytes > 0).unwrap_or(size_bytes);
        let skip_bytes = draft.zoneskip.unwrap_or(0);
        self.set("zonemode", "zones", &format!("{size_bytes}/{range_bytes}/{skip_bytes}"))
    }

    /// Whether blocks of several sizes fit between each other, so that each byte comes once a pass. A job that ends with a time needs no
    /// map of what it has visited.
    fn is_fitted(&self, access: Access) -> bool {
        let draft = self.draft;
        let is_shaped = access.run > 1
            || draft.percentage_random.is_some()
            || matches!(draft.zonemode, Some(ZoneMode::Strided | ZoneMode::Zbd))
            || draft.file_service_type.is_some()
            || draft.time_based == Some(true)
            || draft.bs_unaligned == Some(true);
        self.blocks.min_bytes != self.blocks.max_bytes && !self.blocks.text.contains('=') && !is_shaped
    }

    pub(super) fn random_order(&mut self, access: Access) -> Result<(), Fault> {
        let by_class = self.blocks.text.contains('=');
        let align = of_direction("ba", self.draft.ba.as_ref(), self.operation)?;
        let distribution = self.draft.random_distribution.clone().filter(|text| !text.is_empty());
        let moves_on = self.draft.random_sequence_stride == Some(true);
        let pattern = match distribution {
            Some(pattern) if moves_on => match pattern.strip_prefix("sequence:") {
                Some(blocks) => format!("groups:{blocks}"),
                None => {
                    let message = "requires random_distribution=sequence:...: leave it out";
                    return Err(Fault::of("random_sequence_stride", message));
                }
            },
            Some(pattern) => pattern,
            // fio keeps no map of blocks when they are not aligned to their size.
            None if self.draft.lfsr != Some(true)
                && (self.draft.norandommap.unwrap_or(false) || align.is_some()) =>
            {
                "uniform".to_owned()
            }
            None if self.is_fitted(access) => "fitted".to_owned(),
            None => "permutation".to_owned(),
        };
        self.set("random_distribution", "pattern", &pattern)?;
        if pattern == "fitted" {
            return Ok(());
        }
        // Directions of one size each have positions that are multiples of it.
        let varied = self.blocks.min_bytes != self.blocks.max_bytes
            && (!by_class || self.blocks.text.contains(['-', ':']));
        if let Some(align) = align.or(varied.then_some(self.blocks.min_bytes)) {
            self.set("ba", "align", &align.to_string())?;
        }
        if access.run > 1 {
            let kind = if self.draft.rw_identical.unwrap_or(false) { "identical:" } else { "" };
            self.set("rw", "run", &format!("{kind}{}", access.run))?;
        }
        let percents = self.draft.percentage_random.unwrap_or_default().map(|share| share.unwrap_or(100));
        if percents != [100; 3] {
            if access.run > 1 {
                return Err(Fault::of(
                    "percentage_random",
                    "conflicts with the part of rw after the colon: give only one of them",
                ));
            }
            let [read, write, discard] = percents;
            let text = format!("read={read},write={write},discard={discard}");
            self.set("percentage_random", "random-percent", &text)?;
        }
        Ok(())
    }
}
