//! Options of the drivers, resolved.

use vos::{Checksum, Redundancy};
use workload::block_size::BlockSizes;
use workload::plan::{Amount, PlanError, refuse};

use super::Request;
use crate::plan::{ObjectOp, ObjectOptions, ObjectPlan};

/// Smallest default of a store's memory, in bytes.
const SCM_BYTES_MIN: u64 = 256 << 20;
/// Overhead of a record beside its value, in bytes: header, keys, space that is not yet given back.
const RECORD_OVERHEAD_BYTES: u64 = 256;
/// Values from this size on go to the data file, in bytes.
const THRESHOLD_BYTES: u64 = 4096;
/// Longest wait for one operation, in nanoseconds.
const TIMEOUT_NS: u64 = 30_000_000_000;
/// Smallest part of a multipart upload but the last, in bytes, and most parts (both of S3).
const PART_BYTES_MIN: u64 = 5 << 20;
const PARTS_MAX: u64 = 10_000;

/// Options of the phase's driver. What it does not honour stays at nothing.
pub(super) fn options(request: &Request<'_>) -> Result<ObjectOptions, PlanError> {
    let (own, facts) = (request.own, request.facts);
    if facts.honours("s3-endpoint") && own.s3_endpoints.is_empty() {
        return refuse("no server is specified: use --s3-endpoint http://HOST:PORT".to_owned());
    }
    let honoured = |name: &str, value: u64| if facts.honours(name) { value } else { 0 };
    let bytes = |size: Option<units::ByteSize>, default: u64| size.map_or(default, |size| size.0);
    Ok(ObjectOptions {
        scm_bytes: bytes(own.scm, 0),
        nvme_bytes: bytes(own.nvme, 0),
        threshold_bytes: honoured("threshold", bytes(own.threshold, THRESHOLD_BYTES)),
        targets: if facts.honours("store-targets") { targets(request)? } else { 0 },
        durability: own.durability.unwrap_or_default(),
        flush: own.flush.unwrap_or_default(),
        allocation: own.allocation.unwrap_or_default(),
        checksum: match own.checksum {
            None if !facts.honours("checksum") => Checksum::Off,
            checksum => checksum.unwrap_or_default(),
        },
        cache: own.cache.unwrap_or_default(),
        zero_copy: facts.honours("zero-copy") && own.zero_copy.unwrap_or(true),
        retries: honoured("retries", u64::from(own.retries.unwrap_or(3))) as u32,
        timeout_ns: honoured("timeout", own.timeout.map_or(TIMEOUT_NS, |timeout| timeout.ns())),
        s3_endpoints: own.s3_endpoints.clone(),
        s3_region: match &own.s3_region {
            None if facts.honours("s3-region") => "us-east-1".to_owned(),
            region => region.clone().unwrap_or_default(),
        },
        s3_addressing: own.s3_addressing.unwrap_or_default(),
        s3_signing: own.s3_signing.unwrap_or_default(),
        s3_part_size_bytes: part_bytes(request)?,
        rados_conf: own.rados_conf.clone(),
        rados_user: own.rados_user.clone(),
        daos_system: own.daos_system.clone(),
    })
}

/// Targets of the store; 0 where it is not known.
pub(super) fn targets(request: &Request<'_>) -> Result<u32, PlanError> {
    let (asked, facts) = (request.own.targets, request.facts);
    match (asked, facts.targets) {
        (Some(asked), known) if known > 0 && known != asked => refuse(format!(
            "--store-targets {asked} applies when a store is created, but this one has {known}: leave it out"
        )),
        (_, known) if known > 0 => Ok(known),
        (asked, _) if facts.honours("store-targets") => Ok(asked.unwrap_or(1)),
        _ => Ok(0),
    }
}

fn part_bytes(request: &Request<'_>) -> Result<u64, PlanError> {
    let own = request.own;
    let part = own.s3_part_size.map_or(0, |part| part.0);
    if part == 0 {
        return Ok(0);
    }
    if part < PART_BYTES_MIN {
        return refuse(format!(
            "--s3-part-size {} is below the S3 minimum: use 5m or more, or 0 for no parts",
            Amount(part)
        ));
    }
    let sizes: BlockSizes = own.value_size.as_deref().unwrap_or("4KiB").parse()?;
    if sizes.max().div_ceil(part) > PARTS_MAX {
        return refuse(format!(
            "values of {} in parts of {} need more than {PARTS_MAX} parts: use larger parts",
            Amount(sizes.max()),
            Amount(part)
        ));
    }
    Ok(part)
}

/// Gives a store that is made memory for the data of the phase, where its size was not said.
pub(super) fn size_store(request: &Request<'_>, plan: &mut ObjectPlan) {
    if request.own.scm.is_none() && request.facts.honours("scm") {
        plan.options.scm_bytes = scm_bytes(plan);
    }
}

fn scm_bytes(plan: &ObjectPlan) -> u64 {
    if !plan.any(|operation| operation.stores() || operation.needs_data() || operation == ObjectOp::Create) {
        return SCM_BYTES_MIN;
    }
    let sizes = plan.dataset.value_size.parse::<BlockSizes>();
    let (mean, min) = sizes.map_or((0, 0), |sizes| (sizes.mean() as u64, sizes.min()));
    let is_in_file = plan.options.nvme_bytes > 0 && min >= plan.options.threshold_bytes;
    let value_bytes = if is_in_file { 0 } else { mean.saturating_mul(2) };
    let workers = if plan.is_private() { u64::from(plan.load.threads) } else { 1 };
    let records = plan.dataset.whole().iter().fold(workers, |product, &count| product.saturating_mul(count));
    let bytes = records.saturating_mul(value_bytes + RECORD_OVERHEAD_BYTES);
    let bytes = match plan.class.redundancy {
        Redundancy::None => bytes,
        Redundancy::Replicated(copies) => bytes.saturating_mul(u64::from(copies)),
        Redundancy::ErasureCoded { data, parity } => {
            bytes.saturating_add(bytes / u64::from(data) * u64::from(parity))
        }
    };
    let targets = u64::from(plan.options.targets.max(1));
    // Each target gets a whole number of MiB.
    let unit = targets << 20;
    bytes.max(SCM_BYTES_MIN).div_ceil(unit).saturating_mul(unit)
}

/// The options that the store of several phases is opened with: what all of them ask for, with memory for the largest.
///
/// # Errors
/// Phases that ask for different options of one store.
pub fn object_options<'a>(
    plans: impl IntoIterator<Item = &'a ObjectPlan>,
) -> Result<ObjectOptions, PlanError> {
    let mut together: Option<ObjectOptions> = None;
    for plan in plans {
        let options = together.get_or_insert_with(|| plan.options.clone());
        let scm_bytes = options.scm_bytes.max(plan.options.scm_bytes);
        options.scm_bytes = plan.options.scm_bytes;
        if *options != plan.options {
            return refuse(format!(
                "phase {} has other options for {} than the phases before it, but a store is opened once: use the same options for all",
                plan.name, plan.target
            ));
        }
        options.scm_bytes = scm_bytes;
    }
    together.ok_or_else(|| PlanError("not a phase of the object layer".to_owned()))
}
