//! Every option of spdk_nvme_perf, and what becomes of it.

use crate::words::{Flag, Table};

/// The tool's name.
pub(crate) const TOOL: &str = "spdk_nvme_perf";

const NO_FABRIC: &str = "network transports are left to the kernel";
const CONNECT: &str = "connect with `nvme connect` and give the /dev node";
const KERNEL: &str = "the kernel's driver decides it";
const LEAVE_OUT: &str = "leave it out";
const NO_SPDK: &str = "SPDK's environment is not used";

const fn fabric(long: &'static str, value: &'static str) -> Flag {
    Flag::refused(long, value, NO_FABRIC, CONNECT)
}

/// The options.
pub(crate) static TABLE: Table = Table { tool: TOOL, flags: FLAGS, switch_values: false, single_dash: false };

static FLAGS: &[Flag] = &[
    Flag::honoured("io-depth", "N", "operations in flight for each core and device").short('q'),
    Flag::honoured("io-size", "SIZE", "bytes of one operation: a number, or one with k, m or g").short('o'),
    Flag::honoured("io-pattern", "TYPE", "read, write, randread, randwrite, rw or randrw; random positions are drawn with repeats")
        .short('w'),
    Flag::honoured("rwmixread", "0-100", "percentage of reads of rw and randrw; with others it is left out with a warning")
        .short('M'),
    Flag::honoured("time", "SECONDS", "length of the measured window, in seconds").short('t'),
    Flag::honoured("warmup-time", "SECONDS", "runs before the window opens; in no figure").short('a'),
    Flag::honoured("core-mask", "MASK", "cores that workers are pinned to: 0xff, or a list such as [0,2-3]; default 0x1; those that the machine has not are left out with a warning")
        .short('c'),
    Flag::honoured("transport", "ID", "trtype:PCIe with or without traddr:ADDRESS and ns:N, or a path; repeatable").short('r'),
    Flag::honoured("use-every-core", "", "every core works on every device; by default they are dealt out"),
    Flag::refused("io-queue-size", "N", KERNEL, "set nr_requests of the device in sysfs"),
    Flag::refused("io-unit-size", "SIZE", "buffers are in one piece", LEAVE_OUT).short('O'),
    Flag::honoured("num-qpairs", "N", "workers for each core and device, which share the depth").short('P'),
    Flag::refused("num-unused-qpairs", "N", KERNEL, LEAVE_OUT).short('U'),
    Flag::honoured("buffer-alignment", "SIZE", "a power of two up to 4096: buffers begin on pages").short('A'),
    Flag::accepted("hugemem-size", "MB", NO_SPDK).short('s'),
    Flag::accepted("mem-single-seg", "", NO_SPDK).short('g'),
    Flag::refused("max-completion-per-poll", "N", "completions are taken as they come", LEAVE_OUT).short('C'),
    Flag::accepted("shmem-grp-id", "ID", NO_SPDK).short('i'),
    Flag::honoured("number-ios", "N", "ends each worker after this many operations, or after N% of the device's, if the time is not over before")
        .short('d'),
    Flag::refused("metadata", "FORMAT", "protection information is not reached through the kernel's block layer", "use `strata media --verify`")
        .short('e'),
    Flag::honoured("zipf", "THETA", "random positions by Zipf's law; 0 is uniform").short('F'),
    Flag::honoured("enable-uring", "", "io_uring for the paths given; without it they are driven by libaio").short('R'),
    Flag::accepted("iova-mode", "MODE", NO_SPDK),
    Flag::accepted("no-huge", "", NO_SPDK),
    Flag::accepted("enforce-numa", "", NO_SPDK),
    Flag::honoured("fua", "", "writes return when they are durable (O_DSYNC, which the kernel turns into FUA where the drive has it)"),
    Flag::refused("vfio-vf-token", "TOKEN", "devices are reached through the kernel's driver", "bind the device to the nvme driver"),
    Flag::accepted("env-context", "TEXT", NO_SPDK),
    Flag::refused("tpoint-group-mask", "MASK", "SPDK's trace points are not there", "use perf or bpftrace").short('y'),
    Flag::honoured("allowed-pci-addr", "ADDRESS", "only these drives; 0000:3b:00.0, 3b:00.0 or 3b:0; repeatable").short('b'),
    Flag::accepted("enable-vmd", "", "the kernel's vmd driver has the drives").short('V'),
    Flag::refused("disable-sq-cmb", "", KERNEL, LEAVE_OUT).short('D'),
    Flag::accepted("enable-interrupt", "", "the kernel's driver uses interrupts").short('E'),
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
    Flag::refused("log-level", "LEVEL", "SPDK's log is not there", LEAVE_OUT),
    Flag::honoured("enable-sw-latency-tracking", "", "percentiles after the table; given twice, the histogram too").short('L'),
    Flag::refused("enable-ssd-latency-tracking", "", "the drive's log page is not read", "use -L").short('l'),
    Flag::accepted("no-shst-notification", "", "no controller is shut down").short('N'),
    Flag::honoured("continue-on-error", "N", "operations that fail are counted and the run goes on; without it the device's phase ends").short('Q'),
    Flag::refused("logflag", "FLAG", "SPDK's log is not there", LEAVE_OUT).short('T'),
    Flag::refused("cpu-usage", "", "the use of processors is in strata's own record", "leave it out, and see --json").short('m'),
    Flag::refused("transport-stats", "", "SPDK's transports are not used", LEAVE_OUT),
    Flag::honoured("help", "", "shows this").short('h'),
    Flag::honoured("help-full", "", "shows this").short('v'),
];
