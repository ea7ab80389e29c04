//! Messages of a session as the rest of strata sees them.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use statistics::{PhaseSamples, WorkerSamples};

use crate::limits::{
    LEASE_MAX, LEASE_MIN, PLAN_BYTES_MAX, PROGRESS_INTERVAL_MAX, PROGRESS_INTERVAL_MIN, PROTOCOL_VERSION,
    TEXT_BYTES_MAX,
};
use crate::messages::{Refusal, RefusalKind};
use crate::server::STRATA_VERSION;
use crate::wire;

/// Workers whose samples travel in one message.
const WORKERS_OF_PART: usize = 16;

/// How often a host tells how far it is, at most, and how many such reports a leader takes a second.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
const REPORTS_PER_SECOND: u32 = 2000;

/// How often each of so many hosts tells how far it is: once a second, and of more than 2,000 so that 2,000 a second come in, each once a minute at least.
#[must_use]
pub fn report_interval(hosts: usize) -> Duration {
    let all = Duration::from_secs(1) * u32::try_from(hosts).unwrap_or(u32::MAX) / REPORTS_PER_SECOND;
    all.clamp(REPORT_INTERVAL, PROGRESS_INTERVAL_MAX)
}

/// Request to a host to take part in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRequest {
    /// Version of the JSON; the host refuses any but its own.
    pub schema_version: u32,
    /// Number of the run.
    pub run: u64,
    /// Its seed.
    pub seed: u64,
    /// When it began.
    pub started_at: String,
    /// Specs of the user: JSON.
    pub specs: Vec<u8>,
    /// Number of the host among all.
    pub rank: u32,
    /// All of them.
    pub hosts: u32,
    /// Who leads, for those who find the host busy.
    pub leader: String,
    /// Without a message for so long the leader counts as gone: 1 s to 10 min.
    pub lease: Duration,
    /// How often progress is wanted: 10 ms to 60 s.
    pub progress_interval: Duration,
}

impl SessionRequest {
    pub(crate) fn to_wire(&self) -> wire::Begin {
        wire::Begin {
            protocol_version: PROTOCOL_VERSION,
            schema_version: self.schema_version,
            strata_version: STRATA_VERSION.to_owned(),
            run: self.run,
            seed: self.seed,
            started_at: self.started_at.clone(),
            specs: self.specs.clone(),
            rank: self.rank,
            hosts: self.hosts,
            leader: self.leader.clone(),
            lease_ns: nanoseconds(self.lease),
            progress_interval_ns: nanoseconds(self.progress_interval),
        }
    }

    /// Reads and checks what a leader asks for; the host takes JSON of `schema_version`.
    pub(crate) fn from_wire(begin: wire::Begin, schema_version: u32) -> Result<Self, Refusal> {
        let refuse = |kind, line: String| Err(Refusal { kind, line });
        let is_same = begin.protocol_version == PROTOCOL_VERSION
            && begin.schema_version == schema_version
            && begin.strata_version == STRATA_VERSION;
        if !is_same {
            let line = crate::messages::line(&format!(
                "session: the host runs strata {STRATA_VERSION} (control protocol {PROTOCOL_VERSION}, plans of version \
                 {schema_version}), the leader strata {} (control protocol {}, plans of version {}); use the same version of \
                 strata on all hosts",
                begin.strata_version, begin.protocol_version, begin.schema_version
            ));
            return refuse(RefusalKind::Version, line);
        }
        if begin.specs.len() > PLAN_BYTES_MAX
            || begin.leader.len().max(begin.started_at.len()) > TEXT_BYTES_MAX
        {
            return refuse(
                RefusalKind::Size,
                format!(
                    "session: {} bytes of specs; at most {PLAN_BYTES_MAX} are accepted",
                    begin.specs.len()
                ),
            );
        }
        if begin.rank >= begin.hosts {
            return refuse(
                RefusalKind::Usage,
                format!("session: host {} of {} does not exist", begin.rank, begin.hosts),
            );
        }
        let (lease, interval) =
            (Duration::from_nanos(begin.lease_ns), Duration::from_nanos(begin.progress_interval_ns));
        if !(LEASE_MIN..=LEASE_MAX).contains(&lease)
            || !(PROGRESS_INTERVAL_MIN..=PROGRESS_INTERVAL_MAX).contains(&interval)
        {
            return refuse(
                RefusalKind::Usage,
                format!(
                    "session: a lease of {lease:?} and progress every {interval:?}; accepted: {LEASE_MIN:?} to \
                     {LEASE_MAX:?} and {PROGRESS_INTERVAL_MIN:?} to {PROGRESS_INTERVAL_MAX:?}"
                ),
            );
        }
        Ok(Self {
            schema_version,
            run: begin.run,
            seed: begin.seed,
            started_at: crate::messages::line(&begin.started_at),
            specs: begin.specs,
            rank: begin.rank,
            hosts: begin.hosts,
            leader: crate::messages::line(&begin.leader),
            lease,
            progress_interval: interval,
        })
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Some of what a phase of a stage measured on a host. The first part of a phase has all but the samples of further workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StagePart {
    /// Number of the phase in its stage.
    pub phase: usize,
    /// Its samples; none in further parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<PhaseSamples>,
    /// Samples of further workers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerSamples>,
    /// Everything else about it, as strata has it; null in further parts.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub details: Value,
}

impl StagePart {
    /// The parts of a phase, so many workers each that none is large.
    #[must_use]
    pub fn split(phase: usize, mut samples: PhaseSamples, details: Value) -> Vec<Self> {
        let mut workers = std::mem::take(&mut samples.workers).into_iter();
        samples.workers = workers.by_ref().take(WORKERS_OF_PART).collect();
        let mut parts = vec![Self { phase, samples: Some(samples), workers: Vec::new(), details }];
        loop {
            let more: Vec<WorkerSamples> = workers.by_ref().take(WORKERS_OF_PART).collect();
            if more.is_empty() {
                return parts;
            }
            parts.push(Self { phase, samples: None, workers: more, details: Value::Null });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_many_hosts_come_less_often() {
        for (hosts, seconds) in [(0, 1), (1, 1), (2000, 1), (4000, 2), (10_000, 5), (usize::MAX, 60)] {
            assert_eq!(report_interval(hosts), Duration::from_secs(seconds), "{hosts} hosts");
        }
    }

    #[test]
    fn parts_make_the_phase_again() {
        let worker = |worker| WorkerSamples { worker, ..WorkerSamples::default() };
        let samples = PhaseSamples {
            window_ns: None,
            started_ns: 1,
            elapsed_ns: 2,
            workers: (0..40).map(worker).collect(),
            series: statistics::Series::new(1, 2, 0),
            interrupted: None,
            process_cpu_user_ns: 3,
            process_cpu_system_ns: 4,
            classes: Vec::new(),
        };
        let parts = StagePart::split(3, samples.clone(), Value::from(7));
        assert_eq!(parts.len(), 3);
        let mut parts = parts.into_iter();
        let mut whole = parts.next().and_then(|part| part.samples).expect("the first has the phase");
        parts.for_each(|part| whole.workers.extend(part.workers));
        assert_eq!(whole, samples);
    }
}
