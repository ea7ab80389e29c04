//! `--client`: hosts that carry out jobs, each those of its own job files.

mod address;
mod elsewhere;
mod together;

use super::command::Line;
use super::fault::{Fault, shown};
use crate::{PathFacts, World};

pub(crate) use together::{Together, assemble};

/// A `--client` and the words that belong to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientWords {
    /// As typed.
    pub(crate) address: String,
    /// The words right behind it: its own job files.
    pub(crate) files: Vec<String>,
    /// `--section` behind it.
    pub(crate) only: Vec<String>,
}

/// A host that carries out jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Client {
    /// Name or address of the host as fio shows it, and the port of its service.
    pub(crate) hostname: String,
    pub(crate) port: u16,
    /// The same as `--hosts` has it.
    pub(crate) host: String,
    /// Its job files.
    pub(crate) files: Vec<String>,
    /// The only sections of them to run; all when there are none.
    pub(crate) only: Vec<String>,
}

impl Client {
    /// Whether its machine is this one.
    fn is_here(&self) -> bool {
        let is_digits = |c: char| c.is_ascii_digit() || c == '.';
        let is_loopback = self.hostname.starts_with("127.") && self.hostname.chars().all(is_digits);
        is_loopback
            || ["", "localhost", "::1"].contains(&self.hostname.as_str())
            || self.hostname.starts_with("local:")
    }

    /// Its name for messages.
    fn name(&self) -> String {
        match self.port {
            0 => self.hostname.clone(),
            port => format!("{},{port}", self.hostname),
        }
    }
}

/// Gives `--section` to the client before it and, as fio does, to those before that one which have no option of their own.
pub(super) fn choose_section(clients: &mut [ClientWords], name: &str) {
    let Some((last, before)) = clients.split_last_mut() else { return };
    if last.only.is_empty() {
        let without = before.iter_mut().rev().take_while(|client| client.only.is_empty());
        without.for_each(|client| client.only.push(name.to_owned()));
    }
    last.only.push(name.to_owned());
}

/// The clients with their job files, as fio deals them out: what stands right behind a client is its own, any other file is of the clients
/// without one; and warnings.
///
/// # Errors
/// Addresses that cannot be, and job files that fio would leave out without a word.
pub(super) fn read(line: &Line, world: &dyn World) -> Result<(Vec<Client>, Vec<String>), Fault> {
    refuse_options(line)?;
    let (mut clients, mut common) = (Vec::new(), line.files.clone());
    for words in &line.clients {
        let only = [&line.only[..], &words.only].concat();
        if matches!(world.look(&words.address), PathFacts::File { .. }) {
            for address in listed(&words.address, world)? {
                clients.extend(address::read(&address, &[], &only)?);
            }
            common.extend(words.files.iter().cloned());
        } else {
            clients.extend(address::read(&words.address, &words.files, &only)?);
        }
    }
    for (number, client) in clients.iter().enumerate() {
        if client.port > 0 && clients[..number].iter().any(|other| other.host == client.host) {
            let message = format!(
                "{} is given twice, but a service does one run at a time: give all its job files after one --client, or start a second service on another port",
                shown(&client.name())
            );
            return Err(Fault::of("--client", message));
        }
    }
    let warnings = deal(&mut clients, &common)?;
    number_locals(&mut clients);
    Ok((clients, warnings))
}

/// Addresses in a file.
fn listed(path: &str, world: &dyn World) -> Result<Vec<String>, Fault> {
    let fault = |why: String| Fault::of("--client", format!("the host list in {}: {why}", shown(path)));
    let text = world.read(path).map_err(|error| fault(error.to_string()))?;
    let addresses: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    if addresses.is_empty() {
        return Err(fault("is empty: give one address per line".to_owned()));
    }
    Ok(addresses)
}

/// Gives common job files to the clients that have none; the others leave out clients without any.
fn deal(clients: &mut Vec<Client>, common: &[String]) -> Result<Vec<String>, Fault> {
    let lacks = |client: &&Client| client.files.is_empty();
    match common {
        [] if clients.iter().all(|client| client.files.is_empty()) => Err(Fault::of(
            "--client",
            "no job file: give one after each --client, or one for all before the first --client",
        )),
        [] => {
            let warning = |client: &Client| {
                format!(
                    "--client={} has no job file and is ignored, as in fio: a job file belongs to the last --client before it; a file before the first --client belongs to all",
                    shown(&client.name())
                )
            };
            let warnings = clients.iter().filter(lacks).map(warning).collect();
            clients.retain(|client| !client.files.is_empty());
            Ok(warnings)
        }
        [file] if !clients.iter().any(|client| client.files.is_empty()) => {
            let message = format!(
                "{} belongs to no client: each has its own job files, and fio would ignore this one; put it directly after its --client",
                shown(file)
            );
            Err(Fault::of("--client", message))
        }
        [file] => {
            let without = clients.iter_mut().filter(|client| client.files.is_empty());
            without.for_each(|client| client.files.push(file.clone()));
            Ok(Vec::new())
        }
        [_, second, ..] => {
            let message = format!(
                "{} is the second job file for all clients, and fio would ignore it; put files directly after their --client, or all jobs into one file",
                shown(second)
            );
            Err(Fault::of("--client", message))
        }
    }
}

/// Processes on this machine have the numbers that the run gives them.
fn number_locals(clients: &mut [Client]) {
    let locals = clients.iter_mut().filter(|client| client.port == 0);
    locals.enumerate().for_each(|(number, client)| client.hostname = format!("local:{number}"));
}

/// Refuses options that clients cannot have.
fn refuse_options(line: &Line) -> Result<(), Fault> {
    let refuse = |key: &str, message: &str| Err(Fault::of(key, message));
    let typed = line.sections.iter().flat_map(|section| &section.entries).next();
    if let Some(entry) = typed {
        let message = "is not supported with --client: job options must be in job files, and fio would ignore this one; put it into the job file";
        return Err(Fault::of(&format!("--{}", entry.key), message));
    }
    if line.idle {
        return refuse(
            "--idle-prof",
            "is not supported with --client: each host has a different idle time; leave it out",
        );
    }
    if line.show_command {
        return refuse(
            "--showcmd",
            "is not supported with --client: each client has different jobs; alternative: --showcmd with one job file",
        );
    }
    if line.pace.results_ns.is_some() {
        return refuse(
            "--status-interval",
            "is not supported with --client: results are available only at the end; alternative: --eta-newline",
        );
    }
    Ok(())
}
