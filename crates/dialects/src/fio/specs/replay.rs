//! `read_iolog`: the operations of a log in place of drawn ones.

use std::sync::Arc;

use workload::replay::{Replay, ReplayClass, parse_log};
use workload::spec::Operation;

use super::targets::Files;
use super::{Blocks, Clones, Site};
use crate::PathFacts;
use crate::fio::draft::Draft;
use crate::fio::fault::{Fault, shown};

/// The log of a job, with what the job changes about it; none where it has none.
pub(super) fn read(clones: Clones<'_>, draft: &Draft) -> Result<Option<Replay>, Fault> {
    let Some(log) = &draft.read_iolog else {
        let alone = ["replay_redirect", "replay_scale", "replay_align", "replay_time_scale", "replay_skip"];
        return match alone.iter().find(|key| draft.place(key).is_some()) {
            Some(key) => Err(Fault::of(key, "requires read_iolog: give both")),
            None => Ok(None),
        };
    };
    let fault = |why: String| Fault::of("read_iolog", why);
    let text = clones.world.read(log).map_err(|error| fault(format!("{}: {error}", shown(log))))?;
    let mut replay = parse_log(log, &text).map_err(|error| fault(error.to_string()))?;
    if draft.verifies() {
        return Err(Fault::of(
            "verify",
            "is not supported with read_iolog: the data that it reads are unknown; alternative: leave it out",
        ));
    }
    let paced = ["rate", "rate_iops", "thinktime", "loops", "number_ios", "time_based", "ramp_time"];
    if let Some(key) = paced.iter().find(|key| draft.place(key).is_some()) {
        return Err(Fault::of(
            key,
            "is not supported with read_iolog: the log determines pace and end; alternative: replay_time_scale, runtime",
        ));
    }
    let skipped = draft.replay_skip.clone().unwrap_or_default();
    let (scale, align) = (draft.replay_scale.unwrap_or(1), draft.replay_align.unwrap_or(1).max(1));
    let pace = u128::from(draft.replay_time_scale.unwrap_or(100));
    let mut steps: Vec<_> =
        replay.steps.iter().copied().filter(|step| !skipped.contains(&step.class)).collect();
    for step in &mut steps {
        step.offset_bytes = step.offset_bytes / scale / align * align;
        step.at_ns = u64::try_from(u128::from(step.at_ns) * 100 / pace).unwrap_or(u64::MAX);
        if draft.replay_redirect.is_some() {
            step.target = 0;
        }
    }
    if steps.is_empty() {
        return Err(fault(format!("{} contains no operation to replay", shown(log))));
    }
    if let Some(path) = &draft.replay_redirect {
        replay.files = vec![path.clone()];
    }
    replay.steps = steps.into();
    replay.is_timed = draft.replay_no_stall != Some(true);
    Ok(Some(replay))
}

/// The operation of a job that replays, for what depends on its directions.
pub(super) fn operation(replay: &Replay) -> Operation {
    let has = |class| replay.has(class);
    match (has(ReplayClass::Read), has(ReplayClass::Write), has(ReplayClass::Discard)) {
        (true, false, false) => Operation::Read,
        (false, _, false) => Operation::Write,
        (false, false, true) => Operation::Discard,
        (false, true, true) => Operation::DiscardWrite,
        _ => Operation::ReadWrite,
    }
}

/// The sizes of its blocks: buffers hold the largest.
pub(super) fn blocks(replay: &Replay) -> Blocks {
    let moved =
        replay.steps.iter().filter(|step| step.length_bytes > 0 && step.class != ReplayClass::Discard);
    let lengths: Vec<u64> = moved.map(|step| u64::from(step.length_bytes)).collect();
    let max_bytes = lengths.iter().copied().max().unwrap_or(4096);
    let min_bytes = lengths.iter().copied().min().unwrap_or(max_bytes);
    let mean_bytes = lengths.iter().sum::<u64>() as f64 / lengths.len().max(1) as f64;
    Blocks { key: "read_iolog", text: max_bytes.to_string(), min_bytes, max_bytes, mean_bytes }
}

impl Site<'_> {
    /// Gives the spec the operations of a log, its files and their sizes.
    pub(super) fn replay(&mut self, replay: Replay) -> Result<Files, Fault> {
        let is_null = self.engine.ours == "null";
        let text = self.blocks.text.clone();
        self.set("read_iolog", "block-size", &text)?;
        if self.operation.is_mixed() {
            let (read, write) = if replay.has(ReplayClass::Write) { (50, 50) } else { (50, 0) };
            let discard = if replay.has(ReplayClass::Discard) { 100 - read - write / 2 } else { 0 };
            let write = 100 - read - discard;
            self.set("read_iolog", "mix", &format!("read={read},write={write},discard={discard}"))?;
        }
        let files = if is_null { vec!["null:".to_owned()] } else { replay.files.clone() };
        let mut replay = replay;
        if is_null {
            replay.steps =
                replay.steps.iter().map(|step| workload::replay::ReplayStep { target: 0, ..*step }).collect();
        }
        let looked: Vec<_> = files.iter().map(|path| self.clones.world.look(path)).collect();
        let is_device = |facts: &PathFacts| matches!(facts, PathFacts::BlockDevice { .. });
        let ends = (0..replay.files.len().max(1)).map(|target| replay.end_bytes(target));
        let end_bytes = ends.max().unwrap_or(0).max(self.blocks.max_bytes);
        if !looked.iter().all(is_device) {
            self.set("read_iolog", "size", &end_bytes.to_string())?;
        }
        let makes = replay.has(ReplayClass::Write);
        self.spec.targets.clone_from(&files);
        if self.clones.count > 1 {
            self.spec.share = Some(workload::spec::Share::Whole);
        }
        if let Some(time_ns) = self.draft.runtime.filter(|&time| time > 0) {
            self.set("runtime", "time", &format!("{time_ns}ns"))?;
        }
        self.set("read_iolog", "warmup", "none")?;
        self.spec.replay = Some(Arc::new(replay));
        // What a log only reads must be there.
        if !is_null {
            self.set("read_iolog", "layout", if makes { "sparse" } else { "existing" })?;
        }
        Ok(Files { each: files, shared: true, is_null })
    }
}
