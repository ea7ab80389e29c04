//! Sets that are logs: their segments, and the log of each host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SetPlan;
use crate::operation::AppClass;

/// Segments of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogPlan {
    /// Bytes of a segment; of the largest segment if a segment is a group of commits.
    pub segment_bytes: u64,
    /// Segments are filled with zeros before the first record.
    pub is_preallocated: bool,
    /// A segment has the records of one group of commits, and is written whole.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_grouped: bool,
    /// Appending processes by host: each host with appending processes has its own log. Empty if one host has all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<u32>,
}

/// The log of one host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogShare {
    /// Number of the host.
    pub(crate) host: u32,
    /// Processes that append to it: the first of them, and how many.
    pub(crate) first_client: u64,
    pub(crate) clients: u64,
    /// Records of the logs of the hosts before, and of this one.
    pub(crate) first: u64,
    pub(crate) records: u64,
    /// Its first place: a log begins with a segment.
    pub(crate) first_place: u64,
}

impl LogShare {
    /// Whether it is the log of a process.
    pub(crate) fn is_of(&self, client: u64) -> bool {
        (self.first_client..self.first_client + self.clients).contains(&client)
    }
}

impl SetPlan {
    /// Whether it is a log whose segments are groups of commits.
    #[inline]
    pub(crate) fn is_grouped(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.is_grouped)
    }

    /// Records of a segment of a log. Groups of commits are places by themselves.
    #[inline]
    #[must_use]
    pub fn segment_records(&self) -> u64 {
        let log = self.log.as_ref().filter(|log| !log.is_grouped);
        log.map_or(1, |log| log.segment_bytes / self.size_bytes_max.max(1)).max(1)
    }

    /// The logs of all hosts, those of no records too.
    pub(crate) fn logs(&self) -> impl Iterator<Item = LogShare> {
        let clients = self.log.as_ref().map_or(&[][..], |log| &log.clients);
        let (each, segment) = (self.space.iterations * self.space.items, self.segment_records());
        let mut next = LogShare::default();
        (0..clients.len().max(1)).map(move |host| {
            let clients = clients.get(host).map_or(self.space.processes, |clients| u64::from(*clients));
            let records = clients * each;
            let own = LogShare { host: host as u32, clients, records, ..next };
            next.first_client += clients;
            next.first += records;
            next.first_place += records.div_ceil(segment) * segment;
            own
        })
    }

    /// Segments of all logs.
    pub(super) fn log_segments(&self) -> u64 {
        let records = self.segment_records();
        self.logs().map(|log| log.records.div_ceil(records)).sum()
    }

    /// The log of a host.
    pub(crate) fn log_of(&self, host: u32) -> LogShare {
        self.logs().nth(host as usize).unwrap_or_default()
    }

    /// Calls on a storage around one on a log: its segments are opened as records come to them, and a group of commits is written whole.
    pub(crate) fn around(&self, class: AppClass) -> &'static [AppClass] {
        match (class, self.is_grouped()) {
            (AppClass::Append, false) => &[AppClass::Open, AppClass::Sync, AppClass::Close],
            (AppClass::Recover, _) => &[AppClass::Open, AppClass::Close],
            (AppClass::Allocate, _) => &[AppClass::Create, AppClass::Sync, AppClass::Close],
            (AppClass::Commit, true) => &[AppClass::Create, AppClass::Sync, AppClass::Close],
            _ => &[],
        }
    }
}
