//! An engine in this process that serves a pool in a directory of its own.

use std::path::Path;
use std::sync::Arc;

use object_service::{Pools, factory};
use rpc::TagMap;
use rpc::engine::{Engine, EngineRequest};
use vos::{Pool, PoolOptions};

use super::vos::{MEMORY, pool_bytes};
use super::{Harness, Stand};

pub(super) struct Served {
    pub(super) name: &'static str,
    pub(super) targets: u32,
    pub(super) class: &'static str,
}

impl Harness for Served {
    fn name(&self) -> &'static str {
        self.name
    }

    fn driver(&self) -> &'static str {
        "engine"
    }

    fn class(&self) -> &'static str {
        self.class
    }

    fn start(&self) -> Result<Stand, String> {
        if !Path::new(MEMORY).is_dir() {
            return Err(format!("there is no {MEMORY}"));
        }
        let dir = tempfile::tempdir_in(MEMORY).map_err(|error| format!("{MEMORY}: {error}"))?;
        let bytes = pool_bytes(self.targets);
        let options = PoolOptions {
            targets: self.targets,
            scm_bytes: bytes,
            nvme_bytes: bytes,
            threshold_bytes: 64 << 10,
            ..PoolOptions::default()
        };
        let pool = Pool::create(&dir.path().join("pool"), &options).expect("a pool");
        let pools = Pools::new().and_then(|pools| pools.with("tank", Arc::new(pool))).expect("a pool");
        let log = Arc::new(|line: &str| eprintln!("engine: {line}"));
        let request = EngineRequest {
            tags: TagMap::new(self.targets, 0).expect("tags"),
            ..EngineRequest::new(factory(pools), log)
        };
        let engine = Engine::start(request).expect("an engine");
        let address = engine.uri().strip_prefix("tcp://").expect("an address").to_owned();
        // The engine ends before its directory goes.
        Ok(Stand::new(format!("engine://{address}/tank"), (engine, dir)))
    }
}
