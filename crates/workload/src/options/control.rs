//! Options that control a load while it runs.

use units::{Span, parse_u64_in};

use super::OptionDef;
use super::value::{above_zero, some_text};
use crate::control::{parse_ignored_errors, parse_latency_target, parse_nice, parse_rate_min, parse_steady};
use crate::spec::{OnError, choice};

macro_rules! control {
    ($name:literal, $value:literal, $default:literal, $group:ident, $help:literal, $field:ident, $parse:expr) => {
        option!($name, None, $value, $default, $group, $help, |spec, text| {
            spec.control.$field = Some($parse(text)?);
            Ok(())
        })
    };
}

/// Options of control, for layers that carry all of it out.
pub static CONTROL: &[OptionDef] = &[
    control!(
        "keep-operations",
        "N",
        "none",
        Run,
        "Record time, latency, position and size of each of the first N operations of every worker",
        operations_kept,
        |text| parse_u64_in("keep-operations", text, 1..=16_777_216)
    ),
    option!(
        "ignore-error",
        None,
        "CLASS:ERROR,...",
        "none",
        Run,
        "Errors that are counted but do not end the phase: write:ENOSPC,read:EIO",
        |spec, text| {
            spec.control.ignored_errors = parse_ignored_errors(text)?;
            Ok(())
        }
    ),
    control!(
        "on-mismatch",
        "ACTION",
        "as --on-error",
        Run,
        "After a block with wrong data: stop or continue",
        on_mismatch,
        |text| choice("on-mismatch", text, &[("stop", OnError::Stop), ("continue", OnError::Continue)])
    ),
    control!(
        "latency-max",
        "DURATION",
        "no limit",
        Load,
        "Fail the phase if an operation takes longer",
        latency_ns_max,
        |text| above_zero("latency-max", text, "10ms").map(Span::ns)
    ),
    control!(
        "rate-min",
        "RATE",
        "no limit",
        Load,
        "Fail the phase if it completes fewer operations per second in a --rate-cycle",
        rate_min,
        parse_rate_min
    ),
    control!(
        "rate-bytes-min",
        "SIZE",
        "no limit",
        Load,
        "Fail the phase if it moves fewer bytes per second in a --rate-cycle",
        rate_bytes_min,
        |text: &str| text.parse::<units::ByteSize>().map(|size| size.0)
    ),
    control!(
        "rate-cycle",
        "DURATION",
        "1s",
        Load,
        "Period over which --rate-min and --rate-bytes-min are checked",
        rate_cycle_ns,
        |text| above_zero("rate-cycle", text, "1s").map(Span::ns)
    ),
    control!(
        "flow",
        "WEIGHT",
        "none",
        Load,
        "Weight of each worker among the phases that run together: operations are issued in this proportion. A worker with a rate keeps its rate; the others follow in proportion",
        flow,
        |text| parse_u64_in("flow", text, 1..=1_000_000).map(|weight| weight as u32)
    ),
    control!(
        "flow-group",
        "N",
        "0",
        Load,
        "Compare --flow weights only within this group",
        flow_group,
        |text| parse_u64_in("flow-group", text, 0..=1_000_000).map(|group| group as u32)
    ),
    option!(
        "end-when-full",
        None,
        "",
        "off",
        Load,
        "Write files sequentially until the file system is full; without --size, a file may use all free space",
        |spec, text| {
            spec.control.ends_when_full = super::value::switch("end-when-full", text)?;
            Ok(())
        }
    ),
    control!(
        "scheduler",
        "NAME",
        "unchanged",
        Run,
        "I/O scheduler of the devices below the targets during the phase; the previous one is restored",
        scheduler,
        |text| some_text("scheduler", text)
    ),
    control!(
        "run-before",
        "COMMAND",
        "none",
        Run,
        "Shell command to run before the phase; its output goes to NAME.prerun.txt; if it fails, the phase fails",
        run_before,
        |text| some_text("run-before", text)
    ),
    control!(
        "run-after",
        "COMMAND",
        "none",
        Run,
        "Shell command to run after the phase; its output goes to NAME.postrun.txt",
        run_after,
        |text| some_text("run-after", text)
    ),
    control!(
        "latency-target",
        "LATENCY[:PERCENT[:WINDOW]]",
        "none; PERCENT 100, WINDOW 5s",
        Load,
        "Closed loop: find the largest depth, up to --depth, at which PERCENT of the operations in a WINDOW complete within LATENCY, then end",
        latency_target,
        parse_latency_target
    ),
    control!(
        "end-when-steady",
        "METRIC:LIMIT:TIME[:RAMP[:INTERVAL]]",
        "none; RAMP 0s, INTERVAL 1s",
        Load,
        "End when, for TIME, iops, bw or lat (mean latency) stays within LIMIT of its mean, or iops_slope, bw_slope or lat_slope stays below LIMIT: iops:10%:30s",
        steady,
        parse_steady
    ),
    control!(
        "priority",
        "CLASS[:LEVEL]",
        "inherited from the process",
        Run,
        "I/O priority of the workers: realtime:0 to realtime:7, best-effort:0 to best-effort:7, or idle",
        priority,
        str::parse
    ),
    control!(
        "numa-memory",
        "POLICY[:NODES]",
        "inherited from the process",
        Run,
        "NUMA policy of the workers' memory: default, local, prefer:NODE, bind:NODES or interleave:NODES",
        memory,
        str::parse
    ),
    control!("nice", "N", "0", Run, "Added to the niceness of the workers: -20 to 19", nice, parse_nice),
];
