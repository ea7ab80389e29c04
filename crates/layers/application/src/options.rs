//! Options of a load of an application.

use units::{ParseError, parse_u64_in, split_list};
use workload::layers::{Layer, LayerDef};
use workload::options::OptionDef;
use workload::options::value::some_text;
use workload::plan::PlanKind;
use workload::spec::Spec;
use workload::{option, own_of, switch_of};

use crate::plan::AppPlan;
use crate::spec::AppSpec;

/// The layer, as users see it.
pub const LAYER: Layer = Layer::of(&DEFINITION);

static DEFINITION: LayerDef = LayerDef {
    command: "app",
    help: crate::help::APP,
    targets: "The application (a name from strata app list, or the path of a description) and its target: a directory, dfs+vos:DIR, dfs+engine://HOST:PORT/POOL/CONTAINER, vos:DIR, engine://HOST:PORT/POOL/CONTAINER, daos://POOL/CONTAINER, rados://POOL, s3://BUCKET or null:",
    target_count: (0, 2),
    options: &[APPLICATION, MEMORY],
    common: COMMON,
    refused: REFUSED,
    one_phase: "one stage",
    is_one_phase: |_| false,
    ..LayerDef::new(
        "application",
        "Run an application's load (fdb-hammer, checkpoints, training, ...) on any storage target",
        PlanKind::of::<AppPlan>("Applications."),
    )
};

/// Options of the memory of buffers.
static MEMORY: &[OptionDef] = layer::staged_memory_options!(AppSpec);

/// Options of media that mean the same here.
const COMMON: &[&str] = &[
    "name",
    "time",
    "start-delay",
    "concurrent",
    "end-others",
    "seed",
    "cores",
    "cores-policy",
    "numa",
    "profile",
    "interval",
    "on-error",
    "keep",
    "destroy-data",
];

const PROCESSES: &str =
    "--set with the application's parameter for the number of processes, such as writers=8";

/// Options of media that this layer does not have, and their substitutes.
const REFUSED: &[(&str, &str)] = &[
    ("threads", PROCESSES),
    ("depth", "nothing: each process of an application makes one call at a time"),
    ("count", "--steps, or --set with the parameter for the amount of work"),
    ("op", "the steps of a description: strata app show NAME"),
    ("verify", "nothing: every byte that is read is checked unless --no-verify is given"),
    ("direct", "--target-options direct=true"),
    ("durability", "--target-options durability=..."),
    ("s3-endpoint", "--target-options s3-endpoint=..."),
    ("token-file", "--target-options token-file=..."),
    ("warmup", "nothing: an application is measured from its first call to its last"),
];

/// Adds a value of a parameter.
fn set(spec: &mut Spec, name: &str, value: &str) {
    spec.own.get_mut::<AppSpec>().settings.push((name.to_owned(), value.to_owned()));
}

/// Reads `NAME=VALUE,NAME=VALUE`; a name alone has the value `alone`.
fn pairs(option: &str, text: &str, alone: Option<&str>) -> Result<Vec<(String, String)>, ParseError> {
    let mut pairs = Vec::new();
    for word in split_list(option, text)? {
        let (name, value) = match (word.split_once('='), alone) {
            (Some((name, value)), _) => (name, value),
            (None, Some(alone)) => (word, alone),
            (None, None) => return Err(ParseError::new(format!("a value of {option}"), word, "NAME=VALUE")),
        };
        if name.trim().is_empty() || value.trim().is_empty() {
            return Err(ParseError::new(format!("a value of {option}"), word, "NAME=VALUE"));
        }
        pairs.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    Ok(pairs)
}

/// An option that is a parameter of applications.
macro_rules! parameter {
    ($name:literal, $value:literal, $help:literal) => {
        option!($name, None, $value, "the application's", Workload, $help, |spec: &mut Spec, text| {
            set(spec, $name, text);
            Ok(())
        })
    };
}

/// The table.
const APPLICATION: &[OptionDef] = &[
    own_of!(
        AppSpec,
        "app",
        None,
        "NAME",
        "first word",
        Workload,
        "Application, if the first word on the command line does not name it: a name from strata app list, or the path of a description",
        app,
        |text| some_text("app", text)
    ),
    option!(
        "set",
        None,
        "NAME=VALUE,...",
        "from the description",
        Workload,
        "Values of the application's parameters (strata app show NAME lists them)",
        |spec: &mut Spec, text| {
            for (name, value) in pairs("set", text, None)? {
                set(spec, &name, &value);
            }
            Ok(())
        }
    ),
    own_of!(
        AppSpec,
        "scale",
        None,
        "X|N/M",
        "the application's defaults",
        Workload,
        "Fraction of the application's full size, such as 1/1000 or 0.001: vpic, bd-cats, cosmic-tagger, fdb-hammer (strata app show NAME lists the values at --scale 1)",
        scale,
        str::parse
    ),
    parameter!(
        "workload",
        "FILE|NAME",
        "Same as --set workload=...: dlio: a workload file of DLIO (YAML), or one of unet3d, bert, resnet50, cosmoflow"
    ),
    parameter!(
        "accelerators",
        "N|max",
        "Same as --set accelerators=N: dlio: number of accelerators to feed; max: finds how many this storage can feed"
    ),
    parameter!("steps", "N", "Same as --set steps=N: iterations of the application"),
    parameter!("members", "N", "Same as --set members=N: fdb-hammer: members of the ensemble"),
    parameter!("levels", "N", "Same as --set levels=N: fdb-hammer: levels of the atmosphere"),
    parameter!("params", "N", "Same as --set params=N: fdb-hammer: parameters per level"),
    parameter!("writers", "N", "Same as --set writers=N: processes that write"),
    parameter!("readers", "N", "Same as --set readers=N: processes that read"),
    parameter!(
        "pattern",
        "A|B",
        "Same as --set pattern=...: fdb-hammer: A writes and then reads, B does both at once"
    ),
    parameter!(
        "index",
        "shared|process",
        "Same as --set index=...: fdb-hammer: one index for all processes, or one per process"
    ),
    parameter!(
        "format",
        "raw|hdf5|auto",
        "Same as --set format=...: vpic, bd-cats: HDF5 files (libhdf5), raw files, or HDF5 if library and target support it"
    ),
    parameter!("size", "SIZE", "Same as --set size=SIZE: bytes per item"),
    option!(
        "target-options",
        None,
        "NAME=VALUE,...",
        "none",
        Engine,
        "Options of the target's layer (strata fs, strata object), such as direct=true, durability=batch, class=SX, s3-endpoint=http://HOST:PORT, token-file=FILE; with --on an option applies to all targets that support it, 2:NAME=VALUE only to the second, LABEL:NAME=VALUE only to the labelled one",
        |spec: &mut Spec, text| {
            let options = pairs("target-options", text, Some("true"))?;
            spec.own.get_mut::<AppSpec>().target_options.extend(options);
            Ok(())
        }
    ),
    option!(
        "on",
        None,
        "[LABEL:]TARGET,...",
        "none: the TARGET argument",
        Engine,
        "Targets to compare: each runs the application in turn, in several passes over all targets; if repeated, each --on is one target, which may contain commas. LABEL:TARGET sets its name in tables and charts",
        |spec: &mut Spec, text| {
            let target = some_text("on", text)?;
            spec.own.get_mut::<AppSpec>().on.push(target);
            Ok(())
        }
    ),
    own_of!(
        AppSpec,
        "passes",
        None,
        "N",
        "3",
        Run,
        "Passes over the targets of --on, or over the two variants of --try; confidence intervals come from their differences. 2 to 50",
        passes,
        |text| parse_u64_in("passes", text, 2..=50).map(|passes| passes as u32)
    ),
    switch_of!(
        AppSpec,
        "try",
        "off",
        Run,
        "Tests the application's remedy for the most expensive part of its time, alternating with the unchanged load (implies --profile)",
        try_remedy
    ),
    switch_of!(AppSpec, "no-verify", "off", Data, "Does not check the bytes that are read", no_verify),
];
