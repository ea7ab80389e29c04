//! The pools of an engine.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use driver::Error;
use layer::secret;
use vos::Checksum;
use vos::ContainerInfo;
use vos::{PoolOptions, PoolUsage};

use super::{Admin, Held, PoolFacts};
use object_service::{Engine, Location};

/// Longest wait for an answer.
const WAIT: Duration = Duration::from_secs(10);

/// A connection to an engine, and the pool that the target names.
pub(super) struct Remote {
    engine: Engine,
    pool: Option<String>,
}

impl Remote {
    /// Connects; the container that the target names too.
    ///
    /// # Errors
    /// A target that is none, a secret that cannot be read, an engine that does not answer.
    pub(super) fn connect(target: &str, token_file: Option<&Path>) -> Result<(Self, Option<String>), Error> {
        let location = Location::parse(target)?;
        let secret = secret::shared_or_environment(token_file)?;
        let engine = Engine::connect(&location, secret.as_ref(), WAIT, &AtomicBool::new(false))?;
        Ok((Self { engine, pool: location.pool }, location.container))
    }

    fn named(&mut self) -> Result<String, Error> {
        if let Some(pool) = &self.pool {
            return Ok(pool.clone());
        }
        let pools = self.engine.pools()?;
        Err(Error::usage("pool", "the target names no pool")
            .remedy(format!("use engine://HOST:PORT/POOL; the engine has {}", pools.join(", "))))
    }
}

/// Pools of an engine are made and destroyed where it runs.
fn not_from_here(what: &str) -> Error {
    Error::usage("pool", format!("pools of an engine can only be {what} on its host"))
        .remedy("on that host, strata engine --dir DIR --pool LABEL creates a missing pool and strata pool destroy vos:DIR destroys it")
}

impl Admin for Remote {
    fn pools(&mut self) -> Result<Vec<PoolFacts>, Error> {
        let pools = match &self.pool {
            Some(pool) => vec![pool.clone()],
            None => self.engine.pools()?,
        };
        pools.iter().map(|pool| self.engine.pool(pool)).collect()
    }

    fn pool(&mut self) -> Result<PoolFacts, Error> {
        let pool = self.named()?;
        self.engine.pool(&pool)
    }

    fn usage(&mut self) -> Result<PoolUsage, Error> {
        let pool = self.named()?;
        self.engine.usage(&pool)
    }

    fn create_pool(&mut self, _options: &PoolOptions) -> Result<PoolFacts, Error> {
        Err(not_from_here("made"))
    }

    fn held(&mut self) -> Result<Held, Error> {
        let facts = self.pool()?;
        Ok(Held { name: facts.info.name, containers: Some(facts.info.containers as usize) })
    }

    fn destroy_pool(&mut self) -> Result<(), Error> {
        Err(not_from_here("destroyed"))
    }

    fn containers(&mut self) -> Result<Vec<ContainerInfo>, Error> {
        let pool = self.named()?;
        self.engine.containers(&pool)
    }

    fn container(&mut self, label: &str) -> Result<ContainerInfo, Error> {
        let pool = self.named()?;
        self.engine.container(&pool, label)
    }

    fn create_container(&mut self, label: &str, checksum: Checksum) -> Result<ContainerInfo, Error> {
        let pool = self.named()?;
        self.engine.create_container(&pool, label, checksum, None)
    }

    fn destroy_container(&mut self, label: &str) -> Result<(), Error> {
        let pool = self.named()?;
        self.engine.destroy_container(&pool, label)
    }

    fn create_snapshot(&mut self, label: &str) -> Result<u64, Error> {
        let pool = self.named()?;
        self.engine.create_snapshot(&pool, label)
    }

    fn destroy_snapshot(&mut self, label: &str, epoch: u64) -> Result<(), Error> {
        let pool = self.named()?;
        self.engine.destroy_snapshot(&pool, label, epoch)
    }

    fn close(self: Box<Self>) -> Result<(), Error> {
        Ok(())
    }
}
