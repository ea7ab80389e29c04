//! The channel between real servers and clients on this machine; only what runs on it is made up.

mod addresses;
mod agent;
mod endings;
mod hostile;
mod proxy;
mod runs;
mod scale;
mod security;

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::{Diary, Simulated, Task};
use driver::Secret;

use crate::{
    ConnectRequest, ControlRequest, ControlServer, Fleet, HostOutcome, HostProgress, OnRefusal, PlanMessage,
    RunPolicy, ServerOptions,
};

/// No wait of a test takes longer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Version of plans that simulated agents take.
const SCHEMA: u32 = 7;

type Lines = Arc<Mutex<Vec<String>>>;

fn secret(text: &str) -> Option<Secret> {
    Some(Secret::new(text.as_bytes()).expect("long enough"))
}

/// A server on loopback, its agent's diary, and its log.
struct Stand {
    server: Option<ControlServer>,
    address: SocketAddr,
    diary: Arc<Diary>,
    log: Lines,
}

impl Stand {
    fn new(secret: Option<Secret>, tls: bool, diary: &Arc<Diary>) -> Self {
        Self::with(Simulated::new(diary), "127.0.0.1:0", secret, tls)
    }

    fn plain() -> Self {
        Self::new(None, false, &Arc::default())
    }

    fn with(agent: Simulated, listen: &str, secret: Option<Secret>, tls: bool) -> Self {
        Self::with_options(agent, listen, secret, tls, ServerOptions::default())
    }

    fn with_options(
        agent: Simulated,
        listen: &str,
        secret: Option<Secret>,
        tls: bool,
        options: ServerOptions,
    ) -> Self {
        let (log, diary) = (Lines::default(), Arc::clone(&agent.diary));
        let sink = Arc::clone(&log);
        let request = ControlRequest {
            listen: listen.to_owned(),
            secret,
            tls,
            agent: Arc::new(agent),
            log: Arc::new(move |line: &str| sink.lock().expect("no panic").push(line.to_owned())),
        };
        let server = ControlServer::start_with(request, options).expect("the server starts");
        Self { address: server.address(), server: Some(server), diary, log }
    }

    fn wait_for_line(&self, part: &str) {
        agent::wait_until(&format!("a log line with {part:?}"), || {
            self.log.lock().expect("no panic").iter().any(|line| line.contains(part))
        });
    }
}

fn connect(addresses: &[SocketAddr], secret: Option<Secret>, tls: bool) -> Fleet {
    let hosts = addresses.iter().map(|address| (*address).into()).collect();
    Fleet::connect(ConnectRequest { hosts, secret, tls, timeout: PATIENCE })
        .expect("the fleet's thread starts")
}

/// Why the only host was not reached.
fn failure(fleet: &Fleet) -> String {
    fleet.failures().next().expect("the host is refused").1.to_string()
}

fn plan(task: &Task) -> PlanMessage {
    let mut plan = PlanMessage::new("a job", "simulated", SCHEMA, task).expect("JSON");
    plan.progress_interval = Duration::from_millis(10);
    plan
}

fn policy(on_refusal: OnRefusal) -> RunPolicy {
    RunPolicy { on_refusal, ready_timeout: PATIENCE, silence_timeout: PATIENCE, collect_timeout: PATIENCE }
}

/// Gives each host its task.
fn run(fleet: &Fleet, tasks: &[Task], on_refusal: OnRefusal) -> Vec<HostOutcome> {
    run_watched(fleet, tasks, on_refusal, &mut |_| {}, &AtomicBool::new(false))
}

fn run_watched(
    fleet: &Fleet,
    tasks: &[Task],
    on_refusal: OnRefusal,
    observe: &mut dyn FnMut(&[HostProgress]),
    interrupt: &AtomicBool,
) -> Vec<HostOutcome> {
    let plans = tasks.iter().map(plan).enumerate().collect();
    fleet.run(plans, &policy(on_refusal), observe, interrupt).expect("the hosts are in the fleet")
}
