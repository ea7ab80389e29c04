//! Writes to a pool until it is killed, and tells of each update that was acknowledged: a line `KEY updated VERSION` or
//! `KEY punched VERSION`.

use std::io::Write as _;
use std::path::Path;

use vos::model::ObjectId;
use vos::{Ack, KeyPath, OpenOptions, Pool, Punch, StoreError, Write};

/// Versions are numbered from `first` on. Never aggregates where there are so few keys that the store has to do it by itself.
pub(crate) fn write_until_killed(
    dir: &Path,
    first: u64,
    keys: u64,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut state: u64 = first | 1;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let pool = Pool::open(dir, &OpenOptions::default())?;
    let container = pool.find_container("strata").ok_or("no container")?.id;
    let target = pool.target(0);
    let is_alone = keys <= crate::FEW_KEYS;
    let mut out = std::io::stdout().lock();
    for version in first.. {
        let key = random(keys);
        let dkey = key.to_le_bytes();
        let place = KeyPath { container, object: ObjectId { lo: 1, hi: 0 }, dkey: &dkey, akey: b"" };
        let bytes = match random(8) {
            0 if is_alone => 25_000 + random(30_000),
            0 => 40_000 + random(60_000),
            1 | 2 => 4096,
            _ => 16 + random(300),
        };
        // The version, then bytes that follow from it: a torn value does not.
        let mut value = version.to_le_bytes().to_vec();
        value.resize(bytes as usize, (version ^ version >> 8) as u8);
        let done = match random(16) {
            0 => match target.punch(&place, Punch::Dkey, Ack::AsConfigured) {
                Err(StoreError::NotFound) => continue,
                done => done.map(|_| "punched"),
            },
            1 => {
                let deferred = target.update(&place, Write::Single, &value, Ack::Deferred);
                deferred.and_then(|_| target.commit()).map(|()| "updated")
            }
            _ => target.update(&place, Write::Single, &value, Ack::AsConfigured).map(|_| "updated"),
        };
        match done {
            Ok(what) => writeln!(out, "{key} {what} {version}")?,
            Err(StoreError::ScmFull | StoreError::NvmeFull) if !is_alone => {
                target.aggregate(container, None, true)?;
            }
            Err(error) => return Err(error.into()),
        }
        if !is_alone && random(200) == 0 {
            target.aggregate(container, None, random(2) == 0)?;
        }
    }
    Ok(())
}
