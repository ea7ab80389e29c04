//! Options of a server process.

use units::{parse_index_list, parse_u64_in};
use workload::option;
use workload::options::OptionDef;
use workload::options::value::{
    address, count, label, nonzero_size, path, poll, socket_buffer, switch, word,
};
use workload::spec::choice;

use super::spec::EngineSpec;

macro_rules! own {
    ($name:literal, $value:literal, $default:literal, $group:ident, $help:literal, $field:ident, $parse:expr) => {
        option!($name, None, $value, $default, $group, $help, |spec, text| {
            spec.$field = Some($parse(text)?);
            Ok(())
        })
    };
}

macro_rules! own_switch {
    ($name:literal, $default:literal, $group:ident, $help:literal, $field:ident) => {
        option!($name, None, "", $default, $group, $help, |spec, text| {
            spec.$field = switch($name, text)?;
            Ok(())
        })
    };
}

/// Options of `strata engine`.
pub static ENGINE: &[OptionDef<EngineSpec>] = &[
    own!("rank", "N", "0", Workload, "Rank of the engine in its group", rank, |text| {
        parse_u64_in("rank", text, 0..=u64::from(u32::MAX - 1)).map(|rank| rank as u32)
    }),
    own!("group", "NAME", "daos_server", Workload, "Group that the engine belongs to", group, |text| word(
        "group", text
    )),
    own!(
        "path",
        "DIR",
        "$CRT_ATTACH_INFO_PATH, else /tmp",
        Workload,
        "Directory of the group's attach info, where clients find it",
        path,
        |text| path("path", text)
    ),
    own_switch!(
        "no-attach-info",
        "off",
        Workload,
        "Do not appear in attach info: clients give its control address",
        no_attach_info
    ),
    own!(
        "targets",
        "N",
        "1",
        Workload,
        "Targets: service threads with the tags from 2 on, after 0 (metadata) and 1 (monitoring)",
        targets,
        |text| count("targets", text, 0, 4096)
    ),
    own!(
        "helpers",
        "N",
        "0",
        Workload,
        "Helpers: service threads with the tags after the targets",
        helpers,
        |text| { count("helpers", text, 0, 4096) }
    ),
    own!(
        "dir",
        "DIR",
        "none: serve only RPCs; with --pool, in memory and removed at the end",
        Workload,
        "Directory of the pool to serve objects from; created with --scm and --nvme if it does not exist",
        dir,
        |text| path("dir", text)
    ),
    own!("pool", "LABEL", "the name of --dir", Workload, "Label of the pool in --dir", pool, |text| label(
        "pool", text
    )),
    own!(
        "scm",
        "SIZE",
        "1g",
        Data,
        "Mapped memory of a newly created pool, total of all targets",
        scm,
        |text| nonzero_size("scm", text)
    ),
    own!(
        "nvme",
        "SIZE",
        "0: no data file",
        Data,
        "Data file of a newly created pool, total of all targets",
        nvme,
        str::parse
    ),
    own!(
        "threshold",
        "SIZE",
        "4k",
        Data,
        "Values of at least this size go to the data file, if one exists",
        threshold,
        |text| nonzero_size("threshold", text)
    ),
    own!(
        "durability",
        "none|batch|sync",
        "sync",
        Data,
        "When an update completes: in memory; in memory and durable within 10 ms or 1 MiB; when it is durable",
        durability,
        |text| choice("durability", text, &[("none", "none"), ("batch", "batch"), ("sync", "sync")])
    ),
    own!(
        "flush",
        "auto|cpu|msync",
        "auto: by the CPU on tmpfs and DAX, by system calls elsewhere",
        Data,
        "How mapped memory is made durable; with PMEM_NO_FLUSH=1, cpu only issues fences",
        flush,
        |text| choice("flush", text, &[("auto", "auto"), ("cpu", "cpu"), ("msync", "msync")])
    ),
    own!(
        "allocate",
        "ahead|whole|needed",
        "ahead: by a background thread",
        Data,
        "When the store allocates space; whole: all of it when the pool is created or opened; needed: in the update that needs it",
        allocate,
        |text| choice("allocate", text, &[("ahead", "ahead"), ("whole", "whole"), ("needed", "needed")])
    ),
    own!(
        "listen",
        "HOST:PORT",
        "127.0.0.1:0, or the address of --interface",
        Engine,
        "Address for data connections; requires --token-file unless it is on loopback; port 0 selects a free port",
        listen,
        |text| address("listen", text)
    ),
    own!(
        "control",
        "HOST:PORT",
        "the address of --listen with a free port",
        Engine,
        "Address for control connections",
        control,
        |text| address("control", text)
    ),
    own!(
        "provider",
        "NAME",
        "tcp",
        Engine,
        "Transport of its endpoints: tcp, ofi+tcp, ofi+shm, ofi+verbs, ...; see `strata net scan`",
        provider,
        |text| word("provider", text)
    ),
    own!(
        "interface",
        "NAME",
        "$OFI_INTERFACE, else loopback",
        Engine,
        "Network interface to serve on, such as eth0",
        interface,
        |text| word("interface", text)
    ),
    own!(
        "domain",
        "NAME",
        "$OFI_DOMAIN, else that of the interface",
        Engine,
        "Fabric name of the interface, such as mlx5_0",
        domain,
        |text| word("domain", text)
    ),
    own!(
        "poll",
        "spin|adaptive|block",
        "adaptive",
        Engine,
        "How service threads wait for messages: poll only; poll for a while, then sleep; sleep",
        poll,
        |text| poll("poll", text)
    ),
    own!(
        "send-buffer",
        "SIZE",
        "sized by the kernel",
        Engine,
        "tcp: send buffer of a socket (SO_SNDBUF)",
        send_buffer,
        |text| socket_buffer("send-buffer", text)
    ),
    own!(
        "receive-buffer",
        "SIZE",
        "sized by the kernel",
        Engine,
        "tcp: receive buffer of a socket (SO_RCVBUF)",
        receive_buffer,
        |text| socket_buffer("receive-buffer", text)
    ),
    own!(
        "message-size-max",
        "SIZE",
        "1m",
        Data,
        "Largest payload in a message; a larger one closes its connection",
        message_size_max,
        |text| nonzero_size("message-size-max", text)
    ),
    own!(
        "bulk-size-max",
        "SIZE",
        "256m",
        Data,
        "Largest bulk payload; a larger one closes its connection",
        bulk_size_max,
        |text| nonzero_size("bulk-size-max", text)
    ),
    own!(
        "connections-max",
        "N",
        "4096",
        Data,
        "Maximum concurrent connections; more are rejected. One client address may use at most three quarters of them",
        connections_max,
        |text| count("connections-max", text, 1, 1 << 20)
    ),
    own!(
        "memory-max",
        "SIZE",
        "4g",
        Data,
        "Memory of all buffers, divided fairly among clients (docs/security.md); an RPC that needs more fails with ENOMEM",
        memory_max,
        |text| nonzero_size("memory-max", text)
    ),
    own!(
        "cores",
        "LIST",
        "not pinned",
        Run,
        "Pin service threads to these CPUs, round-robin: 0,2,4-7",
        cores,
        |text| parse_index_list("cores", text, 65_536)
    ),
    own!(
        "token-file",
        "FILE",
        "none",
        Run,
        "File with the secret that clients must know; required unless it serves only loopback",
        token_file,
        |text| path("token-file", text)
    ),
    own_switch!(
        "tls",
        "off on loopback, on elsewhere",
        Run,
        "Use TLS for the control channel on loopback too",
        tls
    ),
    own_switch!(
        "until-stdin-closes",
        "off",
        Run,
        "End when standard input closes, for example when the parent process ends",
        until_stdin_closes
    ),
    own!(
        "background",
        "LOG",
        "off",
        Run,
        "Continue in the background once it is ready, with its output in this file",
        background,
        |text| path("background", text)
    ),
];

#[cfg(test)]
mod tests;
