//! Options of a load on media, and the entry of the layer in the list of layers.

mod program;
mod table;

use workload::help::{Example, Help};
use workload::layers::{Layer, LayerDef};
use workload::options::{self, OptionDef};
use workload::plan::PlanKind;
use workload::spec::{OPERATIONS, Spec};

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

const HELP: Help = Help {
    options: &["op", "block-size", "size", "depth", "threads", "time", "direct", "json"],
    examples: &[
        Example::new(
            "random reads of a new file",
            "media data --size 1g --op randread --depth 32 --direct --time 10s",
        ),
        Example::new(
            "drive performance at several depths",
            "media /dev/nvme0n1 --op randread --ladder depth=1,4,16,64,256 --direct --time 5s",
        ),
        Example::new(
            "a commit log: small durable writes",
            "media log --size 256m --op write --block-size 4k --fsync 1 --time 10s",
        ),
    ],
};

static DEFINITION: LayerDef = LayerDef {
    targets: "A file, a block or character device, an image of Ceph (rbd:POOL/IMAGE), null: or mem:; several targets form one range",
    target_count: (1, usize::MAX),
    options: OPTIONS,
    common: &[],
    is_default: true,
    help: HELP,
    operations: || OPERATIONS.iter().map(|(word, _)| *word).collect(),
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
