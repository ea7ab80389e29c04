//! The report of the media layer: doubts about files, devices and the way to them.

mod client;
mod devices;
mod evidence;
mod path;
mod place;
mod remedy;
mod spent;
mod stack_remedies;
mod storage;
#[cfg(test)]
mod tests;

use report::doubts::{CLIENT_SATURATED, Evidence, Kind};
use report::profile::ProfileRemedy;
use report::record::PhaseRecord;
use report::stack::{Remedy, RemedyCase};
use report::view::View;
use statistics::ClassSummary;

/// The report of the media layer.
pub static VIEW: &dyn View = &Media;

struct Media;

impl View for Media {
    fn layer(&self) -> &'static str {
        "media"
    }

    fn spent<'a>(&self, phase: &'a PhaseRecord) -> Vec<(&'a ClassSummary, String)> {
        spent::told(phase)
    }

    fn stack_remedies(&self, case: &RemedyCase<'_>) -> Vec<Remedy> {
        stack_remedies::remedies(case)
    }

    fn doubts(&self) -> &'static [Kind] {
        KINDS
    }

    fn remedy(&self, kind: &str, evidence: &Evidence<'_>) -> Option<&'static str> {
        remedy::instead(kind, evidence)
    }

    fn profile_remedies(&self) -> &'static [ProfileRemedy] {
        PROFILE_REMEDIES
    }
}

const PROFILE_REMEDIES: &[ProfileRemedy] = &[ProfileRemedy {
    part: "sync",
    against: Some(("write", 0.5)),
    text: "sync once after several writes (--fsync N with a larger N): each sync waits for the device",
}];

const KINDS: &[Kind] = &[
    Kind {
        rank: 60,
        name: "memory_target",
        look: storage::memory_target,
        remedy: "choose a target on a drive (`df -T` shows file systems); `mem:` measures memory",
    },
    Kind {
        rank: 70,
        name: "direct_not_honoured",
        look: path::direct_not_honoured,
        remedy: "enable direct I/O in the layers between (see their options), or measure the device below them",
    },
    Kind {
        rank: 80,
        name: "page_cache",
        look: storage::page_cache,
        remedy: "read with --direct, or --cache drop and one pass over the range; to measure memory, use --cache warm",
    },
    Kind {
        rank: 90,
        name: "unwritten_range",
        look: storage::unwritten_range,
        remedy: "write the whole range once (--op write) before reading it",
    },
    Kind {
        rank: 100,
        name: "encoded_extents",
        look: path::encoded_extents,
        remedy: "rewrite the file with random data in a directory without compression, reflinks and snapshots",
    },
    Kind {
        rank: 110,
        name: "read_amplification",
        look: path::read_amplification,
        remedy: "read with --direct, or lower the read-ahead (blockdev --setra), unless your application reads like this",
    },
    Kind {
        rank: 130,
        name: "buffered_writes",
        look: storage::buffered_writes,
        remedy: "write with --direct or --sync dsync; or one pass over a range larger than memory with --end-fsync",
    },
    Kind {
        rank: 140,
        name: "volatile_cache",
        look: path::volatile_cache,
        remedy: "mount with barriers; set queue/write_cache to the drive's real type; use a cache mode that passes flushes",
    },
    Kind {
        rank: 160,
        name: "unwritten_extents",
        look: path::unwritten_extents,
        remedy: "lay the file out with data first (--layout fill), or write it twice and use the second pass",
    },
    Kind {
        rank: 170,
        name: "nearly_full",
        look: path::nearly_full,
        remedy: "free some space, or use another file system: allocation is slow when little space is free",
    },
    Kind {
        rank: 180,
        name: "compressible_content",
        look: storage::compressible_content,
        remedy: "write --content random with --refill full (the defaults), unless your data are like this",
    },
    Kind { look: client::client_saturated, ..CLIENT_SATURATED },
    Kind {
        rank: 200,
        name: "kernel_workers",
        look: client::kernel_workers,
        remedy: "use --direct, or engine psync with more threads",
    },
    Kind {
        rank: 240,
        name: "io_throttled",
        look: devices::io_throttled,
        remedy: "remove the limit (io.max, blkio.throttle.*), unless you want to measure it",
    },
    Kind {
        rank: 340,
        name: "other_io",
        look: devices::other_io,
        remedy: "stop other users of the device (see `iostat`), and flush earlier writes first (`sync`)",
    },
];
