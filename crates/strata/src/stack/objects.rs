//! Rows of the object store: in this process, and the same store behind an engine that is started here.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use driver::{Error, ErrorKind};
use layer::Runs;
use network::local::{LocalEngine, LocalRequest, split_cores};
use object::ConnectRequest;
use object::backend::Journal as _;
use object::load::StoreJournal;
use object::plan::{Made, ObjectSpec};
use report::record::StackRow;
use units::{ByteSize, Span, label_of};
use vos::{Pool, PoolOptions, PoolUuid};
use workload::spec::Spec;

use super::{Row, apply, only_phase};
use crate::planning::{Layers, Planned};

/// Loads of the store: the name that each stands under, and its options.
const LOADS: &[(&str, &[(&str, &str)])] = &[
    ("4 KiB KV put", &[("op", "put"), ("dkeys", "1000"), ("value-size", "4k")]),
    ("4 KiB KV get", &[("op", "get"), ("dkeys", "1000"), ("value-size", "4k")]),
    ("1 MiB array write", &[("op", "write"), ("records", "32"), ("value-size", "1m")]),
    ("1 MiB array read", &[("op", "read"), ("records", "32"), ("value-size", "1m")]),
];
/// Operations in flight: in process those that are made durable share a sync, over the network they hide the way there.
const IN_FLIGHT: &str = "16";
/// Label of the engine's pool.
const POOL: &str = "stack";

/// The two stores, beside the scratch file.
pub(super) struct StackStores {
    directories: [PathBuf; 2],
    /// Mapped memory of each, in bytes.
    scm_bytes: u64,
    served: Served,
    journal: StoreJournal,
}

/// The engine, and the pool that it serves. Both go when this ends.
#[derive(Default)]
pub(super) struct Served {
    engine: Option<LocalEngine>,
    /// The pool, and the manifest that names it.
    pool: Option<(PathBuf, StoreJournal)>,
}

impl Served {
    /// Ends the engine and removes what it stored.
    ///
    /// # Errors
    /// Where something of it is left.
    pub(super) fn remove(self) -> Result<(), Error> {
        // Nobody may have the pool open when it is removed.
        drop(self.engine);
        let Some((directory, manifest)) = self.pool else { return Ok(()) };
        if Pool::exists(&directory) {
            Pool::destroy(&directory)?;
        }
        manifest.note(&request(&directory), &[])
    }
}

/// Request that names a pool in the manifest.
fn request(directory: &Path) -> ConnectRequest {
    ConnectRequest { target: format!("vos:{}", label_of(directory.as_os_str())), ..ConnectRequest::default() }
}

impl StackStores {
    /// Stores beside the scratch file that together take as much as it does, twice.
    pub(super) fn beside(scratch: &Path, size_bytes: u64, layers: &Layers) -> Self {
        let named = |suffix: &str| {
            let mut name = scratch.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        Self {
            directories: [named("-object"), named("-engine")],
            scm_bytes: size_bytes.max(256 << 20),
            served: Served::default(),
            journal: StoreJournal::new(Arc::clone(&layers.runs.context().journal)),
        }
    }

    /// The rows, as planned, or why they cannot be.
    pub(super) fn rows(&mut self, runs: &mut Runs, is_quick: bool, seed: u64) -> Vec<Row> {
        let in_process = format!("vos:{}", self.directories[0].display());
        let layers = [("object", Ok(in_process)), ("engine", self.start())];
        let mut rows = Vec::new();
        for (layer, target) in layers {
            let planned = target.and_then(|target| self.plan(layer, &target, runs, is_quick, seed));
            match planned {
                Ok(planned) => rows.extend(
                    LOADS.iter().zip(planned).map(|((load, _), planned)| row(layer, load, Ok(planned))),
                ),
                Err(error) => {
                    let why = error.to_string();
                    let missing = |(load, _): &(&str, _)| {
                        row(layer, load, Err(Error::new(ErrorKind::Run, "object", why.clone())))
                    };
                    rows.extend(LOADS.iter().map(missing));
                }
            }
        }
        // Load by load, the store in process first.
        let place = |row: &Row| LOADS.iter().position(|(load, _)| *load == row.0.load);
        rows.sort_by_key(place);
        rows
    }

    /// Makes the pool of the engine, which the manifest names before. The engine opens it.
    fn make_pool(&mut self) -> Result<&Path, Error> {
        let (directory, manifest) = (&self.directories[1], self.journal.clone());
        let uuid = PoolUuid::draw()?;
        manifest.note(&request(directory), &[Made::Pool { id: Some(uuid.to_string()) }])?;
        self.served.pool = Some((directory.clone(), manifest));
        let options = PoolOptions { scm_bytes: self.scm_bytes, uuid: Some(uuid), ..PoolOptions::default() };
        Pool::create(directory, &options)?.close()?;
        Ok(directory)
    }

    /// Starts the engine, on a processor of its own where there are two; the target of its container.
    fn start(&mut self) -> Result<String, Error> {
        let (cores, _) = split_cores(None, None);
        let directory = self.make_pool()?.to_path_buf();
        let request = LocalRequest {
            provider: "tcp",
            targets: 1,
            cores,
            pool: Some((&directory, POOL)),
            payload_bytes_max: 1 << 20,
            ..LocalRequest::default()
        };
        let engine = LocalEngine::start(&request)?;
        let target = format!("{}/{POOL}", engine.uri().replacen("tcp://", "engine://", 1));
        self.served.engine = Some(engine);
        Ok(target)
    }

    /// The phases of all loads on one store.
    fn plan(
        &self,
        layer: &str,
        target: &str,
        runs: &mut Runs,
        is_quick: bool,
        seed: u64,
    ) -> Result<Vec<Planned>, Error> {
        let specs = LOADS.iter().map(|(load, words)| self.spec(layer, target, load, words, is_quick));
        let mut specs = specs.collect::<Result<Vec<Spec>, Error>>()?;
        runs.of(object::LAYER.name)?.find(&mut specs.iter_mut().collect::<Vec<_>>())?;
        specs.iter().map(|spec| only_phase(spec, runs, seed)).collect()
    }

    fn spec(
        &self,
        layer: &str,
        target: &str,
        load: &str,
        words: &[(&str, &str)],
        is_quick: bool,
    ) -> Result<Spec, Error> {
        let time_ns = if is_quick { 300_000_000 } else { 2_000_000_000 };
        let mut spec = Spec {
            layer: object::LAYER,
            targets: vec![target.to_owned()],
            time: Some(Span(time_ns)),
            name: Some(format!("{layer}: {load}")),
            ..Spec::default()
        };
        // What is written over is not given back while a phase runs.
        let bytes = (self.scm_bytes / 8).to_string();
        let is_remote = layer == "engine";
        let depth = Some(("depth", IN_FLIGHT));
        let limit = words[0].1.starts_with(['p', 'w']).then_some(("bytes", bytes.as_str()));
        for (key, value) in words.iter().chain(&depth).chain(&limit) {
            apply(&mut spec, key, value)?;
        }
        if !is_remote {
            ObjectSpec::of_mut(&mut spec).scm = Some(ByteSize(self.scm_bytes));
        }
        Ok(spec)
    }

    /// The engine with its pool, to be removed when the stores were closed.
    pub(super) fn served(self) -> Served {
        self.served
    }
}

fn row(layer: &str, load: &str, planned: Result<Planned, Error>) -> Row {
    let missing = planned.as_ref().err().map(ToString::to_string);
    (StackRow { layer: layer.to_owned(), load: load.to_owned(), phase: None, missing }, planned)
}
