//! Options of a server process, as typed.

use std::path::PathBuf;

use rpc::Poll;
use units::ByteSize;
use workload::object::{Durability, Flush};

/// Options of a server process; `None` means: not said.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(
    missing_docs,
    reason = "each field is the option of the same name, documented in the table of options"
)]
pub(crate) struct EngineSpec {
    pub(crate) rank: Option<u32>,
    pub(crate) group: Option<String>,
    /// Directory of the group's attach info.
    pub(crate) path: Option<PathBuf>,
    /// It stands in no attach info (services that are addressed by host).
    pub(crate) no_attach_info: bool,
    /// `--dir`: directory of the pool that it serves objects from.
    pub(crate) dir: Option<PathBuf>,
    pub(crate) pool: Option<String>,
    pub(crate) scm: Option<ByteSize>,
    pub(crate) nvme: Option<ByteSize>,
    pub(crate) threshold: Option<ByteSize>,
    pub(crate) durability: Option<Durability>,
    pub(crate) flush: Option<Flush>,
    pub(crate) targets: Option<u32>,
    pub(crate) helpers: Option<u32>,
    /// Address and port for data: `127.0.0.1:0` when none.
    pub(crate) listen: Option<String>,
    /// Address and port for control: the data address with a free port when none.
    pub(crate) control: Option<String>,
    pub(crate) provider: Option<String>,
    pub(crate) interface: Option<String>,
    pub(crate) domain: Option<String>,
    pub(crate) cores: Option<Vec<u32>>,
    pub(crate) poll: Option<Poll>,
    pub(crate) token_file: Option<PathBuf>,
    /// TLS for control on loopback too; beyond it is always on.
    pub(crate) tls: bool,
    pub(crate) message_size_max: Option<ByteSize>,
    pub(crate) bulk_size_max: Option<ByteSize>,
    pub(crate) connections_max: Option<u32>,
    pub(crate) memory_max: Option<ByteSize>,
    pub(crate) send_buffer: Option<ByteSize>,
    pub(crate) receive_buffer: Option<ByteSize>,
    /// It ends when its standard input does: for engines that another process starts.
    pub(crate) until_stdin_closes: bool,
    /// It goes on in the background once it serves; its log goes to this file.
    pub(crate) background: Option<PathBuf>,
    /// How it calls itself in its first line, where another tool's words are spoken.
    pub(crate) banner: Option<String>,
}
