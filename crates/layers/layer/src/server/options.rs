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
    own!("group", "NAME", "daos_server", Workload, "Group that it is a rank of", group, |text| word(
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
        "Stand in no attach info: clients name its control address",
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
        "none: it serves RPCs alone; with --pool in memory, and removed at the end",
        Workload,
        "Directory of the pool that it serves objects from; made with --scm and --nvme where there is none",
        dir,
        |text| path("dir", text)
    ),
    own!("pool", "LABEL", "the name of --dir", Workload, "Label of that pool", pool, |text| label(
        "pool", text
    )),
    own!(
        "scm",
        "SIZE",
        "1g",
        Data,
        "Mapped memory of a pool that is made, of all targets together",
        scm,
        |text| nonzero_size("scm", text)
    ),
    own!(
        "nvme",
        "SIZE",
        "0: no data file",
        Data,
        "Data file of a pool that is made, of all targets together",
        nvme,
        str::parse
    ),
    own!(
        "threshold",
        "SIZE",
        "4k",
        Data,
        "Values from this size on go to the data file, where there is one",
        threshold,
        |text| nonzero_size("threshold", text)
    ),
    own!(
        "durability",
        "none|batch|sync",
        "sync",
        Data,
        "When an update counts as done: in memory; in memory, and durable within 10 ms or 1 MiB; when it is durable",
        durability,
        |text| choice("durability", text, &[("none", "none"), ("batch", "batch"), ("sync", "sync")])
    ),
    own!(
        "flush",
        "auto|cpu|msync",
        "auto: by the CPU on tmpfs and DAX, by system calls elsewhere",
        Data,
        "How mapped memory is made durable; with PMEM_NO_FLUSH=1 cpu fences alone",
        flush,
        |text| choice("flush", text, &[("auto", "auto"), ("cpu", "cpu"), ("msync", "msync")])
    ),
    own!(
        "allocate",
        "ahead|whole|needed",
        "ahead: by a thread beside the updates",
        Data,
        "When the store takes its space; whole: all of it when the pool is made or opened; needed: by the update that needs it",
        allocate,
        |text| choice("allocate", text, &[("ahead", "ahead"), ("whole", "whole"), ("needed", "needed")])
    ),
    own!(
        "listen",
        "HOST:PORT",
        "127.0.0.1:0, or the address of --interface",
        Engine,
        "Where it takes data connections; beyond loopback --token-file is needed; port 0 is a free one",
        listen,
        |text| address("listen", text)
    ),
    own!(
        "control",
        "HOST:PORT",
        "the address of --listen with a free port",
        Engine,
        "Where it takes commands",
        control,
        |text| address("control", text)
    ),
    own!(
        "provider",
        "NAME",
        "tcp",
        Engine,
        "How its endpoints are reached: tcp, ofi+tcp, ofi+shm, ofi+verbs, ...; see `strata net scan`",
        provider,
        |text| word("provider", text)
    ),
    own!(
        "interface",
        "NAME",
        "$OFI_INTERFACE, else loopback",
        Engine,
        "Network interface that it serves, such as eth0",
        interface,
        |text| word("interface", text)
    ),
    own!(
        "domain",
        "NAME",
        "$OFI_DOMAIN, else that of the interface",
        Engine,
        "The fabric's own name of the interface, such as mlx5_0",
        domain,
        |text| word("domain", text)
    ),
    own!(
        "poll",
        "spin|adaptive|block",
        "adaptive",
        Engine,
        "How service threads wait for messages: never asleep; asking for a while, then asleep; asleep",
        poll,
        |text| poll("poll", text)
    ),
    own!(
        "send-buffer",
        "SIZE",
        "the kernel's own sizing",
        Engine,
        "tcp: buffer of a socket for sending (SO_SNDBUF)",
        send_buffer,
        |text| socket_buffer("send-buffer", text)
    ),
    own!(
        "receive-buffer",
        "SIZE",
        "the kernel's own sizing",
        Engine,
        "tcp: buffer of a socket for receiving (SO_RCVBUF)",
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
        "Connections at a time; more are refused. One client address has three quarters of them at most",
        connections_max,
        |text| count("connections-max", text, 1, 1 << 20)
    ),
    own!(
        "memory-max",
        "SIZE",
        "4g",
        Data,
        "Memory of all buffers, shared out fairly to clients (docs/security.md); an RPC that needs more is answered with ENOMEM",
        memory_max,
        |text| nonzero_size("memory-max", text)
    ),
    own!(
        "cores",
        "LIST",
        "not pinned",
        Run,
        "Pin service threads to these processors, round robin: 0,2,4-7",
        cores,
        |text| parse_index_list("cores", text, 65_536)
    ),
    own!(
        "token-file",
        "FILE",
        "none",
        Run,
        "File with the secret that clients must know; needed beyond loopback",
        token_file,
        |text| path("token-file", text)
    ),
    own_switch!("tls", "off on loopback, on beyond it", Run, "TLS for control on loopback too", tls),
    own_switch!(
        "until-stdin-closes",
        "off",
        Run,
        "End when standard input closes, as it does when the process that started it ends",
        until_stdin_closes
    ),
    own!(
        "background",
        "LOG",
        "off",
        Run,
        "Go on in the background once it serves, with what it says in this file",
        background,
        |text| path("background", text)
    ),
];

#[cfg(test)]
mod tests;
