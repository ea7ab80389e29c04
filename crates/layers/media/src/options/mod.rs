//! Options of a load on media, and the entry of the layer in the list of layers.

mod program;
mod table;

use workload::layers::{Layer, LayerDef};
use workload::options::{self, OptionDef};
use workload::plan::PlanKind;
use workload::spec::Spec;

use crate::plan::MediaPlan;
use crate::spec;

/// Options in the order of help: those of media alone, and between them those of loads of any layer.
static OPTIONS: &[&[OptionDef]] = &[
    table::OPERATION,
    options::BLOCK_SIZE,
    table::RANGE,
    options::PATTERN,
    table::POSITIONS,
    options::SHARE,
    table::DURABLE,
    options::LOAD,
    table::ENGINE,
    options::CONTENT,
    table::VERIFY,
    options::RUN,
    options::CONTROL,
    table::HINTS,
    program::PROGRAM,
];

static DEFINITION: LayerDef = LayerDef {
    targets: "A file, a block or character device, an image of Ceph (rbd:POOL/IMAGE), null: or mem:; several make one range",
    target_count: (1, usize::MAX),
    options: OPTIONS,
    common: &[],
    is_default: true,
    is_one_phase: |spec| spec::of(spec).operations.len() == 1,
    ..LayerDef::new(
        "media",
        "Measure files, block devices, character devices, or memory",
        PlanKind::of::<MediaPlan>("Files, devices, memory."),
    )
};

/// The layer, as specs name it.
pub const LAYER: Layer = Layer::of(&DEFINITION);

/// Notes that an engine option was given, so that an engine without it can refuse.
fn given(spec: &mut Spec, name: &'static str) {
    let given = &mut spec::of_mut(spec).engine_options_given;
    if !given.contains(&name) {
        given.push(name);
    }
}
