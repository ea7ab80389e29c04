//! The thread that watches.

use std::io::{self, PipeReader};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use driver::Error;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::conversation::Conversation;
use super::tally::Tally;
use super::{ServerReading, Shared, WatchRequest};
use crate::EndpointPlan;
use crate::handshake::{self, Connected};
use crate::inbox::Role;

/// How often new connections are looked for while some come about.
const CONNECT_LOOK: Duration = Duration::from_millis(10);

/// Where the connection to an endpoint is.
enum Link {
    /// There is none; one is tried for from then on.
    Closed(Instant),
    Connecting,
    Open(Conversation),
    /// The endpoint takes no questions.
    Deaf,
}

struct Watched {
    plan: EndpointPlan,
    link: Link,
    tally: Tally,
    failure: Option<String>,
}

/// The outcome of an attempt to connect: server, endpoint.
type Attempt = (usize, usize, Result<Connected, Error>);

/// The state of the thread.
pub(super) struct Watcher {
    request: Arc<WatchRequest>,
    shared: Arc<Shared>,
    wake: PipeReader,
    servers: Vec<Vec<Watched>>,
    attempts: (Sender<Attempt>, Receiver<Attempt>),
    connecting: Vec<std::thread::JoinHandle<()>>,
    phase: u64,
}

impl Watcher {
    pub(super) fn new(request: WatchRequest, shared: Arc<Shared>, wake: PipeReader) -> Self {
        let now = Instant::now();
        let watched = |plan: &EndpointPlan| Watched {
            plan: plan.clone(),
            link: Link::Closed(now),
            tally: Tally::default(),
            failure: None,
        };
        let servers = request.servers.iter().map(|server| server.endpoints.iter().map(watched).collect());
        let (servers, request) = (servers.collect(), Arc::new(request.clone()));
        Self { request, shared, wake, servers, attempts: channel(), connecting: Vec::new(), phase: 0 }
    }

    /// Watches until the other end of the pipe is closed.
    pub(super) fn run(mut self) {
        let mut next_round = Instant::now();
        while !self.shared.stop.load(Ordering::SeqCst) {
            self.take_attempts();
            let now = Instant::now();
            self.connect(now);
            if now >= next_round {
                self.ask(now);
                next_round = now + self.request.interval;
            }
            self.publish();
            let wait = next_round.saturating_duration_since(Instant::now());
            self.listen(if self.connecting.is_empty() { wait } else { wait.min(CONNECT_LOOK) });
        }
        // They look at the same flag, and end within a moment.
        for thread in self.connecting {
            let _ = thread.join();
        }
    }

    /// Begins to connect to the endpoints that have no connection, one thread a server: a server that is silent holds up nobody else.
    fn connect(&mut self, now: Instant) {
        self.connecting.retain(|thread| !thread.is_finished());
        for (number, server) in self.servers.iter_mut().enumerate() {
            if server.iter().any(|endpoint| matches!(endpoint.link, Link::Connecting)) {
                continue;
            }
            let mut plans = Vec::new();
            for (index, endpoint) in server.iter_mut().enumerate() {
                if matches!(endpoint.link, Link::Closed(due) if due <= now) {
                    endpoint.link = Link::Connecting;
                    plans.push((index, endpoint.plan.clone()));
                }
            }
            if plans.is_empty() {
                continue;
            }
            let (request, shared) = (Arc::clone(&self.request), Arc::clone(&self.shared));
            let sender = self.attempts.0.clone();
            let spawned = std::thread::Builder::new()
                .name("watch-connect".to_owned())
                .stack_size(256 << 10)
                .spawn(move || connect_all(number, plans, &request, &shared, &sender));
            match spawned {
                Ok(thread) => self.connecting.push(thread),
                Err(error) => {
                    let retry = now + self.request.timeout;
                    server.iter_mut().for_each(|endpoint| endpoint.unspawned(&error, retry));
                }
            }
        }
    }

    fn take_attempts(&mut self) {
        while let Ok((server, index, attempt)) = self.attempts.1.try_recv() {
            let retry = Instant::now() + self.request.timeout;
            let endpoint = &mut self.servers[server][index];
            match attempt {
                Ok(connected) => {
                    let mut conversation = Conversation::new(connected.stream, endpoint.plan.tag);
                    match conversation.ask(Instant::now(), self.request.timeout) {
                        Ok(()) => endpoint.link = Link::Open(conversation),
                        Err(error) => endpoint.fail(&error, retry),
                    }
                }
                Err(error) if error.errno() == Some(libc::EPROTONOSUPPORT) => endpoint.link = Link::Deaf,
                Err(error) => {
                    let errno = error.errno().map(io::Error::from_raw_os_error);
                    endpoint.fail(&errno.unwrap_or_else(|| io::Error::other(error.to_string())), retry);
                }
            }
        }
    }

    fn ask(&mut self, now: Instant) {
        for endpoint in self.servers.iter_mut().flatten() {
            if let Link::Open(conversation) = &mut endpoint.link
                && let Err(error) = conversation.ask(now, self.request.timeout)
            {
                endpoint.fail(&error, now + self.request.timeout);
            }
        }
    }

    /// Waits for answers, for `wait` at most, and takes them.
    fn listen(&mut self, wait: Duration) {
        let mut ready = Vec::new();
        {
            let mut watched = vec![PollFd::new(&self.wake, PollFlags::IN)];
            let mut places = Vec::new();
            for (server, endpoints) in self.servers.iter().enumerate() {
                for (index, endpoint) in endpoints.iter().enumerate() {
                    if let Link::Open(conversation) = &endpoint.link {
                        watched.push(PollFd::new(conversation.stream(), PollFlags::IN));
                        places.push((server, index));
                    }
                }
            }
            let span = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
            // Interrupted or refused: the next round comes anyway.
            if poll(&mut watched, Some(&span)).is_ok() {
                let answered = places.iter().zip(&watched[1..]);
                ready.extend(answered.filter(|(_, fd)| !fd.revents().is_empty()).map(|(place, _)| *place));
            }
        }
        for (server, index) in ready {
            let now = Instant::now();
            self.servers[server][index].receive(now, now + self.request.timeout);
        }
    }

    /// Hands over the readings.
    fn publish(&mut self) {
        let mut latest = self.shared.latest();
        if latest.phase != self.phase {
            self.phase = latest.phase;
            self.servers.iter_mut().flatten().for_each(|endpoint| endpoint.tally.begin_phase());
        }
        let servers = self.request.servers.iter().zip(&self.servers);
        latest.readings = servers.map(|(server, endpoints)| reading(&server.label, endpoints)).collect();
    }
}

impl Watched {
    fn receive(&mut self, now: Instant, retry: Instant) {
        let Link::Open(conversation) = &mut self.link else { return };
        match conversation.receive() {
            Ok(None) => {}
            Ok(Some(statistics)) => {
                self.failure = None;
                self.tally.take(now, statistics);
            }
            Err(error) => self.fail(&error, retry),
        }
    }

    fn fail(&mut self, error: &io::Error, retry: Instant) {
        self.link = Link::Closed(retry);
        self.tally.interrupt();
        let text = error.to_string();
        self.failure = Some(text.split(" (os error").next().unwrap_or_default().to_owned());
    }

    fn unspawned(&mut self, error: &io::Error, retry: Instant) {
        if matches!(self.link, Link::Connecting) {
            self.fail(error, retry);
        }
    }
}

/// Connects to the endpoints of one server in turn. Where one cannot be reached, the others of the same host are not waited for.
fn connect_all(
    server: usize,
    plans: Vec<(usize, EndpointPlan)>,
    request: &WatchRequest,
    shared: &Shared,
    sender: &Sender<Attempt>,
) {
    let timeout_ns = u64::try_from(request.timeout.as_nanos()).unwrap_or(u64::MAX);
    let mut is_silent = false;
    for (index, plan) in plans {
        let attempt = if is_silent {
            let error = io::Error::from_raw_os_error(libc::ETIMEDOUT);
            Err(Error::system("watch", "another endpoint of the server does not answer", error))
        } else {
            handshake::new_session().and_then(|session| {
                let (socket, secret) = (&request.socket, request.secret.as_ref());
                handshake::connect(
                    &plan,
                    Role::Messages,
                    session,
                    &[],
                    socket,
                    secret,
                    timeout_ns,
                    &shared.stop,
                )
            })
        };
        is_silent |= attempt.as_ref().is_err_and(|error| error.errno() == Some(libc::ETIMEDOUT));
        if sender.send((server, index, attempt)).is_err() {
            return;
        }
    }
}

/// The endpoints of a server together; none while there is nothing to tell.
fn reading(label: &str, endpoints: &[Watched]) -> Option<ServerReading> {
    let failures: Vec<&String> = endpoints.iter().filter_map(|endpoint| endpoint.failure.as_ref()).collect();
    if failures.is_empty() && !endpoints.iter().any(|endpoint| endpoint.tally.is_known()) {
        return None;
    }
    let mut reading = ServerReading { label: label.to_owned(), ..ServerReading::default() };
    endpoints.iter().for_each(|endpoint| endpoint.tally.add_to(&mut reading));
    reading.failure = failures.first().map(|first| match failures.len() {
        all if all == endpoints.len() => (*first).clone(),
        some => format!("{some} of {} endpoints: {first}", endpoints.len()),
    });
    Some(reading)
}
