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
const ROUNDS: usize = 6;
const PASSES: u32 = 4;
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

/// Rates of the store itself and of files over it, of one pass of writes and several of reads, in turn.
fn blocks(
    pool: &Pool,
    container: ContainerId,
    files: &dyn FileSystem,
    block: &mut [u8],
    is_raw_first: bool,
) -> [[f64; 2]; 2] {
    let object = ObjectId::new(ObjectType::ArrayByte, ObjectClass::S1, 1);
    let target = pool.target(0);
    let dkeys: Vec<[u8; 8]> = (1..=BLOCKS).map(u64::to_le_bytes).collect();
    let place = |number: u64| KeyPath { container, object, dkey: &dkeys[number as usize], akey: b"data" };
    let (made, handle) =
        files.create(Inode::ROOT, b"large", 0o644, Owner::default(), FLAGS).expect("created");
    let turns = [is_raw_first, !is_raw_first];
    let mut rates = [[0.0; 2]; 2];
    for is_raw in turns {
        rates[usize::from(is_raw)][0] = rate(BLOCKS, |number| match is_raw {
            true => {
                let write = Write::Extent { offset_bytes: 0 };
                target.update(&place(number), write, block, Ack::Deferred).expect("written");
            }
            false => {
                files.write(handle, number * BLOCK as u64, block).expect("written");
            }
        });
    }
    for _ in 0..PASSES {
        for is_raw in turns {
            let read = rate(BLOCKS, |number| match is_raw {
                true => {
                    target
                        .fetch(&place(number), Read::Extent { offset_bytes: 0 }, None, block)
                        .expect("read");
                }
                false => assert_eq!(files.read(handle, number * BLOCK as u64, block), Ok(BLOCK)),
            });
            rates[usize::from(is_raw)][1] += read / f64::from(PASSES);
        }
    }
    files.release(handle).expect("closed");
    files.unlink(Inode::ROOT, b"large").expect("removed");
    files.forget(made.inode, 1);
    target.punch(&place(0), Punch::Object, Ack::AsConfigured).expect("removed");
    target.collect().expect("collected");
    rates
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
    let (mut of_names, mut of_blocks) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        of_names.push(names(&*system, round));
        of_blocks.push(blocks(&pool, container, &*system, &mut block, round % 2 == 0));
    }
    for (at, what) in ["create", "stat", "list", "remove"].into_iter().enumerate() {
        println!("{what:7} {:10.0} a second", median(of_names.iter().map(|round| round[at]).collect()));
    }
    for (at, what) in ["write", "read"].into_iter().enumerate() {
        let middle =
            |which: usize| median(of_blocks.iter().map(|round: &[[f64; 2]; 2]| round[which][at]).collect());
        let (own, raw) = (middle(0), middle(1));
        println!("{what:7} {own:10.0} MiB/s, the store itself {raw:.0} MiB/s: {:.3} of it", own / raw);
    }
    drop(system);
    drop(pool);
    Pool::destroy(&directory).expect("removed");
}
