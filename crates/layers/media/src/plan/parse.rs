//! Small grammars of options that a plan keeps resolved.

use units::{ParseError, Percent, parse_u64_in};

use super::{MixPlan, VerifyBacklog};

/// Reads `70` (percent of reads, the rest writes) or `read=70,write=25,discard=5`.
///
/// # Errors
/// Shares that do not add up to 100.
pub fn parse_mix(text: &str) -> Result<MixPlan, ParseError> {
    let accepted = "a percentage of reads from 0 to 100, or shares that add up to 100 such as read=70,write=25,discard=5";
    let refuse = || ParseError::new("a mix", text, accepted);
    if !text.contains('=') {
        let read_percent = text.parse::<Percent>().map_err(|_| refuse())?.get();
        return Ok(MixPlan { read_percent, write_percent: 100 - read_percent, discard_percent: 0 });
    }
    let mut mix = MixPlan { read_percent: 0, write_percent: 0, discard_percent: 0 };
    let mut seen = Vec::new();
    for part in text.split(',') {
        let (class, percent) = part.split_once('=').ok_or_else(refuse)?;
        if seen.contains(&class.trim()) {
            return Err(refuse());
        }
        seen.push(class.trim());
        let field = match class.trim() {
            "read" => &mut mix.read_percent,
            "write" => &mut mix.write_percent,
            "discard" => &mut mix.discard_percent,
            _ => return Err(refuse()),
        };
        *field = percent.parse::<Percent>().map_err(|_| refuse())?.get();
    }
    let sum = u32::from(mix.read_percent) + u32::from(mix.write_percent) + u32::from(mix.discard_percent);
    if sum == 100 { Ok(mix) } else { Err(refuse()) }
}

/// Most blocks that wait to be read back: 24 bytes each, for every worker.
const BACKLOG_MAX: u64 = 16 << 20;

/// Reads `32` (blocks written, and read) or `32:8` (written, and read).
///
/// # Errors
/// A text that is no number of blocks, or 0.
pub fn parse_backlog(text: &str) -> Result<VerifyBacklog, ParseError> {
    let number = |text: &str| parse_u64_in("verify-backlog", text, 1..=BACKLOG_MAX);
    let (blocks, batch) = text.split_once(':').unwrap_or((text, text));
    Ok(VerifyBacklog { blocks: number(blocks)?, batch: number(batch)? })
}
