//! Creates, stats and removes a second on one core, and 1 MiB reads and writes beside those of the store itself, in rounds one after the other:
//!
//! ```sh
//! cargo run --release -p dfs --example rates -- [DIRECTORY]
//! ```

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use dfs::{FileSystem, Format, Inode, OpenFlags, Options, Owner, open_on_pool};
use vos::model::ObjectId;
use vos::{
    Ack, ContainerId, ContainerProperties, KeyPath, ObjectClass, ObjectType, Pool, PoolOptions, Punch, Read,
    Write,
};

const FILES: u64 = 200_000;
const BLOCKS: u64 = 512;
const BLOCK: usize = 1 << 20;
const ROUNDS: usize = 5;
const FLAGS: OpenFlags =
    OpenFlags { read: true, write: true, append: false, truncate: false, exclusive: true };

/// Runs `work` `count` times; how often a second.
fn rate(count: u64, mut work: impl FnMut(u64)) -> f64 {
    let begin = Instant::now();
    (0..count).for_each(&mut work);
    count as f64 / begin.elapsed().as_secs_f64()
}

fn names(files: &dyn FileSystem, round: usize) -> [f64; 4] {
    let name = format!("round-{round}");
    let directory = files.make_directory(Inode::ROOT, name.as_bytes(), 0o755, Owner::default());
    let directory = directory.expect("a directory").inode;
    let names: Vec<String> = (0..FILES).map(|number| format!("file.{number:08}")).collect();
    let create = rate(FILES, |number| {
        let name = names[number as usize].as_bytes();
        let (made, handle) = files.create(directory, name, 0o644, Owner::default(), FLAGS).expect("created");
        files.release(handle).expect("closed");
        files.forget(made.inode, 1);
    });
    let stat = rate(FILES, |number| {
        files.stat(directory, names[number as usize].as_bytes()).expect("there");
    });
    let mut listed = 0;
    let list = rate(1, |_| {
        files
            .list(directory, 0, &mut |_| {
                listed += 1;
                true
            })
            .expect("listed");
    });
    assert_eq!(listed, FILES);
    let remove =
        rate(FILES, |number| files.unlink(directory, names[number as usize].as_bytes()).expect("removed"));
    files.forget(directory, 1);
    [create, stat, list * FILES as f64, remove]
}

fn raw(pool: &Pool, container: ContainerId, block: &mut [u8]) -> [f64; 2] {
    let object = ObjectId::new(ObjectType::ArrayByte, ObjectClass::S1, 1);
    let target = pool.target(0);
    let read = Read::Extent { offset_bytes: 0 };
    let dkeys: Vec<[u8; 8]> = (1..=BLOCKS).map(u64::to_le_bytes).collect();
    let place = |number: u64| KeyPath { container, object, dkey: &dkeys[number as usize], akey: b"data" };
    let write = rate(BLOCKS, |number| {
        target
            .update(&place(number), Write::Extent { offset_bytes: 0 }, block, Ack::Deferred)
            .expect("written");
    });
    let read = rate(BLOCKS, |number| {
        target.fetch(&place(number), read, None, block).expect("read");
    });
    target.punch(&place(0), Punch::Object, Ack::AsConfigured).expect("removed");
    target.collect().expect("collected");
    [write, read]
}

fn files(pool: &Pool, files: &dyn FileSystem, block: &mut [u8]) -> [f64; 2] {
    let (made, handle) =
        files.create(Inode::ROOT, b"large", 0o644, Owner::default(), FLAGS).expect("created");
    let write = rate(BLOCKS, |number| {
        files.write(handle, number * BLOCK as u64, block).expect("written");
    });
    let read = rate(BLOCKS, |number| {
        assert_eq!(files.read(handle, number * BLOCK as u64, block), Ok(BLOCK));
    });
    files.release(handle).expect("closed");
    files.unlink(Inode::ROOT, b"large").expect("removed");
    files.forget(made.inode, 1);
    pool.target(0).collect().expect("collected");
    [write, read]
}

/// The middle one.
fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn main() {
    let parent = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("/dev/shm"), PathBuf::from);
    let directory = parent.join(format!("dfs-rates-{}", std::process::id()));
    let pool = PoolOptions { scm_bytes: 6 << 30, ..PoolOptions::default() };
    let pool = Arc::new(Pool::create(&directory, &pool).expect("a pool"));
    let format = Format { owner: Owner::default(), ..Format::default() };
    let options = Options { create: true, format, ..Options::default() };
    let system = open_on_pool(&pool, &options).expect("a file system");
    let container = pool.create_container("raw", &ContainerProperties::default()).expect("a container");
    let mut block = vec![0x5a; BLOCK];
    let (mut of_names, mut of_raw, mut of_files) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        of_names.push(names(&*system, round));
        of_raw.push(raw(&pool, container, &mut block));
        of_files.push(files(&pool, &*system, &mut block));
    }
    for (at, what) in ["create", "stat", "list", "remove"].into_iter().enumerate() {
        println!("{what:7} {:10.0} a second", median(of_names.iter().map(|round| round[at]).collect()));
    }
    for (at, what) in ["write", "read"].into_iter().enumerate() {
        let middle = |rounds: &[[f64; 2]]| median(rounds.iter().map(|round| round[at]).collect());
        let (own, raw) = (middle(&of_files), middle(&of_raw));
        println!("{what:7} {own:10.0} MiB/s, the store itself {raw:.0} MiB/s: {:.3} of it", own / raw);
    }
    drop(system);
    drop(pool);
    Pool::destroy(&directory).expect("removed");
}
