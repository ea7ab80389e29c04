//! Which engine goes with which target.

use driver::Error;
use workload::plan::EngineFacts;
use workload::target::{TargetFacts, TargetKind};

/// Whether a target lies nowhere.
pub(crate) fn is_without_path(target: &TargetFacts) -> bool {
    matches!(target.kind, TargetKind::Null | TargetKind::Memory)
}

/// `null:` goes with any engine that can pass operations through without a target; `mem:` and images with their own alone.
///
/// # Errors
/// Bad usage: one that does not.
pub(crate) fn check_target_engine(facts: &[TargetFacts], engine: &EngineFacts) -> Result<(), Error> {
    let wrong = |message: String| Err(Error::usage("plan", message));
    match facts[0].kind {
        TargetKind::Memory if engine.name != "mem" => {
            wrong(format!("mem: is measured by engine mem, not by {}: leave out --engine", engine.name))
        }
        TargetKind::Null if !["null", "cpu", "exec"].contains(&engine.name) => wrong(format!(
            "null: is measured by engine null, not by {}: leave out --engine, or give /dev/null",
            engine.name
        )),
        TargetKind::Image if engine.name != "rbd" => wrong(format!(
            "an image of Ceph is measured by engine rbd, not by {}: leave out --engine, or rbd map it and give its device",
            engine.name
        )),
        kind if engine.name == "rbd" && kind != TargetKind::Image => {
            wrong("engine rbd measures images of Ceph: give rbd:POOL/IMAGE".to_owned())
        }
        TargetKind::File | TargetKind::BlockDevice | TargetKind::CharacterDevice if engine.name == "mem" => {
            wrong("engine mem measures memory: give the target mem:".to_owned())
        }
        kind if ["cpu", "exec"].contains(&engine.name) && kind != TargetKind::Null => {
            wrong(format!("engine {} has no target: give null:", engine.name))
        }
        _ => Ok(()),
    }
}
