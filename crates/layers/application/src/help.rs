//! Short help of the commands about applications.

use workload::help::{Example, Help};

/// Options that most users need, and examples.
pub(crate) const APP: Help = Help {
    options: &["set", "pattern", "index", "profile", "target-options", "json"],
    examples: &[
        Example::new("list all applications", "app list"),
        Example::new(
            "checkpoints on an object store, with a time breakdown",
            "app vpic vos:/dev/shm/pool --profile",
        ),
        Example::new(
            "a weather model's fields on a file system and an object store, side by side",
            "app fdb-hammer --on /mnt/test,vos:/dev/shm/pool",
        ),
        Example::new(
            "a workload of DLIO, smaller than published, for two accelerators",
            "app dlio /mnt/test --workload unet3d --accelerators 2 --set dataset.num_files_train=28",
        ),
    ],
};

/// Help of `strata app list`.
pub(crate) const LIST: &[(&str, Help)] =
    &[("", Help { options: &[], examples: &[Example::new("list all applications", "app list")] })];

/// Help of `strata app show`.
pub(crate) const SHOW: &[(&str, Help)] = &[(
    "",
    Help {
        options: &[],
        examples: &[
            Example::new("parameters and steps", "app show fdb-hammer"),
            Example::new("the description, as a template for your own", "app show vpic --toml"),
        ],
    },
)];
