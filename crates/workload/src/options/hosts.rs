//! Options of loads that several hosts carry out together. Every layer has them.

use units::parse_u64_in;

use super::OptionDef;
use super::masters::{tls, token_file};
use super::value::some_text;
use crate::plan::HostTargets;
use crate::spec::{OnHostFailure, Spec, choice};

/// Options of loads that several hosts carry out together; a layer may have words of its own for those of the way to other processes.
pub static HOSTS: &[OptionDef] = &[
    option!(
        "hosts",
        None,
        "LIST",
        "this process",
        Run,
        "Hosts that carry out the run together: HOST[:PORT], ranges node[01-16], @FILE, local:N for N processes on this machine; may be repeated",
        |spec: &mut Spec, text| {
            spec.hosts.push(some_text("hosts", text)?);
            Ok(())
        }
    ),
    option!(
        "hosts-used",
        None,
        "N",
        "all",
        Run,
        "The first N of the hosts carry out the run, the others are left alone; a phase of a job file may have fewer than others, and the rest wait",
        |spec: &mut Spec, text| {
            spec.hosts_used = Some(parse_u64_in("hosts-used", text, 1..=65_536)? as u32);
            Ok(())
        }
    ),
    option!(
        "host-targets",
        None,
        "auto|shared|own",
        "auto: shared where the hosts see the same",
        Run,
        "Whether the hosts share the targets out among them, or each has its own",
        |spec: &mut Spec, text| {
            let choices =
                [("auto", None), ("shared", Some(HostTargets::Shared)), ("own", Some(HostTargets::Own))];
            spec.host_targets = choice("host-targets", text, &choices)?;
            Ok(())
        }
    ),
    option!(
        "rotate-hosts",
        None,
        "N",
        "each host keeps its part",
        Run,
        "From each phase to the next, hosts take over the part of the host N before them, so that they read what others wrote",
        |spec: &mut Spec, text| {
            spec.rotate_hosts = Some(parse_u64_in("rotate-hosts", text, 1..=65_535)? as u32);
            Ok(())
        }
    ),
    option!(
        "on-host-failure",
        None,
        "stop|continue",
        "stop",
        Run,
        "After the failure of a host: end the run with what was measured, or go on with the others",
        |spec: &mut Spec, text| {
            let choices = [("stop", OnHostFailure::Stop), ("continue", OnHostFailure::Continue)];
            spec.on_host_failure = Some(choice("on-host-failure", text, &choices)?);
            Ok(())
        }
    ),
    option!(
        "fingerprint",
        None,
        "HOST=sha256:HEX",
        "as noted when the host was met first",
        Run,
        "Certificate of a host, as its first line says it; any other is refused; may be repeated",
        |spec: &mut Spec, text| {
            spec.fingerprints.push(some_text("fingerprint", text)?);
            Ok(())
        }
    ),
    token_file("File with the secret that hosts beyond loopback demand"),
    tls("TLS for control on loopback too"),
];
