//! Options of a server process, as typed.

use std::path::PathBuf;

use units::ByteSize;
use workload::engine::Poll;

/// Options of a server process; `None` means: not said.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(
    missing_docs,
    reason = "each field is the option of the same name, documented in the table of options"
)]
pub struct EngineSpec {
    pub rank: Option<u32>,
    pub group: Option<String>,
    /// Directory of the group's attach info.
    pub path: Option<PathBuf>,
    /// It stands in no attach info (services that are addressed by host).
    pub no_attach_info: bool,
    /// `--dir`: directory of the pool that it serves objects from.
    pub dir: Option<PathBuf>,
    pub pool: Option<String>,
    pub scm: Option<ByteSize>,
    pub nvme: Option<ByteSize>,
    pub threshold: Option<ByteSize>,
    /// Words of the service that has the pool.
    pub durability: Option<&'static str>,
    pub flush: Option<&'static str>,
    pub allocate: Option<&'static str>,
    pub targets: Option<u32>,
    pub helpers: Option<u32>,
    /// Address and port for data: `127.0.0.1:0` when none.
    pub listen: Option<String>,
    /// Address and port for control: the data address with a free port when none.
    pub control: Option<String>,
    pub provider: Option<String>,
    pub interface: Option<String>,
    pub domain: Option<String>,
    pub cores: Option<Vec<u32>>,
    pub poll: Option<Poll>,
    pub token_file: Option<PathBuf>,
    /// Use TLS for the control channel on loopback too; beyond it is always on.
    pub tls: bool,
    pub message_size_max: Option<ByteSize>,
    pub bulk_size_max: Option<ByteSize>,
    pub connections_max: Option<u32>,
    pub memory_max: Option<ByteSize>,
    pub send_buffer: Option<ByteSize>,
    pub receive_buffer: Option<ByteSize>,
    /// It ends when its standard input does: for engines that another process starts.
    pub until_stdin_closes: bool,
    /// It goes on in the background once it serves; its log goes to this file.
    pub background: Option<PathBuf>,
    /// How it calls itself in its first line, where another tool's words are spoken.
    pub banner: Option<String>,
}
