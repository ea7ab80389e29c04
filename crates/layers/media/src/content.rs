//! Content of the writes of this layer.

use crate::plan::MediaPlan;
use driver::Error;
use workload::content::{BlockWriter, Filler, Repeated};

/// Stream of the data that files are laid out with; workers use their numbers.
pub(crate) const LAYOUT_STREAM: u64 = u64::MAX;

/// The filler of one worker's writes, or of the layout.
pub(crate) fn filler(plan: &MediaPlan, stream: u64) -> Result<Filler, Error> {
    plan.content.filler(plan.load.seed, stream).map_err(|error| Error::usage("content", error.to_string()))
}

/// Fills a part of a target with what a file is laid out with: buffer, index of the target, offset in bytes.
pub type LayoutFill = Box<dyn Fn(&mut [u8], usize, u64)>;

/// Fill that the files of a phase are laid out with: its own content, or blocks of sequence 1 when it verifies.
///
/// # Errors
/// When the content cannot be made.
pub fn layout_fill(plan: &MediaPlan, run: u64) -> Result<LayoutFill, Error> {
    let Some(interval) = plan.verify_interval_bytes else {
        let filler = filler(plan, LAYOUT_STREAM)?;
        return Ok(Box::new(move |buffer, target, offset| filler.fill_block(buffer, offset, target as u64)));
    };
    if let Some(pattern) = &plan.verify_pattern {
        let (repeated, grain) = (Repeated::new(pattern), plan.verify_grain_bytes());
        return Ok(Box::new(move |buffer, _, offset| {
            let offsets = (offset..).step_by(grain as usize);
            buffer.chunks_mut(grain as usize).zip(offsets).for_each(|(part, at)| repeated.fill(part, at));
        }));
    }
    let writer = |target: &workload::target::TargetPlan| {
        BlockWriter::new(run, crate::verify::target_id(&target.path), interval as u32)
            .map_err(|error| Error::usage("verify", error.to_string()))
    };
    let writers = plan.targets.iter().map(writer).collect::<Result<Vec<_>, _>>()?;
    Ok(Box::new(move |buffer, target, offset| writers[target].write_block(buffer, offset, 1)))
}
