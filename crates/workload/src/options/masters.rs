//! Options of the way to other processes: those that drive a load (masters), and engines. A layer words them as they are for it.

use super::OptionDef;
use super::value::{path, switch, words};
use crate::spec::Spec;

/// Options of a load that other processes may drive.
pub static MASTERS: &[OptionDef] = &[
    clients("Control addresses of the engines that generate the load, all at the same time"),
    token_file("File with the secret; required by engines that are not on loopback"),
    tls("Use TLS for the control channel on loopback too"),
];

/// Masters: control addresses of the processes that drive.
#[must_use]
pub const fn clients(help: &'static str) -> OptionDef {
    option!("clients", None, "HOST[:PORT],...", "this process", Workload, help, |spec: &mut Spec, text| {
        spec.clients = words("clients", text)?;
        Ok(())
    })
}

/// File with the shared secret.
#[must_use]
pub const fn token_file(help: &'static str) -> OptionDef {
    option!("token-file", None, "FILE", "none", Run, help, |spec: &mut Spec, text| {
        spec.token_file = Some(path("token-file", text)?);
        Ok(())
    })
}

/// TLS of the control channel.
#[must_use]
pub const fn tls(help: &'static str) -> OptionDef {
    option!("tls", None, "", "off on loopback, on elsewhere", Run, help, |spec: &mut Spec, text| {
        spec.tls = switch("tls", text)?;
        Ok(())
    })
}
