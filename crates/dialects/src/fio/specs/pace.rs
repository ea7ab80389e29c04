//! How fast: rates, pauses, delays.

use units::Rate;
use workload::spec::Operation;

use super::{Site, of_direction};
use crate::fio::fault::Fault;
use crate::fio::value::Triple;

impl Site<'_> {
    pub(super) fn pace(&mut self, depth: u32) -> Result<(), Fault> {
        let draft = self.draft;
        if let Some(delay_ns) = draft.startdelay.filter(|&delay| delay > 0) {
            self.set("startdelay", "start-delay", &format!("{delay_ns}ns"))?;
        }
        let by_bytes = self.rate_of("rate", draft.rate.as_ref())?.map(|bytes| bytes / self.blocks.mean_bytes);
        let by_count = self.rate_of("rate_iops", draft.rate_iops.as_ref())?;
        let pause_ns = draft.thinktime.filter(|&pause| pause > 0);
        let rate = match (by_bytes, by_count) {
            (Some(_), Some(_)) => {
                return Err(Fault::of("rate_iops", "it conflicts with rate: give only one of them"));
            }
            (rate, other) => rate.or(other),
        };
        // With offload fio has it so that a slow operation does not hold back the ones that are due: an open loop does not wait.
        if let Some(rate) = rate {
            let rate = Rate::new(rate * f64::from(self.clones.count));
            self.spec.rate = Some(rate.map_err(|error| Fault::of("rate", error.to_string()))?);
            self.spec.arrivals = draft.rate_process;
            self.warn(
                "with a rate, latency starts when an operation is due and includes the wait behind slow ones; in fio it starts at the issue",
            );
        }
        match pause_ns {
            Some(pause_ns) => self.pauses(pause_ns, depth),
            None => {
                let of_pauses =
                    [("thinktime_iotime", draft.thinktime_iotime), ("thinktime_spin", draft.thinktime_spin)];
                for (key, _) in of_pauses.iter().filter(|(_, time_ns)| time_ns.unwrap_or(0) > 0) {
                    self.warn(format!("{key} without thinktime does nothing, as in fio"));
                }
                Ok(())
            }
        }
    }

    fn pauses(&mut self, pause_ns: u64, depth: u32) -> Result<(), Fault> {
        let draft = self.draft;
        self.set("thinktime", "think-time", &format!("{pause_ns}ns"))?;
        let time_ns = draft.thinktime_iotime.filter(|&time| time > 0);
        if let Some(time_ns) = time_ns {
            self.set("thinktime_iotime", "think-after", &format!("{time_ns}ns"))?;
        }
        // With a time, blocks count where they were given, as in fio.
        let blocks = draft.thinktime_blocks.or_else(|| time_ns.is_none().then_some(1));
        if let Some(blocks) = blocks {
            self.set("thinktime_blocks", "think-blocks", &blocks.to_string())?;
        }
        // No longer than the pause that it is a part of, as in fio.
        if let Some(spin_ns) = draft.thinktime_spin.filter(|&spin| spin > 0) {
            self.set("thinktime_spin", "think-spin", &format!("{}ns", spin_ns.min(pause_ns)))?;
        }
        self.spec.no_catch_up = self.spec.rate.is_some() && draft.rate_ignore_thinktime == Some(true);
        if draft.thinktime_issue == Some(true) && depth > 1 {
            self.warn("thinktime_blocks_type=issue: a pause starts when the operations in flight have completed, not at the issue");
        }
        if let Some(blocks) = blocks.filter(|&blocks| depth > 1 && blocks < u64::from(depth)) {
            self.warn(format!(
                "with thinktime after every {blocks} blocks, iodepth={depth} is never reached, as in fio"
            ));
        }
        Ok(())
    }

    /// Rate limit of one clone, a second. The rates of a mixed job must have the proportion of its mix, which is kept exactly.
    fn rate_of(&self, key: &str, rates: Option<&Triple<u64>>) -> Result<Option<f64>, Fault> {
        let mixed = matches!(self.operation, Operation::ReadWrite | Operation::RandRw);
        match rates {
            Some(&[read, write, _]) if mixed && (read.is_some() || write.is_some()) => {
                let (read, write) = (read.unwrap_or(0) as f64, write.unwrap_or(0) as f64);
                let percent = f64::from(self.draft.rwmixread.unwrap_or(50));
                if (read / (read + write) * 100.0 - percent).abs() > 0.5 {
                    return Err(Fault::of(
                        key,
                        format!(
                            "the ratio of the read and write rates must match the mix of {percent} percent reads: adjust the rates, or use two jobs"
                        ),
                    ));
                }
                Ok(Some(read + write))
            }
            _ => Ok(of_direction(key, rates, self.operation)?.map(|rate| rate as f64)),
        }
    }
}
