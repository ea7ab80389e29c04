//! `strata engine`: a server process, from its options to its end.

mod agent;

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use clap::{ArgMatches, Command};
use driver::Error;
use fleet::{Certificate, ControlRequest, ControlServer, state_file};
use layer::command::{arguments, fill, table_as_markdown};
use layer::server::{ENGINE, EngineSpec, Served, background};
use layer::{Console, Ending, ServerOptions, Tell, secret};
use rpc::address::Provider;
use rpc::engine::{Engine, EngineRequest, ServiceFactory};
use rpc::group::{self, GROUP_DEFAULT};
use rpc::interface::{Cache, Machine, Overrides};
use rpc::measure::Measure;
use rpc::{Limits, SocketPlan, TagMap};

use workload::options;

use crate::providers;
use agent::EngineAgent;

/// Targets where no number is given.
const TARGETS: u32 = 1;

/// The command.
pub(super) fn command() -> Command {
    Command::new("engine")
        .about("Run a server (target and load generator) until interrupted")
        .args(arguments(ENGINE))
}

/// Its options as Markdown.
pub(super) fn document(text: &mut String) {
    table_as_markdown("Options of `strata engine`", ENGINE, text);
}

/// Serves as the words say.
///
/// # Errors
/// Bad usage, and when the engine cannot begin.
pub(super) fn run(matches: &ArgMatches, console: &dyn Console) -> Result<u8, Error> {
    let mut spec = EngineSpec::default();
    fill(ENGINE, matches, &mut spec)?;
    serve(&spec, console)
}

/// Serves as the words of another tool say.
///
/// # Errors
/// As for [`run`].
pub(super) fn run_for(asked: &ServerOptions<'_>, console: &dyn Console) -> Result<u8, Error> {
    let mut spec = EngineSpec {
        token_file: asked.token_file.clone(),
        banner: Some(asked.banner.clone()),
        ..EngineSpec::default()
    };
    let mut said = asked.options.iter();
    said.try_for_each(|(name, text)| options::apply_of(ENGINE, &mut spec, name, text))
        .map_err(|error| Error::usage(asked.tool, error.to_string()))?;
    serve(&spec, console)
}

/// Serves until it is told to end.
fn serve(spec: &EngineSpec, console: &dyn Console) -> Result<u8, Error> {
    if let Some(path) = &spec.background
        && !background::is_detached()
    {
        return background::start(console.words(), path).and_then(|line| console.print(&line)).map(|()| 0);
    }
    background::settle()?;
    let ending = console.ending(spec.until_stdin_closes)?;
    let running = Running::start(spec, console, &ending)?;
    console.print(&format!("{}\n", running.first_line(spec)))?;
    background::release(spec.background.is_some())?;
    let why = ending.receiver.recv().unwrap_or_else(|_| "no event is left to wait for".to_owned());
    log(console.tell(), &format!("ends: {why}"));
    running.stop()?;
    Ok(0)
}

/// Says something on standard error, with the time.
fn log(tell: Tell, text: &str) {
    tell(format_args!("{} {text}", humantime::format_rfc3339_millis(SystemTime::now())));
}

/// An engine that serves, with its control channel.
struct Running {
    engine: Engine,
    control: ControlServer,
    attach_info: Option<PathBuf>,
    group: String,
    served: Option<Box<dyn Served>>,
}

impl Running {
    fn start(spec: &EngineSpec, console: &dyn Console, ending: &Ending) -> Result<Self, Error> {
        let tell = console.tell();
        let log = move |text: &str| log(tell, text);
        let secret = secret::shared_or_environment(spec.token_file.as_deref())?;
        let group = spec.group.clone().unwrap_or_else(|| GROUP_DEFAULT.to_owned());
        let overrides = Overrides::from_environment(spec.interface.as_deref(), spec.domain.as_deref());
        let place = place(spec, &overrides)?;
        if secret.is_none() {
            place.check_without_secret()?;
        }
        let served = served(spec, &log)?;
        served.iter().flat_map(|served| served.findings()).for_each(|finding| log(&finding));
        if secret.is_some() {
            served.iter().filter_map(|served| served.exposure()).for_each(|exposure| log(&exposure));
        }
        let targets = served.as_ref().map_or(spec.targets.unwrap_or(TARGETS), |served| served.targets());
        let services = match &served {
            Some(served) => served.services()?,
            None => measuring(),
        };
        let attach_info_dir = (!spec.no_attach_info).then(|| group::attach_info_dir(spec.path.as_deref()));
        let mut request = EngineRequest {
            rank: spec.rank.unwrap_or(0),
            group: group.clone(),
            provider: Provider::parse(spec.provider.as_deref().unwrap_or("tcp"))?,
            tags: TagMap::new(targets, spec.helpers.unwrap_or(0))?,
            listen: place.listen.clone(),
            advertise: place.advertise.clone(),
            cores: spec.cores.clone().unwrap_or_default(),
            poll: spec.poll.unwrap_or_default(),
            limits: limits(spec),
            socket: SocketPlan {
                send_buffer_bytes: spec.send_buffer.map(|size| size.0),
                receive_buffer_bytes: spec.receive_buffer.map(|size| size.0),
                no_delay: true,
                ..SocketPlan::default()
            },
            secret: secret.clone(),
            attach_info_dir: attach_info_dir.clone(),
            interface: place.interface.clone(),
            domain: overrides.domain.as_ref().map(|asked| asked.name.clone()),
            ..EngineRequest::new(services, Arc::new(log))
        };
        let agent = Arc::new(EngineAgent::new(
            &request,
            secret.clone(),
            (console.context(false), console.host()),
            ending.sender.clone(),
        ));
        let certificate = secret.is_some().then(|| kept_certificate(&log)).flatten();
        let control = ControlRequest {
            listen: place.control,
            secret,
            tls: spec.tls,
            agent: Arc::clone(&agent) as Arc<dyn fleet::Agent>,
            log: Arc::new(log),
        };
        let control = ControlServer::start_with(control, fleet::ServerOptions { certificate, audit: None })?;
        request.control = Some(told(control.address(), place.advertise.as_deref()));
        let engine = Engine::start(request)?;
        agent.serves_at(engine.uri());
        let attach_info = attach_info_dir.map(|directory| group::attach_info_path(&directory, &group));
        Ok(Self { engine, control, attach_info, group, served })
    }

    /// `engine: rank 0 of daos_server serves 3 tags (0 metadata, 1 monitoring, 2 target) at tcp://127.0.0.1:31416, control
    /// 127.0.0.1:31417, attach info /tmp/daos_server.attach_info_tmp`
    fn first_line(&self, spec: &EngineSpec) -> String {
        if let Some(banner) = &spec.banner {
            return banner.clone();
        }
        let tags = self.engine.tags().to_string();
        let tags = match tags.split_once(": ") {
            Some((count, names)) => format!("{count} ({names})"),
            None => tags,
        };
        let attach_info = match &self.attach_info {
            Some(path) => format!(", attach info {}", path.display()),
            None => String::new(),
        };
        let served = self.served.as_ref().map_or_else(String::new, |served| served.words());
        format!(
            "engine: rank {} of {} serves {tags} at {}, control {}{attach_info}{served}",
            self.engine.rank(),
            self.group,
            self.engine.uri(),
            self.control.address()
        )
    }

    /// Ends a job that it runs, then the endpoints, then closes the data.
    fn stop(self) -> Result<(), Error> {
        let Self { engine, control, served, .. } = self;
        control.stop();
        engine.stop();
        // Data that they still hold go with them.
        drop(engine);
        served.map_or(Ok(()), Served::close)
    }
}

/// The certificate that services of this user keep, by which leaders know the host again; none, and so a new one, where it cannot be kept.
fn kept_certificate(log: &dyn Fn(&str)) -> Option<Certificate> {
    let kept = state_file("service.crt")
        .and_then(|certificate| Certificate::load_or_make(&certificate, &state_file("service.key")?));
    kept.map_err(|error| log(&format!("using a temporary certificate for this start: {error}"))).ok()
}

/// Services of an engine that serves no data.
fn measuring() -> ServiceFactory {
    Arc::new(|_| Box::new(Measure::new()))
}

/// Data of the layer whose services the options ask for.
fn served(spec: &EngineSpec, log: &dyn Fn(&str)) -> Result<Option<Box<dyn Served>>, Error> {
    for service in layer::all().into_iter().filter_map(|layer| layer.engine_service()) {
        if let Some(served) = service.open(spec, log)? {
            return Ok(Some(served));
        }
    }
    Ok(None)
}

/// Where an engine is.
struct ListenOptions {
    listen: Vec<SocketAddr>,
    control: String,
    advertise: Option<String>,
    interface: Option<String>,
}

impl ListenOptions {
    /// Beyond loopback nobody may listen without a shared secret.
    fn check_without_secret(&self) -> Result<(), Error> {
        match self.listen.iter().find(|address| !address.ip().is_loopback()) {
            None => Ok(()),
            Some(address) => Err(Error::usage("engine", "listening beyond loopback requires a shared token")
                .with("listen", address)
                .remedy("use --token-file FILE, the same on all hosts, or --listen 127.0.0.1:0")),
        }
    }
}

/// Where the options say: at an address, at an interface, else on loopback.
fn place(spec: &EngineSpec, overrides: &Overrides) -> Result<ListenOptions, Error> {
    let interface = overrides.interface.as_ref().map(|asked| asked.name.clone());
    let listen = match (&spec.listen, &interface) {
        (Some(address), _) => address.clone(),
        (None, Some(name)) => address_of(name)?,
        (None, None) => "127.0.0.1:0".to_owned(),
    };
    let resolved: Vec<SocketAddr> = listen
        .to_socket_addrs()
        .map_err(|error| {
            Error::system("engine", "cannot resolve the listen address", error).with("listen", &listen)
        })?
        .collect();
    let (host, _) = listen.rsplit_once(':').unwrap_or((&listen, ""));
    let is_name = resolved.iter().all(|address| address.ip().to_string() != host.trim_matches(['[', ']']));
    let advertise =
        (is_name && !resolved.iter().all(|address| address.ip().is_loopback())).then(|| host.to_owned());
    let control = spec.control.clone().unwrap_or_else(|| format!("{host}:0"));
    // A name has several addresses, one a family; each port is drawn once, so an ephemeral one is of the first address alone.
    let listen =
        if resolved.iter().any(|address| address.port() == 0) { resolved[..1].to_vec() } else { resolved };
    Ok(ListenOptions { listen, control, advertise, interface })
}

/// An address of an interface of this machine, with a free port.
fn address_of(interface: &str) -> Result<String, Error> {
    let found = Cache::from_environment().find(&Machine::default(), &providers)?;
    let wrong = |message: &str| {
        let names: Vec<&str> =
            found.scan.interfaces.iter().map(|found| found.interface.name.as_str()).collect();
        Error::usage("engine", message)
            .with("interface", interface)
            .remedy(format!("available interfaces: {}", names.join(", ")))
    };
    let scanned = found.scan.interface(interface).ok_or_else(|| wrong("the interface does not exist"))?;
    let addresses = scanned.interface.addresses.iter().map(|own| own.address);
    let best = addresses.min_by_key(|address| match address {
        std::net::IpAddr::V4(_) => 0,
        std::net::IpAddr::V6(v6) if v6.is_unicast_link_local() => 2,
        std::net::IpAddr::V6(_) => 1,
    });
    let address = best.ok_or_else(|| wrong("the interface has no address"))?;
    Ok(SocketAddr::new(address, 0).to_string())
}

fn limits(spec: &EngineSpec) -> Limits {
    let own = Limits::default();
    let inline_bytes_max = spec.message_size_max.and_then(|size| u32::try_from(size.0).ok());
    Limits {
        inline_bytes_max: inline_bytes_max.unwrap_or(own.inline_bytes_max),
        bulk_bytes_max: spec.bulk_size_max.map_or(own.bulk_bytes_max, |size| size.0),
        connections_max: spec.connections_max.unwrap_or(own.connections_max),
        memory_bytes_max: spec.memory_max.map_or(own.memory_bytes_max, |size| size.0),
        ..own
    }
}

/// The control address as others are told it.
fn told(address: SocketAddr, advertise: Option<&str>) -> String {
    match advertise {
        Some(host) if !address.ip().is_loopback() => format!("{host}:{}", address.port()),
        None if address.ip().is_unspecified() => {
            let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
            format!("{host}:{}", address.port())
        }
        _ => address.to_string(),
    }
}
