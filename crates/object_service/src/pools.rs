//! The pools that an engine serves.

use std::sync::Arc;

use driver::Error;
use ring::rand::{SecureRandom, SystemRandom};

use vos::{ContainerId, Pool};

use super::wire::Handle;

/// Pools by label. One start of an engine has one of these.
pub struct Pools {
    instance: u32,
    entries: Vec<(String, Arc<Pool>)>,
}

impl Pools {
    /// None yet.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub fn new() -> Result<Self, Error> {
        let mut bytes = [0; 4];
        SystemRandom::new().fill(&mut bytes).map_err(|_| {
            let source = std::io::Error::from_raw_os_error(libc::EIO);
            Error::system("engine", "cannot generate random bytes", source)
        })?;
        Ok(Self { instance: u32::from_le_bytes(bytes), entries: Vec::new() })
    }

    /// Adds a pool.
    ///
    /// # Errors
    /// Bad usage: the label is empty, holds a slash, is longer than 255 bytes, or taken.
    pub fn with(mut self, label: &str, pool: Arc<Pool>) -> Result<Self, Error> {
        if label.is_empty() || label.len() > 255 || label.contains('/') {
            return Err(Error::usage("pool", format!("{label:?} is not a valid pool label"))
                .remedy("accepted: 1 to 255 bytes without a slash"));
        }
        if self.find(label).is_some() || self.entries.len() >= usize::from(u16::MAX) {
            return Err(Error::usage("pool", format!("the engine already has a pool {label:?}")));
        }
        self.entries.push((label.to_owned(), pool));
        Ok(self)
    }

    /// Labels and pools.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Arc<Pool>)> {
        self.entries.iter().map(|(label, pool)| (label.as_str(), pool))
    }

    pub(super) fn instance(&self) -> u32 {
        self.instance
    }

    pub(super) fn find(&self, label: &str) -> Option<(u16, &Arc<Pool>)> {
        let at = self.entries.iter().position(|(known, _)| known == label)?;
        Some((at as u16, &self.entries[at].1))
    }

    /// Pool and container of a handle.
    ///
    /// # Errors
    /// `ESTALE`: the handle is of another start of the engine, or of no pool. `ENOENT`: such a container cannot be.
    pub(super) fn of(&self, handle: Handle) -> Result<(&Arc<Pool>, ContainerId), i32> {
        if handle.instance != self.instance {
            return Err(-libc::ESTALE);
        }
        let (_, pool) = self.entries.get(usize::from(handle.pool)).ok_or(-libc::ESTALE)?;
        Ok((pool, container_of(handle)?))
    }
}

pub(super) fn container_of(handle: Handle) -> Result<ContainerId, i32> {
    u32::try_from(handle.container).map(ContainerId).map_err(|_| -libc::ENOENT)
}
