//! A sign of life of every endpoint before the first phase.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use driver::{Error, ErrorKind, Secret};
use layer::StageContext;
use rpc::{EndpointPlan, Role, SocketPlan, handshake};

use super::run::Ready;
use crate::NetworkPlan;

/// Endpoints that are asked at the same time.
const AT_ONCE: usize = 32;
/// Longest wait for one.
const WAIT: Duration = Duration::from_secs(5);
/// Endpoints named in one line.
const NAMES_MAX: usize = 4;

/// Does `work` for every item, on several threads; the results in the order of the items.
pub(super) fn for_each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new((0..items.len()).map(|_| None).collect::<Vec<Option<R>>>());
    std::thread::scope(|scope| {
        for _ in 0..items.len().min(AT_ONCE) {
            scope.spawn(|| {
                while let Some((at, item)) = {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    items.get(at).map(|item| (at, item))
                } {
                    let result = work(item);
                    results.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(result);
                }
            });
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten().collect()
}

/// The endpoints of a plan, each once.
pub(super) fn distinct<'a>(plans: impl Iterator<Item = &'a NetworkPlan>) -> Vec<EndpointPlan> {
    let mut endpoints: Vec<EndpointPlan> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for endpoint in plans.flat_map(|plan| &plan.endpoints) {
        if seen.insert((endpoint.uri.clone(), endpoint.tag)) {
            endpoints.push(endpoint.clone());
        }
    }
    endpoints
}

/// Asks all endpoints once in a run. Those that do not answer are kept as notes.
///
/// # Errors
/// When none answers.
pub(super) fn ask_first(ready: &Ready<'_>, context: &StageContext<'_>) -> Result<(), Error> {
    let Ready { plan, access, .. } = ready;
    let interrupt = &*context.interrupt;
    if access.silent.get().is_some() {
        return Ok(());
    }
    let endpoints = distinct(std::iter::once(*plan));
    let wait_ns = plan.timeout_ns.min(u64::try_from(WAIT.as_nanos()).unwrap_or(u64::MAX));
    let secret = ready.control().secret.as_ref();
    let answers = for_each(&endpoints, |endpoint| ask(endpoint, &plan.socket, secret, wait_ns, interrupt));
    let silent: Vec<(&EndpointPlan, Error)> = endpoints
        .iter()
        .zip(answers)
        .filter_map(|(endpoint, answer)| Some((endpoint, answer.err()?)))
        .collect();
    if silent.len() == endpoints.len() {
        let Some((_, first)) = silent.into_iter().next() else { return Ok(()) };
        return Err(match endpoints.len() {
            1 => first,
            count => Error::new(
                ErrorKind::Run,
                "network",
                format!("none of {count} endpoints answers; the first: {first}"),
            ),
        });
    }
    let lines = silent.iter().map(|(endpoint, error)| format!("endpoint {}: {error}", endpoint.label));
    let lines: Vec<String> = lines.collect();
    for line in lines.iter().take(NAMES_MAX) {
        (context.tell)(format_args!("strata: warning: {line}"));
    }
    if lines.len() > NAMES_MAX {
        (context.tell)(format_args!(
            "strata: warning: {} more endpoints do not answer",
            lines.len() - NAMES_MAX
        ));
    }
    // Nobody else asks.
    let _ = access.silent.set(lines);
    Ok(())
}

fn ask(
    endpoint: &EndpointPlan,
    socket: &SocketPlan,
    secret: Option<&Secret>,
    wait_ns: u64,
    interrupt: &AtomicBool,
) -> Result<(), Error> {
    let session = handshake::new_session()?;
    match handshake::connect(endpoint, Role::Messages, session, &[], socket, secret, wait_ns, interrupt) {
        // Endpoints on a fabric take no messages over sockets; the door has said that the endpoint is there.
        Err(error) if error.errno() == Some(rustix::io::Errno::PROTONOSUPPORT.raw_os_error()) => Ok(()),
        other => other.map(drop),
    }
}
