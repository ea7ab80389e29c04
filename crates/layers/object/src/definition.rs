//! The entry of the layer in the list of layers.

use workload::layers::{Layer, LayerDef};
use workload::plan::PlanKind;

use crate::options;
use crate::plan::{ObjectPlan, ObjectSpec};

/// Forms of targets, as the table of drivers has them.
pub(crate) const TARGETS: &str = "null:, vos:DIR, engine://HOST:PORT/POOL/CONTAINER, rados://POOL[/CONTAINER], daos://POOL/CONTAINER, s3://BUCKET[/PREFIX]";

static DEFINITION: LayerDef = LayerDef {
    command: "object",
    targets: TARGETS,
    target_count: (0, 1),
    options: &[options::OBJECT],
    common: options::COMMON,
    secrets: options::SECRETS,
    refused: options::REFUSED,
    is_one_phase: |spec| ObjectSpec::of(spec).operations.len() <= 1,
    set_size: |spec, size| ObjectSpec::of_mut(spec).value_size = Some(size),
    ..LayerDef::new(
        "object",
        "Measure an object store; without a target, an embedded one of this run in memory",
        PlanKind::of::<ObjectPlan>("Objects."),
    )
};

/// The layer, as specs name it.
pub const LAYER: Layer = Layer::of(&DEFINITION);
