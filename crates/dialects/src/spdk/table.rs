//! Every option of spdk_nvme_perf, and what becomes of it.

use crate::words::{Flag, Table};

/// The tool's name.
pub(crate) const TOOL: &str = "spdk_nvme_perf";

const NO_FABRIC: &str = "network transports are supported only through the kernel";
const CONNECT: &str = "connect with `nvme connect` and give the /dev node";
const KERNEL: &str = "the kernel driver controls this";
const LEAVE_OUT: &str = "leave it out";
const NO_SPDK: &str = "strata does not use the SPDK environment";

const fn fabric(long: &'static str, value: &'static str) -> Flag {
    Flag::refused(long, value, NO_FABRIC, CONNECT)
}

/// The options.
pub(crate) static TABLE: Table = Table { tool: TOOL, flags: FLAGS, switch_values: false, single_dash: false };

static FLAGS: &[Flag] = &[
    Flag::honoured("io-depth", "N", "operations in flight per core and device").short('q'),
    Flag::honoured("io-size", "SIZE", "bytes of one operation: a number, optionally with k, m or g").short('o'),
    Flag::honoured("io-pattern", "TYPE", "read, write, randread, randwrite, rw or randrw; random positions are drawn with repeats")
        .short('w'),
    Flag::honoured("rwmixread", "0-100", "percentage of reads for rw and randrw; ignored for others, with a warning")
        .short('M'),
    Flag::honoured("time", "SECONDS", "length of the measured window, in seconds").short('t'),
    Flag::honoured("warmup-time", "SECONDS", "warm-up time before the measured window; excluded from the results").short('a'),
    Flag::honoured("core-mask", "MASK", "cores to which workers are pinned: 0xff, or a list such as [0,2-3]; default 0x1; unavailable cores are ignored, with a warning")
        .short('c'),
    Flag::honoured("transport", "ID", "trtype:PCIe with or without traddr:ADDRESS and ns:N, or a path; repeatable").short('r'),
    Flag::honoured("use-every-core", "", "every core works on every device; default: devices are distributed to cores"),
    Flag::refused("io-queue-size", "N", KERNEL, "set nr_requests of the device in sysfs"),
    Flag::refused("io-unit-size", "SIZE", "each buffer is always contiguous", LEAVE_OUT).short('O'),
    Flag::honoured("num-qpairs", "N", "number of workers per core and device; they share the depth").short('P'),
    Flag::refused("num-unused-qpairs", "N", KERNEL, LEAVE_OUT).short('U'),
    Flag::honoured("buffer-alignment", "SIZE", "a power of two up to 4096: buffers are always page-aligned").short('A'),
    Flag::accepted("hugemem-size", "MB", NO_SPDK).short('s'),
    Flag::accepted("mem-single-seg", "", NO_SPDK).short('g'),
    Flag::refused("max-completion-per-poll", "N", "strata always takes all available completions", LEAVE_OUT).short('C'),
    Flag::accepted("shmem-grp-id", "ID", NO_SPDK).short('i'),
    Flag::honoured("number-ios", "N", "stops each worker after this many operations, or after N% of the operations that the device holds, or at the time limit")
        .short('d'),
    Flag::refused("metadata", "FORMAT", "the kernel's block layer gives no access to protection information", "use `strata media --verify`")
        .short('e'),
    Flag::honoured("zipf", "THETA", "random positions with a Zipf distribution; 0 is uniform").short('F'),
    Flag::honoured("enable-uring", "", "uses io_uring for the given paths; default: libaio").short('R'),
    Flag::accepted("iova-mode", "MODE", NO_SPDK),
    Flag::accepted("no-huge", "", NO_SPDK),
    Flag::accepted("enforce-numa", "", NO_SPDK),
    Flag::honoured("fua", "", "writes complete when they are durable (O_DSYNC; the kernel uses FUA if the drive supports it)"),
    Flag::refused("vfio-vf-token", "TOKEN", "devices are accessed through the kernel driver", "bind the device to the nvme driver"),
    Flag::accepted("env-context", "TEXT", NO_SPDK),
    Flag::refused("tpoint-group-mask", "MASK", "strata has no SPDK trace points", "use perf or bpftrace").short('y'),
    Flag::honoured("allowed-pci-addr", "ADDRESS", "uses only these drives: 0000:3b:00.0, 3b:00.0 or 3b:0; repeatable").short('b'),
    Flag::accepted("enable-vmd", "", "the kernel's vmd driver manages these drives").short('V'),
    Flag::refused("disable-sq-cmb", "", KERNEL, LEAVE_OUT).short('D'),
    Flag::accepted("enable-interrupt", "", "the kernel driver always uses interrupts").short('E'),
    Flag::refused("disable-sq-flow-control", "", KERNEL, LEAVE_OUT),
    fabric("default-sock-impl", "NAME").short('S'),
    fabric("disable-ktls", ""),
    fabric("enable-ktls", ""),
    fabric("tls-version", "N"),
    fabric("psk-path", "PATH"),
    fabric("psk-identity", "ID"),
    fabric("dhchap-key", "PATH"),
    fabric("dhchap-ctrlr-key", "PATH"),
    fabric("zerocopy-threshold", "SIZE"),
    fabric("zerocopy-threshold-sock-impl", "NAME"),
    fabric("disable-zcopy", "NAME").short('z'),
    fabric("enable-zcopy", "NAME").short('Z'),
    fabric("keepalive", "MS").short('k'),
    fabric("enable-tcp-hdgst", "").short('H'),
    fabric("enable-tcp-ddgst", "").short('I'),
    fabric("transport-tos", "N"),
    fabric("rdma-srq-size", "N"),
    Flag::refused("log-level", "LEVEL", "strata does not have the SPDK log", LEAVE_OUT),
    Flag::honoured("enable-sw-latency-tracking", "", "prints percentiles after the table; given twice, also the histogram").short('L'),
    Flag::refused("enable-ssd-latency-tracking", "", "strata does not read the drive's log page", "use -L").short('l'),
    Flag::accepted("no-shst-notification", "", "strata never shuts down a controller").short('N'),
    Flag::honoured("continue-on-error", "N", "failed operations are counted and the run continues; default: the first failure ends the device's phase").short('Q'),
    Flag::refused("logflag", "FLAG", "strata does not have the SPDK log", LEAVE_OUT).short('T'),
    Flag::refused("cpu-usage", "", "CPU utilization is in strata's record", "leave it out, and use strata's --json FILE").short('m'),
    Flag::refused("transport-stats", "", "strata does not use SPDK transports", LEAVE_OUT),
    Flag::honoured("help", "", "shows this help").short('h'),
    Flag::honoured("help-full", "", "shows this help").short('v'),
];
