//! Core masks, and which core works on which device.

use driver::Error;

use super::table::TABLE;
use crate::words::quoted;

/// Highest core number, as in SPDK.
const CORE_MAX: u32 = 1023;

fn refused(text: &str) -> Error {
    TABLE.error(
        format!("-c/--core-mask {} is not a core mask or list", quoted(text)),
        "give hexadecimal digits such as 0xff, or a list such as [0,2-3]",
    )
}

/// The cores of a mask (`0xff`, `ff`) or a list (`[0,2-3]`), ascending.
///
/// # Errors
/// Anything else, and a set without cores.
pub(crate) fn parse(text: &str) -> Result<Vec<u32>, Error> {
    let text = text.trim();
    let cores = match text.strip_prefix('[').map(|list| list.strip_suffix(']')) {
        Some(Some(list)) => {
            let mut cores =
                units::parse_index_list("cores", list, CORE_MAX + 1).map_err(|_| refused(text))?;
            cores.sort_unstable();
            cores
        }
        Some(None) => return Err(refused(text)),
        None => of_mask(text).ok_or_else(|| refused(text))?,
    };
    if cores.is_empty() { Err(refused(text)) } else { Ok(cores) }
}

fn of_mask(text: &str) -> Option<Vec<u32>> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    let mut cores = Vec::new();
    // Linux writes its masks with a comma after every 32 bits.
    for (at, digit) in digits.chars().rev().filter(|&digit| digit != ',').enumerate() {
        let bits = digit.to_digit(16)?;
        let held = (0..4).filter(|bit| bits & (1 << bit) != 0);
        for bit in held {
            let core = u32::try_from(at).ok()?.checked_mul(4)? + bit;
            cores.push(core);
            if core > CORE_MAX {
                return None;
            }
        }
    }
    Some(cores)
}

/// The cores of each device: devices and cores are dealt to each other in turn until all of both have a partner, as
/// spdk_nvme_perf does, or all to all.
pub(crate) fn deal(devices: usize, cores: &[u32], every_core: bool) -> Vec<Vec<u32>> {
    if every_core {
        return vec![cores.to_vec(); devices];
    }
    let mut dealt = vec![Vec::new(); devices];
    for turn in 0..devices.max(cores.len()) {
        dealt[turn % devices].push(cores[turn % cores.len()]);
    }
    dealt
}
