//! Pools and containers, at tag 0.

use std::sync::Arc;

use driver::Error;
use rpc::{Answer, Call, Service};

use vos::{ContainerFacts, ContainerInfo, ContainerProperties, Pool, StoreError};

use super::control::{self, CONTAINERS_A_PAGE, Command, PoolFacts, Response};
use super::opcode;
use super::pools::Pools;
use super::wire::{Reader, Request};

/// See the module.
pub(super) struct Metadata {
    pools: Arc<Pools>,
}

/// An errno, and what a person should know.
type Refusal = (i32, String);

fn of_store(error: StoreError) -> Refusal {
    (-error.errno(), error.to_string())
}

fn of_pool(error: &Error) -> Refusal {
    (
        -error.errno().unwrap_or(if error.exit_code() == 2 { libc::EEXIST } else { libc::EIO }),
        error.to_string(),
    )
}

fn malformed() -> Refusal {
    (-libc::EINVAL, "the request is malformed".to_owned())
}

impl Metadata {
    pub(super) fn new(pools: Arc<Pools>) -> Self {
        Self { pools }
    }

    fn pool(&self, label: &str) -> Result<(u16, &Arc<Pool>), Refusal> {
        self.pools.find(label).ok_or_else(|| {
            let known: Vec<_> = self.pools.iter().map(|(label, _)| label).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            (-libc::ENOENT, format!("pool {label:?} does not exist; the engine has {known}"))
        })
    }

    fn container(&self, pool: &str, label: &str) -> Result<ContainerFacts, Refusal> {
        let (_, found) = self.pool(pool)?;
        found
            .find_container(label)
            .ok_or_else(|| (-libc::ENOENT, format!("pool {pool:?} has no container {label:?}")))
    }

    fn open(&self, call: &Call<'_>, answer: &mut Answer<'_>) -> Result<(), Refusal> {
        let mut reader = Reader(call.inline);
        let mut label = || reader.counted().ok().and_then(|bytes| std::str::from_utf8(bytes).ok());
        let (Some(pool), Some(container)) = (label(), label()) else { return Err(malformed()) };
        let (number, _) = self.pool(pool)?;
        let facts = self.container(pool, container)?;
        answer.inline.extend_from_slice(&self.pools.instance().to_le_bytes());
        answer.inline.extend_from_slice(&u32::from(number).to_le_bytes());
        answer.inline.extend_from_slice(&u64::from(facts.id.0).to_le_bytes());
        Ok(())
    }

    fn allocate(&self, call: &Call<'_>, answer: &mut Answer<'_>) -> Result<(), Refusal> {
        let request = Request::decode(call.inline).map_err(|_| malformed())?;
        let stale = |errno| (errno, "open the container again".to_owned());
        let (pool, container) = self.pools.of(request.handle).map_err(stale)?;
        let first = pool.allocate_ids(container, request.length).map_err(of_store)?;
        answer.inline.extend_from_slice(&first.to_le_bytes());
        Ok(())
    }

    fn close(&self, call: &Call<'_>) -> Result<(), Refusal> {
        let request = Request::decode(call.inline).map_err(|_| malformed())?;
        let stale = |errno| (errno, "the handle was not issued by this engine".to_owned());
        self.pools.of(request.handle).map(drop).map_err(stale)
    }

    fn control(&self, call: &Call<'_>, answer: &mut Answer<'_>) -> Result<(), Refusal> {
        let command = control::decode(call.inline).map_err(|why| (-libc::EINVAL, why))?;
        let response = self.carry_out(&command)?;
        let failed = |error: serde_json::Error| (-libc::EIO, error.to_string());
        serde_json::to_writer(&mut answer.inline, &response).map_err(failed)
    }

    fn carry_out(&self, command: &Command) -> Result<Response, Refusal> {
        Ok(match command {
            Command::Pools => Response::Pools(self.pools.iter().map(|(label, _)| label.to_owned()).collect()),
            Command::Pool { pool } => Response::Pool(facts_of(pool, self.pool(pool)?.1)),
            Command::Usage { pool } => Response::Usage(self.pool(pool)?.1.usage().map_err(of_store)?),
            Command::Containers { pool, after } => {
                let (_, pool) = self.pool(pool)?;
                let later = |facts: &ContainerFacts| after.as_ref().is_none_or(|after| facts.label > *after);
                let rest = pool.containers().into_iter().filter(later);
                Response::Containers(rest.take(CONTAINERS_A_PAGE).map(ContainerInfo::from).collect())
            }
            Command::Container { pool, label } => Response::Container(self.container(pool, label)?.into()),
            Command::CreateContainer { pool, label, checksum, maker } => {
                let (_, found) = self.pool(pool)?;
                if found.find_container(label).is_some() {
                    let text = format!("container {label:?} already exists in pool {pool:?}");
                    return Err((-libc::EEXIST, text));
                }
                let properties = ContainerProperties { checksum: *checksum, maker: *maker };
                found.create_container(label, &properties).map_err(|error| of_pool(&error))?;
                Response::Container(self.container(pool, label)?.into())
            }
            Command::DestroyContainer { pool, label } => {
                self.container(pool, label)?;
                self.pool(pool)?.1.destroy_container(label).map_err(|error| of_pool(&error))?;
                Response::Done
            }
            Command::Claim { pool, label, asked } => {
                self.container(pool, label)?;
                Response::Claimed(self.pool(pool)?.1.claim(label, asked).map_err(|error| of_pool(&error))?)
            }
            Command::Keep { pool, run } => {
                self.pool(pool)?.1.keep(*run).map_err(|error| of_pool(&error))?;
                Response::Done
            }
            Command::DropCache { pool } => {
                self.pool(pool)?.1.drop_cache().map_err(of_store)?;
                Response::Done
            }
            Command::EndRun { pool, label, run, only_looks } => {
                let ended = self.pool(pool)?.1.end_run(label, *run, *only_looks);
                Response::Ended(ended.map_err(|error| of_pool(&error))?)
            }
            Command::CreateSnapshot { pool, label } => {
                let id = self.container(pool, label)?.id;
                Response::Epoch(self.pool(pool)?.1.snapshot(id).map_err(of_store)?)
            }
            Command::DestroySnapshot { pool, label, epoch } => {
                let id = self.container(pool, label)?.id;
                self.pool(pool)?.1.destroy_snapshot(id, *epoch).map_err(of_store)?;
                Response::Done
            }
        })
    }
}

fn facts_of(label: &str, pool: &Pool) -> PoolFacts {
    let mut facts = PoolFacts::of(pool);
    label.clone_into(&mut facts.info.name);
    facts.tells_parts = true;
    facts
}

impl Service for Metadata {
    fn call(&mut self, call: &Call<'_>, answer: &mut Answer<'_>) -> i32 {
        let result = match call.opcode {
            opcode::OPEN_CONTAINER => self.open(call, answer),
            opcode::CLOSE_CONTAINER => self.close(call),
            opcode::ALLOCATE_IDS => self.allocate(call, answer),
            opcode::CONTROL => self.control(call, answer),
            _ => Err((-libc::EOPNOTSUPP, "tag 0 serves pools and containers".to_owned())),
        };
        match result {
            Ok(()) => 0,
            Err((status, text)) => {
                answer.inline.clear();
                let room = answer.inline.room_bytes();
                answer.inline.extend_from_slice(&text.as_bytes()[..text.floor_char_boundary(room)]);
                status
            }
        }
    }
}
