//! Checks of options that do not go together.

use workload::plan::{PlanError, refuse};
use workload::spec::{LadderDimension, Share};

use super::dataset::{Unit, unit, units};
use super::{ObjectPhase, Request, check_pattern};
use crate::options::DRIVER_OPTIONS;
use crate::plan::{Interface, ObjectOp, ObjectPlan, PunchScope, ValueKind};

/// Refuses operations that the driver does not have, and those of several interfaces; settles the interface.
pub(super) fn check_operations(request: &mut Request<'_>) -> Result<(), PlanError> {
    let facts = request.facts;
    if let Some(missing) = request.operations.iter().find(|&&operation| !facts.has(operation)) {
        return refuse(format!(
            "{} does not support {}: supported operations are {}",
            facts.engine,
            missing.name(),
            facts.operations.join(", ")
        ));
    }
    for &operation in &request.all {
        match (request.interface, facts.interface(operation)) {
            (None, found) => request.interface = found,
            (Some(one), Some(other)) if one != other => {
                return refuse(format!(
                    "{} works on {}, but the operations before it work on {}: use operations of one kind, or a job file with several phases",
                    operation.name(),
                    other.name(),
                    one.name()
                ));
            }
            _ => {}
        }
    }
    let knows = |operation: &ObjectOp| *operation == ObjectOp::OpenWithAttr;
    let keeps = |operation: &ObjectOp| matches!(operation, ObjectOp::Create | ObjectOp::Open);
    if request.all.iter().any(knows) && request.all.iter().any(keeps) {
        return refuse(
            "create and open are for arrays with stored attributes, open-with-attr for arrays without: use one of the two"
                .to_owned(),
        );
    }
    let store = request.interface.map(Interface::store).filter(|&store| !facts.has(store));
    if let Some(store) = store.filter(|_| request.may_fill() && request.any(ObjectOp::needs_data)) {
        return refuse(format!(
            "{} does not support {}, so it cannot store the data to read: use --no-fill if the data already exists",
            facts.engine,
            store.name()
        ));
    }
    Ok(())
}

/// Refuses a snapshot where there can be none, and operations that have no use for one.
fn check_snapshot(request: &Request<'_>) -> Result<(), PlanError> {
    let Some(epoch) = request.own.snapshot else { return Ok(()) };
    if !request.facts.honours("snapshot") {
        return refuse(format!(
            "--snapshot {epoch} requires a store that keeps versions, but {} has only the latest: use vos:, engine:// or daos://",
            request.facts.engine
        ));
    }
    match request.all.iter().find(|operation| !operation.reads_versions()) {
        Some(operation) if operation.changes() => refuse(format!(
            "{} changes the store, but a snapshot is read-only: leave out --snapshot, or use operations that read, such as get, fetch, read, list, stat or size",
            operation.name()
        )),
        Some(operation) => {
            refuse(format!("{} does not read a version: leave out --snapshot", operation.name()))
        }
        None => Ok(()),
    }
}

/// Driver options that were given.
fn given(request: &Request<'_>) -> Vec<&'static str> {
    let own = request.own;
    let said = |name: &str| match name {
        "container" => own.container.is_some(),
        "object-names" => !own.object_names.is_empty(),
        "containers" => own.containers.is_some(),
        "class" => own.class.is_some(),
        "reopen" => own.reopen,
        "snapshot" => own.snapshot.is_some(),
        "scm" => own.scm.is_some(),
        "nvme" => own.nvme.is_some(),
        "threshold" => own.threshold.is_some(),
        "store-targets" => own.targets.is_some(),
        "durability" => own.durability.is_some(),
        "flush" => own.flush.is_some(),
        "allocate" => own.allocation.is_some(),
        "checksum" => own.checksum.is_some(),
        "cache" => own.cache.is_some(),
        "zero-copy" => own.zero_copy.is_some(),
        "retries" => own.retries.is_some(),
        "timeout" => own.timeout.is_some(),
        "s3-endpoint" => !own.s3_endpoints.is_empty(),
        "s3-region" => own.s3_region.is_some(),
        "s3-addressing" => own.s3_addressing.is_some(),
        "s3-signing" => own.s3_signing.is_some(),
        "s3-part-size" => own.s3_part_size.is_some(),
        "s3-key-file" => own.s3_key_file.is_some(),
        "rados-conf" => own.rados_conf.is_some(),
        "rados-user" => own.rados_user.is_some(),
        "daos-system" => own.daos_system.is_some(),
        "token-file" => request.spec.token_file.is_some(),
        "tls" => request.spec.tls,
        _ => false,
    };
    DRIVER_OPTIONS.iter().copied().filter(|name| said(name)).collect()
}

/// Refuses options that mean nothing to the driver, or to the operations.
pub(super) fn check_words(request: &Request<'_>) -> Result<(), PlanError> {
    let facts = request.facts;
    check_snapshot(request)?;
    if let Some(option) = given(request).into_iter().find(|option| !facts.honours(option)) {
        let has = if facts.options.is_empty() {
            "none".to_owned()
        } else {
            format!("--{}", facts.options.join(", --"))
        };
        return refuse(format!(
            "--{option} is not an option of {}: its driver options are {has}",
            facts.engine
        ));
    }
    let wrong =
        [meaningless(request), misplaced(request), contradictory(request), unaudited(request)].concat();
    match wrong.iter().find(|(is_wrong, _)| *is_wrong) {
        Some((_, message)) => refuse((*message).to_owned()),
        None => Ok(()),
    }
}

type Wrong = (bool, &'static str);

/// Options that `--acknowledged` does not go with: a store that is audited later must still have the records it acknowledged.
fn unaudited(request: &Request<'_>) -> Vec<Wrong> {
    if request.own.acknowledged.is_none() {
        return Vec::new();
    }
    let any = |is_such: fn(ObjectOp) -> bool| request.all.iter().any(|&operation| is_such(operation));
    vec![
        (
            !request.spec.keep,
            "--acknowledged requires --keep: the run otherwise removes its data, and a later audit finds nothing",
        ),
        (
            any(|operation| operation.takes_away() || operation == ObjectOp::Discard),
            "--acknowledged supports only loads that store and read: leave out punch, remove, destroy and discard",
        ),
        (request.facts.engine == "null", "--acknowledged requires a store, but null: discards all data"),
    ]
}

/// Options of operations that are not asked for.
fn meaningless(request: &Request<'_>) -> Vec<Wrong> {
    let own = request.own;
    let any = |is_such: fn(ObjectOp) -> bool| request.all.iter().any(|&operation| is_such(operation));
    let sized = own.value_size.is_some()
        || request.spec.ladder.as_ref().is_some_and(|ladder| ladder.dimension == LadderDimension::BlockSize);
    vec![
        (
            own.punch.is_some() && !request.uses(ObjectOp::Punch),
            "--punch requires --op punch: it sets what a punch removes",
        ),
        (own.list_max.is_some() && !request.uses(ObjectOp::List), "--list-max requires --op list"),
        (
            own.ids_per_call.is_some() && !request.uses(ObjectOp::AllocateIds),
            "--ids-per-call requires --op allocate-ids",
        ),
        (
            own.read_size.is_some() && !any(ObjectOp::loads),
            "--read-size requires a read, get or fetch: add one of them, or leave it out",
        ),
        (
            request.spec.verify && !any(ObjectOp::loads) && !any(ObjectOp::stores),
            "--verify has no effect: no operation stores or reads values; leave it out",
        ),
        (
            sized && request.interface.is_none(),
            "--value-size has no effect: no operation stores or reads values; leave it out",
        ),
        (
            request.spec.bytes.is_some() && !request.any(ObjectOp::loads) && !request.any(ObjectOp::stores),
            "--bytes never ends a phase that moves no values: use --count or --time",
        ),
        (
            own.rank_shift.is_some_and(|shift| shift > 0) && !any(ObjectOp::needs_data),
            "--rank-shift applies to phases that read, but no phase reads: leave it out",
        ),
        (
            own.no_fill && !any(ObjectOp::needs_data),
            "--no-fill applies to phases that read, but no phase reads: leave it out",
        ),
    ]
}

/// Options of another interface.
fn misplaced(request: &Request<'_>) -> Vec<Wrong> {
    let own = request.own;
    let (keys, is_array) = (request.interface == Some(Interface::KeyValue), request.is_array());
    let is_single = !is_array && own.value.unwrap_or_default() == ValueKind::Single;
    let is_part = own.first.is_some() || own.whole.is_some();
    let is_named = !own.object_names.is_empty();
    let other =
        |operation: &ObjectOp| !matches!(operation, ObjectOp::Update | ObjectOp::Fetch | ObjectOp::Punch);
    let is_part_of_one = own.punch.unwrap_or_default() == PunchScope::Record;
    vec![
        (
            is_named && (is_single || !is_part_of_one || request.all.iter().any(other)),
            "--object-names is for extents of objects: use update, fetch and punch (--punch record) with --value array",
        ),
        (
            is_named && [own.dkeys, own.akeys].iter().flatten().any(|&count| count > 1),
            "--object-names: each name is one object without dkeys and akeys: leave out --dkeys and --akeys",
        ),
        (
            is_named && request.is_private(),
            "--object-names applies to all workers: leave out --containers private and --object-scope private",
        ),
        (
            is_array && (own.dkeys.is_some() || own.akeys.is_some()),
            "--dkeys and --akeys do not apply to arrays, because their chunks are the dkeys: use --objects and --records",
        ),
        (
            keys && (own.akeys.is_some_and(|akeys| akeys > 1)
                || own.records.is_some_and(|records| records > 1)),
            "a key has one value: use --dkeys for the number of keys, or update and fetch for akeys and records",
        ),
        (
            own.value == Some(ValueKind::Array) && keys || own.value == Some(ValueKind::Single) && is_array,
            "--value requires update and fetch: keys have single values, arrays have records",
        ),
        (
            (own.integer_dkeys || own.constant_akey || own.akey_prefix.is_some()) && (keys || is_array),
            "--integer-dkeys, --constant-akey and --akey-prefix require objects with dkeys and akeys: use update and fetch",
        ),
        (
            own.dkey_prefix.is_some() && is_array,
            "--dkey-prefix does not apply to arrays, because their chunks are the dkeys",
        ),
        (
            own.dkey_prefix.is_some() && own.integer_dkeys,
            "--dkey-prefix is for names, but --integer-dkeys uses numbers: leave out one of them",
        ),
        (
            (own.stride.is_some() || own.record_offset.is_some()) && is_single,
            "--stride and --record-offset require arrays: use --value array with update and fetch, or write and read",
        ),
        (
            (own.cell_size.is_some() || own.chunk_size.is_some()) && !is_array,
            "--cell-size and --chunk-size require arrays: use write and read",
        ),
        (
            is_part && keys && request.facts.reads_ranges() && request.operations.contains(&ObjectOp::Read),
            "--first and --whole do not apply to reads of ranges: use --dkeys",
        ),
    ]
}

/// Options that do not go together.
fn contradictory(request: &Request<'_>) -> Vec<Wrong> {
    let (spec, own) = (request.spec, request.own);
    let ranged = request.facts.reads_ranges() && request.operations.contains(&ObjectOp::Read);
    let shaped =
        spec.content.is_some() || spec.compress.is_some() || spec.dedupe.is_some() || spec.refill.is_some();
    vec![
        (
            spec.verify && shaped,
            "--verify generates its own values: leave out --content, --compress, --dedupe and --refill",
        ),
        (ranged && spec.verify, "--verify checks whole values, but this load reads ranges: use --op get"),
        (
            ranged && !matches!(request.phase, ObjectPhase::Operation(_)),
            "reads of ranges need a separate phase: use --op put,read",
        ),
        (
            request.uses(ObjectOp::Query) && !own.integer_dkeys,
            "query returns the largest dkey, which requires numeric dkeys: add --integer-dkeys",
        ),
    ]
}

/// Refuses what the number of records does not allow.
pub(super) fn check_records(request: &Request<'_>, plan: &ObjectPlan) -> Result<(), PlanError> {
    let (records, threads) = (units(request, &plan.dataset), plan.load.workers());
    let what = match unit(request) {
        Unit::Record => "records",
        Unit::Akey => "akeys",
        Unit::Dkey => "dkeys",
        Unit::Object => "objects",
        Unit::Container => "containers",
    };
    if plan.share == Share::Partition && records < u64::from(threads) {
        return refuse(format!(
            "{threads} threads cannot share {records} {what}: use fewer threads, more {what}, or --share whole"
        ));
    }
    let once = plan.takes_or_creates_once();
    if once && !plan.pattern.is_full_coverage() {
        return refuse(format!(
            "--pattern {} repeats {what}, which can be created or removed only once: use sequential, backward, strided or permutation",
            plan.pattern
        ));
    }
    let is_shared = plan.share == Share::Whole && threads > 1 && !plan.is_private();
    if is_shared && once {
        return refuse(format!("{what} can be created or removed only once: leave out --share whole"));
    }
    if is_shared && plan.verify && plan.any(ObjectOp::stores) {
        return refuse("--verify requires one writer per record: leave out --share whole".to_owned());
    }
    check_pattern(plan, records)
}
