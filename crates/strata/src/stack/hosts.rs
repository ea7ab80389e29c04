//! Rows of the stack on several hosts (`--hosts`): each is measured on the first host and on all at once, in every pass.

use driver::{Error, ErrorKind};
use layer::{StackHosts, StackRowSpec};
use report::record::StackRowHosts;
use workload::options;
use workload::plan::HostTargets;
use workload::spec::Spec;

use super::PlannedRow;
use crate::hosts::{Carriers, named_hosts};
use crate::options::StackSpec;
use crate::planning::{self, Planned};
use crate::session::Session;

/// The hosts that the user named; none where there are none.
///
/// # Errors
/// Bad usage: what hosts cannot do, and options of hosts where there are none.
pub(super) fn asked(stack: &StackSpec) -> Result<Option<StackHosts>, Error> {
    planning::check_way(&stack.hosts)?;
    planning::check_hosts(&stack.hosts)?;
    if stack.hosts.hosts.is_empty() {
        return Ok(None);
    }
    let (count, are_local) = named_hosts(&stack.hosts)?;
    if count < 2 {
        return Err(refusal("one host: scaling requires several")
            .remedy("give two hosts or more, such as local:2, or leave out --hosts"));
    }
    let is_own = stack.hosts.host_targets == Some(HostTargets::Own);
    let refused = [
        (stack.try_remedy, "--try runs a remedy only on this machine", "leave out --try or --hosts"),
        (
            stack.app.is_some(),
            "--app is measured only on this machine",
            "leave out --app, and compare hosts with strata app NAME TARGET --hosts LIST",
        ),
        (
            stack.gpu.is_some() && !are_local,
            "--gpu is measured only on this machine",
            "leave out --gpu, or give --hosts local:N",
        ),
        (
            is_own && are_local,
            "--host-targets own: processes of one machine use the same scratch path",
            "leave out --host-targets, or give hosts on separate machines",
        ),
    ];
    match refused.into_iter().find(|(is_refused, ..)| *is_refused) {
        Some((_, why, remedy)) => Err(refusal(why).remedy(remedy)),
        None => Ok(Some(StackHosts { count, are_local })),
    }
}

fn refusal(why: &str) -> Error {
    Error::usage("stack", format!("--hosts: {why}"))
}

/// Refuses a row of one process where the hosts are not on its machine: beside theirs its figure would mean nothing.
pub(super) fn check(given: &mut StackRowSpec, hosts: Option<StackHosts>) {
    if let (Some(why), Some(StackHosts { are_local: false, .. })) = (given.one_host, hosts) {
        let message = format!("the hosts are not processes of this machine, and {why}");
        given.spec = Err(Error::new(ErrorKind::Run, "hosts", message));
    }
}

/// The part of a row that is about hosts.
pub(super) fn of_row(hosts: StackHosts, one_host: Option<&str>) -> StackRowHosts {
    StackRowHosts {
        count: if one_host.is_some() { 1 } else { hosts.count },
        one_host: one_host.map(str::to_owned),
        ..StackRowHosts::default()
    }
}

/// Has the hosts plan their rows, on all of them and on the first. A row that they refuse is missing, and says why.
///
/// # Errors
/// Hosts that cannot be reached, and a refusal of what the user named.
pub(super) fn plan(
    session: &mut Session,
    mut rows: Vec<PlannedRow>,
    stack: &StackSpec,
    seed: u64,
) -> Result<Vec<PlannedRow>, Error> {
    let mut numbers: Vec<usize> = (0..rows.len()).filter(|at| rows[*at].is_of_hosts).collect();
    if numbers.is_empty() {
        return Ok(rows);
    }
    let run = session.run();
    let ask = |rows: &[PlannedRow], numbers: &[usize]| {
        Carriers::plan(&specs(rows, numbers, stack), run, seed, None)
    };
    let (programme, carriers) = match ask(&rows, &numbers) {
        // One of the rows, or what they are together.
        Err(error) if error.exit_code() == 2 => {
            let asked = numbers.len();
            let mut accepted = Vec::new();
            for at in numbers {
                match ask(&rows, &[at]) {
                    Ok((_, carriers)) => carriers.leave().map(|()| accepted.push(at))?,
                    Err(error) if rows[at].is_named || error.exit_code() != 2 => return Err(error),
                    Err(error) => rows[at].row.missing = Some(error.to_string()),
                }
            }
            numbers = accepted;
            if numbers.len() == asked || numbers.is_empty() {
                return Err(error);
            }
            ask(&rows, &numbers)?
        }
        planned => planned?,
    };
    for planned in programme.phases {
        let at = planned.request % numbers.len();
        let is_on_all = planned.request < numbers.len();
        let row = &mut rows[numbers[at]];
        let planned = Planned { request: numbers[at], ..planned };
        let place = if is_on_all { &mut row.on_all } else { &mut row.planned };
        if planned.plan.is_fill() {
            row.fills.push(planned);
        } else if place.replace(planned).is_some() {
            return Err(Error::usage("stack", "a row of the stack is one phase"));
        }
    }
    if let Carriers::Hosts(leader) = carriers {
        session.lead_beside(*leader)?;
    }
    Ok(rows)
}

/// The specs of these rows on all hosts, and then on the first: one that has targets of its own has all of them by then.
fn specs(rows: &[PlannedRow], numbers: &[usize], stack: &StackSpec) -> Vec<Spec> {
    let all: Vec<Spec> =
        numbers.iter().filter_map(|at| Some(placed(rows[*at].spec.as_ref()?, stack))).collect();
    let first = all.iter().map(|spec| Spec { hosts_used: Some(1), ..spec.clone() });
    all.iter().cloned().chain(first).collect()
}

/// The spec of a row for hosts.
fn placed(spec: &Spec, stack: &StackSpec) -> Spec {
    let Spec { hosts, hosts_used, host_targets, fingerprints, tls, .. } = stack.hosts.clone();
    Spec {
        hosts,
        hosts_used,
        host_targets: spec.host_targets.or(host_targets),
        fingerprints,
        tls,
        // A layer with ways of its own to others has said what is for these.
        token_file: match options::has_own(spec.layer, "token-file") {
            true => spec.token_file.clone(),
            false => stack.token_file.clone(),
        },
        ..spec.clone()
    }
}

/// The phases of a pass in their order: the row, and whether all hosts carry it out. Rows of one layer are measured on all hosts and on one next to each other; which
/// comes first changes from pass to pass.
pub(super) fn turns(rows: &[PlannedRow], pass: u32) -> Vec<(usize, bool)> {
    let numbers: Vec<usize> = (0..rows.len()).collect();
    let is_alike = |a: &usize, b: &usize| {
        rows[*a].row.layer == rows[*b].row.layer && rows[*a].is_of_hosts == rows[*b].is_of_hosts
    };
    let all_first = pass.is_multiple_of(2);
    let mut turns = Vec::new();
    for group in numbers.chunk_by(is_alike) {
        for on_all in [all_first, !all_first] {
            let is_planned = |at: &&usize| match on_all {
                true => rows[**at].on_all.is_some(),
                false => rows[**at].planned.is_some(),
            };
            turns.extend(group.iter().filter(is_planned).map(|at| (*at, on_all)));
        }
    }
    turns
}

/// Stores what a row needs on hosts and none of its passes has stored.
///
/// # Errors
/// When that failed.
pub(super) fn fill(session: &mut Session, row: &mut PlannedRow) -> Result<(), Error> {
    for planned in std::mem::take(&mut row.fills) {
        let at = session.run_phase(&planned)?;
        let failure = session.record.phases[at].failure.clone();
        failure.map_or(Ok(()), |failure| Err(Error::new(ErrorKind::Run, "fill", failure)))?;
    }
    Ok(())
}
