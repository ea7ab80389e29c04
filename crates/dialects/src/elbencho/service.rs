//! `--service`, and what services are told: `--quit`, `--interrupt`, `--svcping`.

use std::path::PathBuf;

use driver::Error;

use super::hosts::{are_given, listed};
use super::paths::expand;
use super::settings::number;
use super::table::{TABLE, TOOL};
use crate::words::{Words, quoted};
use crate::{Request, Serve, Tell, Told, World};

/// Port of a service when none is given.
const PORT: u64 = 1611;
/// Data of netbench goes to the service's port and this.
const DATA_PORT_OFFSET: u64 = 1000;
/// Hosts of a list at most.
const HOSTS_MAX: usize = 65_536;

/// Orders to services, by option.
const TOLD: &[(&str, Told)] =
    &[("quit", Told::Quit), ("interrupt", Told::Interrupt), ("svcping", Told::Ping)];

/// The service's port.
pub(crate) fn port(words: &Words) -> Result<u64, Error> {
    Ok(number(words, "port", 1, 65_535 - DATA_PORT_OFFSET)?.unwrap_or(PORT))
}

/// The request of words that concern services alone; none for others.
///
/// # Errors
/// Options that do not go together.
pub(crate) fn request(words: &Words, world: &dyn World) -> Result<Option<Request>, Error> {
    let port = port(words)?;
    if words.has("service") {
        return serve(words, port, world).map(Some);
    }
    let Some((option, what)) = TOLD.iter().find(|(option, _)| words.has(option)) else { return Ok(None) };
    let hosts = listed(words, port, world)?;
    if hosts.is_empty() {
        return TABLE.refuse(format!("--{option}: no host"), "give --hosts LIST or --hostsfile FILE");
    }
    Ok(Some(Request::Tell(Tell { hosts, what: *what, token_file: token_file(words) })))
}

/// A service: without a shared secret on loopback alone, with one on all interfaces.
fn serve(words: &Words, port: u64, world: &dyn World) -> Result<Request, Error> {
    if words.has("netbench") || are_given(words) || !words.paths.is_empty() {
        return TABLE.refuse(
            "--service takes paths and phases only from the client",
            "give them on the client's command line",
        );
    }
    let token_file = token_file(words);
    let address = if token_file.is_some() { "0.0.0.0" } else { "127.0.0.1" };
    let stays = words.has("foreground") || words.has("nodetach");
    let log = format!("/tmp/{TOOL}_{}_p{port}.log", world.host_name());
    let mut options = vec![
        ("group", TOOL.to_owned()),
        ("no-attach-info", "true".to_owned()),
        ("targets", world.processors().len().max(1).to_string()),
        ("helpers", "0".to_owned()),
        ("listen", format!("{address}:{}", port + DATA_PORT_OFFSET)),
        ("control", format!("{address}:{port}")),
        ("poll", "block".to_owned()),
    ];
    if !stays {
        options.push(("background", log));
    }
    let banner = format!("Elbencho service now listening. Port: {port}");
    Ok(Request::Engine(Serve { options, token_file, banner }))
}

/// The file with the secret that services demand.
pub(crate) fn token_file(words: &Words) -> Option<PathBuf> {
    words.value("svcpwfile").map(|path| units::path_of(path).into_owned())
}

/// The hosts of a list or a file, each with its port.
///
/// # Errors
/// A file that cannot be read, and a host that is named twice.
pub(crate) fn hosts(
    words: &Words,
    list: &str,
    file: &str,
    port: u64,
    world: &dyn World,
) -> Result<Vec<String>, Error> {
    let mut text = words.value(list).unwrap_or_default().to_owned();
    if let Some(path) = words.value(file) {
        let read = world.read(path).map_err(|error| {
            Error::system(TOOL, "cannot read the list of hosts", error).with("path", quoted(path))
        })?;
        let lines = read.lines().map(|line| line.split('#').next().unwrap_or_default());
        text = std::iter::once(text.as_str()).chain(lines).collect::<Vec<_>>().join("\n");
    }
    let mut hosts: Vec<String> = Vec::new();
    for word in text.split([',', ' ', '\t', '\n', '\r']).filter(|word| !word.is_empty()) {
        let mut names = Vec::new();
        expand(word, &mut names)?;
        for name in names {
            let host = with_port(&name, port);
            if hosts.contains(&host) {
                return TABLE.refuse(format!("{} is given twice", quoted(&host)), "name each host once");
            }
            hosts.push(host);
        }
    }
    if hosts.len() > HOSTS_MAX {
        return TABLE
            .refuse(format!("{} hosts are too many", hosts.len()), format!("give at most {HOSTS_MAX}"));
    }
    Ok(hosts)
}

/// `host`, `host:port`, `10.0.0.1`, `[::1]:port`, `::1`.
fn with_port(name: &str, port: u64) -> String {
    let colons = name.matches(':').count();
    match colons {
        0 => format!("{name}:{port}"),
        1 => name.to_owned(),
        _ if name.starts_with('[') && name.contains("]:") => name.to_owned(),
        _ if name.starts_with('[') => format!("{name}:{port}"),
        _ => format!("[{name}]:{port}"),
    }
}
