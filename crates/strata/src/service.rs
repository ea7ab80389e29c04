//! `strata service`: a process that takes part in runs that others lead.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;
use std::time::SystemTime;

use clap::ArgMatches;
use driver::{Error, ErrorKind, Secret};
use fleet::{
    Agent, ControlRequest, ControlServer, Description, PlanMessage, Prepared, Role, SessionHost,
    SessionRequest,
};
use host::Environment;
use layer::command::{arguments, fill};
use layer::masters::{self, CONTROL_PORT, MasterSettings};
use layer::{Control, SCHEMA_VERSION, secret};
use workload::options::{Group, OptionDef, path, switch};
use workload::spec::Spec;

use crate::hosts::ThisHost;
use crate::manifest::Manifest;
use crate::output::{print, tell};
use crate::{lifetime, planning};

/// Word before the address in the first line.
pub(crate) const CONTROL_LINE: &str = "control ";

/// Options of a service.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServiceSpec {
    listen: Option<String>,
    token_file: Option<PathBuf>,
    tls: bool,
    destroy_data: bool,
    until_stdin_closes: bool,
}

/// Options of `strata service`.
pub(crate) static SERVICE: &[OptionDef<ServiceSpec>] = &[
    OptionDef {
        group: Group::Run,
        ..OptionDef::new(
            "listen",
            "HOST:PORT",
            "127.0.0.1:1611",
            "Where it takes leaders; port 0 is a free one",
            |spec, text| {
                spec.listen = Some(text.to_owned());
                Ok(())
            },
        )
    },
    OptionDef {
        group: Group::Run,
        ..OptionDef::new(
            "token-file",
            "FILE",
            "none",
            "File with the secret that leaders must know; needed beyond loopback",
            |spec: &mut ServiceSpec, text| {
                spec.token_file = Some(path("token-file", text)?);
                Ok(())
            },
        )
    },
    OptionDef {
        group: Group::Run,
        ..OptionDef::new(
            "tls",
            "",
            "off on loopback, on beyond it",
            "TLS for control on loopback too",
            |spec: &mut ServiceSpec, text| {
                spec.tls = switch("tls", text)?;
                Ok(())
            },
        )
    },
    OptionDef {
        group: Group::Run,
        ..OptionDef::new(
            "destroy-data",
            "",
            "off",
            "Let leaders write to devices and files that carry data of others, where they ask for it",
            |spec: &mut ServiceSpec, text| {
                spec.destroy_data = switch("destroy-data", text)?;
                Ok(())
            },
        )
    },
    OptionDef {
        group: Group::Run,
        ..OptionDef::new(
            "until-stdin-closes",
            "",
            "off",
            "End when standard input is closed, as well as by a signal",
            |spec: &mut ServiceSpec, text| {
                spec.until_stdin_closes = switch("until-stdin-closes", text)?;
                Ok(())
            },
        )
    },
];

/// The command.
pub(crate) fn command() -> clap::Command {
    clap::Command::new("service")
        .about("Take part in runs that others lead with --hosts, until told to end")
        .args(arguments(SERVICE))
        .arg(
            clap::Arg::new("local")
                .long("local")
                .action(clap::ArgAction::SetTrue)
                .hide(true)
                .help("For the process that starts it: the secret comes by standard input"),
        )
}

/// A session that a leader asks for.
pub(crate) struct SessionAsked<'a> {
    /// Where the leader is.
    pub(crate) peer: SocketAddr,
    /// The request.
    pub(crate) request: &'a SessionRequest,
    /// Specs that it is to carry out.
    pub(crate) specs: &'a [Spec],
}

/// Rules for what leaders may have this process do.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServicePolicy {
    /// Writes to devices and files that carry data of others, where a spec asks for it.
    pub(crate) may_destroy_data: bool,
}

impl ServicePolicy {
    /// The policy of a process that the leader's user has started for it alone.
    pub(crate) fn of_user() -> Self {
        Self { may_destroy_data: true }
    }

    /// Whether a session may begin; nothing was planned or touched yet.
    ///
    /// # Errors
    /// What this process does not do.
    pub(crate) fn admit(&self, asked: &SessionAsked<'_>) -> Result<(), Error> {
        if !self.may_destroy_data && asked.specs.iter().any(|spec| spec.destroy_data) {
            return Err(Error::new(ErrorKind::Unsafe, "service", "this service destroys no data of others")
                .with("leader", &asked.request.leader)
                .with("peer", asked.peer)
                .remedy("start it with --destroy-data, or leave --destroy-data out"));
        }
        Ok(())
    }
}

/// Serves until it is told to end.
pub(crate) fn run(matches: &ArgMatches) -> Result<u8, Error> {
    let mut spec = ServiceSpec::default();
    fill(SERVICE, matches, &mut spec)?;
    let is_local = matches.get_flag("local");
    let (secret, policy) = if is_local {
        (spec.listen, spec.until_stdin_closes) = (Some("127.0.0.1:0".to_owned()), true);
        (Some(told_secret()?), ServicePolicy::of_user())
    } else {
        let policy = ServicePolicy { may_destroy_data: spec.destroy_data };
        (secret::shared(spec.token_file.as_deref())?, policy)
    };
    let ending = lifetime::begin(spec.until_stdin_closes)?;
    let agent = ServiceAgent::new(policy, secret.clone(), ending.sender.clone());
    let log = move |line: &str| {
        // The leader tells what becomes of its own processes.
        if !is_local {
            tell(format_args!("{} {line}", humantime::format_rfc3339_millis(SystemTime::now())));
        }
    };
    let server = ControlServer::start(ControlRequest {
        listen: spec.listen.unwrap_or_else(|| format!("127.0.0.1:{CONTROL_PORT}")),
        secret,
        tls: spec.tls,
        agent: Arc::new(agent),
        log: Arc::new(log),
    })?;
    print(&format!("service: strata {}, {CONTROL_LINE}{}\n", env!("CARGO_PKG_VERSION"), server.address()))?;
    let why = ending.receiver.recv().unwrap_or_else(|_| "nothing is left to wait for".to_owned());
    log(&format!("ends: {why}"));
    server.stop();
    Ok(0)
}

/// The secret that the process which started this one tells it.
fn told_secret() -> Result<Secret, Error> {
    let mut line = String::new();
    std::io::stdin()
        .read_line(&mut line)
        .map_err(|error| Error::system("service", "cannot read the secret from standard input", error))?;
    Secret::new(line.trim_end().as_bytes())
        .ok_or_else(|| Error::usage("service", "no secret came by standard input"))
}

/// This process as its callers see it.
pub(crate) struct ServiceAgent {
    host: Arc<ThisHost>,
    masters: MasterSettings,
    end: Sender<String>,
}

impl ServiceAgent {
    /// A process with this policy; `end` takes why it is told to end.
    pub(crate) fn new(policy: ServicePolicy, secret: Option<Secret>, end: Sender<String>) -> Self {
        let context = planning::context(&Arc::<Manifest>::default(), false);
        let control = Control { secret, tls: false, domain: None };
        let masters = MasterSettings { context, control, cores: Vec::new() };
        Self { host: Arc::new(ThisHost { policy }), masters, end }
    }
}

impl Agent for ServiceAgent {
    fn describe(&self) -> Description {
        Description {
            role: Role::Service,
            strata_version: env!("CARGO_PKG_VERSION").to_owned(),
            schema_version: SCHEMA_VERSION,
            host_name: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            pid: std::process::id(),
            rank: None,
            group: None,
            data_uri: None,
            tags: 0,
            targets: 0,
            environment: serde_json::to_value(Environment::gather(&[])).unwrap_or_default(),
        }
    }

    fn prepare(&self, plan: PlanMessage, _stop: &Arc<AtomicBool>) -> Result<Box<dyn Prepared>, Error> {
        masters::prepare(&plan, &self.masters)
    }

    fn host(&self) -> Option<Arc<dyn SessionHost>> {
        Some(Arc::clone(&self.host) as Arc<dyn SessionHost>)
    }

    fn quit(&self) -> Result<(), Error> {
        // When nobody waits any more the process is ending already.
        let _ = self.end.send("told to over the control channel".to_owned());
        Ok(())
    }
}
