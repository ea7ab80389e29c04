//! Addresses of clients as fio writes them.

use super::Client;
use crate::fio::fault::{Fault, shown};

/// Port of a `strata service` that was given none; fio's is 8765.
const PORT: u16 = 1611;
/// Most processes of `local:N`.
const LOCALS_MAX: usize = 64;

/// Reads `[ip:|ip4:|ip6:]HOST[,PORT]`, or strata's own `local:N`: processes on this machine that are started for the run.
///
/// # Errors
/// Bad usage: text that is no address, and Unix sockets.
pub(super) fn read(typed: &str, files: &[String], only: &[String]) -> Result<Vec<Client>, Fault> {
    let fault = |why: &str| {
        let message = format!("\"{}\" {why}: use HOST or HOST,PORT, such as node1,1611", shown(typed));
        Fault::of("--client", message)
    };
    let client = |hostname: &str, port: u16, host: String| Client {
        hostname: hostname.to_owned(),
        port,
        host,
        files: files.to_vec(),
        only: only.to_vec(),
    };
    if let Some(count) = typed.strip_prefix("local:") {
        let count = count.parse().ok().filter(|count| (1..=LOCALS_MAX).contains(count));
        let count = count.ok_or_else(|| fault("is not a number of processes from 1 to 64"))?;
        return Ok(vec![client("local", 0, "local:1".to_owned()); count]);
    }
    if typed.starts_with("sock:") {
        return Err(fault("is a Unix socket, but services listen on network addresses"));
    }
    let (kind, rest) = match typed.split_once(':') {
        Some((kind @ ("ip" | "ip4" | "ip6"), rest)) => (kind, rest),
        _ => ("", typed),
    };
    let (host, port) = match rest.split_once(',') {
        Some((host, port)) => {
            let port = port.parse().ok().filter(|&port| port > 0);
            (host, port.ok_or_else(|| fault("has a port outside 1 to 65535"))?)
        }
        None => (rest, PORT),
    };
    if kind == "ip6" || host.contains(':') {
        let is_written_so = |c: char| c.is_ascii_hexdigit() || ":.".contains(c);
        if host.matches(':').count() < 2 || !host.chars().all(is_written_so) {
            return Err(fault("is not a valid host address"));
        }
        return Ok(vec![client(host, port, format!("[{host}]:{port}"))]);
    }
    // As in fio, an address without a host is this machine.
    if host.is_empty() && rest.starts_with(',') {
        return Ok(vec![client("", port, format!("127.0.0.1:{port}"))]);
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    if host.is_empty() || !host.chars().all(is_name) {
        return Err(fault("is not a valid host address"));
    }
    Ok(vec![client(host, port, format!("{host}:{port}"))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_fio_writes_them() {
        let host = |typed: &str| read(typed, &[], &[]).map(|clients| clients[0].host.clone());
        for (typed, expected) in [
            ("node1", "node1:1611"),
            ("node1,4444", "node1:4444"),
            ("ip:10.0.0.1,9", "10.0.0.1:9"),
            ("ip4:10.0.0.1", "10.0.0.1:1611"),
            ("ip6:::1,4444", "[::1]:4444"),
            ("fe80::2", "[fe80::2]:1611"),
            (",8765", "127.0.0.1:8765"),
        ] {
            assert_eq!(host(typed).as_deref(), Ok(expected), "{typed}");
        }
        assert_eq!(read("local:3", &[], &[]).map(|clients| clients.len()), Ok(3));
        for wrong in ["", "node1:1611", "node1,0", "node1,x", "sock:/tmp/s", "ip6:node1", "local:0", "a b"] {
            assert!(host(wrong).is_err(), "{wrong}");
        }
    }
}
