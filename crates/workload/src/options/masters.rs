//! Options of the way to other processes: those that drive a load (masters), and engines. A layer words them as they are for it.

use super::value::{path, switch, words};
use super::{Group, OptionDef};
use crate::spec::Spec;

/// Options of a load that other processes may drive.
pub static MASTERS: &[OptionDef] = &[
    clients("Control addresses of engines that drive the load, all at once"),
    token_file("File with the secret that engines beyond loopback demand"),
    tls("TLS for control on loopback too"),
];

pub(super) const fn clients(help: &'static str) -> OptionDef {
    option!("clients", None, "HOST[:PORT],...", "this process", Workload, help, |spec: &mut Spec, text| {
        spec.clients = words("clients", text)?;
        Ok(())
    })
}

pub(super) const fn token_file(help: &'static str) -> OptionDef {
    option!("token-file", None, "FILE", "none", Run, help, |spec: &mut Spec, text| {
        spec.token_file = Some(path("token-file", text)?);
        Ok(())
    })
}

pub(super) const fn tls(help: &'static str) -> OptionDef {
    option!("tls", None, "", "off on loopback, on beyond it", Run, help, |spec: &mut Spec, text| {
        spec.tls = switch("tls", text)?;
        Ok(())
    })
}
