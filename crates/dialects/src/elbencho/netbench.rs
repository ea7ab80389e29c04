//! `--netbench`: clients send requests and wait for replies, each thread over a connection of its own.

use driver::Error;
use units::Rate;
use workload::spec::{OnError, Share, Spec, Warmup};

use super::service;
use super::settings::{Output, indexes, number, output, progress, seconds, size};
use super::table::{TABLE, TOOL};
use crate::options::{said, said_if, say};
use crate::words::{Words, quoted};
use crate::{Progress, World};

/// Payloads from this size on travel apart from the message, which is what the tool's large blocks come to.
const BULK_BYTES_MIN: u64 = 64 << 10;

/// Options of file phases, which netbench has none of.
const OF_FILES: &[&str] = &[
    "read",
    "delfiles",
    "path",
    "mmap",
    "direct",
    "rand",
    "norandalign",
    "randamount",
    "randalgo",
    "backward",
    "strided",
    "limitread",
    "rwmixpct",
    "rwmixthr",
    "verify",
    "verifydirect",
    "sync",
    "dropcache",
    "trunc",
    "trunctosize",
    "preallocfile",
    "phasedelay",
    "dryrun",
    "mkdirs",
    "deldirs",
    "dirs",
    "files",
    "stat",
    "dirsharing",
    "dirstats",
    "treefile",
    "treescan",
    "treerand",
    "treeroundup",
    "sharesize",
];

/// Options of hosts that work on the same files.
const OF_HOSTS: &[&str] = &["hosts", "hostsfile", "numhosts", "rotatehosts", "nosvcshare"];

/// A command line of netbench.
#[derive(Clone, Debug)]
pub(crate) struct NetSettings {
    pub(crate) servers: Vec<String>,
    pub(crate) clients: Vec<String>,
    pub(crate) threads: u32,
    pub(crate) size_bytes: Option<u64>,
    pub(crate) block_bytes: u64,
    pub(crate) depth: u32,
    pub(crate) iterations: u32,
    pub(crate) output: Output,
    pub(crate) progress: Progress,
    spec: Spec,
}

/// A payload as message sizes are typed.
fn payload(size_bytes: u64) -> String {
    format!("{}{size_bytes}", if size_bytes < BULK_BYTES_MIN { 'i' } else { 'b' })
}

impl NetSettings {
    /// Reads and checks what the options say.
    ///
    /// # Errors
    /// Values that cannot be, and options of other phases.
    pub(crate) fn read(words: &Words, world: &dyn World, warnings: &mut Vec<String>) -> Result<Self, Error> {
        if let Some(option) = OF_FILES.iter().find(|option| words.has(option)) {
            return TABLE.refuse(
                format!("--{option} cannot be combined with --netbench"),
                "leave it out: netbench sends -b bytes and receives --respsize bytes",
            );
        }
        if let Some(option) = OF_HOSTS.iter().find(|option| words.has(option)) {
            return TABLE.refuse(
                format!("--{option} cannot be combined with --netbench"),
                "give --servers LIST and --clients LIST",
            );
        }
        if let Some(path) = words.paths.first() {
            return TABLE.refuse(
                format!("{}: --netbench does not take a path", quoted(path)),
                "give hosts with --servers and --clients; quote lists that contain blanks",
            );
        }
        let port = service::port(words)?;
        let servers = service::hosts(words, "servers", "serversfile", port, world)?;
        let clients = service::hosts(words, "clients", "clientsfile", port, world)?;
        for (hosts, option) in [(&servers, "servers"), (&clients, "clients")] {
            if hosts.is_empty() {
                return TABLE.refuse(
                    format!("no {option} are given"),
                    format!("give --{option} LIST or --{option}file FILE: hosts that run elbencho --service"),
                );
            }
        }
        if let Some(both) = servers.iter().find(|server| clients.contains(server)) {
            return TABLE.refuse(
                format!("{} is both a server and a client", quoted(both)),
                "start a second service on that host with another --port and name each service once",
            );
        }
        let block_bytes = match words.value("block") {
            None => 1 << 20,
            Some(_) => size(words, "block")?.ok_or_else(|| {
                TABLE.error("-b/--block 0 sends nothing", "give a size above 0, such as 1m")
            })?,
        };
        let reply_bytes = match words.value("respsize") {
            None => 1,
            Some(_) => size(words, "respsize")?.ok_or_else(|| {
                TABLE.error("--respsize 0 sends no reply", "give a size above 0, such as 1")
            })?,
        };
        let settings = Self {
            servers,
            clients,
            threads: number(words, "threads", 1, 4096)?.unwrap_or(1) as u32,
            size_bytes: size(words, "size")?,
            block_bytes,
            depth: number(words, "iodepth", 1, 65_536)?.unwrap_or(1) as u32,
            iterations: number(words, "iterations", 1, 100_000)?.unwrap_or(1) as u32,
            output: output(words, warnings)?,
            progress: progress(words),
            spec: Spec::default(),
        };
        let spec = settings.spec(words, reply_bytes, world)?;
        Ok(Self { spec, ..settings })
    }

    fn spec(&self, words: &Words, reply_bytes: u64, world: &dyn World) -> Result<Spec, Error> {
        let time = seconds(words, "timelimit")?;
        let is_endless = words.has("infloop");
        if is_endless && time.is_none() {
            return TABLE.refuse("--infloop never ends", "add --timelimit SECONDS");
        }
        if self.size_bytes.is_none() && time.is_none() {
            return TABLE.refuse(
                "no -s/--size: the amount of data per thread is unknown",
                "give -s SIZE, --timelimit SECONDS, or both",
            );
        }
        // What one connection sends; the last block of it is whole here.
        let each = self.size_bytes.filter(|_| !is_endless).map(|bytes| bytes.div_ceil(self.block_bytes));
        let limit = size(words, "limitwrite")?.map(|bytes| {
            Rate::new(bytes as f64 / self.block_bytes as f64 * f64::from(self.threads))
                .map_err(|error| Error::usage(TOOL, error.to_string()))
        });
        let devices = words.value("netdevs").map(|list| list.replace(' ', ","));
        let cores = match words.value("cores") {
            Some("all") => Some(world.processors()),
            _ => indexes(words, "cores")?,
        };
        let usage = |error: units::ParseError| Error::usage(TOOL, error.to_string());
        let mut spec = Spec {
            name: Some("NET".to_owned()),
            threads: Some(self.threads),
            depth: Some(self.depth),
            count: each.map(|each| each.saturating_mul(u64::from(self.threads))),
            time,
            warmup: Some(Warmup::None),
            share: Some(Share::Partition),
            on_error: Some(OnError::Stop),
            rate: limit.transpose()?,
            cores,
            numa: indexes(words, "zones")?,
            ..Spec::of_layer("network").map_err(usage)?
        };
        let own = [
            said("message-sizes", format!("{} {}", payload(self.block_bytes), payload(reply_bytes))),
            said("servers", self.servers.join(",")),
            said("clients", self.clients.join(",")),
            // The tool's threads block in their sockets.
            said("poll", "block"),
            said_if("send-buffer", size(words, "sendbuf")?),
            said_if("receive-buffer", size(words, "recvbuf")?),
            said_if("bind-device", devices),
        ];
        say(&mut spec, own).map_err(usage)?;
        Ok(spec)
    }

    /// One phase an iteration.
    pub(crate) fn specs(&self) -> Vec<Spec> {
        vec![self.spec.clone(); self.iterations as usize]
    }
}
