//! From settings to specs: one for each test, and for each process where processes have stores of their own.

use units::ByteSize;
use workload::network::{NetworkSpec, Payload, PayloadKind};
use workload::object::{Allocation, ObjectOp, ObjectSpec, PunchScope, Scope, ValueKind};
use workload::spec::{Layer, OnError, Refill, Spec, Warmup};

use super::commands::{Command, Test};
use super::settings::{Settings, Workload};

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
pub(crate) fn build(settings: &Settings) -> Programme {
    let mut programme = Programme::default();
    let extents = extents(settings);
    let dkeys = extents.iter().map(|extent| extent.first_dkey + extent.counts[1]).max().unwrap_or(1);
    let whole = [settings.counts[0], dkeys.max(settings.counts[1]), settings.counts[2], settings.counts[3]];
    for (number, (command, extent)) in settings.commands.iter().zip(&extents).enumerate() {
        let stores: u32 = if matches!(settings.place, Workload::Vos { .. }) { settings.processes } else { 1 };
        for process in 0..stores {
            let spec = if settings.is_echo() {
                echo(settings, command, extent)
            } else {
                spec(settings, command, extent, whole, process)
            };
            programme.specs.push(Spec { concurrent: process > 0, ..spec });
            programme.command_of.push(number);
        }
    }
    programme
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

fn operation(command: &Command) -> ObjectOp {
    match command.test {
        Test::Update => ObjectOp::Update,
        Test::Fetch | Test::Verify => ObjectOp::Fetch,
        Test::Iterate | Test::Objects => ObjectOp::Iterate,
        Test::Query => ObjectOp::Query,
        Test::Punch => ObjectOp::Punch,
        Test::Aggregate => ObjectOp::Aggregate,
        Test::Discard => ObjectOp::Discard,
        Test::Collect => ObjectOp::Collect,
    }
}

/// Operations of all workers together, where one pass is not what ends the test.
fn count(extent: &Extent, workers: u32) -> Option<u64> {
    let each: u64 = extent.counts.iter().product();
    (extent.passes > 1).then(|| each * extent.passes * u64::from(workers))
}

/// Fields that all specs have in common.
fn base(settings: &Settings, command: &Command) -> Spec {
    Spec {
        name: Some(command.test.name().to_owned()),
        depth: Some(settings.depth()),
        warmup: Some(Warmup::None),
        on_error: Some(OnError::Stop),
        seed: settings.seed,
        ..Spec::default()
    }
}

fn spec(settings: &Settings, command: &Command, extent: &Extent, whole: [u64; 4], process: u32) -> Spec {
    let (target, workers) = match &settings.place {
        Workload::Shared { url, .. } => (url.clone(), settings.processes),
        Workload::Vos { .. } => (format!("vos:{}", settings.store(process).unwrap_or_default()), 1),
    };
    let verified = settings.commands.iter().any(|command| command.test == Test::Verify)
        || settings.keep
        || settings.pool.is_some();
    let verify = command.test == Test::Verify || (verified && command.test == Test::Update);
    Spec {
        layer: Layer::OBJECT,
        targets: vec![target],
        threads: Some(workers),
        count: count(extent, workers),
        pattern: (settings.is_shuffled && command.test.moves_values()).then(|| "permutation".to_owned()),
        refill: (command.test == Test::Update && !verify).then_some(Refill::Once),
        verify,
        no_read_back: verify,
        keep: settings.keep,
        object: object(settings, command, extent, whole, workers),
        ..base(settings, command)
    }
}

fn object(
    settings: &Settings,
    command: &Command,
    extent: &Extent,
    whole: [u64; 4],
    workers: u32,
) -> ObjectSpec {
    let [objects, dkeys, akeys, records] = extent.counts;
    let is_vos = matches!(settings.place, Workload::Vos { .. });
    let is_made = is_vos && settings.pool.is_none();
    let operation = operation(command);
    // What works on a container has no objects, keys or values.
    let is_kept = !matches!(command.test, Test::Aggregate | Test::Discard | Test::Collect);
    let first = [0, extent.first_dkey, 0, 0];
    let spec = ObjectSpec {
        operations: vec![operation],
        container: settings.container.clone().filter(|_| !settings.has_container_in_url()),
        object_scope: (workers > 1).then_some(Scope::Private),
        integer_dkeys: settings.integer_dkeys,
        class: settings.class_asked(),
        one_pass: true,
        no_fill: operation.needs_data(),
        zero_copy: is_vos.then_some(settings.zero_copy),
        // A store that is there has the size that it was made with: any larger one asked for would be refused.
        scm: is_vos.then_some(ByteSize(if is_made { settings.scm_bytes } else { SCM_BYTES_MIN })),
        nvme: (is_made && settings.nvme_bytes > 0).then_some(ByteSize(settings.nvme_bytes)),
        targets: is_made.then_some(1),
        // As the tool: -P is the size of a file that is allocated, and containers have no checksum.
        allocation: is_made.then_some(Allocation::Whole),
        checksum: is_vos.then_some(settings.checksum),
        ..ObjectSpec::default()
    };
    if !is_kept {
        return spec;
    }
    ObjectSpec {
        objects: Some(objects),
        dkeys: Some(dkeys),
        akeys: Some(akeys),
        records: Some(records),
        first: (first != [0; 4]).then_some(first),
        whole: (whole != extent.counts).then_some(whole),
        constant_akey: settings.constant_akey,
        dkey_prefix: (!settings.integer_dkeys).then(|| DKEYS.to_owned()),
        akey_prefix: Some(AKEYS.to_owned()),
        value: Some(if settings.is_array { ValueKind::Array } else { ValueKind::Single }),
        value_size: Some(settings.value_bytes(command).to_string()),
        stride: settings.is_array.then_some(ByteSize(settings.size_bytes)),
        record_offset: command.offset_bytes.map(ByteSize),
        punch: (command.test == Test::Punch).then_some(if command.by_dkey {
            PunchScope::Dkey
        } else {
            PunchScope::Object
        }),
        ..spec
    }
}

/// RPCs as large as those that would move the values; nothing is stored.
fn echo(settings: &Settings, command: &Command, extent: &Extent) -> Spec {
    let bytes = settings.value_bytes(command);
    let kind = if bytes < BULK_BYTES_MIN { PayloadKind::Iov } else { PayloadKind::Bulk };
    let value = Payload { kind, size_bytes: bytes };
    let sizes = match command.test {
        Test::Update => (value, Payload::EMPTY),
        _ => (Payload::EMPTY, value),
    };
    let url = match &settings.place {
        Workload::Shared { url, .. } => url.as_str(),
        Workload::Vos { .. } => "",
    };
    let host = url.trim_start_matches("engine://").split('/').next().unwrap_or_default();
    let records: u64 = extent.counts.iter().product();
    Spec {
        layer: Layer::NETWORK,
        targets: vec![format!("tcp://{host}")],
        threads: Some(settings.processes),
        count: Some(records * extent.passes * u64::from(settings.processes)),
        network: NetworkSpec { message_sizes: vec![sizes], ..NetworkSpec::default() },
        ..base(settings, command)
    }
}
