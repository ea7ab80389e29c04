//! `strata engine`: a server process, from its options to its end.

mod agent;
pub(crate) mod lifetime;
mod options;
mod pool;
mod spec;

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use driver::Error;
use fleet::{ControlRequest, ControlServer};
use layer::secret;
use network::background;
use rpc::address::Provider;
use rpc::engine::{Engine, EngineRequest};
use rpc::group::{self, GROUP_DEFAULT};
use rpc::interface::{Cache, Machine, Overrides};
use rpc::{Limits, SocketPlan, TagMap};
pub(crate) use spec::EngineSpec;

use crate::output::{print, tell};
use agent::EngineAgent;
use lifetime::Lifetime;
pub(crate) use options::ENGINE;
use pool::ServedPool;

/// Targets where no number is given.
const TARGETS: u32 = 1;

/// Serves until it is told to end. `words` are those that this process was called with.
///
/// # Errors
/// When the engine cannot begin.
pub(crate) fn run(words: &[String], spec: &EngineSpec) -> Result<u8, Error> {
    if let Some(path) = &spec.background
        && !background::is_detached()
    {
        return background::start(words, path).and_then(|line| print(&line)).map(|()| 0);
    }
    background::settle()?;
    let lifetime = Lifetime::begin(spec.until_stdin_closes)?;
    let running = Running::start(spec, &lifetime)?;
    print(&format!("{}\n", running.first_line(spec)))?;
    background::release(spec.background.is_some())?;
    let why = lifetime.wait();
    log(&format!("ends: {why}"));
    running.stop()?;
    Ok(0)
}

/// Says something on standard error, with the time.
fn log(text: &str) {
    tell(format_args!("{} {text}", humantime::format_rfc3339_millis(SystemTime::now())));
}

/// An engine that serves, with its control channel.
struct Running {
    engine: Engine,
    control: ControlServer,
    attach_info: Option<PathBuf>,
    group: String,
    pool: Option<ServedPool>,
}

impl Running {
    fn start(spec: &EngineSpec, lifetime: &Lifetime) -> Result<Self, Error> {
        let secret = secret::shared(spec.token_file.as_deref())?;
        let group = spec.group.clone().unwrap_or_else(|| GROUP_DEFAULT.to_owned());
        let overrides = Overrides::from_environment(spec.interface.as_deref(), spec.domain.as_deref());
        let place = place(spec, &overrides)?;
        if secret.is_none() {
            place.check_without_secret()?;
        }
        let pool = ServedPool::open(spec)?;
        pool.iter().flat_map(ServedPool::findings).for_each(|finding| log(&finding));
        if secret.is_some() {
            pool.iter().filter_map(ServedPool::exposure).for_each(|exposure| log(&exposure));
        }
        let targets = pool.as_ref().map_or(spec.targets.unwrap_or(TARGETS), ServedPool::targets);
        let services = pool.as_ref().map_or_else(|| Ok(pool::measuring()), ServedPool::services)?;
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
        let agent = Arc::new(EngineAgent::new(&request, secret.clone(), lifetime.teller()));
        let control = ControlServer::start(ControlRequest {
            listen: place.control,
            secret,
            tls: spec.tls,
            agent: Arc::clone(&agent) as Arc<dyn fleet::Agent>,
            log: Arc::new(log),
        })?;
        request.control = Some(told(control.address(), place.advertise.as_deref()));
        let engine = Engine::start(request)?;
        agent.serves_at(engine.uri());
        let attach_info = attach_info_dir.map(|directory| group::attach_info_path(&directory, &group));
        Ok(Self { engine, control, attach_info, group, pool })
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
        let pool = self.pool.as_ref().map_or_else(String::new, ServedPool::words);
        format!(
            "engine: rank {} of {} serves {tags} at {}, control {}{attach_info}{pool}",
            self.engine.rank(),
            self.group,
            self.engine.uri(),
            self.control.address()
        )
    }

    /// Ends a job that it runs, then the endpoints, then the pool.
    fn stop(self) -> Result<(), Error> {
        let Self { engine, control, pool, .. } = self;
        control.stop();
        engine.stop();
        // What they still hold of the pool goes with them.
        drop(engine);
        pool.map_or(Ok(()), ServedPool::close)
    }
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
            Some(address) => Err(Error::usage("engine", "listening beyond loopback needs a shared token")
                .with("listen", address)
                .remedy("give --token-file FILE, the same on all hosts, or --listen 127.0.0.1:0")),
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
            Error::system("engine", "cannot resolve the address to listen at", error).with("listen", &listen)
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
    let found = Cache::from_environment().find(&Machine::default(), &network::providers)?;
    let wrong = |message: &str| {
        let names: Vec<&str> =
            found.scan.interfaces.iter().map(|found| found.interface.name.as_str()).collect();
        Error::usage("engine", message)
            .with("interface", interface)
            .remedy(format!("the interfaces are {}", names.join(", ")))
    };
    let scanned = found.scan.interface(interface).ok_or_else(|| wrong("there is no such interface"))?;
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
