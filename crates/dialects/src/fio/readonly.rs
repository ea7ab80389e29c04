//! `--readonly`: nothing is written, by no job and by no preparation of one.

use workload::spec::Spec;

use super::fault::{Fault, shown};
use super::jobs::Assembled;
use super::model::{Direction, Job};
use crate::options::{said, say};
use crate::{PathFacts, World};

/// Refuses jobs that write or trim, and files that a job would need made or extended; the others are used as they are.
pub(super) fn hold(all: &mut Assembled, world: &dyn World) -> Result<(), Fault> {
    let refused = |message: String| Err(Fault::of("--readonly", message));
    let writes = |job: &&Job| job.directions != [Direction::Read];
    if let Some(job) = all.jobs.iter().find(writes) {
        return refused(format!("job {} has rw={}: only reads are allowed", shown(&job.name), job.rw));
    }
    // A job that reads objects makes none.
    let of_files = |(spec, _): &(&mut Spec, &u64)| spec.layer.name == "media";
    for (spec, &end_bytes) in all.specs.iter_mut().zip(&all.ends_bytes).filter(of_files) {
        for path in &spec.targets {
            let (name, path) = (shown(spec.name.as_deref().unwrap_or("")), path.as_str());
            match world.look(path) {
                PathFacts::Missing if path != "null:" => {
                    return refused(format!(
                        "job {name} reads {}, which does not exist and is not created",
                        shown(path)
                    ));
                }
                PathFacts::File { size_bytes } if size_bytes < end_bytes => {
                    return refused(format!(
                        "job {name} reads {} up to byte {}, but it has {size_bytes} bytes and is not extended: give size={size_bytes} or less",
                        shown(path),
                        end_bytes
                    ));
                }
                _ => {}
            }
        }
        // Holes of a file stay as they are, too.
        say(spec, [said("layout", "existing")])
            .map_err(|error| Fault::of("--readonly", error.to_string()))?;
    }
    Ok(())
}
