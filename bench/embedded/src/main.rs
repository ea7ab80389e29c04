//! `embedded DIR VALUE_BYTES THREADS SECONDS`: puts one by one, each made durable by fdatasync before the next, then gets of the same
//! keys. Prints both rates as `puts N/s gets N/s`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fjall::{Database, KeyspaceCreateOptions, PersistMode};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [directory, value_bytes, threads, seconds] = words.as_slice() else {
        return Err("usage: embedded DIR VALUE_BYTES THREADS SECONDS".into());
    };
    let (value_bytes, threads): (usize, u64) = (value_bytes.parse()?, threads.parse()?);
    let time = Duration::from_secs_f64(seconds.parse()?);
    let database = Database::builder(directory).open()?;
    let keyspace = database.keyspace("values", KeyspaceCreateOptions::default)?;
    // Data that does not compress, as strata writes it.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let value: Vec<u8> = (0..value_bytes)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        })
        .collect();
    let puts = AtomicU64::new(0);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (database, keyspace, value, puts) = (&database, &keyspace, &value, &puts);
            scope.spawn(move || {
                let mut number = 0;
                while begun.elapsed() < time {
                    keyspace.insert(format!("{thread:04}-{number:011}"), value).expect("a put");
                    database.persist(PersistMode::SyncData).expect("a sync");
                    number += 1;
                }
                puts.fetch_add(number, Ordering::Relaxed);
            });
        }
    });
    let put_rate = puts.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    let mut gets = 0_u64;
    while begun.elapsed() < time {
        let number = gets % (puts.load(Ordering::Relaxed) / threads).max(1);
        keyspace.get(format!("{:04}-{number:011}", gets % threads))?;
        gets += 1;
    }
    println!("puts {put_rate:.0}/s gets {:.0}/s", gets as f64 / begun.elapsed().as_secs_f64());
    Ok(())
}
