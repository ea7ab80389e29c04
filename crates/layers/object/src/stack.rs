//! Rows of the stack: the embedded store in this process, the same store behind an engine, and a store of the user's.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use driver::{Error, ErrorKind};
use layer::server::{LocalEngine, LocalRequest, split_cores};
use layer::stack::{ONE_PROCESS_OPENS, loads, spec};
use layer::{
    CacheBefore, RunContext, StackCarrier, StackHosts, StackKind, StackLoad, StackRequest, StackRowSpec,
    StackServed,
};
use units::{ByteSize, Span, label_of};
use vos::{Pool, PoolOptions, PoolUuid};
use workload::options;
use workload::spec::Spec;

use crate::backend::Journal as _;
use crate::load::{StoreJournal, refusal};
use crate::plan::{Made, ObjectSpec};
use crate::{ConnectRequest, LAYER};

/// Layers of the store: in this process, and behind an engine.
const IN_PROCESS: &str = "object";
const OVER_NETWORK: &str = "engine";
/// Name of the first in a sentence.
const CALLED: &str = "the embedded object store";
/// Why other machines cannot reach the engine that the run serves.
const OVER_LOOPBACK: &str = "the engine of the run is only on loopback: use --stack-object";
/// Operations in flight: those that are made durable share a sync, and over the network they hide the way there.
const IN_FLIGHT_SMALL: &str = "16";
const IN_FLIGHT_LARGE: &str = "8";
/// Least memory of a store, in bytes.
const SCM_BYTES_MIN: u64 = 256 << 20;
/// Memory of the pool that file systems over objects lie in: what is written over is given back later.
const FILES_SCM_BYTES: u64 = 1 << 30;
/// Ids of the objects of the first such row begin here, and of each after it so many further on: apart from those of all other rows.
const OWN_FIRST_ID: u64 = 1 << 20;
/// Part of a store that one pass may write: what is written over is not given back while a phase runs.
const WRITTEN_PART: u64 = 16;

/// A load: its column, its options on stores of records, and those on stores of whole objects.
struct Load {
    name: &'static str,
    records: &'static [(&'static str, &'static str)],
    objects: &'static [(&'static str, &'static str)],
}

impl Load {
    fn reads(&self) -> bool {
        [loads::READ_LARGE, loads::READ_SMALL].contains(&self.name)
    }
}

const LOADS: &[Load] = &[
    Load {
        name: loads::WRITE_LARGE,
        records: &[("op", "write"), ("records", "32"), ("value-size", "1m"), ("depth", IN_FLIGHT_LARGE)],
        objects: &[("op", "put"), ("objects", "32"), ("value-size", "1m"), ("depth", IN_FLIGHT_LARGE)],
    },
    Load {
        name: loads::READ_LARGE,
        records: &[("op", "read"), ("records", "32"), ("value-size", "1m"), ("depth", IN_FLIGHT_LARGE)],
        objects: &[("op", "get"), ("objects", "32"), ("value-size", "1m"), ("depth", IN_FLIGHT_LARGE)],
    },
    Load {
        name: loads::WRITE_SMALL,
        records: &[("op", "put"), ("dkeys", "1000"), ("value-size", "4k"), ("depth", IN_FLIGHT_SMALL)],
        objects: &[("op", "put"), ("objects", "1000"), ("value-size", "4k"), ("depth", IN_FLIGHT_SMALL)],
    },
    Load {
        name: loads::READ_SMALL,
        records: &[("op", "get"), ("dkeys", "1000"), ("value-size", "4k"), ("depth", IN_FLIGHT_SMALL)],
        objects: &[("op", "get"), ("objects", "1000"), ("value-size", "4k"), ("depth", IN_FLIGHT_SMALL)],
    },
];

fn scm_bytes(request: &StackRequest<'_>) -> u64 {
    request.size_bytes.max(SCM_BYTES_MIN)
}

/// Memory of the store in process: it also has the data of loads of other layers.
fn in_process_bytes(request: &StackRequest<'_>) -> u64 {
    let own_bytes = if request.loads.loads.is_empty() { 0 } else { request.loads.pool_bytes() };
    scm_bytes(request).saturating_add(own_bytes)
}

/// Rows of the store in process, and of the user's store or the one behind the engine of the run.
pub(crate) fn rows(request: &StackRequest<'_>) -> Vec<StackRowSpec> {
    let directory = label_of(request.beside("-object").as_os_str());
    let mut rows: Vec<StackRowSpec> =
        LOADS.iter().map(|load| in_process(request, &format!("vos:{directory}"), load)).collect();
    let others = request.loads.loads.iter().enumerate();
    rows.extend(others.map(|(at, load)| own_load(request, &format!("vos:{directory}"), at as u64, load)));
    rows.extend(LOADS.iter().map(|load| remote(request, load)));
    rows
}

fn in_process(request: &StackRequest<'_>, target: &str, load: &Load) -> StackRowSpec {
    // Writes are durable when they return, as those of the drive are; reads come from mapped memory.
    let is_of_drive = load.name == loads::WRITE_LARGE;
    let planned = || {
        let mut made = spec(LAYER, target, format!("{IN_PROCESS}: {}", load.name), load.records)?;
        limit_writes(request, &mut made, load)?;
        if load.reads() {
            read_cold(&mut made)?;
        }
        ObjectSpec::of_mut(&mut made).scm = Some(ByteSize(in_process_bytes(request)));
        Ok(made)
    };
    StackRowSpec {
        called: CALLED.to_owned(),
        kind: if is_of_drive { StackKind::Software } else { StackKind::Carrier },
        stands_on: is_of_drive.then(|| StackCarrier::new("media", load.name)).into_iter().collect(),
        faster_by: is_of_drive.then_some("one sync shared by all updates in flight"),
        window_share: 0.6,
        one_host: Some(ONE_PROCESS_OPENS),
        ..StackRowSpec::new(IN_PROCESS, load.name, planned())
    }
}

/// The store in process at a load of another layer: arrays of records of its transfer, one operation of each worker at a time.
fn own_load(request: &StackRequest<'_>, target: &str, number: u64, load: &StackLoad) -> StackRowSpec {
    let planned = || {
        let workers = u64::from(load.workers.max(1));
        let records = load.transfers().saturating_mul(workers);
        let words = [
            ("op", if load.writes { "write" } else { "read" }.to_owned()),
            ("pattern", if load.is_random { "permutation" } else { "sequential" }.to_owned()),
            ("threads", workers.to_string()),
            ("depth", "1".to_owned()),
            ("records", records.to_string()),
            ("value-size", load.transfer_bytes.to_string()),
            ("first-id", (OWN_FIRST_ID * (number + 1)).to_string()),
            ("bytes", records.saturating_mul(load.transfer_bytes).to_string()),
        ];
        let words: Vec<(&str, &str)> = words.iter().map(|(name, value)| (*name, &**value)).collect();
        let mut made = spec(LAYER, target, format!("{IN_PROCESS}: {}", load.name), &words)?;
        made.time = Some(Span(StackLoad::TIME_NS_MAX));
        ObjectSpec::of_mut(&mut made).cache = (!load.writes).then_some(CacheBefore::Drop);
        ObjectSpec::of_mut(&mut made).scm = Some(ByteSize(in_process_bytes(request)));
        Ok(made)
    };
    StackRowSpec {
        called: CALLED.to_owned(),
        kind: StackKind::Software,
        stands_on: vec![StackCarrier::new("media", &load.name)],
        faster_by: Some("mapped memory, and one sync shared by several updates"),
        window_share: 0.0,
        one_host: Some(ONE_PROCESS_OPENS),
        ..StackRowSpec::new(IN_PROCESS, &*load.name, planned()).at(load)
    }
}

/// The store of the user, or that of the engine which the run serves.
fn remote(request: &StackRequest<'_>, load: &Load) -> StackRowSpec {
    let scheme = request.object.and_then(|target| target.split_once("://")).map(|(scheme, _)| scheme);
    let layer = match scheme {
        Some("s3") => "s3",
        Some("rados") => "rados",
        Some("daos") => "daos",
        _ => OVER_NETWORK,
    };
    let mut stands_on = vec![StackCarrier::new(IN_PROCESS, load.name)];
    if layer == OVER_NETWORK {
        stands_on.push(StackCarrier::new("network", load.name));
    }
    StackRowSpec {
        called: if request.object.is_some() {
            "your object store".to_owned()
        } else {
            "the engine".to_owned()
        },
        kind: StackKind::Software,
        stands_on,
        // The engine of the run is on loopback.
        by_design: if request.object.is_some() { &[] } else { &["loopback"] },
        window_share: 0.8,
        is_named: request.object.is_some(),
        one_host: (request.object.is_none() && request.loopback_is_out_of_reach()).then_some(OVER_LOOPBACK),
        ..StackRowSpec::new(layer, load.name, remote_spec(request, layer, load))
    }
}

fn remote_spec(request: &StackRequest<'_>, layer: &str, load: &Load) -> Result<Spec, Error> {
    let target = match request.object {
        Some(target) => target.to_owned(),
        None => {
            let engine = request.served(StackServed::ENGINE)?;
            format!("{}/{}", engine.replacen("tcp://", "engine://", 1), StackServed::ENGINE_POOL)
        }
    };
    let driver = crate::backend::driver_of(&target)?;
    let name = format!("{layer}: {}", load.name);
    let prepared = |words| {
        let mut made = spec(LAYER, &target, name.clone(), words)?;
        limit_writes(request, &mut made, load)?;
        // Hosts plan all rows as one run, whose phases have a store with the same options.
        let is_cold = load.reads() || request.hosts.is_some();
        if is_cold && driver.capabilities.options.contains(&"cache") {
            read_cold(&mut made)?;
        }
        for (key, value) in request.object.map(|_| request.object_options).unwrap_or_default() {
            options::apply(&mut made, key, value)
                .map_err(|error| Error::usage("stack", error.to_string()))?;
        }
        made.destroy_data = request.destroy_data;
        // "Network or server?" is what is asked of a store elsewhere; timing the parts of a request costs little beside its way there.
        made.split_latency = request.object.is_some() && ["engine", "s3"].contains(&driver.name);
        let is_of_user = request.object.is_some() && driver.name == "engine";
        made.token_file = request.token_file.filter(|_| is_of_user).map(Into::into);
        Ok::<Spec, Error>(made)
    };
    let made = prepared(load.records)?;
    if refusal(&made).is_none() { Ok(made) } else { prepared(load.objects) }
}

/// Reads come from the drive in every pass: what was stored last is in memory on a drive, until the log has gone on.
fn read_cold(made: &mut Spec) -> Result<(), Error> {
    options::apply(made, "cache", "drop").map_err(|error| Error::usage("stack", error.to_string()))
}

/// Writes end with a part of the store.
fn limit_writes(request: &StackRequest<'_>, made: &mut Spec, load: &Load) -> Result<(), Error> {
    if ![loads::WRITE_LARGE, loads::WRITE_SMALL].contains(&load.name) {
        return Ok(());
    }
    let bytes = (scm_bytes(request) / WRITTEN_PART).to_string();
    options::apply(made, "bytes", &bytes).map_err(|error| Error::usage("stack", error.to_string()))
}

/// Serves an engine with a pool, unless the user named a store, and empty pools for file systems.
pub(crate) fn serve(request: &StackRequest<'_>, context: &RunContext) -> Vec<StackServed> {
    let journal = StoreJournal::new(Arc::clone(&context.journal));
    let mut served = Vec::new();
    if request.object.is_none() {
        let mut pool = MadePool { directory: request.beside("-engine"), journal: journal.clone() };
        let of_hosts = request.hosts.map_or(0, StackHosts::store_bytes);
        let engine = pool.make(scm_bytes(request) + of_hosts).and_then(|()| start(&pool.directory));
        let (target, engine) = match engine {
            Ok(engine) => (Ok(engine.uri().to_owned()), Some(engine)),
            Err(error) => (Err(error.to_string()), None),
        };
        served.push(StackServed {
            name: StackServed::ENGINE,
            target,
            end: Some(Box::new(move || {
                // Nobody may have the pool open when it is removed.
                drop(engine);
                pool.remove()
            })),
        });
    }
    let own_bytes = if request.loads.loads.is_empty() { 0 } else { request.loads.pool_bytes() };
    let mut pools = vec![
        (StackServed::POOL, "-files", FILES_SCM_BYTES + own_bytes),
        (StackServed::SECOND_POOL, "-mounted", FILES_SCM_BYTES),
    ];
    if !request.loads.loads.is_empty() {
        pools.push((StackServed::LOADS_POOL, "-loads", own_bytes));
    }
    for (name, suffix, scm_bytes) in pools {
        let mut pool = MadePool { directory: request.beside(suffix), journal: journal.clone() };
        let made = pool.make(scm_bytes).map(|()| label_of(pool.directory.as_os_str()));
        let target = made.map_err(|error| error.to_string());
        served.push(StackServed { name, target, end: Some(Box::new(move || pool.remove())) });
    }
    served
}

/// A pool that the run makes, and the list that names it.
struct MadePool {
    directory: PathBuf,
    journal: StoreJournal,
}

impl MadePool {
    /// Request that names it in the list.
    fn request(&self) -> ConnectRequest {
        let target = format!("vos:{}", label_of(self.directory.as_os_str()));
        ConnectRequest { target, ..ConnectRequest::default() }
    }

    /// Makes it, once the list names it.
    fn make(&mut self, scm_bytes: u64) -> Result<(), Error> {
        let uuid = PoolUuid::draw()?;
        self.journal.note(&self.request(), &[Made::Pool { id: Some(uuid.to_string()), is_private: true }])?;
        let options = PoolOptions { scm_bytes, uuid: Some(uuid), ..PoolOptions::default() };
        Pool::create(&self.directory, &options)?.close()
    }

    fn remove(&self) -> Result<(), Error> {
        if Pool::exists(&self.directory) {
            Pool::destroy(&self.directory)?;
        }
        self.journal.note(&self.request(), &[])
    }
}

/// Starts the engine, on a processor of its own where there are two.
fn start(directory: &Path) -> Result<LocalEngine, Error> {
    let (cores, _) = split_cores(None, None);
    let request = LocalRequest {
        provider: "tcp",
        targets: 1,
        cores,
        pool: Some((directory, StackServed::ENGINE_POOL)),
        payload_bytes_max: 1 << 20,
        ..LocalRequest::default()
    };
    let engine = LocalEngine::start(&request)?;
    if engine.uri().starts_with("tcp://") {
        return Ok(engine);
    }
    Err(Error::new(ErrorKind::Run, "stack", "the engine has no TCP address").with("uri", engine.uri()))
}
