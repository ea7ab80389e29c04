//! Options of loads that several hosts carry out together. Every layer has them.

use units::parse_u64_in;

use super::OptionDef;
use super::masters::{tls, token_file};
use super::value::some_text;
use crate::host_options::HostOptions;
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
        "Hosts that execute the run together: HOST[:PORT], ranges node[01-16], @FILE, local:N for N processes on this machine; may be repeated",
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
        "Use only the first N hosts for the run; the others stay idle. In a job file, a phase may use fewer hosts than other phases; the remaining hosts wait",
        |spec: &mut Spec, text| {
            spec.hosts_used = Some(parse_u64_in("hosts-used", text, 1..=65_536)? as u32);
            Ok(())
        }
    ),
    option!(
        "host-targets",
        None,
        "auto|shared|own",
        "auto: shared if the hosts see the same targets",
        Run,
        "Whether the hosts divide the same targets among them, or each host has its own targets",
        |spec: &mut Spec, text| {
            let choices =
                [("auto", None), ("shared", Some(HostTargets::Shared)), ("own", Some(HostTargets::Own))];
            spec.host_targets = choice("host-targets", text, &choices)?;
            Ok(())
        }
    ),
    option!(
        "host-options",
        None,
        "HOSTS:NAME=VALUE,...",
        "none",
        Run,
        "Options that some hosts have of their own: target, threads, cores, numa and other options of the workers: node[03-04]:threads=8,target=/dev/nvme1n1, or rank:1:threads=8; may be repeated",
        |spec: &mut Spec, text| {
            spec.host_options.push(HostOptions::parse(text)?);
            Ok(())
        }
    ),
    option!(
        "rotate-hosts",
        None,
        "N",
        "each host keeps its part",
        Run,
        "In each new phase, every host takes over the part of the host N ranks before it, so that it reads data that another host wrote",
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
        "If a host fails: end the run and keep its results so far, or continue with the other hosts",
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
        "recorded at the first connection to the host",
        Run,
        "Certificate fingerprint of a host, printed in the first line of its output; other certificates are rejected; may be repeated",
        |spec: &mut Spec, text| {
            spec.fingerprints.push(some_text("fingerprint", text)?);
            Ok(())
        }
    ),
    token_file("File with the secret; required by hosts that are not on loopback"),
    tls("Use TLS for the control channel on loopback too"),
];
