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
        "Keep time, latency, position and size of the first N operations of each worker, one by one, in the record",
        operations_kept,
        |text| parse_u64_in("keep-operations", text, 1..=16_777_216)
    ),
    option!(
        "ignore-error",
        None,
        "CLASS:ERROR,...",
        "none",
        Run,
        "Failures that are counted and end nothing: write:ENOSPC,read:EIO",
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
        "The phase fails when an operation takes longer",
        latency_ns_max,
        |text| above_zero("latency-max", text, "10ms").map(Span::ns)
    ),
    control!(
        "rate-min",
        "RATE",
        "no limit",
        Load,
        "The phase fails when it does fewer operations a second over a --rate-cycle",
        rate_min,
        parse_rate_min
    ),
    control!(
        "rate-bytes-min",
        "SIZE",
        "no limit",
        Load,
        "The phase fails when it moves fewer bytes a second over a --rate-cycle",
        rate_bytes_min,
        |text: &str| text.parse::<units::ByteSize>().map(|size| size.0)
    ),
    control!(
        "rate-cycle",
        "DURATION",
        "1s",
        Load,
        "Time that --rate-min and --rate-bytes-min are taken over",
        rate_cycle_ns,
        |text| above_zero("rate-cycle", text, "1s").map(Span::ns)
    ),
    control!(
        "flow",
        "WEIGHT",
        "none",
        Load,
        "Weight of each worker among those of the phases that run together; operations are done in this proportion. With a rate a worker keeps to it, and the others to the proportion",
        flow,
        |text| parse_u64_in("flow", text, 1..=1_000_000).map(|weight| weight as u32)
    ),
    control!(
        "flow-group",
        "N",
        "0",
        Load,
        "Hold the weight of --flow against those of this group alone",
        flow_group,
        |text| parse_u64_in("flow-group", text, 0..=1_000_000).map(|group| group as u32)
    ),
    option!(
        "end-when-full",
        None,
        "",
        "off",
        Load,
        "Sequential writes to files go on until there is no room; without --size a file has all that is free",
        |spec, text| {
            spec.control.ends_when_full = super::value::switch("end-when-full", text)?;
            Ok(())
        }
    ),
    control!(
        "scheduler",
        "NAME",
        "as it is",
        Run,
        "I/O scheduler of the devices below the targets while the phase runs; what was chosen before comes back",
        scheduler,
        |text| some_text("scheduler", text)
    ),
    control!(
        "run-before",
        "COMMAND",
        "none",
        Run,
        "Run by the shell before the phase, its output in NAME.prerun.txt; the phase fails where it fails",
        run_before,
        |text| some_text("run-before", text)
    ),
    control!(
        "run-after",
        "COMMAND",
        "none",
        Run,
        "Run by the shell after the phase, its output in NAME.postrun.txt",
        run_after,
        |text| some_text("run-after", text)
    ),
    control!(
        "latency-target",
        "LATENCY[:PERCENT[:WINDOW]]",
        "none; then 100 percent, 5s",
        Load,
        "Closed loop: search the largest depth up to --depth at which so many operations of a window stay within this, and end there",
        latency_target,
        parse_latency_target
    ),
    control!(
        "end-when-steady",
        "FIGURE:LIMIT:TIME[:RAMP[:INTERVAL]]",
        "none; then intervals of 1s after 0s",
        Load,
        "End when iops, bw or lat (mean latency) stay within LIMIT of their mean, or iops_slope, bw_slope or lat_slope below it, over TIME: iops:10%:30s",
        steady,
        parse_steady
    ),
    control!(
        "priority",
        "CLASS[:LEVEL]",
        "as the process has it",
        Run,
        "Priority of the workers' I/O: realtime:0 to realtime:7, best-effort:0 to best-effort:7, or idle",
        priority,
        str::parse
    ),
    control!(
        "numa-memory",
        "POLICY[:NODES]",
        "as the process has it",
        Run,
        "NUMA nodes that the workers' memory comes from: default, local, prefer:NODE, bind:NODES or interleave:NODES",
        memory,
        str::parse
    ),
    control!("nice", "N", "0", Run, "Added to the niceness of the workers: -20 to 19", nice, parse_nice),
];
