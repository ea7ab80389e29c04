//! Results of a run that hosts carry out (`--client`): those of each, and of all together.

use report::record::{HostRecord, Record};
use serde_json::{Map, Value};

use super::VERSION;
use super::disk::disks;
use super::entry::{Entry, entries_of};
use super::group::{group_of, groups};
use super::json::{self, Parts};
use super::number::moment;
use super::{normal, terse};
use crate::fio::model::{ClientModel, Format, Job, Model};

/// fio's name of all jobs of all clients as one.
const ALL: &str = "All clients";

/// Results of a client, with the part of the record that is about it.
struct Client<'a> {
    client: &'a ClientModel,
    name: String,
    process_id: u32,
    record: Record,
}

fn host<'a>(record: &'a Record, client: &ClientModel) -> Option<&'a HostRecord> {
    record.hosts.get(client.rank)
}

/// Name of a client's machine as its lines have it.
fn name(record: &Record, client: &ClientModel) -> String {
    let told = host(record, client).and_then(|host| host.host_name.clone());
    told.unwrap_or_else(|| client.hostname.clone())
}

/// The lines before anything runs: the hosts, every job of each, how many threads, and warnings.
pub(super) fn header(model: &Model, clients: &[ClientModel], record: &Record) -> String {
    let mut text = String::new();
    for client in clients {
        let version = host(record, client).and_then(|host| host.strata_version.as_deref());
        let version = version.unwrap_or("of unknown version");
        text += &format!("hostname={}, fio={VERSION} (strata {version})\n", name(record, client));
    }
    for part in [normal::job_lines, normal::starting] {
        for client in clients {
            let name = name(record, client);
            part(&client.model).lines().for_each(|line| text += &format!("<{name}> {line}\n"));
        }
    }
    normal::notes(text, model)
}

/// The results in all formats that were asked for, in the order of fio.
pub(super) fn results(model: &Model, clients: &[ClientModel], record: &Record) -> String {
    let parts: Vec<Client<'_>> = clients.iter().map(|client| Client::of(client, record)).collect();
    let together = together(model);
    let has_run = !record.phases.is_empty();
    let of_client = |part| (part, if has_run { Client::entries(part) } else { Vec::new() });
    let entries: Vec<Shown<'_>> = parts.iter().map(of_client).collect();
    let count: usize = entries.iter().map(|(_, entries)| entries.len()).sum();
    let all = (count > 1).then(|| all_of(&together, &entries, record));
    let mut text = String::new();
    for format in [Format::Terse, Format::Json, Format::JsonPlus, Format::Normal] {
        let asked = &model.output.formats;
        let is_both = format == Format::Json && asked.contains(&Format::JsonPlus);
        if !asked.contains(&format) || is_both {
            continue;
        }
        text += &match format {
            Format::Terse => terse(&entries, all.as_ref(), model.output.terse_version),
            Format::Normal => text_of(&entries, all.as_ref()),
            Format::Json | Format::JsonPlus => {
                object(model, &entries, all.as_ref(), record, format == Format::JsonPlus)
            }
        };
    }
    text
}

/// All jobs, shown as one.
fn together(model: &Model) -> Vec<Job> {
    let mut jobs = model.jobs.clone();
    if let Some(first) = jobs.first_mut() {
        first.name = ALL.to_owned();
        first.description = None;
        first.group = 0;
    }
    jobs
}

/// All jobs as one entry. As in fio, a direction lasted as long as that of the job that took longest.
fn all_of<'a>(together: &'a [Job], shown: &[Shown<'_>], record: &'a Record) -> Entry<'a> {
    let mut all = Entry::new(together, 0, record);
    let entries = || shown.iter().flat_map(|(_, entries)| entries);
    for (direction, way) in all.ways.iter_mut().enumerate() {
        way.elapsed_ns = entries().map(|entry| entry.ways[direction].elapsed_ns).max().unwrap_or(0);
    }
    if let Some(mixed) = &mut all.mixed {
        let ways = entries().filter_map(|entry| entry.mixed.as_ref());
        mixed.elapsed_ns = ways.map(|way| way.elapsed_ns).max().unwrap_or(0);
    }
    all
}

impl<'a> Client<'a> {
    fn of(client: &'a ClientModel, record: &Record) -> Self {
        let is_own = |request: usize| client.model.jobs.iter().any(|job| job.request == request);
        let mut own = record.clone();
        own.phases.retain(|phase| is_own(phase.request));
        let process_id = host(record, client).and_then(|host| host.pid).unwrap_or(0);
        Self { client, name: name(record, client), process_id, record: own }
    }

    fn entries(&self) -> Vec<Entry<'_>> {
        entries_of(&self.client.model.jobs, self.process_id, &self.record)
    }
}

type Shown<'a> = (&'a Client<'a>, Vec<Entry<'a>>);

fn text_of(shown: &[Shown<'_>], all: Option<&Entry<'_>>) -> String {
    let mut text = String::new();
    for (client, entries) in shown {
        text += &format!("<{}> ", client.name);
        text += &normal::results(entries, &client.record);
    }
    let of_all = |all: &Entry<'_>| {
        let groups = groups(std::slice::from_ref(all));
        normal::job(all, group_of(&groups, all))
    };
    text + &all.map_or_else(String::new, of_all)
}

/// A line for each job; disks have lines of their own, as in fio.
fn terse(shown: &[Shown<'_>], all: Option<&Entry<'_>>, version: u8) -> String {
    let mut text = String::new();
    for (client, entries) in shown {
        text += &terse::lines(entries, version);
        text += &terse::disk_line(&client.record);
    }
    text + &all.map_or_else(String::new, |all| terse::lines(std::slice::from_ref(all), version))
}

fn object(
    model: &Model,
    shown: &[Shown<'_>],
    all: Option<&Entry<'_>>,
    record: &Record,
    has_bins: bool,
) -> String {
    let elapsed_s = json::elapsed_s(record);
    let mut results = Vec::new();
    let mut devices = Vec::new();
    let mut ended_at = moment(&record.started_at, 0);
    for (client, entries) in shown {
        let groups = groups(entries);
        for entry in entries {
            let job = json::job(entry, group_of(&groups, entry), elapsed_s, has_bins);
            results.push(of_client(job, client.client));
            ended_at = ended_at.max(entry.ended_at);
        }
        devices.extend(disks(&client.record).iter().map(json::disk_object));
    }
    if let (Some(all), Some((last, _))) = (all, shown.last()) {
        let groups = groups(std::slice::from_ref(all));
        let mut job = json::job(all, group_of(&groups, all), elapsed_s, has_bins);
        job.as_object_mut().map(|job| job.remove("job options"));
        results.push(of_client(job, last.client));
    }
    let parts = Parts {
        global: Some(global_options(shown)),
        jobs: ("client_stats", results.into()),
        disks: Some(devices.into()),
    };
    json::whole(model, record, ended_at, parts)
}

/// The object of a job with the client that it ran on.
fn of_client(mut job: Value, client: &ClientModel) -> Value {
    if let Some(job) = job.as_object_mut() {
        place(job, client);
    }
    job
}

fn place(object: &mut Map<String, Value>, client: &ClientModel) {
    object.insert("hostname".to_owned(), client.hostname.as_str().into());
    object.insert("port".to_owned(), client.port.into());
}

/// As in fio: those of the only client, or a list with those of each that has some.
fn global_options(shown: &[Shown<'_>]) -> Value {
    let options = |client: &Client<'_>| json::options(&client.client.model.global_options);
    if let [(client, _)] = shown {
        return options(client);
    }
    let with = shown.iter().filter(|(client, _)| !client.client.model.global_options.is_empty());
    let object = |(client, _): &Shown<'_>| {
        let mut object = Map::new();
        place(&mut object, client.client);
        object.extend(options(client).as_object().cloned().unwrap_or_default());
        Value::Object(object)
    };
    with.map(object).collect()
}
