//! Files of `verify_state_save`: how many writes of a job are known to be done, in fio's format of version 7.

use std::path::PathBuf;

const VERSION: u64 = 7;
/// Version, length of what follows, and its CRC-32C.
const HEADER_BYTES: usize = 24;
/// Depth, number of writes, number of the job, state of its generator (use64 and 48 bytes), and its name.
const STATE_BYTES: usize = 8 + 8 + 8 + 56 + 64;
const NAME_AT: usize = STATE_BYTES - 64;
/// Of an operation that was not in flight.
const NONE_IN_FLIGHT: u64 = u64::MAX;

/// The file of clone `index` of a run, in the directory of `--aux-path`.
pub(crate) fn path(directory: Option<&str>, name: &str, index: usize) -> PathBuf {
    let file = format!("local-{}-{index}-verify.state", name.replace('/', "."));
    directory.map_or_else(|| PathBuf::from(&file), |directory| PathBuf::from(directory).join(&file))
}

/// The content of the file of a clone that has done its first `writes`, with nothing in flight. The generator is strata's own: its
/// state is left at 0.
pub(crate) fn saved(name: &str, index: usize, depth: u32, writes: u64) -> Vec<u8> {
    let mut state = vec![0; STATE_BYTES];
    state[..4].copy_from_slice(&depth.to_le_bytes());
    state[8..16].copy_from_slice(&writes.to_le_bytes());
    state[16..24].copy_from_slice(&(index as u64).to_le_bytes());
    state[24..32].copy_from_slice(&1_u64.to_le_bytes());
    // The last byte ends the name.
    let kept = name.len().min(STATE_BYTES - NAME_AT - 1);
    state[NAME_AT..NAME_AT + kept].copy_from_slice(&name.as_bytes()[..kept]);
    state.extend((0..depth).flat_map(|_| NONE_IN_FLIGHT.to_le_bytes()));
    let header = [VERSION, state.len() as u64, u64::from(crc32c(&state))];
    let mut file: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
    file.append(&mut state);
    file
}

/// How many of the first writes of a clone are done, of a file that strata or fio has left.
///
/// # Errors
/// A description of the fault in the file.
pub(crate) fn loaded(file: &[u8]) -> Result<u64, String> {
    let word = |at: usize| {
        let bytes = file.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map(u64::from_le_bytes).ok_or_else(|| format!("is truncated after {} bytes", file.len()))
    };
    let (version, length, sum) = (word(0)?, word(8)?, word(16)?);
    if version != VERSION {
        return Err(format!("has version {version}, but version {VERSION} (fio 3.42 or later) is required"));
    }
    let state = &file[HEADER_BYTES..];
    if state.len() as u64 != length || state.len() < STATE_BYTES {
        return Err(format!("has {} bytes of state, but its header says {length}", state.len()));
    }
    if u64::from(crc32c(state)) != sum {
        return Err("is corrupt: the checksum does not match".to_owned());
    }
    // What was in flight may not be there, nor may what follows it.
    let in_flight = (HEADER_BYTES + STATE_BYTES..file.len()).step_by(8).map(word);
    in_flight.chain([word(HEADER_BYTES + 8)]).try_fold(u64::MAX, |least, number| Ok(least.min(number?)))
}

/// CRC-32C (Castagnoli), reflected.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_as_they_were_written() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283, "the check value of CRC-32C");
        let file = saved("a job", 3, 16, 1000);
        assert_eq!((file.len(), loaded(&file)), (HEADER_BYTES + STATE_BYTES + 16 * 8, Ok(1000)));
        assert_eq!(path(Some("aux"), "of/it", 3), PathBuf::from("aux/local-of.it-3-verify.state"));
        for cut in [0, 8, 30, file.len() - 1] {
            assert!(loaded(&file[..cut]).is_err(), "{cut}");
        }
        for at in 0..file.len() {
            let mut wrong = file.clone();
            wrong[at] ^= 4;
            assert!(loaded(&wrong).is_err(), "{at}");
        }
    }

    #[test]
    fn nothing_behind_a_write_in_flight_counts() {
        let mut file = saved("x", 0, 4, 1000);
        let at = HEADER_BYTES + STATE_BYTES + 8;
        file[at..at + 8].copy_from_slice(&990_u64.to_le_bytes());
        let sum = u64::from(crc32c(&file[HEADER_BYTES..]));
        file[16..24].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(loaded(&file), Ok(990));
    }
}
