//! The beginning of a run over hosts: who they are, their sessions, and their plans, which must agree.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use driver::{Error, ErrorKind, Secret};
use fleet::{
    ClockEstimate, ConnectRequest, Description, Fleet, HostAddress, ListedHost, SessionRequest, SessionTerms,
    Sessions, Trust, listed_hosts, report_interval, state_file,
};
use layer::masters::CONTROL_PORT;
use layer::server::SharedStores;
use layer::{SCHEMA_VERSION, secret};
use report::record::HostRecord;
use serde_json::Value;
use workload::options;
use workload::plan::{HostPlace, HostTargets};
use workload::shipped::ShippedSpec;
use workload::spec::{OnHostFailure, Spec};

use super::apart::{self, Apart, OwnSpecs};
use super::descriptors;
use super::launcher::{self, Crew};
use super::local::LocalHosts;
use super::messages::{PlannedPhase, read, written};
use super::own_options::{self, HostSpecs, Names};
use super::{Leader, SoFar};
use crate::planning::{self, Planned, Programme};
use crate::world::read_text;

/// Longest wait for a connection.
const CONNECT_WAIT: Duration = Duration::from_secs(10);
/// Without a message of the leader for so long a host ends its part.
const LEASE: Duration = Duration::from_secs(10);
/// Shortest time over which a drift is told.
const DRIFT_SECONDS_MIN: f64 = 1.0;
/// Uncertainty of a drift that is told, in parts per million.
const DRIFT_ERROR_PPM_MAX: f64 = 100.0;

/// Whether hosts carry the specs out.
pub(crate) fn are_asked(specs: &[Spec]) -> bool {
    specs.iter().any(|spec| !spec.hosts.is_empty())
}

/// The hosts that specs name.
struct Listed {
    addresses: Vec<HostAddress>,
    labels: Vec<String>,
    /// Secrets of the processes that were started for this run, by number.
    secrets: HashMap<usize, Secret>,
    locals: Option<LocalHosts>,
    /// Whether all of them were started by this process, and so where it was started.
    all_local: bool,
    /// All hosts of the list, used or not; none under a launcher.
    named: Vec<ListedHost>,
}

/// Reaches all hosts and has them plan the specs; the programme that they agree on. Nothing was touched yet.
///
/// # Errors
/// Bad usage, hosts that cannot be reached or are of another version, refusals of hosts, and plans that do not agree.
pub(crate) fn gather(
    specs: &[Spec],
    run: u64,
    seed: u64,
    crew: Option<Crew>,
    ranks: Option<u32>,
) -> Result<(Programme, Leader), Error> {
    let first = first_of(specs)?;
    let secret = secret::shared_or_environment(first.token_file.as_deref())?;
    let (listed, trust) = listed(specs, &first, crew.as_ref(), ranks)?;
    let Listed { addresses, labels, secrets, locals, all_local, named } = listed;
    let own = apart::of_hosts(specs, addresses.len())?;
    let mut programme = match &own {
        None => planning::outline(specs)?,
        Some(own) => apart::outline(own)?,
    };
    let connect = ConnectRequest { hosts: addresses.clone(), secret, tls: first.tls, timeout: CONNECT_WAIT };
    let fleet = Fleet::connect_with(connect, &secrets, trust)?;
    check_reached(&fleet, &labels)?;
    let described = describe(&fleet, &labels)?;
    let is_one_machine = are_one_machine(&described);
    let mut stores = SharedStores::default();
    let specs = &match locals.is_some() && is_one_machine && addresses.len() > 1 {
        true => with_shared_targets(specs, &mut stores)?,
        false => specs.to_vec(),
    };
    let request = |specs: &[Spec]| request(specs, run, seed, addresses.len(), is_one_machine, !all_local);
    let differing = own_options::of_hosts(specs, &Names { addresses: &addresses, listed: &named })?;
    let requests = match (&own, &differing) {
        (None, None) => vec![request(specs)?; addresses.len()],
        (None, Some(hosts)) => hosts.iter().map(|host| request(&host.specs)).collect::<Result<_, Error>>()?,
        (Some(own), _) => own.iter().map(|own| request(&own.specs)).collect::<Result<_, Error>>()?,
    };
    let goes_on = first.on_host_failure == Some(OnHostFailure::Continue);
    let mut sessions = Sessions::begin(fleet, SessionTerms { goes_on }, &|host| SessionRequest {
        rank: host as u32,
        ..requests[host].clone()
    });
    let name_host = |error: Error| {
        let named = |text: &str| {
            let pairs = addresses.iter().zip(&labels);
            pairs.fold(text.to_owned(), |text, (address, label)| text.replace(&address.to_string(), label))
        };
        error.reworded(named)
    };
    let plans = sessions.plans(&AtomicBool::new(false)).map_err(name_host)?;
    let plans = plans.into_iter().map(read).collect::<Result<Vec<Vec<PlannedPhase>>, Error>>()?;
    own_options::check_workers(&plans)?;
    let (phases, apart) = joined(specs, own.as_deref(), plans, &labels)?;
    programme.phases = phases;
    Leader::check_climb(&programme)?;
    let records = records(&addresses, &labels, &described, differing.unwrap_or_default());
    Ok((
        programme,
        Leader {
            sessions,
            labels,
            records,
            goes_on,
            is_one_machine,
            leaves_others: false,
            seen: SoFar::default(),
            apart,
            stores,
            crew,
            _locals: locals,
        },
    ))
}

/// The specs, with engines of `stores` in place of stores that one process alone can have open. A spec of one host alone keeps its targets.
fn with_shared_targets(specs: &[Spec], stores: &mut SharedStores) -> Result<Vec<Spec>, Error> {
    let mut specs = specs.to_vec();
    for spec in specs.iter_mut().filter(|spec| spec.host.is_none()) {
        if let Ok(layer) = layer::find(spec.layer.name) {
            layer.share_targets(spec, stores)?;
        }
    }
    Ok(specs)
}

/// The first spec, whose hosts are those of all.
fn first_of(specs: &[Spec]) -> Result<Spec, Error> {
    let first = specs.first().cloned().unwrap_or_default();
    let is_other = |spec: &Spec| {
        spec.hosts != first.hosts
            || spec.on_host_failure != first.on_host_failure
            || spec.fingerprints != first.fingerprints
            || spec.rotate_hosts != first.rotate_hosts
    };
    if specs.iter().any(is_other) {
        return Err(Error::usage("hosts", "hosts are set for the whole run").remedy(
            "in a job file, set hosts, fingerprint, rotate_hosts and on_host_failure before the first phase",
        ));
    }
    Ok(first)
}

/// The hosts of the run: those that are named, or the ranks of a launch, as far as they are used; and the certificates that they may show.
fn listed(
    specs: &[Spec],
    first: &Spec,
    crew: Option<&Crew>,
    ranks: Option<u32>,
) -> Result<(Listed, Option<Arc<Trust>>), Error> {
    if let Some(crew) = crew {
        let ranks = ranks.unwrap_or(u32::MAX).min(launcher::ranks());
        let count = used(specs, ranks as usize)?;
        descriptors::make_room(count, 1)?;
        return Ok((Listed::ranks(crew, count as u32)?, None));
    }
    let mut hosts = listed_hosts(&first.hosts, CONTROL_PORT, &|path| read_text(path))?;
    let trust = trust(&first.fingerprints, &hosts)?;
    let named = hosts.clone();
    hosts.truncate(used(specs, hosts.len())?);
    let started = hosts.iter().filter(|host| matches!(host, ListedHost::Local(_))).count();
    descriptors::make_room(hosts.len(), started)?;
    Ok((Listed { named, ..Listed::of(&hosts)? }, trust))
}

/// How many hosts a spec names, as far as they are used, and whether this process starts all of them.
///
/// # Errors
/// Bad usage: lists that cannot be read, and more that are used than there are.
pub(crate) fn named(spec: &Spec) -> Result<(u32, bool), Error> {
    let mut hosts = listed_hosts(&spec.hosts, CONTROL_PORT, &|path| read_text(path))?;
    hosts.truncate(used(std::slice::from_ref(spec), hosts.len())?);
    Ok((hosts.len() as u32, hosts.iter().all(|host| matches!(host, ListedHost::Local(_)))))
}

/// How many of the hosts that there are carry the run out: as many as the phase has that has the most.
fn used(specs: &[Spec], hosts: usize) -> Result<usize, Error> {
    let of_phases = specs.iter().map(|spec| spec.hosts_used.map_or(hosts, |used| used as usize));
    match of_phases.max() {
        None => Ok(hosts),
        Some(used) if used <= hosts => Ok(used),
        Some(used) => {
            let message = format!(
                "--hosts-used {used} exceeds the {} of the run",
                units::counted(hosts as u64, "host")
            );
            Err(Error::usage("hosts", message).remedy(format!("give 1 to {hosts}, or more hosts")))
        }
    }
}

/// The phases of the programme, of the plans of all hosts.
fn joined(
    specs: &[Spec],
    own: Option<&[OwnSpecs]>,
    plans: Vec<Vec<PlannedPhase>>,
    labels: &[String],
) -> Result<(Vec<Planned>, Option<Apart>), Error> {
    if let Some(own) = own {
        let (phases, apart) = Apart::join(specs, own, plans);
        return Ok((phases, Some(apart)));
    }
    check_agreement(&plans, labels)?;
    let phases = plans.into_iter().next().unwrap_or_default().into_iter().enumerate();
    Ok((phases.map(|(number, phase)| phase.planned(number)).collect(), None))
}

/// The certificates that hosts may show: pinned ones, and those of before. Processes that are started for the run have none that lasts.
fn trust(pins: &[String], hosts: &[ListedHost]) -> Result<Option<Arc<Trust>>, Error> {
    let listed = |pin: &str| {
        let host = HostAddress::parse(pin.split_once('=').map_or(pin, |(host, _)| host), CONTROL_PORT)?;
        Ok::<bool, Error>(hosts.contains(&ListedHost::At(host)))
    };
    for pin in pins {
        if !listed(pin)? {
            return Err(Error::usage("fingerprint", format!("{pin:?} names a host that is not in --hosts"))
                .remedy("give HOST=sha256:HEX for a host of --hosts"));
        }
    }
    if hosts.iter().all(|host| matches!(host, ListedHost::Local(_))) {
        return Ok(None);
    }
    // Without a directory for it nothing is remembered.
    Trust::new(pins, CONTROL_PORT, state_file("known_hosts").ok()).map(Arc::new).map(Some)
}

impl Listed {
    /// The ranks of a launch that are below `count`: rank 0 is a process of its own, which the leader starts.
    fn ranks(crew: &Crew, count: u32) -> Result<Self, Error> {
        let (locals, served, secret) = LocalHosts::start(1)?;
        let mut listed = Self {
            addresses: served,
            labels: vec!["rank 0".to_owned()],
            secrets: HashMap::from([(0, secret)]),
            locals: Some(locals),
            all_local: false,
            named: Vec::new(),
        };
        for (rank, address, secret) in crew.ranks(count) {
            listed.secrets.insert(listed.addresses.len(), secret.clone());
            listed.addresses.push(address.clone());
            listed.labels.push(format!("rank {rank}"));
        }
        Ok(listed)
    }

    fn of(hosts: &[ListedHost]) -> Result<Self, Error> {
        let count = hosts.iter().filter(|host| matches!(host, ListedHost::Local(_))).count();
        let (locals, served, secret) = match count {
            0 => (None, Vec::new(), None),
            count => {
                let (locals, served, secret) = LocalHosts::start(count as u32)?;
                (Some(locals), served, Some(secret))
            }
        };
        let all_local = hosts.iter().all(|host| matches!(host, ListedHost::Local(_)));
        let (addresses, labels, secrets) = (Vec::new(), Vec::new(), HashMap::new());
        let mut listed = Self { addresses, labels, secrets, locals, all_local, named: Vec::new() };
        let mut served = served.into_iter();
        for (number, host) in hosts.iter().enumerate() {
            match host {
                ListedHost::At(address) => {
                    listed.labels.push(address.to_string());
                    listed.addresses.push(address.clone());
                }
                ListedHost::Local(local) => {
                    listed.labels.push(format!("local:{local}"));
                    listed.addresses.extend(served.next());
                    listed.secrets.extend(secret.clone().map(|secret| (number, secret)));
                }
            }
        }
        Ok(listed)
    }
}

fn check_reached(fleet: &Fleet, labels: &[String]) -> Result<(), Error> {
    let failed: Vec<(usize, &Error)> = fleet.failures().collect();
    let Some((host, error)) = failed.first() else { return Ok(()) };
    let message = format!("host {}: {error}", labels[*host]);
    let kind = error.kind();
    match failed.len() {
        1 => Err(Error::new(kind, "hosts", message)),
        count => {
            let others: Vec<&str> = failed.iter().skip(1).map(|(host, _)| labels[*host].as_str()).collect();
            Err(Error::new(kind, "hosts", format!("{count} hosts cannot be reached: {message}"))
                .with("others", others.join(" ")))
        }
    }
}

/// Descriptions of all hosts, which must be of this version.
fn describe(fleet: &Fleet, labels: &[String]) -> Result<Vec<Description>, Error> {
    let own = env!("CARGO_PKG_VERSION");
    let described = fleet.describe().into_iter().zip(labels).map(|(description, label)| {
        let description = description
            .map_err(|error| Error::new(error.kind(), "hosts", format!("host {label}: {error}")))?;
        let (theirs, schema) = (&description.strata_version, description.schema_version);
        if theirs != own || schema != SCHEMA_VERSION {
            let message = format!(
                "host {label} runs strata {theirs} (plans of version {schema}), this is strata {own} (plans of version {SCHEMA_VERSION})"
            );
            return Err(Error::new(ErrorKind::Unsupported, "hosts", message)
                .remedy("use the same version of strata on all hosts"));
        }
        Ok(description)
    });
    described.collect()
}

/// Whether all hosts are processes of one machine, as far as they tell.
fn are_one_machine(hosts: &[Description]) -> bool {
    let machine = |host: &Description| {
        let boot = host.environment.pointer("/system/boot_id").and_then(Value::as_str).map(str::to_owned);
        boot.map(|boot| (boot, host.host_name.clone()))
    };
    let first = hosts.first().and_then(machine);
    first.is_some() && hosts.iter().all(|host| machine(host) == first)
}

/// Request to each host, but for its rank.
fn request(
    specs: &[Spec],
    run: u64,
    seed: u64,
    hosts: usize,
    is_one_machine: bool,
    is_elsewhere: bool,
) -> Result<SessionRequest, Error> {
    let shipped = specs.iter().map(|spec| {
        let mut spec = spec.clone();
        let of_phase = spec.hosts_used.filter(|&used| (used as usize) < hosts);
        let of_phase = of_phase.map(|hosts| HostPlace { hosts, ..HostPlace::default() });
        spec.place = spec.place.or(of_phase);
        // What one host carries out is a run of its own there.
        if spec.host.is_none() && is_one_machine {
            spec.host_targets = spec.host_targets.or(Some(HostTargets::Shared));
        }
        if is_elsewhere && let Ok(layer) = layer::find(spec.layer.name) {
            layer.ship(&mut spec);
        }
        // It is the way of the leader to the hosts, unless the layer has ways of its own to others.
        if !options::has_own(spec.layer, "token-file") {
            spec.token_file = None;
        }
        if spec.host.is_some() && !options::has_own(spec.layer, "tls") {
            spec.tls = false;
        }
        ShippedSpec::of(&spec)
    });
    let specs = written(shipped.collect::<Vec<_>>())?.to_string().into_bytes();
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Ok(SessionRequest {
        schema_version: SCHEMA_VERSION,
        run,
        seed,
        started_at: humantime::format_rfc3339_millis(std::time::SystemTime::now()).to_string(),
        specs,
        rank: 0,
        hosts: hosts as u32,
        leader: format!("{name}, process {}", std::process::id()),
        lease: LEASE,
        progress_interval: report_interval(hosts),
    })
}

/// Refuses plans that are not the same but for what only a host can know.
fn check_agreement(plans: &[Vec<PlannedPhase>], labels: &[String]) -> Result<(), Error> {
    let shape = |phases: &Vec<PlannedPhase>| -> Vec<(String, &'static str, &'static str)> {
        let one = |phase: &PlannedPhase| {
            let plan = &phase.plan;
            (plan.name().clone(), plan.layer(), plan.operation_name())
        };
        phases.iter().map(one).collect()
    };
    let Some(first) = plans.first().map(shape) else { return Ok(()) };
    match plans.iter().position(|plan| shape(plan) != first) {
        None => Ok(()),
        Some(host) => {
            let words = |shape: &[(String, &str, &str)]| {
                let names =
                    shape.iter().map(|(name, layer, operation)| format!("{name} ({layer} {operation})"));
                names.collect::<Vec<_>>().join(", ")
            };
            let message = format!(
                "the hosts plan different phases: {} {}, {} {}",
                labels[0],
                words(&first),
                labels[host],
                words(&shape(&plans[host]))
            );
            Err(Error::usage("hosts", message).remedy("check that the targets of all hosts are alike"))
        }
    }
}

fn records(
    addresses: &[HostAddress],
    labels: &[String],
    described: &[Description],
    differing: Vec<HostSpecs>,
) -> Vec<HostRecord> {
    let mut own = differing.into_iter().map(|host| host.options);
    let one = |(rank, ((address, label), description)): (usize, ((&HostAddress, &String), &Description))| {
        HostRecord {
            rank: rank as u32,
            name: label.clone(),
            address: address.to_string(),
            host_name: Some(description.host_name.clone()),
            strata_version: Some(description.strata_version.clone()),
            pid: Some(description.pid),
            options: own.next().unwrap_or_default(),
            ..HostRecord::default()
        }
    };
    addresses.iter().zip(labels).zip(described).enumerate().map(one).collect()
}

/// Notes what is known of a host's clock.
pub(super) fn note_clock(record: &mut HostRecord, clocks: &[(Instant, ClockEstimate)]) {
    let (Some((begun, first)), Some((ended, last))) = (clocks.first(), clocks.last()) else { return };
    record.clock_offset_ns = Some(first.offset_ns);
    record.clock_error_ns = Some(first.uncertainty_ns);
    record.round_trip_ns = clocks.iter().map(|(_, clock)| clock.round_trip_ns).min();
    let seconds = ended.duration_since(*begun).as_secs_f64();
    let ppm = |ns: f64| ns / 1e3 / seconds;
    let is_known = seconds >= DRIFT_SECONDS_MIN
        && ppm((first.uncertainty_ns + last.uncertainty_ns) as f64) <= DRIFT_ERROR_PPM_MAX;
    record.clock_drift_ppm = is_known.then(|| ppm((last.offset_ns - first.offset_ns) as f64));
}
