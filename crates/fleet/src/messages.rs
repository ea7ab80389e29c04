//! Messages of the channel, as the rest of strata sees them: JSON types and their messages.

use std::time::Duration;

use driver::{Error, ErrorKind};
use serde::{Deserialize, Serialize};
use statistics::{PhaseSamples, Snapshot};

use crate::limits::{
    PLAN_BYTES_MAX, PROGRESS_INTERVAL_MAX, PROGRESS_INTERVAL_MIN, PROTOCOL_VERSION, TEXT_BYTES_MAX,
};
use crate::wire;

/// Kind of process that an agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Serves endpoints, and drives loads against others when told to.
    Engine,
    /// Does what it is told, nothing else.
    Service,
}

/// Description of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Kind of process that it is.
    pub role: Role,
    /// Version of its strata.
    pub strata_version: String,
    /// Version of the plans that it takes.
    pub schema_version: u32,
    /// Name of its host.
    pub host_name: String,
    /// Number of the process.
    pub pid: u32,
    /// Rank in its group, for an engine.
    pub rank: Option<u32>,
    /// Name of its group, for an engine.
    pub group: Option<String>,
    /// Where its endpoints take data connections, for an engine.
    pub data_uri: Option<String>,
    /// Endpoints that it serves.
    pub tags: u32,
    /// Those of them that are targets: the tags from 2 on.
    pub targets: u32,
    /// Facts about its machine, as the record of a run has them.
    pub environment: serde_json::Value,
}

impl Description {
    pub(crate) fn to_wire(&self) -> wire::DescribeReply {
        let role = match self.role {
            Role::Engine => wire::describe_reply::Role::Engine,
            Role::Service => wire::describe_reply::Role::Service,
        };
        wire::DescribeReply {
            role: role.into(),
            strata_version: self.strata_version.clone(),
            schema_version: self.schema_version,
            host_name: self.host_name.clone(),
            pid: self.pid,
            rank: self.rank,
            group: self.group.clone(),
            data_uri: self.data_uri.clone(),
            tags: self.tags,
            targets: self.targets,
            environment: self.environment.to_string().into_bytes(),
        }
    }

    pub(crate) fn from_wire(reply: wire::DescribeReply) -> Result<Self, Error> {
        let role = match reply.role() {
            wire::describe_reply::Role::Engine => Role::Engine,
            wire::describe_reply::Role::Service => Role::Service,
            wire::describe_reply::Role::Unspecified => {
                return Err(Error::new(ErrorKind::Run, "describe", "the agent has an unknown role"));
            }
        };
        Ok(Self {
            role,
            environment: read_json(reply.environment)
                .map_err(|error| unreadable("describe", "environment", &error))?,
            strata_version: line(&reply.strata_version),
            schema_version: reply.schema_version,
            host_name: line(&reply.host_name),
            pid: reply.pid,
            rank: reply.rank,
            group: reply.group.as_deref().map(line),
            data_uri: reply.data_uri.as_deref().map(line),
            tags: reply.tags,
            targets: reply.targets,
        })
    }
}

/// Plan that an agent is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanMessage {
    /// Name of the job, for those who find the agent busy.
    pub name: String,
    /// Layer that it belongs to, such as `network`.
    pub layer: String,
    /// Version of `plan`; the agent refuses any but its own.
    pub schema_version: u32,
    /// The plan, JSON.
    pub plan: Vec<u8>,
    /// How often progress is wanted: 10 ms to 60 s.
    pub progress_interval: Duration,
}

impl PlanMessage {
    /// A plan of any type that becomes JSON, with progress every 500 ms.
    ///
    /// # Errors
    ///
    /// A plan that cannot be JSON.
    pub fn new(name: &str, layer: &str, schema_version: u32, plan: &impl Serialize) -> Result<Self, Error> {
        let plan = serde_json::to_vec(plan).map_err(|error| {
            Error::system("plan", "the plan cannot be written as JSON", std::io::Error::from(error))
        })?;
        Ok(Self {
            name: name.to_owned(),
            layer: layer.to_owned(),
            schema_version,
            plan,
            progress_interval: Duration::from_millis(500),
        })
    }

    /// The plan as a type.
    ///
    /// # Errors
    ///
    /// JSON that is not of that type.
    pub fn decode<T: serde::de::DeserializeOwned>(&self) -> Result<T, Error> {
        read_json(self.plan.clone()).map_err(|error| unreadable("plan", "plan", &error))
    }

    /// Whether the channel carries it.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let refuse = |kind, line: String| Err(Refusal { kind, line });
        if self.plan.len() > PLAN_BYTES_MAX {
            return refuse(
                RefusalKind::Size,
                format!("plan: {} bytes of plan; at most {PLAN_BYTES_MAX} are accepted", self.plan.len()),
            );
        }
        if self.name.len() > TEXT_BYTES_MAX || self.layer.len() > TEXT_BYTES_MAX {
            return refuse(
                RefusalKind::Size,
                format!("plan: its name or layer is longer than {TEXT_BYTES_MAX} bytes"),
            );
        }
        if !(PROGRESS_INTERVAL_MIN..=PROGRESS_INTERVAL_MAX).contains(&self.progress_interval) {
            return refuse(
                RefusalKind::Usage,
                format!(
                    "plan: a progress interval of {:?}; accepted: {PROGRESS_INTERVAL_MIN:?} to {PROGRESS_INTERVAL_MAX:?}",
                    self.progress_interval
                ),
            );
        }
        Ok(())
    }

    pub(crate) fn to_wire(&self) -> wire::Plan {
        wire::Plan {
            protocol_version: PROTOCOL_VERSION,
            schema_version: self.schema_version,
            name: self.name.clone(),
            layer: self.layer.clone(),
            plan: self.plan.clone(),
            progress_interval_ns: u64::try_from(self.progress_interval.as_nanos()).unwrap_or(u64::MAX),
        }
    }

    pub(crate) fn from_wire(plan: wire::Plan) -> Self {
        Self {
            name: plan.name,
            layer: plan.layer,
            schema_version: plan.schema_version,
            plan: plan.plan,
            progress_interval: Duration::from_nanos(plan.progress_interval_ns),
        }
    }
}

/// How far a job is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::large_enum_variant, reason = "nearly all of them are snapshots, and few are kept")]
pub enum ProgressReport {
    /// Something is made ready.
    Preparing {
        /// Name of the preparation.
        what: String,
        /// How far, 0 to 1.
        done_fraction: f64,
    },
    /// A phase is running.
    Running(Snapshot),
}

/// Outcome of a job. Without `failure` it went as planned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OutcomeMessage {
    /// One entry a phase.
    pub samples: Vec<PhaseSamples>,
    /// Notes for the user.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Why it ended before it was done; `samples` are what it had until then.
    #[serde(default)]
    pub failure: Option<String>,
    /// How an open loop went, as the layer writes it.
    #[serde(default)]
    pub arrivals: serde_json::Value,
    /// Other measurements of the layer, as the layer writes them.
    #[serde(default)]
    pub details: serde_json::Value,
}

/// Why an agent did not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// The plan asks for something that cannot be.
    Usage,
    /// It would harm the user's data.
    Unsafe,
    /// The agent's system does not offer it.
    Unsupported,
    /// The agent's operating system refused.
    System,
    /// It failed while it was made ready.
    Run,
    /// The agent runs another job.
    Busy,
    /// Agent and coordinator are of different versions.
    Version,
    /// The plan is too large.
    Size,
}

/// An agent's refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub kind: RefusalKind,
    /// One line for the user.
    pub line: String,
}

impl Refusal {
    pub(crate) fn of(error: &Error) -> Self {
        let kind = match error.kind() {
            ErrorKind::Usage => RefusalKind::Usage,
            ErrorKind::Unsafe => RefusalKind::Unsafe,
            ErrorKind::Unsupported => RefusalKind::Unsupported,
            ErrorKind::System => RefusalKind::System,
            ErrorKind::Run => RefusalKind::Run,
        };
        Self { kind, line: line(&error.to_string()) }
    }

    pub(crate) fn to_wire(&self) -> wire::Refused {
        use wire::refused::Kind;
        let kind = match self.kind {
            RefusalKind::Usage => Kind::Usage,
            RefusalKind::Unsafe => Kind::Unsafe,
            RefusalKind::Unsupported => Kind::Unsupported,
            RefusalKind::System => Kind::System,
            RefusalKind::Run => Kind::Run,
            RefusalKind::Busy => Kind::Busy,
            RefusalKind::Version => Kind::Version,
            RefusalKind::Size => Kind::Size,
        };
        wire::Refused { kind: kind.into(), line: self.line.clone() }
    }

    pub(crate) fn from_wire(refused: &wire::Refused) -> Self {
        use wire::refused::Kind;
        let kind = match refused.kind() {
            Kind::Usage => RefusalKind::Usage,
            Kind::Unsafe => RefusalKind::Unsafe,
            Kind::Unsupported => RefusalKind::Unsupported,
            Kind::System => RefusalKind::System,
            Kind::Run | Kind::Unspecified => RefusalKind::Run,
            Kind::Busy => RefusalKind::Busy,
            Kind::Version => RefusalKind::Version,
            Kind::Size => RefusalKind::Size,
        };
        Self { kind, line: line(&refused.line) }
    }
}

/// One line of bounded length without control characters: what the other side says may end up on a terminal.
pub(crate) fn line(text: &str) -> String {
    let mut line = String::new();
    for character in text.chars() {
        if line.len() + character.len_utf8() > TEXT_BYTES_MAX {
            break;
        }
        line.push(if character.is_control() { ' ' } else { character });
    }
    line
}

pub(crate) fn unreadable(operation: &'static str, what: &str, error: &serde_json::Error) -> Error {
    Error::new(ErrorKind::Run, operation, format!("the {what} cannot be read: {error}"))
        .remedy("use the same version of strata on all hosts")
}

/// Reads JSON of the other side. Control characters in its strings become spaces: they may end up on a terminal.
pub(crate) fn read_json<T: serde::de::DeserializeOwned>(json: Vec<u8>) -> serde_json::Result<T> {
    serde_json::from_slice(&tamed(json))
}

/// JSON whose strings have no control characters (Unicode's category Cc), escaped or not; otherwise as it was. What is no JSON may become
/// something else that is none.
fn tamed(mut json: Vec<u8>) -> Vec<u8> {
    let mut at = 0;
    while at < json.len() {
        let rest = &mut json[at..];
        at += match *rest {
            // Outside of strings JSON has no backslash.
            [b'\\', b'u', a, b, c, d, ..] => {
                let text = [a, b, c, d];
                let number =
                    std::str::from_utf8(&text).ok().and_then(|text| u32::from_str_radix(text, 16).ok());
                if number.and_then(char::from_u32).is_some_and(char::is_control) {
                    rest[2..6].copy_from_slice(b"0020");
                }
                6
            }
            [b'\\', b'b' | b'f' | b'n' | b'r' | b't', ..] | [0xc2, 0x80..=0x9f, ..] => {
                rest[..2].copy_from_slice(b"  ");
                2
            }
            [b'\\', _, ..] => 2,
            [0x7f, ..] => {
                rest[0] = b' ';
                1
            }
            _ => 1,
        };
    }
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_read_moves_a_cursor() {
        for character in (0..=0x10_ffff).filter_map(char::from_u32).step_by(7).chain('\0'..'\u{100}') {
            for before in ["", "\\", "\\\\", "\"", "u00"] {
                let text = format!("{before}{character}1b[2J");
                let json = serde_json::to_vec(&[&text]).expect("JSON");
                let [read] = read_json::<[String; 1]>(json).expect("JSON still");
                assert!(!read.contains(char::is_control), "{text:?}");
                if !character.is_control() {
                    assert_eq!(read, text);
                }
            }
        }
        for escaped in [r#""\u001b""#, r#""\u009b""#, r#""\u007F""#, "\"\u{9b}\"", r#""\n""#, r#""\\\u001b""#]
        {
            let read = read_json::<String>(escaped.as_bytes().to_vec()).expect("JSON still");
            assert!(!read.contains(char::is_control), "{escaped}");
        }
    }
}
