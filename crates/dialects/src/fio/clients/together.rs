//! The jobs of all clients as the specs of one run.

use workload::spec::{OnHostFailure, Spec};

use super::elsewhere::Elsewhere;
use super::{Client, read};
use crate::World;
use crate::fio::command::Line;
use crate::fio::fault::{Fault, shown};
use crate::fio::jobfile::{self, Section};
use crate::fio::jobs::{self, Assembled};
use crate::fio::model::{ClientModel, Job, Model};
use crate::fio::settle::{self, AllSettled};
use crate::fio::{model_of, prepare, readonly, without_others};

/// Facts of the machine that values of options may name.
const FACTS: [&str; 3] = ["$ncpus", "$mb_memory", "$pagesize"];

/// A run of clients.
pub(crate) struct Together {
    pub(crate) specs: Vec<Spec>,
    /// The jobs of all clients.
    pub(crate) model: Model,
    pub(crate) clients: Vec<ClientModel>,
    pub(crate) secrets: Vec<String>,
}

/// A client's part of the run.
struct Part {
    client: Client,
    all: Assembled,
    settled: AllSettled,
}

/// Makes the specs of all clients: jobs that run first on each run at the same time, then those of the next stage.
///
/// # Errors
/// As for a run on this machine, with the client that it is about.
pub(crate) fn assemble(line: &Line, world: &dyn World) -> Result<Together, Fault> {
    let (clients, mut warnings) = read(line, world)?;
    let names = file_names(&clients);
    let parts = clients.into_iter().zip(&names).map(|(client, name)| part(client, name, line, world));
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    check_seeds(&parts)?;
    warnings.extend(warnings_of(&parts));
    let (specs, requests) = in_order(&parts);
    let secrets = parts.iter().flat_map(|part| part.settled.secrets.iter().cloned()).collect();
    let several = parts.len() > 1;
    let clients: Vec<ClientModel> = parts
        .into_iter()
        .zip(requests)
        .enumerate()
        .map(|(rank, (part, requests))| {
            let Part { client, all, settled } = part;
            let place = |job: Job| of_client(job, &requests, several.then_some(names[rank].as_str()));
            let jobs = all.jobs.into_iter().map(place).collect();
            let model = model_of(jobs, settled.global_options, line, world, Vec::new());
            ClientModel { hostname: client.hostname, port: client.port, rank, model }
        })
        .collect();
    let jobs = clients.iter().flat_map(|client| client.model.jobs.iter().cloned()).collect();
    let model = model_of(jobs, Vec::new(), line, world, warnings);
    Ok(Together { specs, model, clients, secrets })
}

/// Names of clients for names of files: with the port where one host has several.
fn file_names(clients: &[Client]) -> Vec<String> {
    let name = |client: &Client| {
        let is_one = clients.iter().filter(|other| other.hostname == client.hostname).count() == 1;
        let name = if is_one { client.hostname.clone() } else { client.name().replace(',', ".") };
        // Colons part names of files.
        if name.is_empty() { "local".to_owned() } else { name.replace(':', "-") }
    };
    clients.iter().map(name).collect()
}

/// A job with the places of its spec among those of all, and the files of its logs named for the client.
fn of_client(job: Job, requests: &[usize], suffix: Option<&str>) -> Job {
    let log = job.operation_log.map(|path| match suffix {
        Some(suffix) => {
            let mut name = path.into_os_string();
            name.push(format!(".{suffix}"));
            name.into()
        }
        None => path,
    });
    let log_suffix = suffix.map(str::to_owned);
    Job { request: requests[job.request], operation_log: log, log_suffix, ..job }
}

fn part(client: Client, file_name: &str, line: &Line, world: &dyn World) -> Result<Part, Fault> {
    let elsewhere = Elsewhere(world);
    let is_here = client.is_here();
    let there: &dyn World = if is_here { world } else { &elsewhere };
    let name = client.name();
    let of_it =
        |fault: Fault| Fault { message: format!("{} (client {})", fault.message, shown(&name)), ..fault };
    let mut settled = AllSettled::default();
    let mut known = Vec::new();
    let mut warnings = Vec::new();
    for path in &client.files {
        // As in fio, all files of a client are begun at the same time.
        if !settled.global_options.is_empty() {
            warnings.push(format!(
                "{}: [global] of an earlier file does not apply to its jobs; with a fio server it would",
                shown(path)
            ));
        }
        let sections = jobfile::read(path, there)?;
        if !is_here {
            check_facts(&sections).map_err(of_it)?;
        }
        known.extend(sections.iter().map(|section| section.name.clone()));
        settled.join(settle::settle(&without_others(sections, &client.only), there).map_err(of_it)?);
    }
    if let Some(section) = client.only.iter().find(|only| !known.iter().any(|name| **name == ***only)) {
        return Err(of_it(Fault::of("--section", format!("section [{}] does not exist", shown(section)))));
    }
    if settled.jobs.is_empty() {
        return Err(of_it(Fault::new("its job files contain no job")));
    }
    let states = settled
        .jobs
        .iter()
        .find(|job| [job.draft.verify_state_save, job.draft.verify_state_load].contains(&Some(true)));
    if let Some(job) = states {
        let message = format!(
            "job {}: verify_state_save and verify_state_load are not supported with --client: their files would be on other machines; alternative: a run on each host",
            shown(&job.section)
        );
        return Err(of_it(Fault::of("--client", message)));
    }
    prepare(&mut settled.jobs, line);
    settled.jobs.iter_mut().for_each(|job| job.client = Some(file_name.into()));
    let mut all = jobs::assemble(&settled.jobs, there).map_err(of_it)?;
    if line.readonly {
        readonly::hold(&mut all, there).map_err(of_it)?;
    }
    all.warnings.extend(warnings);
    Ok(Part { client, all, settled })
}

/// Refuses facts of a machine of which nothing is known here.
fn check_facts(sections: &[Section]) -> Result<(), Fault> {
    for entry in sections.iter().flat_map(|section| &section.entries) {
        let value = entry.value.as_deref().unwrap_or_default();
        if let Some(fact) = FACTS.iter().find(|fact| value.contains(**fact)) {
            let message =
                format!("{fact} depends on the client's machine and is unknown here: give the number");
            return Err(Fault::of(&entry.key, message).at(&entry.place));
        }
    }
    Ok(())
}

/// A run has one seed.
fn check_seeds(parts: &[Part]) -> Result<(), Fault> {
    let seed = |part: &Part| part.all.specs.first().and_then(|spec| spec.seed);
    match parts.iter().find(|part| seed(part) != seed(&parts[0])) {
        None => Ok(()),
        Some(part) => {
            let message = format!(
                "differs between clients {} and {}: set the same randseed and randrepeat in [global] of both",
                shown(&parts[0].client.name()),
                shown(&part.client.name())
            );
            Err(Fault::of("randseed", message))
        }
    }
}

/// Warnings about the jobs of clients, each once.
fn warnings_of(parts: &[Part]) -> Vec<String> {
    let mut found: Vec<(&String, Vec<String>)> = Vec::new();
    for part in parts {
        for warning in &part.all.warnings {
            match found.iter_mut().find(|(known, _)| *known == warning) {
                Some((_, names)) => names.push(part.client.name()),
                None => found.push((warning, vec![part.client.name()])),
            }
        }
    }
    let mut warnings: Vec<String> = found
        .into_iter()
        .map(|(text, names)| {
            if names.len() == parts.len() { text.clone() } else { format!("<{}> {text}", names.join("> <")) }
        })
        .collect();
    let stages = parts.iter().map(|part| part.all.stage_count()).max().unwrap_or(0);
    if parts.len() > 1 && stages > 1 {
        warnings.push(
            "all clients start each stage (stonewall, wait_for) together; clients of fio do not wait for each other"
                .to_owned(),
        );
    }
    warnings
}

/// The specs of all clients, stage by stage, and by client the places of its specs among them.
fn in_order(parts: &[Part]) -> (Vec<Spec>, Vec<Vec<usize>>) {
    let hosts: Vec<String> = parts.iter().map(|part| part.client.host.clone()).collect();
    let mut specs: Vec<Spec> = Vec::new();
    let mut requests: Vec<Vec<usize>> = parts.iter().map(|part| vec![0; part.all.specs.len()]).collect();
    let stages = parts.iter().map(|part| part.all.stage_count()).max().unwrap_or(0);
    for stage in 0..stages {
        let first = specs.len();
        for (rank, part) in parts.iter().enumerate() {
            for (number, spec) in part.all.specs.iter().enumerate() {
                if part.all.stage_of(number) == stage {
                    requests[rank][number] = specs.len();
                    specs.push(Spec {
                        hosts: hosts.clone(),
                        host: Some(rank as u32),
                        on_host_failure: Some(OnHostFailure::Continue),
                        concurrent: specs.len() > first,
                        ..spec.clone()
                    });
                }
            }
        }
    }
    (specs, requests)
}
