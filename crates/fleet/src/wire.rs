//! Messages of the control channel: one process, the coordinator, tells others, the agents, what to run, and collects what they measured. They are
//! messages of protocol buffers (package `strata.control.v1`); `build.rs` has the calls. Plans, progress and results are JSON of types of strata, so
//! that these messages know no layer.
//!
//! All durations are nanoseconds; times of day are nanoseconds since 1970-01-01 UTC.

// What tonic makes of the calls in `build.rs`.
mod calls {
    #![allow(clippy::all, clippy::pedantic, missing_docs, unreachable_pub)]
    include!(concat!(env!("OUT_DIR"), "/strata.control.v1.Handshake.rs"));
    include!(concat!(env!("OUT_DIR"), "/strata.control.v1.Control.rs"));
}

use prost::Message;

pub(crate) use calls::{control_client, control_server, handshake_client, handshake_server};

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HelloRequest {
    #[prost(uint32, tag = "1")]
    pub(crate) protocol_version: u32,
    #[prost(string, tag = "2")]
    pub(crate) strata_version: String,
    /// 32 random bytes.
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) nonce: Vec<u8>,
    /// How the caller calls itself: user@host. Nobody checks it.
    #[prost(string, tag = "4")]
    pub(crate) caller: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HelloReply {
    #[prost(uint32, tag = "1")]
    pub(crate) protocol_version: u32,
    #[prost(string, tag = "2")]
    pub(crate) strata_version: String,
    /// 32 random bytes.
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) nonce: Vec<u8>,
    /// Whether Prove needs a proof.
    #[prost(bool, tag = "4")]
    pub(crate) secret_required: bool,
}

/// HMAC-SHA-256 under the secret over a label, both nonces and the binding of the connection; empty without a secret.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ProveRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) proof: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ProveReply {
    /// The same with the label of the server.
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) proof: Vec<u8>,
    #[prost(string, tag = "2")]
    pub(crate) session: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub(crate) struct DescribeRequest {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DescribeReply {
    #[prost(enumeration = "describe_reply::Role", tag = "1")]
    pub(crate) role: i32,
    #[prost(string, tag = "2")]
    pub(crate) strata_version: String,
    #[prost(uint32, tag = "3")]
    pub(crate) schema_version: u32,
    #[prost(string, tag = "4")]
    pub(crate) host_name: String,
    #[prost(uint32, tag = "5")]
    pub(crate) pid: u32,
    #[prost(uint32, optional, tag = "6")]
    pub(crate) rank: Option<u32>,
    #[prost(string, optional, tag = "7")]
    pub(crate) group: Option<String>,
    #[prost(string, optional, tag = "8")]
    pub(crate) data_uri: Option<String>,
    #[prost(uint32, tag = "9")]
    pub(crate) tags: u32,
    /// JSON.
    #[prost(bytes = "vec", tag = "10")]
    pub(crate) environment: Vec<u8>,
    /// Of the tags, those of targets: from 2 on.
    #[prost(uint32, tag = "11")]
    pub(crate) targets: u32,
}

pub(crate) mod describe_reply {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
    #[repr(i32)]
    pub(crate) enum Role {
        Unspecified = 0,
        Engine = 1,
        Service = 2,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub(crate) struct PingRequest {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PingReply {
    #[prost(fixed64, tag = "1")]
    pub(crate) received_unix_ns: u64,
    #[prost(fixed64, tag = "2")]
    pub(crate) sent_unix_ns: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FromCoordinator {
    #[prost(oneof = "from_coordinator::Message", tags = "1, 2, 3")]
    pub(crate) message: Option<from_coordinator::Message>,
}

pub(crate) mod from_coordinator {
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub(crate) enum Message {
        /// First, and only once.
        #[prost(message, tag = "1")]
        Plan(super::Plan),
        /// Once the agent is ready.
        #[prost(message, tag = "2")]
        Go(super::Go),
        /// At any time after the plan.
        #[prost(message, tag = "3")]
        Stop(super::Stop),
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Plan {
    #[prost(uint32, tag = "1")]
    pub(crate) protocol_version: u32,
    /// Version of the JSON below.
    #[prost(uint32, tag = "2")]
    pub(crate) schema_version: u32,
    #[prost(string, tag = "3")]
    pub(crate) name: String,
    #[prost(string, tag = "4")]
    pub(crate) layer: String,
    /// JSON.
    #[prost(bytes = "vec", tag = "5")]
    pub(crate) plan: Vec<u8>,
    /// How often progress is wanted.
    #[prost(uint64, tag = "6")]
    pub(crate) progress_interval_ns: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Go {
    /// From receipt to the start.
    #[prost(uint64, tag = "1")]
    pub(crate) start_delay_ns: u64,
    /// The same by the agent's clock, as far as it is known; 0 where it is not.
    #[prost(fixed64, tag = "2")]
    pub(crate) start_unix_ns: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub(crate) struct Stop {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FromAgent {
    #[prost(oneof = "from_agent::Message", tags = "1, 2, 3, 4, 5, 6")]
    pub(crate) message: Option<from_agent::Message>,
}

pub(crate) mod from_agent {
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub(crate) enum Message {
        #[prost(message, tag = "1")]
        Ready(super::Ready),
        #[prost(message, tag = "2")]
        Refused(super::Refused),
        #[prost(message, tag = "3")]
        Started(super::Started),
        #[prost(message, tag = "4")]
        Progress(super::Progress),
        /// Last, and only once; as are `refused` and `failed`.
        #[prost(message, tag = "5")]
        Result(super::Result),
        #[prost(message, tag = "6")]
        Failed(super::Failed),
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Ready {
    #[prost(string, repeated, tag = "1")]
    pub(crate) notes: Vec<String>,
}

/// The job did not begin.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Refused {
    #[prost(enumeration = "refused::Kind", tag = "1")]
    pub(crate) kind: i32,
    /// One line for the user.
    #[prost(string, tag = "2")]
    pub(crate) line: String,
}

pub(crate) mod refused {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
    #[repr(i32)]
    pub(crate) enum Kind {
        Unspecified = 0,
        Usage = 1,
        Unsafe = 2,
        Unsupported = 3,
        System = 4,
        Run = 5,
        Busy = 6,
        Version = 7,
        Size = 8,
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Started {
    #[prost(fixed64, tag = "1")]
    pub(crate) unix_ns: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Progress {
    /// JSON of a progress report; in a session a merge patch (RFC 7396) of the report before it, the first of a stage of null.
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) report: Vec<u8>,
    /// Its histograms, packed.
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) histograms: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Result {
    /// JSON of an outcome.
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) outcome: Vec<u8>,
    /// Histograms and series of its samples, packed.
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) histograms: Vec<u8>,
}

/// The job began and has nothing to show.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Failed {
    #[prost(string, tag = "1")]
    pub(crate) line: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub(crate) struct InterruptRequest {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct InterruptReply {
    /// Name of the job that was told to stop; none when none ran.
    #[prost(string, optional, tag = "1")]
    pub(crate) job: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub(crate) struct QuitRequest {}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub(crate) struct QuitReply {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FromLeader {
    #[prost(oneof = "from_leader::Message", tags = "1, 2, 3, 4, 5, 6, 7")]
    pub(crate) message: Option<from_leader::Message>,
}

pub(crate) mod from_leader {
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub(crate) enum Message {
        /// First, and only once.
        #[prost(message, tag = "1")]
        Begin(super::Begin),
        /// Gets a stage ready; the stage before it has ended.
        #[prost(message, tag = "2")]
        Prepare(super::Prepare),
        /// Once the host is ready.
        #[prost(message, tag = "3")]
        GoAt(super::GoAt),
        /// At any time: what is in flight ends, and no further stage begins.
        #[prost(message, tag = "4")]
        Stop(super::Stop),
        /// Last: what the host made is removed.
        #[prost(message, tag = "5")]
        End(super::End),
        /// At least once in a third of the lease.
        #[prost(message, tag = "6")]
        KeepAlive(super::KeepAlive),
        /// To hosts that said something at a meeting: all have.
        #[prost(message, tag = "7")]
        Met(super::Met),
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Begin {
    #[prost(uint32, tag = "1")]
    pub(crate) protocol_version: u32,
    /// Version of the JSON in this session.
    #[prost(uint32, tag = "2")]
    pub(crate) schema_version: u32,
    #[prost(string, tag = "3")]
    pub(crate) strata_version: String,
    #[prost(fixed64, tag = "4")]
    pub(crate) run: u64,
    #[prost(fixed64, tag = "5")]
    pub(crate) seed: u64,
    #[prost(string, tag = "6")]
    pub(crate) started_at: String,
    /// JSON of what the user asked for.
    #[prost(bytes = "vec", tag = "7")]
    pub(crate) specs: Vec<u8>,
    /// Number of this host among all, from 0.
    #[prost(uint32, tag = "8")]
    pub(crate) rank: u32,
    #[prost(uint32, tag = "9")]
    pub(crate) hosts: u32,
    /// Who leads, for those who find the host busy.
    #[prost(string, tag = "10")]
    pub(crate) leader: String,
    /// Without a message for so long the leader counts as gone.
    #[prost(uint64, tag = "11")]
    pub(crate) lease_ns: u64,
    /// How often progress is wanted.
    #[prost(uint64, tag = "12")]
    pub(crate) progress_interval_ns: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Prepare {
    /// JSON of the stage.
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) stage: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GoAt {
    /// By the host's clock.
    #[prost(fixed64, tag = "1")]
    pub(crate) start_unix_ns: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub(crate) struct End {}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub(crate) struct KeepAlive {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Met {
    #[prost(string, tag = "1")]
    pub(crate) meeting: String,
    /// Hosts that came.
    #[prost(uint32, tag = "2")]
    pub(crate) hosts: u32,
    #[prost(message, repeated, tag = "3")]
    pub(crate) figures: Vec<Figure>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Figure {
    #[prost(fixed64, tag = "1")]
    pub(crate) least: u64,
    #[prost(fixed64, tag = "2")]
    pub(crate) most: u64,
    #[prost(fixed64, tag = "3")]
    pub(crate) sum: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Meet {
    #[prost(string, tag = "1")]
    pub(crate) meeting: String,
    #[prost(fixed64, repeated, tag = "2")]
    pub(crate) said: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FromHost {
    #[prost(oneof = "from_host::Message", tags = "1, 2, 3, 4, 5, 6, 7, 8")]
    pub(crate) message: Option<from_host::Message>,
}

pub(crate) mod from_host {
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub(crate) enum Message {
        /// Answer to Begin: nothing was touched yet.
        #[prost(message, tag = "1")]
        Planned(super::Planned),
        /// Answer to Begin; the session is over.
        #[prost(message, tag = "2")]
        Refused(super::Refused),
        /// Answer to Prepare.
        #[prost(message, tag = "3")]
        Ready(super::Ready),
        #[prost(message, tag = "4")]
        Progress(super::Progress),
        /// One of several of a stage.
        #[prost(message, tag = "5")]
        Part(super::Part),
        /// The stage is over, and all of its parts were sent.
        #[prost(message, tag = "6")]
        StageEnd(super::StageEnd),
        /// Answer to End, and the last.
        #[prost(message, tag = "7")]
        Ended(super::Ended),
        /// At any time of a stage: figures of this host, which all hosts say theirs of.
        #[prost(message, tag = "8")]
        Meet(super::Meet),
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Planned {
    /// JSON of the phases.
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) planned: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Part {
    /// JSON of some of what was measured.
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) part: Vec<u8>,
    /// Histograms and series of it, packed.
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) histograms: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StageEnd {
    /// Why the stage could not begin.
    #[prost(string, optional, tag = "1")]
    pub(crate) failure: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Ended {
    /// Things that were not removed or not saved.
    #[prost(string, repeated, tag = "1")]
    pub(crate) left: Vec<String>,
}
