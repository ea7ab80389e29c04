//! The entry of the layer in the list of layers.

use workload::help::{Example, Help};
use workload::layers::{Layer, LayerDef};
use workload::plan::PlanKind;

use crate::options;
use crate::plan::{OBJECT_OPERATIONS, ObjectPlan, ObjectSpec};

/// Forms of targets, as the table of drivers has them.
pub(crate) const TARGETS: &str = "null:, vos:DIR, engine://HOST:PORT/POOL/CONTAINER, rados://POOL[/CONTAINER], daos://POOL/CONTAINER, s3://BUCKET[/PREFIX]";

const HELP: Help = Help {
    options: &["op", "value-size", "dkeys", "depth", "threads", "time", "s3-endpoint", "json"],
    examples: &[
        Example::new(
            "an embedded store in memory: measures software cost",
            "object --op put,get --dkeys 100000 --value-size 4k",
        ),
        Example::new(
            "a bucket",
            "object s3://bucket --s3-endpoint https://s3.example --op put,get,remove --value-size 1m --depth 64",
        ),
        Example::new(
            "a Ceph pool",
            "object rados://bench --op put,get --value-size 4m --depth 16 --time 30s",
        ),
    ],
};

static DEFINITION: LayerDef = LayerDef {
    command: "object",
    help: HELP,
    operations: || OBJECT_OPERATIONS.to_vec(),
    targets: TARGETS,
    target_count: (0, 1),
    options: &[options::OBJECT, options::MEMORY],
    common: options::COMMON,
    secrets: options::SECRETS,
    refused: options::REFUSED,
    is_one_phase: |spec| ObjectSpec::of(spec).operations.len() <= 1,
    set_size: |spec, size| ObjectSpec::of_mut(spec).value_size = Some(size),
    ..LayerDef::new(
        "object",
        "Measure an object store; without a target, a temporary embedded store in memory",
        PlanKind::of::<ObjectPlan>("Objects."),
    )
};

/// The layer, as specs name it.
pub const LAYER: Layer = Layer::of(&DEFINITION);
