//! From settings to specs: one for each test, and for each process where processes have stores of their own.

use units::ParseError;
use workload::spec::{OnError, Refill, Spec, Warmup};

use super::commands::{Command, Test};
use super::settings::{Settings, Workload};
use crate::options::{Said, said, said_if, say, switch};

/// Payloads from this size on travel apart from the message, as DAOS sends them.
const BULK_BYTES_MIN: u64 = 4096;
/// Smallest memory of a store that can be asked for, in bytes.
const SCM_BYTES_MIN: u64 = 1 << 20;
/// Prefixes of the names of dkeys and akeys.
const DKEYS: &str = "blade-";
const AKEYS: &str = "akey--";

/// Extent of a test: counts of objects, dkeys, akeys and records, and the first dkey.
struct Extent {
    counts: [u64; 4],
    first_dkey: u64,
    passes: u64,
}

/// The specs, and the command of each.
#[derive(Debug, Default)]
pub(crate) struct Programme {
    pub(crate) specs: Vec<Spec>,
    pub(crate) command_of: Vec<usize>,
}

/// Makes the specs.
///
/// # Errors
/// Values that no load has.
pub(crate) fn build(settings: &Settings) -> Result<Programme, ParseError> {
    let mut programme = Programme::default();
    let extents = extents(settings);
    let dkeys = extents.iter().map(|extent| extent.first_dkey + extent.counts[1]).max().unwrap_or(1);
    let whole = [settings.counts[0], dkeys.max(settings.counts[1]), settings.counts[2], settings.counts[3]];
    for (number, (command, extent)) in settings.commands.iter().zip(&extents).enumerate() {
        let stores: u32 = if matches!(settings.place, Workload::Vos { .. }) { settings.processes } else { 1 };
        for process in 0..stores {
            let spec = if settings.is_echo() {
                echo(settings, command, extent)?
            } else {
                spec(settings, command, extent, whole, process)?
            };
            programme.specs.push(Spec { concurrent: process > 0, host: settings.rank_of(process), ..spec });
            programme.command_of.push(number);
        }
    }
    Ok(programme)
}

/// Extents of the tests. With `k` the numbers of dkeys go on from those of the test before, and from pass to pass.
fn extents(settings: &Settings) -> Vec<Extent> {
    let mut next = 0;
    let extent = |command: &Command| {
        let subset = |at: usize| command.subset[at].unwrap_or(settings.counts[at]);
        let mut counts = [0, 1, 2, 3].map(subset);
        let mut passes = command.iterations;
        let mut first_dkey = 0;
        if command.keeps_keys {
            first_dkey = next;
            counts[1] = counts[1].saturating_mul(passes);
            passes = 1;
        }
        next = first_dkey + counts[1];
        match command.test {
            Test::Punch if command.by_dkey => counts[2..].fill(1),
            Test::Punch | Test::Query | Test::Iterate | Test::Objects => counts[1..].fill(1),
            Test::Aggregate | Test::Discard | Test::Collect => counts = [1; 4],
            Test::Update | Test::Fetch | Test::Verify => {}
        }
        Extent { counts, first_dkey, passes }
    };
    settings.commands.iter().map(extent).collect()
}

/// Operation of a test.
fn operation(test: Test) -> &'static str {
    match test {
        Test::Update => "update",
        Test::Fetch | Test::Verify => "fetch",
        Test::Iterate | Test::Objects => "iterate",
        Test::Query => "query",
        Test::Punch => "punch",
        Test::Aggregate => "aggregate",
        Test::Discard => "discard",
        Test::Collect => "collect",
    }
}

/// Whether a test works on a container: it has no objects, keys or values.
fn is_of_container(test: Test) -> bool {
    matches!(test, Test::Aggregate | Test::Discard | Test::Collect)
}

/// Operations of all workers together, where one pass is not what ends the test.
fn count(extent: &Extent, workers: u32) -> Option<u64> {
    let each: u64 = extent.counts.iter().product();
    (extent.passes > 1).then(|| each * extent.passes * u64::from(workers))
}

/// Spec of a layer with what all of them have in common.
fn base(layer: &str, settings: &Settings, command: &Command) -> Result<Spec, ParseError> {
    Ok(Spec {
        name: Some(command.test.name().to_owned()),
        depth: Some(settings.depth()),
        warmup: Some(Warmup::None),
        on_error: Some(OnError::Stop),
        seed: settings.seed,
        ..Spec::of_layer(layer)?
    })
}

fn spec(
    settings: &Settings,
    command: &Command,
    extent: &Extent,
    whole: [u64; 4],
    process: u32,
) -> Result<Spec, ParseError> {
    let (target, workers) = match &settings.place {
        Workload::Shared { url, .. } => (url.clone(), settings.processes),
        Workload::Vos { .. } => (format!("vos:{}", settings.store(process).unwrap_or_default()), 1),
    };
    let verified = settings.commands.iter().any(|command| command.test == Test::Verify)
        || settings.keep
        || settings.pool.is_some();
    let verify = command.test == Test::Verify || (verified && command.test == Test::Update);
    let mut spec = Spec {
        targets: vec![target],
        threads: Some(workers),
        count: count(extent, workers),
        pattern: (settings.is_shuffled && command.test.moves_values()).then(|| "permutation".to_owned()),
        refill: (command.test == Test::Update && !verify).then_some(Refill::Once),
        verify,
        keep: settings.keep,
        ..base("object", settings, command)?
    };
    say(&mut spec, of_store(settings, command, workers))?;
    if !is_of_container(command.test) {
        say(&mut spec, of_records(settings, command, extent, whole))?;
    }
    Ok(spec)
}

/// Options of the operation, and of the store that it goes to.
fn of_store(settings: &Settings, command: &Command, workers: u32) -> Vec<Said> {
    let is_vos = matches!(settings.place, Workload::Vos { .. });
    let is_made = is_vos && settings.pool.is_none();
    let container = settings.container.as_ref().filter(|_| !settings.has_container_in_url());
    // A store that is there has the size that it was made with: any larger one asked for would be refused.
    let scm = if is_made { settings.scm_bytes } else { SCM_BYTES_MIN };
    vec![
        said("op", operation(command.test)),
        said_if("container", container),
        said_if("object-scope", (workers > 1).then_some("private")),
        switch("integer-dkeys", settings.integer_dkeys),
        said_if("class", settings.class_asked()),
        switch("one-pass", true),
        switch("no-fill", command.test != Test::Update && !is_of_container(command.test)),
        said_if("zero-copy", is_vos.then_some(if settings.zero_copy { "on" } else { "off" })),
        said_if("scm", is_vos.then_some(scm)),
        said_if("nvme", (is_made && settings.nvme_bytes > 0).then_some(settings.nvme_bytes)),
        said_if("store-targets", is_made.then_some(1)),
        // As the tool: -P is the size of a file that is allocated, and containers have no checksum.
        said_if("allocate", is_made.then_some("whole")),
        said_if("checksum", is_vos.then_some(&settings.checksum)),
    ]
}

/// Options of the records that a test goes over.
fn of_records(settings: &Settings, command: &Command, extent: &Extent, whole: [u64; 4]) -> Vec<Said> {
    let [objects, dkeys, akeys, records] = extent.counts;
    let first = (extent.first_dkey > 0).then(|| format!("0,{},0,0", extent.first_dkey));
    let whole = (whole != extent.counts).then(|| whole.map(|count| count.to_string()).join(","));
    let is_punch = command.test == Test::Punch;
    vec![
        said("objects", objects),
        said("dkeys", dkeys),
        said("akeys", akeys),
        said("records", records),
        said_if("first", first),
        said_if("whole", whole),
        switch("constant-akey", settings.constant_akey),
        said_if("dkey-prefix", (!settings.integer_dkeys).then_some(DKEYS)),
        said("akey-prefix", AKEYS),
        said("value", if settings.is_array { "array" } else { "single" }),
        said("value-size", settings.value_bytes(command)),
        said_if("stride", settings.is_array.then_some(settings.size_bytes)),
        said_if("record-offset", command.offset_bytes),
        said_if("punch", is_punch.then_some(if command.by_dkey { "dkey" } else { "object" })),
    ]
}

/// RPCs as large as those that would move the values; nothing is stored.
fn echo(settings: &Settings, command: &Command, extent: &Extent) -> Result<Spec, ParseError> {
    let bytes = settings.value_bytes(command);
    let kind = if bytes < BULK_BYTES_MIN { 'i' } else { 'b' };
    let sizes = match command.test {
        Test::Update => format!("{kind}{bytes} 0"),
        _ => format!("0 {kind}{bytes}"),
    };
    let url = match &settings.place {
        Workload::Shared { url, .. } => url.as_str(),
        Workload::Vos { .. } => "",
    };
    let host = url.trim_start_matches("engine://").split('/').next().unwrap_or_default();
    let records: u64 = extent.counts.iter().product();
    let mut spec = Spec {
        targets: vec![format!("tcp://{host}")],
        threads: Some(settings.processes),
        count: Some(records * extent.passes * u64::from(settings.processes)),
        ..base("network", settings, command)?
    };
    say(&mut spec, [said("message-sizes", sizes)])?;
    Ok(spec)
}
