//! What is done: operation, sizes, mix, order.

use workload::options;
use workload::spec::{Operation, Spec};

use super::{Site, of_direction};
use crate::fio::draft::{Access, Draft};
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
pub(super) fn access(draft: &Draft) -> Result<Access, Fault> {
    let access = draft.access.unwrap_or(Access { operation: Operation::Read, back_bytes: None });
    let Some(percent) =
        of_direction("percentage_random", draft.percentage_random.as_ref(), access.operation)?
    else {
        return Ok(access);
    };
    let operation = match (percent, access.operation) {
        (100, operation) => operation,
        (0, Operation::RandRead) => Operation::Read,
        (0, Operation::RandWrite) => Operation::Write,
        (0, Operation::RandRw) => Operation::ReadWrite,
        (0, Operation::RandDiscard) => Operation::Discard,
        (_, operation) if !operation.is_random() => operation,
        _ => {
            return Err(Fault::of(
                "percentage_random",
                format!(
                    "{percent} is refused: a job is in order or at random; nearest: 0 or 100, or two jobs"
                ),
            ));
        }
    };
    Ok(Access { operation, ..access })
}

/// `bssplit`, else `bsrange`, else `bs`.
pub(super) fn blocks(draft: &Draft, operation: Operation) -> Result<Blocks, Fault> {
    let (key, text) = if draft.bssplit.is_some() {
        let split = of_direction("bssplit", draft.bssplit.as_ref(), operation)?;
        ("bssplit", split.map(|split| split_text(&split)))
    } else if draft.bsrange.is_some() {
        let range = of_direction("bsrange", draft.bsrange.as_ref(), operation)?;
        (
            "bsrange",
            range.map(|(low, high)| if low == high { low.to_string() } else { format!("{low}-{high}") }),
        )
    } else {
        let bs = draft.bs.map(|bs| bs.map(|size| size.or(Some(BLOCK_SIZE_BYTES))));
        ("bs", of_direction("bs", bs.as_ref(), operation)?.map(|size| size.to_string()))
    };
    let text = text.unwrap_or_else(|| BLOCK_SIZE_BYTES.to_string());
    // The spec reads the same text later; reading it here gives its sizes.
    options::apply(&mut Spec::default(), "block-size", &text)
        .map_err(|error| Fault::of(key, error.to_string()))?;
    let sizes: workload::block_size::BlockSizes =
        text.parse().map_err(|error: units::ParseError| Fault::of(key, error.to_string()))?;
    Ok(Blocks { key, min_bytes: sizes.min(), max_bytes: sizes.max(), mean_bytes: sizes.mean(), text })
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
        self.set(key, "block-size", &text)?;
        if self.operation.is_mixed() {
            let percent = self.draft.rwmixread.unwrap_or(50);
            self.set("rwmixread", "mix", &percent.to_string())?;
        }
        if self.operation.is_random() {
            return self.random_order();
        }
        match access.back_bytes {
            Some(back)
                if back == 2 * self.blocks.max_bytes && self.blocks.min_bytes == self.blocks.max_bytes =>
            {
                self.set("rw", "pattern", "backward")
            }
            Some(back) => Err(Fault::of(
                "rw",
                format!(
                    "-{back} is refused: it leaves holes or reads twice; nearest: twice the block size, which goes backward block by block"
                ),
            )),
            None => Ok(()),
        }
    }

    fn random_order(&mut self) -> Result<(), Fault> {
        let align = of_direction("ba", self.draft.ba.as_ref(), self.operation)?;
        let distribution = self.draft.random_distribution.clone().filter(|text| !text.is_empty());
        let pattern = match distribution {
            Some(pattern) => pattern,
            // fio keeps no map of blocks when they are not aligned to their size.
            None if self.draft.norandommap.unwrap_or(false) || align.is_some() => "uniform".to_owned(),
            None => "permutation".to_owned(),
        };
        self.set("random_distribution", "pattern", &pattern)?;
        let varied = self.blocks.min_bytes != self.blocks.max_bytes;
        if let Some(align) = align.or(varied.then_some(self.blocks.min_bytes)) {
            self.set("ba", "align", &align.to_string())?;
        }
        Ok(())
    }
}
