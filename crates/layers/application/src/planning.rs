//! From a spec to the plans of the stages of an application on a target.

use std::path::PathBuf;
use std::sync::Arc;

use driver::Error;
use layer::storage::{self, Storage, StorageCall, StorageFacts, StorageNeeds, StorageSet};
use layer::{Planning, RunContext};
use units::{ByteSize, without_password};
use workload::layers::Layer;
use workload::options;
use workload::plan::{HostTargets, buffer_bytes_max, load};
use workload::spec::{OnError, Spec, Warmup};

use crate::description::{Application, Description, resolve, scaled};
use crate::operation::AppClass;
use crate::plan::{AppPlan, GroupPlan, INDEX_VALUE_BYTES, ParameterPlan, SetPlan, StepPlan};
use crate::spec;
use crate::{beside, builtin, dlio, formats, hosts};

/// An application that is planned on a target.
pub(crate) struct PlannedApp {
    /// Plans of its stages.
    pub(crate) plans: Vec<AppPlan>,
    /// Its storage; nothing is made there yet.
    pub(crate) storage: Arc<dyn Storage>,
    /// The spec that it was opened by, and the demands on it.
    pub(crate) opening: Opening,
}

/// Spec of a target in the layer that serves it, and the demands of the application.
pub(crate) struct Opening {
    spec: Spec,
    needs: StorageNeeds,
}

impl Opening {
    /// Opens the target anew.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub(crate) fn open(&self, context: &RunContext) -> Result<Arc<dyn Storage>, Error> {
        storage::open(&self.spec, &self.needs, context)
    }
}

/// Takes the name of the application out of the targets.
pub(crate) fn name_app(spec: &mut Spec) -> Result<(), Error> {
    if spec::of(spec).app.is_none() && !spec.targets.is_empty() {
        let name = spec.targets.remove(0);
        spec.own.get_mut::<crate::spec::AppSpec>().app = Some(name);
    }
    let app = spec::of(spec).app.clone().ok_or_else(|| {
        Error::usage("plan", "no application named").remedy("strata app list shows all applications")
    })?;
    beside::check(spec)?;
    spec.profile |= spec::of(spec).try_remedy;
    match spec.targets.len() {
        0 if !spec::of(spec).on.is_empty() => Ok(()),
        1 => Ok(()),
        0 => Err(Error::usage("plan", format!("the application {app} has no target"))
            .remedy(format!("name one: strata app {app} DIRECTORY"))),
        count => Err(Error::usage("plan", format!("{count} targets, but an application has one"))
            .remedy(format!("strata app {app} {}, or compare several: --on TARGET,TARGET", spec.targets[0]))),
    }
}

/// Makes the paths of a spec absolute, before it goes to hosts with working directories of their own: target, description and workload.
pub(crate) fn ship(spec: &mut Spec) {
    // The name of an application may stand before its target, and is a path only where it looks like one.
    let is_named = usize::from(spec::of(spec).app.is_none() && !spec.targets.is_empty());
    let (names, targets) = spec.targets.split_at_mut(is_named);
    targets.iter_mut().for_each(layer::make_absolute);
    names.iter_mut().filter(|name| builtin::is_path(name)).for_each(layer::make_absolute);
    for (name, is_path) in [("app", builtin::is_path as fn(&str) -> bool), ("workload", dlio::is_path)] {
        let absolute = |value: &mut String| {
            if is_path(value) {
                layer::make_absolute(value);
            }
        };
        spec.said.change(name, absolute);
    }
    let is_only = spec::of(spec).on.len() == 1;
    let on = &mut spec.own.get_mut::<spec::AppSpec>().on;
    on.iter_mut().for_each(|on| beside::make_absolute(on, is_only));
    spec.said.change("on", |on| beside::make_absolute(on, is_only));
}

/// Targets of a spec, those of `--on` too, without the name of the application; and the files that describe it, where it is no built-in one.
pub(crate) fn reached(spec: &Spec) -> Vec<String> {
    let own = spec::of(spec);
    let is_named = usize::from(own.app.is_none() && !spec.targets.is_empty());
    let (names, targets) = spec.targets.split_at(is_named);
    let descriptions = names.iter().chain(&own.app).filter(|name| builtin::is_path(name));
    let settings = own.settings.iter().filter(|(name, value)| name == "workload" && dlio::is_path(value));
    let workloads = settings.map(|(_, value)| value);
    // Those that cannot be read are asked about as they are, and so refused.
    let beside = beside::targets(&own.on)
        .map_or_else(|_| own.on.clone(), |read| read.into_iter().map(|one| one.target).collect());
    targets.iter().chain(descriptions).chain(workloads).cloned().chain(beside).collect()
}

/// Has a spec say that the hosts of a run share its target: each writes parts of what all read.
///
/// # Errors
/// Bad usage where they have targets of their own, or stores that one process alone opens.
pub(crate) fn settle_hosts(spec: &mut Spec, paths: &[PathBuf]) -> Result<(), Error> {
    if spec.place.is_none_or(|place| place.hosts < 2) {
        return Ok(());
    }
    let beside = beside::targets(&spec::of(spec).on)?.into_iter().map(|target| target.target);
    let targets: Vec<String> = spec.targets.first().cloned().into_iter().chain(beside).collect();
    let is_embedded = |target: &&String| ["vos:", "dfs+vos:"].iter().any(|form| target.starts_with(form));
    let embedded = targets.iter().find(is_embedded);
    if embedded.is_none() {
        layer::settle_host_targets(spec, paths);
    }
    if embedded.is_none() && spec.host_targets != Some(HostTargets::Own) {
        return Ok(());
    }
    let target = embedded.or(targets.first()).cloned().unwrap_or_default();
    let (message, remedy) = if embedded.is_some() {
        (
            "only one process can open a store in a directory, but the hosts of an application share its target",
            "serve it (strata engine --pool POOL --dir DIR) and use engine://HOST:PORT/POOL/CONTAINER",
        )
    } else {
        (
            "the hosts of an application share its target, but here each host has its own",
            "use a file system or an object store that all hosts can access; or --host-targets shared if the directory is the same on all hosts",
        )
    };
    Err(Error::usage("plan", message).with("target", without_password(&target)).remedy(remedy))
}

/// Plans an application.
///
/// # Errors
/// What cannot be, with what would be accepted; nothing is touched.
pub(crate) fn plan(spec: &Spec, planning: &Planning<'_>, context: &RunContext) -> Result<PlannedApp, Error> {
    let own = spec::of(spec);
    let (description, settings) = loaded(spec)?;
    let mut application = resolve(&description, &settings)
        .map_err(|error| error.with("application", own.app.as_deref().unwrap_or_default()))?;
    application
        .parameters
        .extend(own.scale.map(|scale| ParameterPlan { name: "scale".to_owned(), value: scale.to_string() }));
    hosts::spread(&mut application, spec.place.map_or(1, |place| place.hosts))?;
    let target = spec.targets.first().cloned().unwrap_or_default();
    let seed = |stage| planning.seed_of(stage);
    let target_spec = target_spec(spec, &target, seed(0))?;
    let hdf5_library = formats::settle(&mut application, spec, &target_spec)?;
    let opening = Opening { spec: target_spec, needs: needs(&application, planning.number) };
    let storage = opening.open(context)?;
    let facts = storage.facts();
    check_target(&application, &facts, &target)?;
    check_space(&application.sets, &facts, &target)?;
    let mut plans = Vec::new();
    for at in 0..application.stages.len() {
        let plan = stage_plan(spec, &application, at, &facts, (seed(0), seed(at)))?;
        plans.push(AppPlan { hdf5_library: hdf5_library.clone(), ..plan });
    }
    Ok(PlannedApp { plans, storage, opening })
}

/// The description that a spec asks for, and values of its parameters: those that were given, and those that follow from a scale.
///
/// # Errors
/// A description that cannot be read, and a scale that it has no full size for.
pub(crate) fn loaded(spec: &Spec) -> Result<(Description, Vec<(String, String)>), Error> {
    let own = spec::of(spec);
    let name = own.app.as_deref().unwrap_or_default();
    let (description, settings) = builtin::load(name, &own.settings)?;
    let Some(scale) = own.scale else { return Ok((description, settings.to_vec())) };
    let settings = match description.name == dlio::NAME {
        true => Err(Error::usage("plan", "--scale does not support dlio: its workload defines its sizes")
            .remedy("omit --scale, and change keys of the workload (--set dataset.num_files_train=...)")),
        false => scaled(&description, settings, scale),
    };
    let settings = settings.map_err(|error| error.with("application", name))?;
    Ok((description, settings))
}

/// Plans the last stage of a description on a storage that has its sets already.
///
/// # Errors
/// As for [`plan`].
pub(crate) fn plan_last(
    spec: &Spec,
    description: &Description,
    storage: &dyn Storage,
    seeds: (u64, u64),
) -> Result<AppPlan, Error> {
    let application = resolve(description, &[])?;
    let last = application.stages.len().saturating_sub(1);
    stage_plan(spec, &application, last, &storage.facts(), seeds)
}

/// Plans a stage; the seeds are those of all content, and of the load.
pub(crate) fn stage_plan(
    spec: &Spec,
    application: &Application,
    at: usize,
    facts: &StorageFacts,
    (content_seed, seed): (u64, u64),
) -> Result<AppPlan, Error> {
    let own = spec::of(spec);
    let (stage, groups) = &application.stages[at];
    let mut plan = AppPlan {
        name: match &spec.name {
            Some(name) => format!("{name} {stage}"),
            None => format!("{} {stage}", application.name),
        },
        application: application.name.clone(),
        version: application.version.clone(),
        engine: facts.engine.clone(),
        hdf5_library: None,
        memory: own.memory.plan(None).map_err(|error| Error::usage("plan", error))?,
        target: spec.targets.first().cloned().unwrap_or_default(),
        beside: None,
        target_options: named(&own.target_options),
        notes: if at == 0 { application.notes.clone() } else { Vec::new() },
        parameters: application.parameters.clone(),
        sets: application.sets.clone(),
        groups: groups.clone(),
        verify: !own.no_verify && facts.engine != "null",
        left_out: Vec::new(),
        is_cached: facts.is_cached,
        is_in_process: facts.is_in_process,
        is_first: at == 0,
        content_seed,
        load: load(spec, 1, None, seed).map_err(|error| Error::usage("plan", error.0))?,
    };
    plan.left_out = leave_out(&mut plan.groups, &plan.sets, &facts.left_out);
    settle_load(&mut plan, spec)?;
    Ok(plan)
}

/// Options for the record. What opens a door is no part of what is measured.
fn named(options: &[(String, String)]) -> Vec<ParameterPlan> {
    let shown = options.iter().filter(|(name, _)| name != "token-file");
    shown.map(|(name, value)| ParameterPlan { name: name.clone(), value: value.clone() }).collect()
}

/// One thread a process; of several hosts each has as many, and those of the last ones may have no process.
fn settle_load(plan: &mut AppPlan, spec: &Spec) -> Result<(), Error> {
    let processes = plan.processes();
    let hosts = spec.place.map_or(1, |place| place.hosts.max(1));
    if plan.memory.gpu().is_some() && plan.sets.iter().any(SetPlan::is_grouped) {
        return Err(Error::usage(
            "plan",
            "groups of commits require host memory, but the buffers are on GPUs",
        )
        .with("stage", &plan.name)
        .remedy("omit --memory gpu, or use a log in segments (database: --set files=one)"));
    }
    plan.load.threads = processes.div_ceil(hosts);
    plan.load.warmup = Warmup::None;
    plan.load.on_error = spec.on_error.unwrap_or(OnError::Stop);
    let memory = host::memory::memory().total_bytes;
    let (slot, accepted) = (plan.transfer_bytes_max(), buffer_bytes_max(memory));
    if slot.saturating_mul(u64::from(plan.load.threads)) > accepted {
        return Err(Error::usage(
            "plan",
            format!(
                "{processes} processes with buffers of {} require more than half of the memory",
                ByteSize(slot)
            ),
        )
        .remedy("use fewer processes, or a smaller transfer"));
    }
    check_staging(plan, hosts, accepted)?;
    runner::check_placement(&plan.load)
}

/// Refuses items that are staged where their copies cannot be.
fn check_staging(plan: &AppPlan, hosts: u32, accepted: u64) -> Result<(), Error> {
    let Some((group, _)) = plan.staged().next() else { return Ok(()) };
    let processes = plan.groups[group].processes;
    let refuse = |what: String, remedy: String| {
        Err(Error::usage("plan", what).with("stage", &plan.name).remedy(remedy))
    };
    if !processes.is_multiple_of(hosts) {
        return refuse(
            format!(
                "{processes} staging processes are not a multiple of {hosts} hosts, but the flushing process must be on the same host"
            ),
            format!(
                "use a multiple of {hosts} processes (checkpoint: --set ranks={}), or --set flush=sync",
                processes.next_multiple_of(hosts)
            ),
        );
    }
    if plan.memory.gpu().is_some() {
        return refuse(
            "staging items requires host memory, but the buffers are on GPUs".to_owned(),
            "omit --memory gpu, or use --set flush=sync".to_owned(),
        );
    }
    let bytes_of = |set: u16| {
        let set = &plan.sets[usize::from(set)];
        set.space.of_iteration().saturating_mul(set.size_bytes_max) / u64::from(hosts)
    };
    let bytes = plan.staged().map(|(_, set)| bytes_of(set)).fold(0u64, u64::saturating_add);
    if bytes > accepted {
        return refuse(
            format!(
                "copies of {} on this host require more than half of the memory",
                ByteSize(bytes).human()
            ),
            "use smaller items, fewer processes, or --set flush=sync".to_owned(),
        );
    }
    Ok(())
}

/// The spec of the target in the layer that serves it.
pub(crate) fn target_spec(spec: &Spec, target: &str, seed: u64) -> Result<Spec, Error> {
    let serving = storage::find(target)?;
    let mut own = Spec {
        layer: Layer::of(serving.definition()),
        targets: vec![target.to_owned()],
        keep: spec.keep,
        destroy_data: spec.destroy_data,
        seed: Some(seed),
        place: spec.place,
        host_targets: spec.place.map(|_| HostTargets::Shared),
        ..Spec::default()
    };
    for (name, value) in &spec::of(spec).target_options {
        let flag = name.replace('_', "-");
        let known = serving.storage_options();
        if !known.contains(&flag.as_str()) {
            return Err(Error::usage(
                "plan",
                format!("the target of the application does not support the option {flag}"),
            )
            .with("target", target)
            .remedy(format!("use one of {}", known.join(", "))));
        }
        options::apply(&mut own, &flag, value)
            .map_err(|error| Error::usage("plan", format!("--target-options {flag}: {error}")))?;
    }
    Ok(own)
}

/// Demands of an application on its storage.
fn needs(application: &Application, number: usize) -> StorageNeeds {
    let sets = application.sets.iter().enumerate().map(|(at, set)| StorageSet {
        name: set.name.clone(),
        is_index: set.is_index,
        objects: set.objects(),
        object_bytes: if set.is_index { INDEX_VALUE_BYTES } else { set.object_bytes() },
        transfer_bytes: if set.is_index { INDEX_VALUE_BYTES } else { set.transfer_bytes },
        keys: set.space.total(),
        is_renamed: set.is_renamed,
        data_sync: set.data_sync,
        format: set.format,
        datasets: set.datasets.clone(),
        parallel: set.parallel,
        is_updated: application.steps().any(|step| updates(step, at)),
    });
    let mut calls: Vec<StorageCall> =
        application.steps().flat_map(StepPlan::calls).filter_map(|call| call.class.call()).collect();
    let logs = application.steps().flat_map(StepPlan::calls).filter(|call| call.class.is_of_log());
    let around = logs.flat_map(|call| application.sets[usize::from(call.set)].around(call.class));
    calls.extend(around.filter_map(|class| class.call()));
    calls.sort_unstable();
    calls.dedup();
    let ids =
        application.steps().flat_map(StepPlan::calls).filter(|call| call.class == AppClass::AllocateIds);
    let of_stage =
        |(_, groups): &(String, Vec<GroupPlan>)| groups.iter().map(|group| group.processes).sum::<u32>();
    StorageNeeds {
        number,
        sets: sets.collect(),
        workers: application.stages.iter().map(of_stage).max().unwrap_or(1),
        ids_per_call: ids.map(|call| call.every.min(u64::from(u32::MAX)) as u32).max().unwrap_or(1),
        calls,
    }
}

/// Whether a step writes objects of a set that are there already.
fn updates(step: &StepPlan, set: usize) -> bool {
    let on_set = || step.calls().filter(|call| usize::from(call.set) == set);
    on_set().any(|call| call.class == AppClass::Open) && on_set().any(|call| call.class.writes())
}

/// Takes calls out that a target does not have; their names.
fn leave_out(groups: &mut [GroupPlan], sets: &[SetPlan], calls: &[StorageCall]) -> Vec<String> {
    let mut left_out: Vec<String> = Vec::new();
    for step in groups.iter_mut().flat_map(|group| &mut group.steps) {
        for list in [&mut step.once, &mut step.begin, &mut step.each, &mut step.end] {
            list.retain(|call| {
                let is_left = call.class.call().is_some_and(|call| calls.contains(&call));
                // Calls on logs stay, and calls around them are left out as they come.
                let is_of_log = call.class.is_of_log();
                let around = if is_of_log { sets[usize::from(call.set)].around(call.class) } else { &[] };
                let around = around.iter();
                let around = around.filter(|class| class.call().is_some_and(|call| calls.contains(&call)));
                for class in
                    around.chain((is_left && call.class == AppClass::Commit).then_some(&AppClass::Sync))
                {
                    if !left_out.iter().any(|known| known == class.name()) {
                        left_out.push(class.name().to_owned());
                    }
                }
                let is_left = is_left && call.class != AppClass::Commit;
                if is_left && !left_out.iter().any(|known| known == call.class.name()) {
                    left_out.push(call.class.name().to_owned());
                }
                !is_left
            });
        }
    }
    left_out
}

/// Refuses an application that a target cannot carry.
fn check_target(application: &Application, facts: &StorageFacts, target: &str) -> Result<(), Error> {
    let refuse = |what: String, remedy: &str| {
        Err(Error::usage("plan", what).with("target", target).remedy(remedy.to_owned()))
    };
    let mut calls = application.steps().flat_map(StepPlan::calls);
    if let Some(call) = calls.find(|call| call.class.call().is_some_and(|call| facts.refused.contains(&call)))
    {
        let name = call.class.name();
        return refuse(
            format!("{} does not support {name}, which {} calls", facts.engine, application.name),
            "use a file target, or a value of the application's parameters without it (checkpoint: --set names=direct)",
        );
    }
    for set in application.sets.iter().filter(|set| !set.is_index) {
        let is_alone =
            set.objects() == set.space.total() && set.log.as_ref().is_none_or(|log| log.is_grouped);
        if facts.only_whole && (!is_alone || set.transfer_bytes < set.size_bytes_max) {
            return refuse(
                format!(
                    "{} writes whole objects, but items of the set {} are parts of an object",
                    facts.engine, set.name
                ),
                "use a target with arrays or files, or an application with one object per item and one call per object (fdb-hammer; cosmic-tagger: --set files=sample; vpic, bd-cats: --set files=variable and a transfer as large as a variable; checkpoint: --set names=direct and a transfer as large as size; database: --set files=page)",
            );
        }
        let unit = facts.granularity_bytes.max(1);
        let filled = set.log.as_ref().filter(|log| log.is_preallocated).map_or(0, |log| log.segment_bytes);
        let is_odd = set.size_bytes_min != set.size_bytes_max
            && !(set.size_bytes_min.is_multiple_of(unit) && set.size_step_bytes.is_multiple_of(unit));
        let is_cut = is_odd
            || !filled.is_multiple_of(unit)
            || !set.size_bytes_max.is_multiple_of(unit)
            || !set.transfer_bytes.is_multiple_of(unit);
        if unit > 1 && is_cut {
            return refuse(
                format!("with direct I/O, items of the set {} must be multiples of {unit} bytes", set.name),
                "use such a size, or a range of such sizes (cosmic-tagger: --set size=20KiB..40KiB/4KiB); or omit direct",
            );
        }
    }
    Ok(())
}

/// Refuses data that a target has no room for.
///
/// # Errors
/// Bad usage with both amounts.
pub(crate) fn check_space(sets: &[SetPlan], facts: &StorageFacts, target: &str) -> Result<(), Error> {
    let bytes = sets.iter().map(SetPlan::bytes).fold(0u64, u64::saturating_add);
    match facts.free_bytes {
        Some(free) if bytes > free => Err(Error::usage(
            "plan",
            format!(
                "the application writes {}, but the target has only {} free",
                ByteSize(bytes).human(),
                ByteSize(free).human()
            ),
        )
        .with("target", target)
        .remedy("use fewer steps, smaller items, or a larger target")),
        _ => Ok(()),
    }
}
