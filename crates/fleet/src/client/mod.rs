//! The side of the coordinator. It blocks its caller; the connections live on threads of their own.

pub(crate) mod connect;
mod host;
mod run;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use driver::{Error, Secret};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

pub use host::HostEnd;
pub use run::{HostOutcome, HostProgress, HostStage, OnRefusal, RunPolicy};

use crate::address::HostAddress;
use crate::clock::ClockEstimate;
use crate::messages::{Description, PlanMessage, line};
use crate::trust::Trust;
use crate::wire;
use connect::{Link, Terms, call};
use host::Sink;
use run::{Member, Run};

/// Events of hosts that wait for the coordinator.
const EVENTS: usize = 256;

/// How long a clock that is looked at again may take.
const CLOCK_WAIT: Duration = Duration::from_secs(1);

/// Clocks that are looked at, at a time: questions that wait for each other here would look like a long way.
const CLOCKS_MAX: usize = 64;

/// Questions to all hosts in one look at their clocks, about, where each gets two at least: a start waits for them.
const QUESTIONS_MAX: usize = 4096;
const QUESTIONS_MIN: usize = 2;

/// Hosts for which one thread carries the connections, and the most of such threads: connections that are not looked after for 5 s break.
const HOSTS_BY_THREAD: usize = 512;
const THREADS_MAX: usize = 4;

/// Hosts that are connected at a time: a service puts out who does not prove itself in 10 s, which the handshakes of thousands at once can exceed.
const CONNECTS_MAX: usize = 64;

/// Whom to connect, and how.
#[derive(Clone, Debug)]
pub struct ConnectRequest {
    /// The hosts. Their places in this list are their numbers in all that follows.
    pub hosts: Vec<HostAddress>,
    /// The shared secret. Needed beyond loopback.
    pub secret: Option<Secret>,
    /// Whether TLS is used on this machine as well; beyond it, it always is.
    pub tls: bool,
    /// How long a host may take until both sides have proven themselves.
    pub timeout: Duration,
}

/// Hosts that can be told what to do. Calls block, and must not come from within an async runtime.
pub struct Fleet {
    hosts: Vec<Host>,
    runtime: Option<Runtime>,
}

/// One host, reached or not.
struct Host {
    address: HostAddress,
    link: Result<Link, Error>,
}

impl Fleet {
    /// Connects all hosts, 64 at a time. A host that cannot be reached is in [`Fleet::failures`] and hinders no other.
    ///
    /// # Errors
    ///
    /// The thread of the connections cannot be started.
    pub fn connect(request: ConnectRequest) -> Result<Self, Error> {
        Self::connect_with(request, &HashMap::new(), None)
    }

    /// As [`Fleet::connect`], where hosts, by number, have secrets of their own, and with services known by their certificates; those that are met
    /// for the first time are noted.
    ///
    /// # Errors
    ///
    /// As with [`Fleet::connect`], or the list of known hosts cannot be written.
    pub fn connect_with(
        request: ConnectRequest,
        host_secrets: &HashMap<usize, Secret>,
        trust: Option<Arc<Trust>>,
    ) -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads((request.hosts.len() / HOSTS_BY_THREAD + 1).min(THREADS_MAX))
            .max_blocking_threads(16)
            .thread_name("fleet")
            .enable_all()
            .build()
            .map_err(|error| Error::system("connect", "cannot start the thread of the connections", error))?;
        let ConnectRequest { hosts, secret, tls, timeout } = request;
        let turns = Arc::new(Semaphore::new(CONNECTS_MAX));
        let links = together(&runtime, hosts.iter().cloned().enumerate(), |(number, host)| {
            let secret = host_secrets.get(&number).or(secret.as_ref()).cloned();
            // One with a secret of its own was started for this connection, with a certificate that does not last.
            let trust = if host_secrets.contains_key(&number) { None } else { trust.clone() };
            let (terms, turns) = (Terms { secret, tls, trust }, Arc::clone(&turns));
            async move {
                // It is never closed.
                let _turn = turns.acquire().await;
                connect::connect(&host, &terms, timeout).await
            }
        });
        if let Some(trust) = trust {
            trust.save()?;
        }
        let hosts = hosts.into_iter().zip(links).map(|(address, link)| Host { address, link }).collect();
        Ok(Self { hosts, runtime: Some(runtime) })
    }

    /// Hosts, reached or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hosts.len()
    }

    /// Whether it has no hosts at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// Addresses of the hosts, by their numbers.
    pub fn addresses(&self) -> impl Iterator<Item = &HostAddress> {
        self.hosts.iter().map(|host| &host.address)
    }

    /// Hosts that were not reached, by number, and why.
    pub fn failures(&self) -> impl Iterator<Item = (usize, &Error)> {
        self.hosts.iter().enumerate().filter_map(|(number, host)| Some((number, host.link.as_ref().err()?)))
    }

    /// A host's clock against that of this process, as it was when the host was connected.
    #[must_use]
    pub fn clock(&self, host: usize) -> Option<ClockEstimate> {
        self.hosts.get(host)?.link.as_ref().ok().map(|link| link.clock)
    }

    /// Descriptions of the hosts.
    ///
    /// # Errors
    ///
    /// By host: it was not reached, did not answer in 10 s, or cannot be understood.
    #[must_use]
    pub fn describe(&self) -> Vec<Result<Description, Error>> {
        self.each(|host, mut link| async move {
            let answer = call(&host, "describe", link.calls.describe(wire::DescribeRequest {})).await?;
            Description::from_wire(answer)
        })
    }

    /// Ends the running job of each host, whoever started it; gives its name, or none where no job ran.
    ///
    /// # Errors
    ///
    /// By host: as with [`Fleet::describe`], or the agent does not allow it.
    #[must_use]
    pub fn interrupt(&self) -> Vec<Result<Option<String>, Error>> {
        self.each(|host, mut link| async move {
            let answer = call(&host, "interrupt", link.calls.interrupt(wire::InterruptRequest {})).await?;
            Ok(answer.job.map(|job| line(&job)))
        })
    }

    /// Ends the process on each host.
    ///
    /// # Errors
    ///
    /// By host: as with [`Fleet::describe`], or the agent does not end on demand.
    #[must_use]
    pub fn quit(&self) -> Vec<Result<(), Error>> {
        self.each(|host, mut link| async move {
            call(&host, "quit", link.calls.quit(wire::QuitRequest {})).await.map(drop)
        })
    }

    /// Runs a plan on each of the hosts named by number, all started together, and returns when each has ended, in the
    /// order of `plans`. `observe` sees all of them about every 100 ms, on this thread. When `interrupt` is raised they
    /// are told to stop, and what they measured until then is still collected.
    ///
    /// # Errors
    ///
    /// A number that is no host's, or a host that is named twice. What goes wrong on a host is in its outcome.
    pub fn run(
        &self,
        plans: Vec<(usize, PlanMessage)>,
        policy: &RunPolicy,
        observe: &mut dyn FnMut(&[HostProgress]),
        interrupt: &AtomicBool,
    ) -> Result<Vec<HostOutcome>, Error> {
        let mut named = vec![false; self.hosts.len()];
        for (number, _) in &plans {
            let is_new = named.get_mut(*number).is_some_and(|named| !std::mem::replace(named, true));
            if !is_new {
                return Err(Error::usage(
                    "run",
                    format!("host number {number} is not one host of the fleet, once"),
                )
                .with("hosts", self.hosts.len()));
            }
        }
        let runtime = self.runtime();
        let (sender, events) = mpsc::channel(EVENTS);
        let members = plans
            .into_iter()
            .enumerate()
            .map(|(place, (number, plan))| {
                let sink = Sink { place, events: sender.clone() };
                self.enlist(runtime, number, plan, sink)
            })
            .collect();
        Ok(Run::new(members, events, policy).finish(runtime, observe, interrupt))
    }

    fn enlist(&self, runtime: &Runtime, number: usize, plan: PlanMessage, sink: Sink) -> Member {
        let host = &self.hosts[number];
        let (commands, received) = mpsc::channel(4);
        let (task, end) = match &host.link {
            Ok(link) => {
                let work = host::drive(host.address.clone(), link.clone(), plan, received, sink);
                (Some(runtime.spawn(work)), None)
            }
            Err(error) => (None, Some(HostEnd::Failed(line(&error.to_string())))),
        };
        let stage = if end.is_some() { HostStage::Ended } else { HostStage::Preparing };
        Member {
            progress: HostProgress {
                host: number,
                address: host.address.clone(),
                stage,
                report: None,
                failure: end.as_ref().and_then(HostEnd::failure).map(str::to_owned),
            },
            clock: self.clock(number),
            commands: Some(commands),
            task,
            end,
            notes: Vec::new(),
            started_unix_ns: None,
            heard: Instant::now(),
        }
    }

    /// Asks all hosts at once.
    fn each<T, F>(&self, ask: impl Fn(HostAddress, Link) -> F) -> Vec<Result<T, Error>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        together(self.runtime(), self.hosts.iter(), |host| {
            let asked = match &host.link {
                Ok(link) => Ok(ask(host.address.clone(), link.clone())),
                Err(error) => {
                    let said = line(&error.to_string());
                    Err(Error::new(error.kind(), "connect", said.strip_prefix("connect: ").unwrap_or(&said)))
                }
            };
            async move { asked?.await }
        })
    }

    /// A host and the way to it.
    pub(crate) fn host(&self, number: usize) -> (&HostAddress, &Result<Link, Error>) {
        let Host { address, link } = &self.hosts[number];
        (address, link)
    }

    /// Runs work on the threads of the connections.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        self.runtime().spawn(work)
    }

    /// Waits for work on this thread.
    pub(crate) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime().block_on(work)
    }

    /// Looks at the clocks of all hosts; none of those that do not answer.
    pub(crate) fn read_clocks(&self) -> Vec<Option<ClockEstimate>> {
        let turns = Arc::new(Semaphore::new(CLOCKS_MAX));
        let questions = (QUESTIONS_MAX / self.len().max(1)).clamp(QUESTIONS_MIN, connect::PINGS);
        let read = self.each(|host, mut link| {
            let turns = Arc::clone(&turns);
            async move {
                // It is never closed.
                let _turn = turns.acquire().await;
                let read =
                    tokio::time::timeout(CLOCK_WAIT, connect::read_clock(&mut link.calls, questions)).await;
                let unread =
                    || Error::new(driver::ErrorKind::Run, "clock", "it was not read").with("host", &host);
                read.map_err(|_| unread())?.map_err(|_| unread())
            }
        });
        read.into_iter().map(Result::ok).collect()
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it is taken only when the fleet is dropped")
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // A name that is still being looked up must not hold up the end.
            runtime.shutdown_background();
        }
    }
}

/// The results of futures that run at the same time, in the order of what they were made of.
fn together<I, T, F>(
    runtime: &Runtime,
    items: impl Iterator<Item = I>,
    ask: impl Fn(I) -> F,
) -> Vec<Result<T, Error>>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Error>> + Send + 'static,
{
    let tasks: Vec<_> = items.map(|item| runtime.spawn(ask(item))).collect();
    tasks
        .into_iter()
        .map(|task| {
            runtime.block_on(task).unwrap_or_else(|error| {
                Err(Error::system("fleet", "the call ended early", std::io::Error::other(error.to_string())))
            })
        })
        .collect()
}
