//! Who is sent to and who drives: from what the user named to endpoints and masters with addresses.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use driver::Error;
use fleet::{ConnectRequest, Fleet, HostAddress};
use host::topology;
use layer::masters::{self, addresses};
use layer::server::{LocalEngine, LocalRequest, split_cores};
use layer::{Control, Tell};
use rpc::address::{Address, Provider};
use rpc::group::{self, GROUP_DEFAULT, Group};
use rpc::interface::{self, Cache, Machine, Overrides, Want};
use rpc::{EndpointPlan, Role, SocketPlan, handshake};
use units::without_password;
use workload::plan::MasterPlan;
use workload::spec::Spec;

use super::link::bound_interface;
use super::resolve::{FIRST_TARGET, targets_of};
use super::run::Access;
use crate::plan::NetworkFacts;
use crate::{NetworkSpec, RankTag, spec};

/// Longest wait for an engine to say who it is.
const ASK_WAIT: Duration = Duration::from_secs(10);

/// Who is sent to and who drives, for all phases of a spec.
#[derive(Clone, Debug)]
pub(super) struct Reach {
    /// Facts that planning must know.
    pub(super) facts: NetworkFacts,
    /// Secrets and settings of the way there.
    pub(super) control: Control,
    /// State that stands in no plan.
    pub(super) access: Arc<Access>,
    /// Processors for workers, where nobody says: those that an engine started here does not use.
    pub(super) worker_cores: Vec<u32>,
    /// Device that sockets must be bound to, where the kernel would take another one.
    pub(super) bind_device: Option<String>,
}

/// Engines found so far: phases that name the same engines share them, and an engine of the run itself is started once.
#[derive(Default)]
pub(super) struct Reaches {
    known: Vec<(Key, Reach)>,
}

/// Key of the engines that are reached: the fields of a spec that decide on them.
type Key = (Vec<String>, NetworkSpec, Option<Vec<u32>>, u64, Way);

/// Options of the way to other processes: masters, the file with the secret, TLS.
type Way = (Vec<String>, Option<PathBuf>, bool);

fn key(spec: &Spec) -> Key {
    let own = spec::of(spec);
    let network = NetworkSpec {
        group: own.group.clone(),
        path: own.path.clone(),
        endpoints: own.endpoints.clone(),
        masters: own.masters.clone(),
        servers: own.servers.clone(),
        poll: own.poll,
        engine_poll: own.engine_poll,
        engine_cores: own.engine_cores.clone(),
        timeout: own.timeout,
        no_sync: own.no_sync,
        provider: own.provider.clone(),
        interface: own.interface.clone(),
        domain: own.domain.clone(),
        ..NetworkSpec::default()
    };
    let way = (spec.clients.clone(), spec.token_file.clone(), spec.tls);
    (spec.targets.clone(), network, spec.cores.clone(), payload_bytes_max(spec).max(1 << 20), way)
}

fn payload_bytes_max(spec: &Spec) -> u64 {
    let sizes = spec::of(spec).message_sizes.iter().flat_map(|(request, reply)| [request, reply]);
    sizes.map(|payload| payload.size_bytes).max().unwrap_or(0)
}

impl Reaches {
    /// Finds whom a spec names.
    ///
    /// # Errors
    /// Bad usage, and engines that cannot be found.
    pub(super) fn find(&mut self, spec: &Spec, tell: Tell) -> Result<Reach, Error> {
        let key = key(spec);
        if let Some((_, reach)) = self.known.iter().find(|(known, _)| *known == key) {
            return Ok(reach.clone());
        }
        let reach = Finder::new(spec, tell)?.find()?;
        self.known.push((key, reach.clone()));
        Ok(reach)
    }
}

/// The endpoints of a spec, and what came with them.
#[derive(Default)]
struct Found {
    provider: String,
    endpoints: Vec<EndpointPlan>,
    group: Option<String>,
    engine: Option<LocalEngine>,
    worker_cores: Vec<u32>,
}

struct Finder<'a> {
    spec: &'a Spec,
    own: &'a NetworkSpec,
    control: Control,
    timeout: Duration,
    tell: Tell,
}

fn usage(message: impl Into<String>) -> Error {
    Error::usage("plan", message)
}

impl<'a> Finder<'a> {
    fn new(spec: &'a Spec, tell: Tell) -> Result<Self, Error> {
        let own = spec::of(spec);
        let control = masters::control(spec)?;
        let timeout =
            own.timeout.map_or(ASK_WAIT, |timeout| Duration::from_nanos(timeout.ns()).min(ASK_WAIT));
        Ok(Self { spec, own, control, timeout, tell })
    }

    fn find(self) -> Result<Reach, Error> {
        self.check()?;
        let found = self.endpoints()?;
        if let Some(asked) = self.own.provider.as_ref().filter(|asked| **asked != found.provider) {
            return Err(usage(format!("the engines use {}, not {asked}", found.provider))
                .remedy("leave out --provider, or start engines with it"));
        }
        let masters = self.masters()?;
        let registration = super::driver_of(&found.provider)?;
        let mut reach = Reach {
            facts: NetworkFacts {
                provider: found.provider,
                engine: registration.name.to_owned(),
                asynchronous: registration.capabilities.asynchronous,
                depth_max: registration.capabilities.depth_max,
                endpoints: found.endpoints,
                masters,
                interface: None,
                group: found.group,
                memory_bytes: host::memory::memory().total_bytes,
            },
            control: self.control.clone(),
            access: Arc::default(),
            worker_cores: found.worker_cores,
            bind_device: None,
        };
        let mut access = Access {
            is_asked_first: !self.own.no_sync
                && reach.facts.masters.is_empty()
                && reach.facts.engine != "null",
            engine: found.engine,
            ..Access::default()
        };
        // Masters choose their own.
        if reach.facts.masters.is_empty() {
            self.choose_interface(&mut reach, &mut access)?;
        }
        reach.access = Arc::new(access);
        Ok(reach)
    }

    /// Refuses what does not go together.
    fn check(&self) -> Result<(), Error> {
        let (own, targets) = (self.own, &self.spec.targets);
        let by_group = own.group.is_some() || own.path.is_some();
        let is_own = |target: &String| target == "loopback:" || target == "null:";
        let wrong = [
            (
                !targets.is_empty() && !own.servers.is_empty(),
                "a target and --servers both set where to send: use one of them",
            ),
            (
                by_group && !own.servers.is_empty(),
                "--servers are addressed by host, not by group: leave out --group and --path",
            ),
            (
                !own.endpoints.is_empty() && !own.servers.is_empty(),
                "--endpoint refers to ranks of a group, --servers to hosts: use one of them",
            ),
            (
                !own.masters.is_empty() && !self.spec.clients.is_empty(),
                "--master and --clients both set who generates the load: use one of them",
            ),
            (
                !own.endpoints.is_empty() && targets.iter().any(|target| !is_own(target)),
                "--endpoint refers to ranks of a group, but an address refers to one engine: use one of them",
            ),
            (
                targets.len() > 1 && targets.iter().any(is_own),
                "loopback: and null: cannot be combined with other targets",
            ),
            (
                targets.iter().any(is_own) && (!own.masters.is_empty() || !self.spec.clients.is_empty()),
                "loopback: and null: are driven by this process: leave out --master and --clients",
            ),
        ];
        match wrong.iter().find(|(is_wrong, _)| *is_wrong) {
            Some((_, message)) => Err(usage(*message)),
            None => Ok(()),
        }
    }

    fn endpoints(&self) -> Result<Found, Error> {
        let own = self.own;
        if !own.servers.is_empty() {
            return self.by_servers();
        }
        match self.spec.targets.first().map(String::as_str) {
            Some("null:") => Ok(self.nobody()),
            Some("loopback:") => self.loopback(),
            Some(_) => self.by_addresses(),
            None if self.names_group() => self.by_group(),
            None => self.loopback(),
        }
    }

    fn names_group(&self) -> bool {
        let own = self.own;
        own.group.is_some() || own.path.is_some() || !own.endpoints.is_empty() || !own.masters.is_empty()
    }

    /// Endpoints that are nowhere.
    fn nobody(&self) -> Found {
        let endpoints = if self.own.endpoints.is_empty() {
            vec![RankTag { rank: 0, tag: FIRST_TARGET }]
        } else {
            self.own.endpoints.clone()
        };
        let plan = |RankTag { rank, tag }: RankTag| EndpointPlan {
            rank,
            tag,
            uri: "null:".to_owned(),
            label: format!("{rank}:{tag}"),
        };
        let endpoints = endpoints.into_iter().map(plan).collect();
        Found { provider: "null".to_owned(), endpoints, ..Found::default() }
    }

    /// An engine of the run itself, with as many targets as are named.
    fn loopback(&self) -> Result<Found, Error> {
        let own = self.own;
        let wanted = if own.endpoints.is_empty() {
            vec![RankTag { rank: 0, tag: FIRST_TARGET }]
        } else {
            own.endpoints.clone()
        };
        if wanted.iter().any(|endpoint| endpoint.rank != 0) {
            return Err(usage("loopback: is one engine, rank 0").remedy("use --endpoint 0:TAGS"));
        }
        let tags = wanted.iter().map(|endpoint| endpoint.tag + 1).max().unwrap_or(3);
        let taken = if self.spec.numa.is_some() { Some(&[][..]) } else { self.spec.cores.as_deref() };
        let (cores, worker_cores) = split_cores(taken, own.engine_cores.as_deref());
        let provider = own.provider.as_deref().unwrap_or("tcp");
        let engine = LocalEngine::start(&LocalRequest {
            pool: None,
            provider,
            targets: tags.saturating_sub(FIRST_TARGET).max(1),
            cores,
            poll: own.engine_poll.or(own.poll).unwrap_or_default(),
            token_file: self.spec.token_file.as_deref(),
            payload_bytes_max: payload_bytes_max(self.spec),
        })?;
        let plan = |RankTag { rank, tag }: RankTag| EndpointPlan {
            rank,
            tag,
            uri: engine.uri().to_owned(),
            label: format!("{rank}:{tag}"),
        };
        let endpoints = wanted.into_iter().map(plan).collect();
        Ok(Found {
            provider: provider.to_owned(),
            endpoints,
            engine: Some(engine),
            worker_cores,
            ..Found::default()
        })
    }

    /// Ranks and tags of a group, by its file.
    fn by_group(&self) -> Result<Found, Error> {
        let group = self.group()?;
        let endpoints = if self.own.endpoints.is_empty() {
            targets_of(&group)?
        } else {
            let named = self.own.endpoints.iter();
            named.map(|endpoint| group.endpoint(endpoint.rank, endpoint.tag)).collect::<Result<_, _>>()?
        };
        let provider = common_provider(&endpoints)?;
        Ok(Found { provider, endpoints, group: Some(group.name), ..Found::default() })
    }

    fn group(&self) -> Result<Group, Error> {
        group::lookup(self.own.path.as_deref(), self.own.group.as_deref().unwrap_or(GROUP_DEFAULT))
    }

    /// The engines at these addresses: each is asked which rank it is, and for its first target.
    fn by_addresses(&self) -> Result<Found, Error> {
        let mut endpoints = Vec::new();
        for uri in &self.spec.targets {
            let address = Address::parse(uri).map_err(|_| {
                usage(format!("{:?} is not an address of an engine", without_password(uri))).remedy(
                    "use tcp://HOST:PORT or ofi+PROVIDER://HOST:PORT, loopback: or null:, or a group by --group or --endpoint",
                )
            })?;
            if endpoints.iter().any(|known: &EndpointPlan| known.uri == address.to_string()) {
                return Err(usage("an engine is listed twice").with("address", uri));
            }
            endpoints.push(self.ask(&address)?);
        }
        let ranks: Vec<u32> = endpoints.iter().map(|endpoint| endpoint.rank).collect();
        let is_unique = |rank: u32| ranks.iter().filter(|&&other| other == rank).count() == 1;
        for endpoint in &mut endpoints {
            let place = endpoint.uri.split_once("://").map_or(endpoint.uri.as_str(), |(_, place)| place);
            endpoint.label = if is_unique(endpoint.rank) {
                format!("{}:{}", endpoint.rank, endpoint.tag)
            } else {
                place.to_owned()
            };
        }
        let provider = common_provider(&endpoints)?;
        Ok(Found { provider, endpoints, ..Found::default() })
    }

    /// Which rank is at an address, and whether it has a target.
    fn ask(&self, address: &Address) -> Result<EndpointPlan, Error> {
        let uri = address.to_string();
        let never = AtomicBool::new(false);
        let knock = |tag: u32| {
            let endpoint = EndpointPlan { rank: u32::MAX, tag, uri: uri.clone(), label: uri.clone() };
            let secret = self.control.secret.as_ref();
            let timeout_ns = u64::try_from(self.timeout.as_nanos()).unwrap_or(u64::MAX);
            let socket = SocketPlan::default();
            handshake::connect(&endpoint, Role::Messages, [0; 16], &[], &socket, secret, timeout_ns, &never)
        };
        let found = |rank: u32, tag: u32| EndpointPlan { rank, tag, uri: uri.clone(), label: uri.clone() };
        match knock(FIRST_TARGET) {
            Ok(connected) => Ok(found(connected.rank, FIRST_TARGET)),
            Err(error) if error.errno() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
                knock(0).map(|connected| found(connected.rank, 0))
            }
            // Fabrics take no messages over sockets, but the door says who is behind it.
            Err(error) if error.errno() == Some(rustix::io::Errno::PROTONOSUPPORT.raw_os_error()) => {
                match handshake::probe(&uri, self.timeout) {
                    handshake::Probe::Engine { rank, .. } => Ok(found(rank, FIRST_TARGET)),
                    _ => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Servers by their control addresses: where their data goes, they say.
    fn by_servers(&self) -> Result<Found, Error> {
        let hosts = addresses("servers", &self.own.servers)?;
        let fleet = self.connect(hosts.clone())?;
        let mut engines = Vec::new();
        for (host, described) in hosts.iter().zip(fleet.describe()) {
            let described = described?;
            let uri = described.data_uri.as_deref().ok_or_else(|| {
                usage("this server has no endpoints").with("server", host).remedy("start it as an engine")
            })?;
            let mut address = Address::parse(uri)?;
            // By its own name of itself it may not be known here; by the one that it was reached by, it is.
            if address.host == described.host_name {
                address.host = host.host().to_owned();
            }
            let targets = FIRST_TARGET..FIRST_TARGET + described.targets;
            let tags = if targets.is_empty() { 0..1 } else { targets };
            engines.push((described.rank.unwrap_or(0), address.to_string(), host.to_string(), tags));
        }
        // One endpoint of each server after the other, so that workers are dealt out over the servers.
        let most = engines.iter().map(|(.., tags)| tags.len()).max().unwrap_or(0);
        let mut endpoints = Vec::new();
        for number in 0..most {
            for (rank, uri, label, tags) in &engines {
                let Some(tag) = tags.clone().nth(number) else { continue };
                endpoints.push(EndpointPlan { rank: *rank, tag, uri: uri.clone(), label: label.clone() });
            }
        }
        let provider = common_provider(&endpoints)?;
        Ok(Found { provider, endpoints, ..Found::default() })
    }

    fn connect(&self, hosts: Vec<HostAddress>) -> Result<Fleet, Error> {
        Fleet::connect(ConnectRequest {
            hosts,
            secret: self.control.secret.clone(),
            tls: self.control.tls,
            timeout: self.timeout,
        })
    }

    /// Who drives, without their endpoints; nobody but this process when empty.
    fn masters(&self) -> Result<Vec<MasterPlan>, Error> {
        let own = self.own;
        if own.masters.is_empty() {
            return masters::clients(self.spec);
        }
        let group = self.group()?;
        let master = |master: &RankTag| {
            let endpoint = group.endpoint(master.rank, master.tag)?;
            let control = group.rank(master.rank)?.control.clone().ok_or_else(|| {
                usage(format!("rank {} of group {} has no control address", master.rank, group.name))
                    .remedy("only strata engines can generate a load")
            })?;
            Ok(MasterPlan {
                label: endpoint.label,
                control,
                rank: Some(master.rank),
                tag: Some(master.tag),
                endpoints: Vec::new(),
            })
        };
        own.masters.iter().map(master).collect()
    }

    /// The interface that the load goes through. What a person should know goes to standard error and into the notes.
    fn choose_interface(&self, reach: &mut Reach, access: &mut Access) -> Result<(), Error> {
        let own = self.own;
        let mut overrides = Overrides::from_environment(own.interface.as_deref(), own.domain.as_deref());
        reach.control.domain = overrides.domain.as_ref().map(|asked| asked.name.clone());
        if reach.facts.engine == "null" {
            return Ok(());
        }
        let cache = Cache::from_environment();
        let found = cache.find(&Machine::default(), &super::providers)?;
        if let Some(asked) = bound_interface(own, &found.scan) {
            overrides.interface = Some(asked);
        }
        let targets = interface::targets(reach.facts.endpoints.iter().map(|endpoint| endpoint.uri.as_str()));
        let core = self.spec.cores.as_ref().and_then(|cores| cores.first().copied());
        let place = match core {
            Some(core) => topology::place(&topology::numa_nodes(), &[], Some(core)),
            None => topology::current_place(),
        };
        let want = Want { provider: &reach.facts.provider, place, targets: &targets, overrides: &overrides };
        let decision = interface::choose(&found.scan, &want, &mut cache.turns(true))?;
        access.notes = found.messages.into_iter().chain(decision.messages).collect();
        for message in &access.notes {
            (self.tell)(format_args!("strata: {message}"));
        }
        if let Some(choice) = decision.choice {
            reach.facts.interface = Some(choice.plan());
            // An address that no interface has, such as 127.0.0.2, says nothing of a device.
            let may_bind = own.bind_address.is_none() || overrides.interface.is_some();
            reach.bind_device = (choice.needs_binding && may_bind).then(|| choice.name.clone());
            if reach.facts.engine == "ofi" {
                reach.control.domain = Some(choice.domain);
            }
        }
        Ok(())
    }
}

/// The provider of all endpoints.
fn common_provider(endpoints: &[EndpointPlan]) -> Result<String, Error> {
    let mut providers: Vec<Provider> = Vec::new();
    for endpoint in endpoints {
        let provider = Address::parse(&endpoint.uri)?.provider;
        if !providers.contains(&provider) {
            providers.push(provider);
        }
    }
    match &providers[..] {
        [one] => Ok(one.to_string()),
        [] => Err(usage("there are no endpoints")),
        [one, other, ..] => Err(usage(format!("the engines use different providers: {one}, {other}"))
            .remedy("use engines of one provider, and a separate run for each other provider")),
    }
}
