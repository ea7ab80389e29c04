//! Control of a load while it runs: what ends it, what holds it back, what is kept of each operation, and with which priority it runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{ParseError, Rate, Span};

use crate::spec::OnError;

/// Control of a load; by default there is none. The same in a spec and in a plan: nothing of it has a default to resolve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Control {
    /// Number of single operations of a worker to record; none: no operations.
    pub operations_kept: Option<u64>,
    /// Failures that are only counted.
    pub ignored_errors: Vec<IgnoredError>,
    /// The phase fails if an operation takes longer, in nanoseconds.
    pub latency_ns_max: Option<u64>,
    /// Minimum operations per second of the phase, in each [`Control::rate_cycle_ns`]; below it, the phase fails.
    pub rate_min: Option<f64>,
    /// Minimum bytes per second of the phase.
    pub rate_bytes_min: Option<u64>,
    /// Period over which these minimums are checked, in nanoseconds; default 1 s.
    pub rate_cycle_ns: Option<u64>,
    /// Weight of a worker among all weighted workers of the stage: operations are issued in proportion to the weights.
    pub flow: Option<u32>,
    /// Weights are compared within the same group; default group 0.
    #[serde(default)]
    pub flow_group: Option<u32>,
    /// A write without free space ends its worker normally and is not a failure.
    #[serde(default)]
    pub ends_when_full: bool,
    /// I/O scheduler of the devices below the targets during the phase; the previous one is restored.
    #[serde(default)]
    pub scheduler: Option<String>,
    /// Shell command to run before the phase, when its files are laid out.
    #[serde(default)]
    pub run_before: Option<String>,
    /// Shell command to run after the phase.
    #[serde(default)]
    pub run_after: Option<String>,
    /// Search of the depth that meets a latency target.
    pub latency_target: Option<LatencyTarget>,
    /// The state at which the phase ends.
    pub steady: Option<SteadyEnd>,
    /// Priority of the workers' I/O.
    pub priority: Option<IoPriority>,
    /// Added to the workers' niceness.
    pub nice: Option<i32>,
    /// NUMA policy of the workers' memory.
    #[serde(default)]
    pub memory: Option<MemoryPolicy>,
    /// Action after a block with wrong data; none: as after a failed operation.
    pub on_mismatch: Option<OnError>,
}

/// A failure that is ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IgnoredError {
    /// Class of the operations (`read`, `write`, `discard`).
    pub class: String,
    /// Its number.
    pub errno: i32,
}

/// Search of the largest depth at which a percentage of the operations in a window complete within a latency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyTarget {
    /// The latency, in nanoseconds.
    pub latency_ns: u64,
    /// Length of a window, in nanoseconds.
    pub window_ns: u64,
    /// Percentage of the operations that must complete within it.
    pub percent: f64,
    /// Whether the load continues at the depth found; otherwise it ends with the search.
    pub goes_on: bool,
}

/// Metric that is compared with a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SteadyFigure {
    /// Largest distance of an interval's operations a second from their mean.
    Iops,
    /// Largest distance of an interval's bytes a second from their mean.
    Bandwidth,
    /// Slope of operations a second by interval.
    IopsSlope,
    /// Slope of bytes a second by interval.
    BandwidthSlope,
    /// Largest distance of the mean latency of an interval's completions from the mean of the intervals, in nanoseconds.
    Latency,
    /// Slope of that latency by interval, in nanoseconds.
    LatencySlope,
}

impl SteadyFigure {
    /// All of them, by the words of `--end-when-steady`.
    pub const ALL: [(&'static str, Self); 6] = [
        ("iops", Self::Iops),
        ("bw", Self::Bandwidth),
        ("iops_slope", Self::IopsSlope),
        ("bw_slope", Self::BandwidthSlope),
        ("lat", Self::Latency),
        ("lat_slope", Self::LatencySlope),
    ];

    /// Its word.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, figure)| *figure == self).map_or("", |(name, _)| name)
    }

    /// Whether it is a slope, and not a distance from the mean.
    #[must_use]
    pub fn is_slope(self) -> bool {
        matches!(self, Self::IopsSlope | Self::BandwidthSlope | Self::LatencySlope)
    }

    /// Whether it is of latencies.
    #[must_use]
    pub fn is_latency(self) -> bool {
        matches!(self, Self::Latency | Self::LatencySlope)
    }
}

/// A steady state that ends a phase, judged over the last `span_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SteadyEnd {
    /// Metric that is checked.
    pub figure: SteadyFigure,
    /// Limit of the metric.
    pub limit: f64,
    /// Whether the limit is in percent of the mean.
    pub is_percent: bool,
    /// Time over which the metric is checked, in nanoseconds.
    pub span_ns: u64,
    /// Time after the opening of the window that is excluded, in nanoseconds.
    pub ramp_ns: u64,
    /// Length of an interval, in nanoseconds.
    pub interval_ns: u64,
}

/// Class of a priority of I/O (ioprio_set(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IoClass {
    /// As the niceness says.
    None,
    /// First of all.
    Realtime,
    /// As others.
    BestEffort,
    /// When nobody else has anything to do.
    Idle,
}

/// Priority of I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IoPriority {
    /// Its class.
    pub class: IoClass,
    /// 0, the first, to 7.
    pub level: u8,
}

impl IoPriority {
    /// As the kernel has it: the class in the upper three bits of sixteen.
    #[must_use]
    pub fn value(self) -> u16 {
        (self.class as u16) << 13 | u16::from(self.level)
    }
}

impl std::str::FromStr for IoPriority {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refuse = || {
            ParseError::new(
                "a priority",
                text,
                "realtime:0 to realtime:7, best-effort:0 to best-effort:7, or idle",
            )
        };
        let (word, level) = text.split_once(':').unwrap_or((text, "0"));
        let class = match word {
            "none" => IoClass::None,
            "realtime" => IoClass::Realtime,
            "best-effort" => IoClass::BestEffort,
            "idle" => IoClass::Idle,
            _ => return Err(refuse()),
        };
        let level = level.parse().ok().filter(|level| *level <= 7).ok_or_else(refuse)?;
        Ok(Self { class, level })
    }
}

/// From which NUMA nodes memory comes, in the order of the numbers of set_mempolicy(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryMode {
    /// As the system has it.
    Default,
    /// From one node while it has some, then from others.
    Prefer,
    /// From these nodes alone.
    Bind,
    /// From these nodes, page by page in turns.
    Interleave,
    /// From the node of the processor that touches it first.
    Local,
}

/// Where memory of the workers comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryPolicy {
    /// How nodes are chosen.
    pub mode: MemoryMode,
    /// The nodes; none for [`MemoryMode::Default`] and [`MemoryMode::Local`].
    pub nodes: Vec<u32>,
}

impl std::str::FromStr for MemoryPolicy {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refuse = || {
            ParseError::new(
                "a memory policy",
                text,
                "default, local, prefer:NODE, bind:NODES or interleave:NODES, such as bind:0-1",
            )
        };
        let (word, nodes) = text.split_once(':').map_or((text, None), |(word, nodes)| (word, Some(nodes)));
        let mode = match word {
            "default" => MemoryMode::Default,
            "prefer" => MemoryMode::Prefer,
            "bind" => MemoryMode::Bind,
            "interleave" => MemoryMode::Interleave,
            "local" => MemoryMode::Local,
            _ => return Err(refuse()),
        };
        let takes_none = matches!(mode, MemoryMode::Default | MemoryMode::Local);
        let nodes = match nodes {
            None if takes_none => Vec::new(),
            Some(nodes) if !takes_none => units::parse_index_list("NUMA nodes", nodes, 1024)?,
            _ => return Err(refuse()),
        };
        if mode == MemoryMode::Prefer && nodes.len() != 1 {
            return Err(refuse());
        }
        Ok(Self { mode, nodes })
    }
}

/// A priority that some operations have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PriorityShare {
    /// Class of the operations: `read` or `write`.
    pub class: String,
    /// Their size in bytes; none: every size.
    pub bytes: Option<u32>,
    /// Share of them that has it, in percent.
    pub percent: u8,
    /// The priority.
    pub priority: IoPriority,
}

/// Reads `read:20@realtime:0,write/64k:5@idle`: class, size where only one is meant, share in percent, priority.
///
/// # Errors
/// A text that is none of these.
pub fn parse_priority_shares(text: &str) -> Result<Vec<PriorityShare>, ParseError> {
    let share = |part: &str| {
        let refuse = || {
            ParseError::new(
                "shares of priorities",
                part,
                "CLASS[/SIZE]:PERCENT@PRIORITY, such as read:20@realtime:0",
            )
        };
        let (who, priority) = part.split_once('@').ok_or_else(refuse)?;
        let (who, percent) = who.split_once(':').ok_or_else(refuse)?;
        let (class, size) = who.split_once('/').map_or((who, None), |(class, size)| (class, Some(size)));
        let percent = percent.parse().ok().filter(|percent| *percent <= 100u8).ok_or_else(refuse)?;
        if !["read", "write"].contains(&class) {
            return Err(refuse());
        }
        let bytes = size.map(|size| size.parse::<units::ByteSize>()).transpose()?;
        let bytes = bytes.map(|size| u32::try_from(size.0)).transpose().map_err(|_| refuse())?;
        Ok(PriorityShare { class: class.to_owned(), bytes, percent, priority: priority.parse()? })
    };
    text.split(',').map(|part| share(part.trim())).collect()
}

/// Names of the errors that are the same on every machine, from 1 on (errno(3)).
const ERRORS: [&str; 34] = [
    "EPERM", "ENOENT", "ESRCH", "EINTR", "EIO", "ENXIO", "E2BIG", "ENOEXEC", "EBADF", "ECHILD", "EAGAIN",
    "ENOMEM", "EACCES", "EFAULT", "ENOTBLK", "EBUSY", "EEXIST", "EXDEV", "ENODEV", "ENOTDIR", "EISDIR",
    "EINVAL", "ENFILE", "EMFILE", "ENOTTY", "ETXTBSY", "EFBIG", "ENOSPC", "ESPIPE", "EROFS", "EMLINK",
    "EPIPE", "EDOM", "ERANGE",
];
/// Others that storage returns, as Linux has them.
const MORE_ERRORS: [(&str, i32); 6] = [
    ("ENODATA", 61),
    ("EOPNOTSUPP", 95),
    ("ENOBUFS", 105),
    ("ETIMEDOUT", 110),
    ("EREMOTEIO", 121),
    ("EILSEQ", 84),
];

/// The number of an error by its name or number.
///
/// # Errors
/// A text that is neither.
pub fn errno(text: &str) -> Result<i32, ParseError> {
    let named = ERRORS.iter().position(|name| *name == text).map(|at| at as i32 + 1);
    let more = || MORE_ERRORS.iter().find(|(name, _)| *name == text).map(|(_, number)| *number);
    let number = || text.parse().ok().filter(|number| (1..=4095).contains(number));
    named
        .or_else(more)
        .or_else(number)
        .ok_or_else(|| ParseError::new("an error", text, "a name such as EIO or ENOSPC, or its number"))
}

/// Reads `write:ENOSPC,read:EIO`.
///
/// # Errors
/// A class or an error that there is not.
pub fn parse_ignored_errors(text: &str) -> Result<Vec<IgnoredError>, ParseError> {
    let one = |part: &str| {
        let (class, error) = part
            .split_once(':')
            .filter(|(class, _)| ["read", "write", "discard", "sync"].contains(class))
            .ok_or_else(|| {
                ParseError::new("an error to ignore", part, "CLASS:ERROR, such as write:ENOSPC")
            })?;
        Ok(IgnoredError { class: class.to_owned(), errno: errno(error)? })
    };
    text.split(',').map(|part| one(part.trim())).collect()
}

/// Reads `500us` or `500us:99.9:5s`: latency, share in percent (100), length of a window (5 s).
///
/// # Errors
/// A text that is none of these.
pub fn parse_latency_target(text: &str) -> Result<LatencyTarget, ParseError> {
    let refuse =
        || ParseError::new("a latency target", text, "LATENCY[:PERCENT[:WINDOW]], such as 500us:99.9:5s");
    let mut parts = text.split(':');
    let latency: Span = parts.next().unwrap_or("").parse()?;
    let percent: f64 = parts.next().map_or(Ok(100.0), |part| part.parse().map_err(|_| refuse()))?;
    let window: Span = parts.next().unwrap_or("5s").parse()?;
    let is_whole = parts.next().is_none() && latency.ns() > 0 && window.ns() >= 1_000_000;
    if !(is_whole && percent > 0.0 && percent <= 100.0) {
        return Err(refuse());
    }
    Ok(LatencyTarget { latency_ns: latency.ns(), window_ns: window.ns(), percent, goes_on: false })
}

/// Reads `iops:10%:30s` or `bw_slope:1%:30s:10s:1s`: figure, limit, time that is judged, time left out before, interval.
///
/// # Errors
/// A text that is none of these.
pub fn parse_steady(text: &str) -> Result<SteadyEnd, ParseError> {
    let refuse = || {
        ParseError::new(
            "a steady state",
            text,
            "METRIC:LIMIT:TIME[:RAMP[:INTERVAL]] with iops, bw, lat, iops_slope, bw_slope or lat_slope, such as iops:10%:30s",
        )
    };
    let parts: Vec<&str> = text.split(':').collect();
    if !(3..=5).contains(&parts.len()) {
        return Err(refuse());
    }
    let figure = SteadyFigure::ALL.iter().find(|(name, _)| *name == parts[0]).ok_or_else(refuse)?.1;
    let (number, is_percent) = parts[1].strip_suffix('%').map_or((parts[1], false), |number| (number, true));
    let is_time = figure.is_latency() && !is_percent && number.ends_with('s');
    let limit =
        if is_time { number.parse::<Span>()?.ns() as f64 } else { number.parse().map_err(|_| refuse())? };
    let limit = Some(limit).filter(|limit: &f64| limit.is_finite() && *limit >= 0.0).ok_or_else(refuse)?;
    let span = |at: usize, default: &str| parts.get(at).copied().unwrap_or(default).parse::<Span>();
    let (judged, ramp, interval) = (span(2, "")?, span(3, "0s")?, span(4, "1s")?);
    if interval.ns() < 10_000_000 || judged.ns() < interval.ns().saturating_mul(2) {
        return Err(ParseError::new(
            "a steady state",
            text,
            "a time of at least two intervals, and intervals of at least 10ms",
        ));
    }
    let (span_ns, ramp_ns, interval_ns) = (judged.ns(), ramp.ns(), interval.ns());
    Ok(SteadyEnd { figure, limit, is_percent, span_ns, ramp_ns, interval_ns })
}

/// Reads a least rate: operations a second.
///
/// # Errors
/// As [`Rate`].
pub fn parse_rate_min(text: &str) -> Result<f64, ParseError> {
    text.parse::<Rate>().map(Rate::per_second)
}

/// Reads a niceness to add.
///
/// # Errors
/// A number that is not from -20 to 19.
pub fn parse_nice(text: &str) -> Result<i32, ParseError> {
    let (sign, number) = text.strip_prefix('-').map_or((1, text), |number| (-1, number));
    let number = number.parse::<u8>().ok().map(|number| i32::from(number) * sign);
    number
        .filter(|number| (-20..=19).contains(number))
        .ok_or_else(|| ParseError::new("nice", text, "-20 to 19"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_control_are_read() {
        assert_eq!("realtime:3".parse::<IoPriority>().unwrap().value(), 1 << 13 | 3);
        assert_eq!("idle".parse::<IoPriority>().unwrap().value(), 3 << 13);
        assert!("realtime:8".parse::<IoPriority>().is_err() && "rt".parse::<IoPriority>().is_err());
        let ignored = parse_ignored_errors("write:ENOSPC,read:5").unwrap();
        assert_eq!((ignored[0].errno, ignored[1].errno), (28, 5));
        assert!(parse_ignored_errors("nop:EIO").is_err() && parse_ignored_errors("read:EWHAT").is_err());
        let target = parse_latency_target("500us:99.9:5s").unwrap();
        assert_eq!((target.latency_ns, target.window_ns, target.percent), (500_000, 5_000_000_000, 99.9));
        assert!(parse_latency_target("500us:0").is_err() && parse_latency_target("500us:101").is_err());
        let steady = parse_steady("bw_slope:1%:30s:10s").unwrap();
        assert_eq!((steady.figure, steady.is_percent), (SteadyFigure::BandwidthSlope, true));
        assert_eq!(
            (steady.span_ns, steady.ramp_ns, steady.interval_ns),
            (30_000_000_000, 10_000_000_000, 1_000_000_000)
        );
        let steady = parse_steady("lat:50us:2s:0s:100ms").unwrap();
        assert_eq!(
            (steady.figure, steady.limit, steady.is_percent),
            (SteadyFigure::Latency, 50_000.0, false)
        );
        assert_eq!(parse_steady("lat_slope:300:2s").unwrap().limit, 300.0);
        assert!(parse_steady("iops:50us:2s").is_err() && parse_steady("latency:1%:2s").is_err());
        let memory: MemoryPolicy = "interleave:0-2,4".parse().unwrap();
        assert_eq!((memory.mode, memory.nodes), (MemoryMode::Interleave, vec![0, 1, 2, 4]));
        assert_eq!("local".parse::<MemoryPolicy>().unwrap().mode, MemoryMode::Local);
        for wrong in ["", "bind", "bind:", "prefer:0,1", "local:0", "near:0", "bind:x"] {
            assert!(wrong.parse::<MemoryPolicy>().is_err(), "{wrong}");
        }
        assert!(parse_steady("iops:10%").is_err() && parse_steady("iops:10%:1s:0s:1s").is_err());
        let shares = parse_priority_shares("read/64k:25@realtime:1,write:5@idle").unwrap();
        assert_eq!((shares[0].bytes, shares[0].percent, shares[1].bytes), (Some(65_536), 25, None));
        assert_eq!(parse_nice("-5").unwrap(), -5);
        assert!(parse_nice("20").is_err());
    }
}
