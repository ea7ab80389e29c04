//! `strata service`: a process that takes part in runs that others lead.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;
use std::time::SystemTime;

use clap::ArgMatches;
use driver::{Error, ErrorKind, Secret};
use fleet::{
    Agent, Audit, Certificate, ControlRequest, ControlServer, Description, PlanMessage, Prepared, Role,
    ServerOptions, SessionHost, state_file,
};
use host::Environment;
use layer::command::{arguments, fill};
use layer::masters::CONTROL_PORT;
use layer::{ConfinedPaths, Confinement, NetworkPolicy, SCHEMA_VERSION, ServicePolicy, secret};
use rustix::process::{Resource, Rlimit, setrlimit};
use units::human::human_bytes;
use units::{ByteSize, ParseError};
use workload::engine::Feature;
use workload::options::value::{above_zero, count, feature, words};
use workload::options::{Group, OptionDef, path, switch};

use crate::hosts::ThisHost;
use crate::lifetime;
use crate::output::{print, tell};

/// Word before the address in the first line.
pub(crate) const CONTROL_LINE: &str = "control ";

/// Why a service is not confined.
const CANNOT_CONFINE: &str =
    "this kernel cannot confine a service (Landlock of Linux 6.2 or newer is missing or switched off)";

/// Options of a service.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServiceSpec {
    listen: Option<String>,
    token_file: Option<PathBuf>,
    tls: bool,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    audit: Option<PathBuf>,
    roots: Vec<PathBuf>,
    allow_destroy: bool,
    network: NetworkPolicy,
    threads_max: Option<u32>,
    time_ns_max: Option<u64>,
    memory_bytes_max: Option<u64>,
    confine: Feature,
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
            "Address for leaders; port 0 selects a free port",
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
            "$STRATA_TOKEN_FILE, $STRATA_TOKEN, otherwise none",
            "File with the secret that leaders must know; required beyond loopback",
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
            "off on loopback, otherwise on",
            "Use TLS for the control channel on loopback too",
            |spec: &mut ServiceSpec, text| {
                spec.tls = switch("tls", text)?;
                Ok(())
            },
        )
    },
    OptionDef {
        group: Group::Run,
        ..OptionDef::new(
            "certificate",
            "FILE",
            "$XDG_STATE_HOME/strata/service.crt, created at the first start",
            "TLS certificate (PEM, its chain may follow); --key gives the key",
            |spec: &mut ServiceSpec, text| {
                spec.certificate = Some(path("certificate", text)?);
                Ok(())
            },
        )
    },
    OptionDef {
        group: Group::Run,
        ..OptionDef::new(
            "key",
            "FILE",
            "$XDG_STATE_HOME/strata/service.key",
            "Key of --certificate (PEM), readable only by its owner",
            |spec: &mut ServiceSpec, text| {
                spec.key = Some(path("key", text)?);
                Ok(())
            },
        )
    },
    OptionDef {
        group: Group::Run,
        ..OptionDef::new(
            "audit",
            "FILE",
            "none",
            "Log of callers and runs, one JSON line per event; rotated at 16 MiB",
            |spec: &mut ServiceSpec, text| {
                spec.audit = Some(path("audit", text)?);
                Ok(())
            },
        )
    },
    OptionDef {
        group: Group::Run,
        ..OptionDef::new(
            "root",
            "DIR",
            "none: paths are rejected",
            "Directory or device that runs of leaders may use, including everything below it; may be repeated",
            |spec: &mut ServiceSpec, text| {
                spec.roots.push(path("root", text)?);
                Ok(())
            },
        )
    },
    OptionDef {
        group: Group::Run,
        ..OptionDef::new(
            "confine",
            "auto|on|off",
            "auto: if the kernel supports it",
            "Let the kernel deny all paths outside the roots (Landlock); on: start only if the kernel supports it",
            |spec: &mut ServiceSpec, text| {
                spec.confine = feature("confine", text)?;
                Ok(())
            },
        )
    },
    OptionDef {
        group: Group::Run,
        ..OptionDef::new(
            "allow-destroy",
            "",
            "off",
            "Let leaders write to devices and files with existing data, if they request it (--destroy-data)",
            |spec: &mut ServiceSpec, text| {
                spec.allow_destroy = switch("allow-destroy", text)?;
                Ok(())
            },
        )
    },
    OptionDef {
        group: Group::Run,
        ..OptionDef::new(
            "allow-network",
            "all|TARGET,...",
            "none",
            "Network targets that runs of leaders may reach, each as a prefix, such as s3://bucket or node7:1611",
            |spec: &mut ServiceSpec, text| {
                spec.network = match text {
                    "all" => NetworkPolicy::All,
                    targets => NetworkPolicy::Targets(words("allow-network", targets)?),
                };
                Ok(())
            },
        )
    },
    OptionDef {
        group: Group::Run,
        ..OptionDef::new(
            "threads-max",
            "N",
            "no limit",
            "Maximum number of workers of a phase on this host",
            |spec: &mut ServiceSpec, text| {
                spec.threads_max = Some(count("threads-max", text, 1, u64::from(u32::MAX))?);
                Ok(())
            },
        )
    },
    OptionDef {
        group: Group::Run,
        ..OptionDef::new(
            "time-max",
            "DURATION",
            "no limit",
            "Maximum duration of a phase; phases that end by amount also require --time",
            |spec: &mut ServiceSpec, text| {
                spec.time_ns_max = Some(above_zero("time-max", text, "10m")?.ns());
                Ok(())
            },
        )
    },
    OptionDef {
        group: Group::Run,
        ..OptionDef::new(
            "memory-max",
            "SIZE",
            "no limit",
            "Maximum private memory of this process; a run whose buffers need more fails, and the service continues",
            |spec: &mut ServiceSpec, text| {
                spec.memory_bytes_max = Some(memory_max(text)?);
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
            "End when standard input is closed, or on a signal",
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
        .about("Serve runs that other machines start with --hosts, until interrupted")
        .args(arguments(SERVICE))
        .arg(
            clap::Arg::new("local")
                .long("local")
                .action(clap::ArgAction::SetTrue)
                .hide(true)
                .help("For the process that starts it: read the secret from standard input"),
        )
}

/// Least memory that a service runs in, in bytes: its threads and the results of a run.
const MEMORY_BYTES_MIN: u64 = 256 << 20;

fn memory_max(text: &str) -> Result<u64, ParseError> {
    let bytes = text.parse::<ByteSize>()?.0;
    if bytes < MEMORY_BYTES_MIN {
        return Err(ParseError::new("a limit of memory", text, "256MiB or more"));
    }
    Ok(bytes)
}

/// Has the kernel refuse private writable memory beyond this many bytes (`RLIMIT_DATA`): buffers, heap and stacks. Files that are mapped do not count.
fn limit_memory(bytes_max: u64) -> Result<(), Error> {
    let limit = Rlimit { current: Some(bytes_max), maximum: Some(bytes_max) };
    setrlimit(Resource::Data, limit).map_err(|error| {
        Error::system("service", "cannot limit the memory of this process", error)
            .with("bytes", bytes_max)
            .remedy("use a --memory-max below the limit of the shell (ulimit -H -d), or leave it out")
    })
}

impl ServiceSpec {
    /// Rules for what leaders may have this process do.
    fn policy(&self) -> Result<ServicePolicy, Error> {
        let mut policy = ServicePolicy::new(&self.roots)?;
        policy.allow_destroy = self.allow_destroy;
        policy.network = self.network.clone();
        (policy.threads_max, policy.time_ns_max) = (self.threads_max, self.time_ns_max);
        Ok(policy)
    }

    /// Has the kernel hold this process to the paths of the policy and to its own. None where that is not wanted, or the kernel cannot.
    fn confinement(&self, policy: &ServicePolicy) -> Result<Option<Confinement>, Error> {
        if self.confine == Feature::Off {
            return Ok(None);
        }
        // Without one there are no manifests, and runs that would need one are refused.
        let state = crate::manifest::directory_to_write().ok();
        let audit = self.audit.as_deref().map(|file| match file.parent() {
            Some(directory) if !directory.as_os_str().is_empty() => directory,
            _ => Path::new("."),
        });
        let paths = ConfinedPaths { roots: policy.roots(), state: state.as_deref(), audit };
        match Confinement::begin(paths)? {
            None if self.confine == Feature::On => {
                Err(Error::new(ErrorKind::Unsupported, "service", CANNOT_CONFINE)
                    .remedy("leave out --confine on: paths are then checked by name only"))
            }
            found => Ok(found),
        }
    }

    /// The certificate of its TLS; none where there is no token, and so no TLS.
    fn certificate(&self, has_secret: bool) -> Result<Option<Certificate>, Error> {
        match (&self.certificate, &self.key) {
            (None, None) if !has_secret => Ok(None),
            (None, None) => {
                let (certificate, key) = (state_file("service.crt")?, state_file("service.key")?);
                Certificate::load_or_make(&certificate, &key).map(Some)
            }
            (Some(_), Some(_)) if !has_secret => {
                Err(Error::usage("service", "a certificate is used for TLS, which requires the shared token")
                    .remedy("give --token-file FILE too, or leave out --certificate and --key"))
            }
            (Some(certificate), Some(key)) => Certificate::load(certificate, key).map(Some),
            _ => Err(Error::usage("service", "--certificate and --key require each other")
                .remedy("give --certificate FILE and --key FILE")),
        }
    }
}

/// Words of the first line between the version and the address.
fn terms(
    policy: Option<&ServicePolicy>,
    confinement: Option<&Confinement>,
    certificate: Option<&Certificate>,
) -> String {
    let mut text = String::new();
    match policy {
        None => {}
        Some(policy) if policy.roots().is_empty() => text += "no paths (no --root is given), ",
        Some(policy) => {
            let roots: Vec<String> =
                policy.roots().iter().map(|root| units::label_of(root.as_os_str())).collect();
            text += &format!("paths below {}, ", roots.join(" and "));
        }
    }
    if policy.is_some() {
        text += if confinement.is_some() { "confined, " } else { "not confined, " };
    }
    if let Some(certificate) = certificate {
        text += &format!("certificate {}, ", certificate.fingerprint());
    }
    text
}

/// Serves until it is told to end.
pub(crate) fn run(matches: &ArgMatches) -> Result<u8, Error> {
    let mut spec = ServiceSpec::default();
    fill(SERVICE, matches, &mut spec)?;
    let is_local = matches.get_flag("local");
    let (secret, policy) = if is_local {
        (spec.listen, spec.until_stdin_closes) = (Some("127.0.0.1:0".to_owned()), true);
        // It belongs to the leader's user, who may do here what they may do there.
        (Some(told_secret()?), None)
    } else {
        (secret::shared_or_environment(spec.token_file.as_deref())?, Some(spec.policy()?))
    };
    let certificate = if is_local { None } else { spec.certificate(secret.is_some())? };
    let audit = spec.audit.as_deref().map(|path| Audit::file(path, Audit::BYTES_MAX_DEFAULT)).transpose()?;
    if let Some(bytes_max) = spec.memory_bytes_max {
        limit_memory(bytes_max)?;
    }
    // What is confined are threads that begin afterwards.
    let confinement = policy.as_ref().map(|policy| spec.confinement(policy)).transpose()?.flatten();
    if policy.is_some() && confinement.is_none() && spec.confine == Feature::Auto {
        tell(format_args!("service: {CANNOT_CONFINE}: paths are checked by name only"));
    }
    let ending = lifetime::begin(spec.until_stdin_closes)?;
    let mut first_line = terms(policy.as_ref(), confinement.as_ref(), certificate.as_ref());
    if let Some(bytes_max) = spec.memory_bytes_max {
        first_line += &format!("at most {} of memory, ", human_bytes(bytes_max as f64));
    }
    let agent = ServiceAgent::new(policy, confinement, ending.sender.clone());
    let log = move |line: &str| {
        // The leader tells what becomes of its own processes.
        if !is_local {
            tell(format_args!("{} {line}", humantime::format_rfc3339_millis(SystemTime::now())));
        }
    };
    let request = ControlRequest {
        listen: spec.listen.unwrap_or_else(|| format!("127.0.0.1:{CONTROL_PORT}")),
        secret,
        tls: spec.tls,
        agent: Arc::new(agent),
        log: Arc::new(log),
    };
    let server =
        ControlServer::start_with(request, ServerOptions { certificate, audit: audit.map(Arc::new) })?;
    let version = env!("CARGO_PKG_VERSION");
    print(&format!("service: strata {version}, {first_line}{CONTROL_LINE}{}\n", server.address()))?;
    let why = ending.receiver.recv().unwrap_or_else(|_| "no client is left".to_owned());
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
        .ok_or_else(|| Error::usage("service", "standard input contains no secret"))
}

/// This process as its callers see it.
pub(crate) struct ServiceAgent {
    host: Arc<ThisHost>,
    end: Sender<String>,
}

impl ServiceAgent {
    /// A process with this policy, or with none where the leader's user has started it for the run alone; `end` takes why it is told to end.
    pub(crate) fn new(
        policy: Option<ServicePolicy>,
        confinement: Option<Confinement>,
        end: Sender<String>,
    ) -> Self {
        Self { host: Arc::new(ThisHost { policy, confinement }), end }
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

    fn prepare(&self, _plan: PlanMessage, _stop: &Arc<AtomicBool>) -> Result<Box<dyn Prepared>, Error> {
        Err(Error::usage("service", "a service supports only runs with --hosts")
            .remedy("name it in --hosts; --clients and --master are for engines"))
    }

    fn host(&self) -> Option<Arc<dyn SessionHost>> {
        Some(Arc::clone(&self.host) as Arc<dyn SessionHost>)
    }

    fn quit(&self) -> Result<(), Error> {
        // When nobody waits any more the process is ending already.
        let _ = self.end.send("requested over the control channel".to_owned());
        Ok(())
    }
}
