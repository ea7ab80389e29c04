//! Pools and containers of an engine, asked for one after the other: for command lines, and before and after a load.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use driver::{Error, ErrorKind, Secret};
use rpc::SocketPlan;
use rpc::client::Caller;
use serde::{Deserialize, Serialize};
use vos::Checksum;
use vos::claims::{Asked, Ending, Found};
use vos::{ContainerInfo, Pool, PoolInfo, PoolUsage};

use super::wire::{Handle, Reader, put_counted};
use super::{Location, opcode};

/// Containers that one answer lists at most.
pub(super) const CONTAINERS_A_PAGE: usize = 1000;
/// Longest answer, in bytes: what engines send in a message at most.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// Request of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[allow(missing_docs, reason = "pool and label are what their names say everywhere")]
pub enum Command {
    /// Labels of the pools.
    Pools,
    /// A pool.
    Pool { pool: String },
    /// Space of a pool.
    Usage { pool: String },
    /// Containers of a pool behind a label, 1000 at most.
    Containers { pool: String, after: Option<String> },
    /// A container.
    Container { pool: String, label: String },
    /// Makes one.
    CreateContainer {
        pool: String,
        label: String,
        checksum: Checksum,
        /// The run that makes it; none: a person.
        maker: Option<u64>,
    },
    /// Destroys one with all that is in it.
    DestroyContainer { pool: String, label: String },
    /// Claims objects of a container for a run, before it stores them.
    Claim { pool: String, label: String, asked: Asked },
    /// Notes that what a run stored in containers of a pool stays.
    Keep { pool: String, run: u64 },
    /// Has what is read next come from the files of a pool instead of memory.
    DropCache { pool: String },
    /// Ends a run in a container; with `only_looks` nothing is changed.
    EndRun { pool: String, label: String, run: u64, only_looks: bool },
    /// Makes a snapshot of a container.
    CreateSnapshot { pool: String, label: String },
    /// Destroys it.
    DestroySnapshot { pool: String, label: String, epoch: u64 },
}

/// Answer of the engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Response {
    /// Labels of pools.
    Pools(Vec<String>),
    /// A pool.
    Pool(PoolFacts),
    /// Space of the pool.
    Usage(PoolUsage),
    /// Containers.
    Containers(Vec<ContainerInfo>),
    /// A container.
    Container(ContainerInfo),
    /// Objects and claims in the way of a claim; none: it was entered.
    Claimed(Option<Found>),
    /// Fate of a container, now or at the end.
    Ended(Ending),
    /// Epoch of a snapshot.
    Epoch(u64),
    /// It was done.
    Done,
}

/// A pool, as the process knows it that has it open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolFacts {
    /// Space and containers.
    #[serde(flatten)]
    pub info: PoolInfo,
    /// How updates are made durable, in words.
    pub durable_by: String,
    /// Damage that opening it found.
    pub findings: Vec<String>,
    /// Space of it, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<PoolUsage>,
    /// The engine tells the times of requests in their replies ([`rpc::wire::flag::TIMED`]); engines of older versions say nothing of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tells_parts: bool,
}

impl PoolFacts {
    /// Those of a pool that is open here.
    #[must_use]
    pub fn of(pool: &Pool) -> Self {
        Self {
            info: pool.info(),
            durable_by: pool.durable_by(),
            findings: pool.findings().to_vec(),
            usage: None,
            tells_parts: false,
        }
    }
}

/// Reads a command that anybody may have sent.
///
/// # Errors
/// Why it is none, in words.
pub(super) fn decode(bytes: &[u8]) -> Result<Command, String> {
    serde_json::from_slice(bytes).map_err(|error| format!("the command is malformed: {error}"))
}

/// The control connection to an engine.
#[derive(Debug)]
pub struct Engine {
    caller: Caller,
    uri: String,
}

impl Engine {
    /// Connects.
    ///
    /// # Errors
    /// When the engine cannot be reached, or does not take the token.
    pub fn connect(
        location: &Location,
        secret: Option<&Secret>,
        timeout: Duration,
        interrupt: &AtomicBool,
    ) -> Result<Self, Error> {
        let socket = SocketPlan { no_delay: true, ..SocketPlan::default() };
        let caller = Caller::connect(&location.endpoint(0), &socket, secret, timeout, interrupt)?;
        Ok(Self { caller, uri: location.uri.clone() })
    }

    fn call(&mut self, opcode: u16, body: &[u8]) -> Result<Vec<u8>, Error> {
        let lost =
            |source| Error::system("engine", "the engine does not answer", source).with("address", &self.uri);
        let replied = self.caller.call(opcode, body, ANSWER_BYTES_MAX).map_err(lost)?;
        if replied.status == 0 {
            return Ok(replied.body);
        }
        Err(self.refusal(replied.status, &String::from_utf8_lossy(&replied.body)))
    }

    fn refusal(&self, status: i32, text: &str) -> Error {
        let errno = status.saturating_neg();
        if errno == libc::EOPNOTSUPP {
            return Error::new(ErrorKind::Unsupported, "engine", "the engine serves no store")
                .with("address", &self.uri)
                .remedy("start it with strata engine --pool");
        }
        let text = if text.is_empty() { "the engine rejected the request" } else { text };
        match errno {
            libc::ENOENT | libc::EEXIST | libc::EINVAL => Error::usage("engine", text.to_owned()),
            _ => Error::system("engine", text.to_owned(), std::io::Error::from_raw_os_error(errno)),
        }
        .with("address", &self.uri)
    }

    /// Sends a command.
    ///
    /// # Errors
    /// The engine's refusal, or when it does not answer.
    pub fn command(&mut self, command: &Command) -> Result<Response, Error> {
        let body = serde_json::to_vec(command).map_err(|error| self.garbled(&error.to_string()))?;
        let answer = self.call(opcode::CONTROL, &body)?;
        serde_json::from_slice(&answer).map_err(|error| self.garbled(&error.to_string()))
    }

    fn garbled(&self, why: &str) -> Error {
        Error::new(ErrorKind::Run, "engine", format!("the engine uses another version: {why}"))
            .with("address", &self.uri)
    }

    fn other(&self) -> Error {
        self.garbled("the engine sent an unexpected answer")
    }

    /// Labels of its pools.
    ///
    /// # Errors
    /// As [`Engine::command`].
    pub fn pools(&mut self) -> Result<Vec<String>, Error> {
        match self.command(&Command::Pools)? {
            Response::Pools(pools) => Ok(pools),
            _ => Err(self.other()),
        }
    }

    /// A pool.
    ///
    /// # Errors
    /// As [`Engine::command`].
    pub fn pool(&mut self, pool: &str) -> Result<PoolFacts, Error> {
        match self.command(&Command::Pool { pool: pool.to_owned() })? {
            Response::Pool(facts) => Ok(facts),
            _ => Err(self.other()),
        }
    }

    /// Space of a pool, by container.
    ///
    /// # Errors
    /// As [`Engine::command`].
    pub fn usage(&mut self, pool: &str) -> Result<PoolUsage, Error> {
        match self.command(&Command::Usage { pool: pool.to_owned() })? {
            Response::Usage(usage) => Ok(usage),
            _ => Err(self.other()),
        }
    }

    /// All containers of a pool, by label.
    ///
    /// # Errors
    /// As [`Engine::command`].
    pub fn containers(&mut self, pool: &str) -> Result<Vec<ContainerInfo>, Error> {
        let mut all: Vec<ContainerInfo> = Vec::new();
        loop {
            let after = all.last().map(|info| info.label.clone());
            match self.command(&Command::Containers { pool: pool.to_owned(), after })? {
                Response::Containers(page) if page.len() < CONTAINERS_A_PAGE => {
                    all.extend(page);
                    return Ok(all);
                }
                Response::Containers(page) => all.extend(page),
                _ => return Err(self.other()),
            }
        }
    }

    /// A container.
    ///
    /// # Errors
    /// As [`Engine::command`].
    pub fn container(&mut self, pool: &str, label: &str) -> Result<ContainerInfo, Error> {
        self.container_by(&Command::Container { pool: pool.to_owned(), label: label.to_owned() })
    }

    /// Makes a container; `maker` is the run that does, none where a person does.
    ///
    /// # Errors
    /// As [`Engine::command`].
    pub fn create_container(
        &mut self,
        pool: &str,
        label: &str,
        checksum: Checksum,
        maker: Option<u64>,
    ) -> Result<ContainerInfo, Error> {
        let (pool, label) = (pool.to_owned(), label.to_owned());
        self.container_by(&Command::CreateContainer { pool, label, checksum, maker })
    }

    fn container_by(&mut self, command: &Command) -> Result<ContainerInfo, Error> {
        match self.command(command)? {
            Response::Container(info) => Ok(info),
            _ => Err(self.other()),
        }
    }

    /// Destroys a container with all that is in it.
    ///
    /// # Errors
    /// As [`Engine::command`].
    pub fn destroy_container(&mut self, pool: &str, label: &str) -> Result<(), Error> {
        let command = Command::DestroyContainer { pool: pool.to_owned(), label: label.to_owned() };
        match self.command(&command)? {
            Response::Done => Ok(()),
            _ => Err(self.other()),
        }
    }

    /// Claims objects of a container for a run; what is in the way, where others' data are.
    ///
    /// # Errors
    /// As [`Engine::command`].
    pub fn claim(&mut self, pool: &str, label: &str, asked: Asked) -> Result<Option<Found>, Error> {
        match self.command(&Command::Claim { pool: pool.to_owned(), label: label.to_owned(), asked })? {
            Response::Claimed(found) => Ok(found),
            _ => Err(self.other()),
        }
    }

    /// Notes that what a run stored in a pool stays.
    ///
    /// # Errors
    /// As [`Engine::command`].
    pub fn keep(&mut self, pool: &str, run: u64) -> Result<(), Error> {
        match self.command(&Command::Keep { pool: pool.to_owned(), run })? {
            Response::Done => Ok(()),
            _ => Err(self.other()),
        }
    }

    /// Makes durable what a pool has taken, and has what is read next come from its files ([`Pool::drop_cache`]).
    ///
    /// # Errors
    /// As [`Engine::command`].
    pub fn drop_cache(&mut self, pool: &str) -> Result<(), Error> {
        match self.command(&Command::DropCache { pool: pool.to_owned() })? {
            Response::Done => Ok(()),
            _ => Err(self.other()),
        }
    }

    /// Ends a run in a container ([`Pool::end_run`]).
    ///
    /// # Errors
    /// As [`Engine::command`].
    pub fn end_run(&mut self, pool: &str, label: &str, run: u64, only_looks: bool) -> Result<Ending, Error> {
        let (pool, label) = (pool.to_owned(), label.to_owned());
        match self.command(&Command::EndRun { pool, label, run, only_looks })? {
            Response::Ended(ending) => Ok(ending),
            _ => Err(self.other()),
        }
    }

    /// Makes a snapshot of a container; returns its epoch.
    ///
    /// # Errors
    /// As [`Engine::command`].
    pub fn create_snapshot(&mut self, pool: &str, label: &str) -> Result<u64, Error> {
        let command = Command::CreateSnapshot { pool: pool.to_owned(), label: label.to_owned() };
        match self.command(&command)? {
            Response::Epoch(epoch) => Ok(epoch),
            _ => Err(self.other()),
        }
    }

    /// Destroys a snapshot.
    ///
    /// # Errors
    /// As [`Engine::command`].
    pub fn destroy_snapshot(&mut self, pool: &str, label: &str, epoch: u64) -> Result<(), Error> {
        let (pool, label) = (pool.to_owned(), label.to_owned());
        match self.command(&Command::DestroySnapshot { pool, label, epoch })? {
            Response::Done => Ok(()),
            _ => Err(self.other()),
        }
    }

    /// Opens a container.
    ///
    /// # Errors
    /// As [`Engine::command`].
    pub fn open_container(&mut self, pool: &str, label: &str) -> Result<Handle, Error> {
        let answer = self.call(opcode::OPEN_CONTAINER, &open_request(pool, label))?;
        handle_of(&answer).ok_or_else(|| self.other())
    }
}

/// Body of a request that opens a container.
#[must_use]
pub fn open_request(pool: &str, label: &str) -> Vec<u8> {
    let mut body = Vec::new();
    for label in [pool, label] {
        // A label that is too long is one that no engine has.
        if !put_counted(&mut body, label.as_bytes()) {
            put_counted(&mut body, b"");
        }
    }
    body
}

/// The handle that an engine has answered; none where the bytes are none.
#[must_use]
pub fn handle_of(answer: &[u8]) -> Option<Handle> {
    let mut reader = Reader(answer);
    let (instance, pool, container) = (reader.word().ok()?, reader.word().ok()?, reader.long().ok()?);
    Some(Handle { instance, pool: u16::try_from(pool).ok()?, container })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_a_command_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(command) = decode(&bytes) {
                let again = serde_json::to_vec(&command).expect("JSON");
                prop_assert_eq!(decode(&again), Ok(command));
            }
        }

        #[test]
        fn commands_travel(pool: String, label: String, epoch: u64) {
            let commands = [
                Command::Pools,
                Command::Containers { pool: pool.clone(), after: Some(label.clone()) },
                Command::DestroySnapshot { pool, label, epoch },
            ];
            for command in commands {
                let bytes = serde_json::to_vec(&command).expect("JSON");
                prop_assert_eq!(decode(&bytes), Ok(command));
            }
        }

        #[test]
        fn any_bytes_are_a_handle_or_none(bytes in prop::collection::vec(any::<u8>(), 0..32)) {
            let is_one = bytes.len() >= 16 && bytes[6..8] == [0; 2];
            prop_assert_eq!(handle_of(&bytes).is_some(), is_one);
        }
    }
}
