//! Speed of the embedded store beside plain memory copies.
//!
//! `store_speed DIR [--keys N] [--only memory|small|large|open|disk] [--threads N]`: makes a pool in a directory below DIR, measures, and
//! removes it. On tmpfs updates are durable by CPU flush, elsewhere by fdatasync. Keys run as vos_perf's do: dkey by dkey.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use vos::model::{Key, ObjectId};
use vos::{
    Ack, ContainerId, ContainerProperties, KeyPath, OpenOptions, Pool, PoolOptions, Read, Target, Write,
};

type Outcome<T> = Result<T, Box<dyn Error>>;

const MIB: usize = 1 << 20;

struct Arguments {
    dir: PathBuf,
    keys: Option<u64>,
    only: Option<String>,
    threads: u64,
}

fn arguments() -> Outcome<Arguments> {
    let mut found = Arguments { dir: PathBuf::new(), keys: None, only: None, threads: 1 };
    let mut given = std::env::args().skip(1);
    while let Some(argument) = given.next() {
        let mut value = || given.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--keys" => found.keys = Some(value()?.parse()?),
            "--only" => found.only = Some(value()?),
            "--threads" => found.threads = value()?.parse()?,
            other if !other.starts_with('-') => found.dir = PathBuf::from(other),
            other => return Err(format!("{other}: known are DIR, --keys N, --only PART, --threads N").into()),
        }
    }
    if found.dir.as_os_str().is_empty() { Err("name a directory".into()) } else { Ok(found) }
}

/// A pool that is removed when it is dropped.
struct Scratch {
    dir: PathBuf,
    pool: Option<Pool>,
    container: ContainerId,
}

impl Scratch {
    fn new(parent: &Path, scm_bytes: u64) -> Outcome<Self> {
        let dir = parent.join(format!("store_speed.{}", std::process::id()));
        let begin = Instant::now();
        let pool = Pool::create(&dir, &PoolOptions { scm_bytes, ..PoolOptions::default() })?;
        println!(
            "pool of {} MiB made in {:.2?}, durable by {}",
            scm_bytes >> 20,
            begin.elapsed(),
            pool.durable_by()
        );
        let container = pool.create_container("strata", &ContainerProperties::default())?;
        Ok(Self { dir, pool: Some(pool), container })
    }

    fn target(&self) -> Outcome<&Target> {
        Ok(self.pool.as_ref().ok_or("closed")?.target(0))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(self.pool.take());
        if let Err(error) = Pool::destroy(&self.dir) {
            eprintln!("{error}");
        }
    }
}

fn dkey(number: u64) -> Key {
    Key::new(b"blade-").unwrap_or(Key::EMPTY).followed_by(number)
}

fn place<'a>(container: ContainerId, dkey: &'a Key) -> KeyPath<'a> {
    KeyPath { container, object: ObjectId { lo: 1, hi: 0 }, dkey: dkey.as_bytes(), akey: b"akey--0" }
}

/// Begin of a measurement.
struct Start {
    wall: Instant,
    cpu: Duration,
}

impl Start {
    fn now() -> Self {
        Self { wall: Instant::now(), cpu: cpu_time() }
    }

    fn report(&self, what: &str, bytes: usize, count: u64) {
        let (seconds, cpu) = (self.wall.elapsed().as_secs_f64(), (cpu_time() - self.cpu).as_secs_f64());
        println!(
            "{what:<24} {bytes:>8} B {:>12.0} /s {:>10.1} MB/s {:>9.0} ns, CPU {:>8.0} ns",
            count as f64 / seconds,
            count as f64 * bytes as f64 / seconds / 1e6,
            seconds * 1e9 / count as f64,
            cpu * 1e9 / count as f64
        );
    }
}

/// CPU time of this thread: on a machine that does other work too it tells more than the wall clock.
fn cpu_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// CPU time of all threads.
fn process_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Single values, sequential keys.
fn singles(scratch: &Scratch, bytes: usize, keys: u64) -> Outcome<()> {
    let (target, container) = (scratch.target()?, scratch.container);
    let data = vec![0x5a; bytes];
    let mut into = vec![0; bytes];
    for round in ["update (new)", "update (overwrite)"] {
        let begin = Start::now();
        for number in 0..keys {
            target.update(&place(container, &dkey(number)), Write::Single, &data, Ack::AsConfigured)?;
        }
        begin.report(round, bytes, keys);
    }
    for _ in 0..2 {
        let begin = Start::now();
        for number in 0..keys {
            target.fetch(&place(container, &dkey(number)), Read::Single, None, &mut into)?;
        }
        begin.report("fetch", bytes, keys);
    }
    Ok(())
}

/// Plain copies between as much memory as the store uses.
fn copies(bytes: usize, count: u64) {
    let count = count as usize;
    let mut there = vec![1u8; bytes * count];
    let mut own = vec![2u8; bytes];
    for _ in 0..2 {
        let begin = Start::now();
        for part in there.chunks_exact_mut(bytes) {
            part.copy_from_slice(&own);
        }
        begin.report("copy into memory", bytes, count as u64);
        let begin = Start::now();
        for part in there.chunks_exact(bytes) {
            own.copy_from_slice(part);
            std::hint::black_box(&mut own);
        }
        begin.report("copy out of memory", bytes, count as u64);
    }
}

/// Extents of arrays.
fn extents(scratch: &Scratch, bytes: usize, count: u64) -> Outcome<()> {
    let (target, container) = (scratch.target()?, scratch.container);
    let data = vec![0x5a; bytes];
    let mut into = vec![0; bytes];
    for round in ["write (new)", "write (overwrite)"] {
        let begin = Start::now();
        for number in 0..count {
            let offset_bytes = number * bytes as u64;
            let key = Key::integer(1);
            target.update(
                &place(container, &key),
                Write::Extent { offset_bytes },
                &data,
                Ack::AsConfigured,
            )?;
        }
        begin.report(round, bytes, count);
    }
    for _ in 0..2 {
        let begin = Start::now();
        for number in 0..count {
            let offset_bytes = number * bytes as u64;
            let key = Key::integer(1);
            target.fetch(&place(container, &key), Read::Extent { offset_bytes }, None, &mut into)?;
        }
        begin.report("read", bytes, count);
    }
    Ok(())
}

/// Memory of the index, and how long opening takes.
fn opening(parent: &Path, keys: u64) -> Outcome<()> {
    let mut scratch = Scratch::new(parent, keys * 192 * 9 / 8 + (256 << 20))?;
    let data = [7; 64];
    let container = scratch.container;
    let begin = Start::now();
    for number in 0..keys {
        scratch.target()?.update(
            &place(container, &dkey(number)),
            Write::Single,
            &data,
            Ack::AsConfigured,
        )?;
    }
    begin.report("update (new)", 64, keys);
    let mut into = [0; 64];
    let begin = Start::now();
    for number in 0..keys {
        scratch.target()?.fetch(&place(container, &dkey(number)), Read::Single, None, &mut into)?;
    }
    begin.report("fetch", 64, keys);
    let space = scratch.target()?.space();
    println!("index: {:.1} bytes a key of {} keys", space.index_bytes as f64 / space.keys as f64, space.keys);
    for is_clean in [true, false] {
        let pool = scratch.pool.take().ok_or("closed")?;
        let begin = Instant::now();
        if is_clean {
            pool.close()?;
            println!("closed in {:.2?}", begin.elapsed());
        } else {
            drop(pool);
        }
        let begin = Instant::now();
        let cpu = process_time();
        scratch.pool = Some(Pool::open(&scratch.dir, &OpenOptions::default())?);
        let how = if is_clean { "a clean stop" } else { "a kill" };
        let (wall, cpu) = (begin.elapsed(), process_time() - cpu);
        let keys = scratch.target()?.space().keys;
        println!("opened after {how} in {wall:.2?} (CPU {cpu:.2?} of all threads), {keys} keys");
    }
    Ok(())
}

/// Updates that threads wait for.
fn synced(scratch: &Scratch, bytes: usize, updates: u64, threads: u64) -> Outcome<()> {
    let (target, container) = (scratch.target()?, scratch.container);
    let data = vec![0x5a; bytes];
    let begin = Start::now();
    let results: Vec<_> = std::thread::scope(|scope| {
        let work = |thread: u64| {
            let data = &data;
            move || {
                (0..updates / threads).try_for_each(|number| {
                    let key = dkey(thread * updates + number);
                    target.update(&place(container, &key), Write::Single, data, Ack::AsConfigured).map(|_| ())
                })
            }
        };
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(work(thread))).collect();
        threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    for result in results {
        result.map_err(|_| "a thread panicked")??;
    }
    begin.report(&format!("update, {threads} threads"), bytes, updates);
    Ok(())
}

fn main() -> Outcome<()> {
    let arguments = arguments()?;
    let runs = |part: &str| arguments.only.as_deref().is_none_or(|only| only == part);
    if runs("memory") {
        for (bytes, count) in [(64, 1 << 20), (4096, 100_000), (MIB, 512)] {
            copies(bytes, count);
        }
    }
    if runs("small") {
        let keys = arguments.keys.unwrap_or(500_000);
        singles(&Scratch::new(&arguments.dir, keys * 500 + (128 << 20))?, 64, keys)?;
        let keys = arguments.keys.unwrap_or(200_000);
        singles(&Scratch::new(&arguments.dir, keys * 10_000 + (128 << 20))?, 4096, keys)?;
    }
    if runs("large") {
        extents(&Scratch::new(&arguments.dir, 2 << 30)?, MIB, 512)?;
    }
    if runs("open") {
        opening(&arguments.dir, arguments.keys.unwrap_or(10_000_000))?;
    }
    if arguments.only.as_deref() == Some("disk") {
        let scratch = Scratch::new(&arguments.dir, 1 << 30)?;
        synced(&scratch, 4096, arguments.keys.unwrap_or(30_000), arguments.threads)?;
        synced(&scratch, 64, arguments.keys.unwrap_or(30_000), arguments.threads)?;
    }
    Ok(())
}
