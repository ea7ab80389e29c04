//! Rows of the stack: an application on files, on files over objects, and on the embedded store, each beside the layer below it.
//!
//! Each stage is a row. One that only writes or only reads is compared with what the layer below gives at the same load: as many workers, each with one
//! operation at a time, the same transfer and direction, and syncs as often.

use driver::Error;
use layer::storage;
use layer::{StackCarrier, StackKind, StackLoad, StackLoads, StackRequest, StackRowSpec, StackServed};
use units::{ByteSize, label_of};
use workload::spec::Spec;

use crate::builtin::{self, Setting};
use crate::description::{Application, resolve};
use crate::plan::{CallPlan, GroupPlan, SetPlan, StepPlan};
use crate::spec::AppSpec;
use crate::{AppClass, LAYER, dlio};

/// Stages that fit on a screen beside each other and below.
const STAGES_MAX: usize = 4;

/// Part of the data of a stage that calls of one size must carry, so that it can be compared.
const MOST_SHARE: f64 = 0.9;

/// An application on something: its row, the form of its target, and the row that it stands on.
struct Carried {
    layer: &'static str,
    /// Name in a sentence.
    called: &'static str,
    below: &'static str,
    faster_by: Option<&'static str>,
    /// Form of its targets, for their options.
    form: &'static str,
}

const FILES: Carried = Carried {
    layer: "app",
    called: "the application on files",
    below: "file",
    faster_by: Some("the page cache"),
    form: ".",
};
const FILES_OVER_OBJECTS: Carried = Carried {
    layer: "app-dfs",
    called: "the application on files over objects",
    below: "dfs",
    faster_by: Some("the memory cache of its files"),
    form: "dfs+vos:pool",
};
const OBJECTS: Carried = Carried {
    layer: "app-object",
    called: "the application on objects",
    below: "object",
    faster_by: Some("one sync shared by several updates"),
    form: "vos:store",
};
const PLACES: [&Carried; 3] = [&FILES, &FILES_OVER_OBJECTS, &OBJECTS];

fn usage(what: impl Into<String>) -> Error {
    Error::usage("stack", what)
}

/// The application as it is measured: the description's own values for a stack, and over these what the user gave.
fn settled(request: &StackRequest<'_>, name: &str) -> Result<(Application, Vec<Setting>), Error> {
    let (description, _) = builtin::load(name, request.app_settings)?;
    let mut settings: Vec<Setting> =
        description.stack.iter().map(|(name, value)| (name.clone(), value.text())).collect();
    settings.extend_from_slice(request.app_settings);
    let (description, own) = builtin::load(name, &settings)?;
    let application = resolve(&description, own).map_err(|error| error.with("application", name))?;
    Ok((application, settings))
}

/// Loads of the stages that can be compared, and what their data take.
///
/// # Errors
/// An application that is none, parameters and options that cannot be, and one of which nothing can be compared.
pub(crate) fn loads(request: &StackRequest<'_>) -> Result<StackLoads, Error> {
    let Some(name) = request.app else {
        return match (request.app_settings.first(), request.app_options.first()) {
            (Some((name, _)), _) => {
                Err(usage(format!("--app-set {name}: no application named"))
                    .remedy("add --app NAME, or omit it"))
            }
            (None, Some((name, _))) => Err(usage(format!("--app-options {name}: no application named"))
                .remedy("add --app NAME, or omit it")),
            (None, None) => Ok(StackLoads::default()),
        };
    };
    if name == dlio::NAME && dlio::is_search(request.app_settings) {
        return Err(usage("accelerators=max searches, but a row of the stack requires a single load")
            .remedy("set one number of accelerators: --app-set accelerators=1"));
    }
    let (application, _) = settled(request, name)?;
    for (option, _) in request.app_options {
        takers(option)?;
    }
    if application.stages.len() > STAGES_MAX {
        let what = format!(
            "{name} has {} stages, but the stack shows at most {STAGES_MAX}",
            application.stages.len()
        );
        return Err(usage(what).remedy(format!(
            "use parameters with fewer stages (--app-set), or measure it separately: strata app {name} DIRECTORY"
        )));
    }
    let stored_bytes = application.sets.iter().map(SetPlan::bytes).fold(0, u64::saturating_add);
    if stored_bytes > request.size_bytes {
        let (data, size) = (ByteSize(stored_bytes).human(), ByteSize(request.size_bytes).human());
        return Err(usage(format!(
            "{name} writes {data} per pass, but a row of the stack writes at most {size}"
        ))
        .remedy("use --app-set for smaller or fewer items (strata app show NAME), or a larger --size"));
    }
    let stages = 0..application.stages.len();
    let loads: Vec<StackLoad> = stages.filter_map(|at| load_of(&application, at).ok()).collect();
    if loads.is_empty() {
        let what = format!(
            "every stage of {name} both reads and writes or moves no data: no lower layer is comparable"
        );
        return Err(usage(what).remedy(format!(
            "use other parameters (--app-set), or compare targets: strata app {name} --on TARGET,TARGET"
        )));
    }
    Ok(StackLoads { loads, stored_bytes })
}

/// Places whose targets take an option.
fn takers(option: &str) -> Result<Vec<&'static str>, Error> {
    let flag = option.replace('_', "-");
    let mut found = Vec::new();
    let mut known: Vec<&str> = Vec::new();
    for place in PLACES {
        let layer = storage::find(place.form)?;
        let options = layer.storage_options().iter();
        known.extend(options.filter(|option| layer.takes_storage_option(place.form, option)));
        if layer.takes_storage_option(place.form, &flag) {
            found.push(place.layer);
        }
    }
    if found.is_empty() {
        return Err(usage(format!("--app-options {option}: no target of the application supports it"))
            .remedy(format!("use one of {}", known.join(", "))));
    }
    Ok(found)
}

/// Data of a stage in one direction.
#[derive(Default)]
struct Moved {
    transfers: Vec<Transfers>,
    /// Processes that move any.
    processes: u32,
}

/// Calls that move as many bytes each.
#[derive(Clone, Copy)]
struct Transfers {
    transfer_bytes: u64,
    bytes: u64,
    calls: u64,
    is_random: bool,
}

impl Moved {
    fn add(&mut self, more: Transfers) {
        match self.transfers.iter_mut().find(|known| known.transfer_bytes == more.transfer_bytes) {
            Some(known) => {
                known.bytes = known.bytes.saturating_add(more.bytes);
                known.calls = known.calls.saturating_add(more.calls);
                known.is_random |= more.is_random;
            }
            None => self.transfers.push(more),
        }
    }

    /// The transfers that carry nearly all of the data; none where those of several sizes do.
    fn most(&self) -> Option<Transfers> {
        let all = self.transfers.iter().fold(0, |sum: u64, some| sum.saturating_add(some.bytes));
        let most = *self.transfers.iter().max_by_key(|some| some.bytes)?;
        (most.bytes as f64 >= MOST_SHARE * all as f64).then_some(most)
    }
}

/// Data that a call of a step moves in a stage.
fn transfers(set: &SetPlan, call: &CallPlan, count: u64, is_random: bool) -> Transfers {
    // An allocation fills the whole log.
    if call.class == AppClass::Allocate {
        let (bytes, transfer_bytes) = (set.bytes(), set.transfer_bytes.max(1));
        return Transfers { transfer_bytes, bytes, calls: bytes.div_ceil(transfer_bytes), is_random };
    }
    let transfer_bytes = set.transfer_bytes.min(set.size_bytes_max).max(1);
    let item_bytes = u64::midpoint(set.size_bytes_min, set.size_bytes_max);
    let calls = count.saturating_mul(item_bytes.div_ceil(transfer_bytes).max(1));
    Transfers { transfer_bytes, bytes: count.saturating_mul(item_bytes), calls, is_random }
}

/// How often a call of a step is made by all processes of its group.
fn times(group: &GroupPlan, step: &StepPlan, list: Part, call: &CallPlan) -> u64 {
    let all = u64::from(group.processes);
    let of_process = match list {
        Part::Once => 1,
        Part::Turn => group.iterations,
        Part::Item => step.share(0, all, 0).1.saturating_mul(group.iterations) / call.every.max(1),
    };
    of_process.saturating_mul(all)
}

/// Part of a step that a call stands in.
#[derive(Clone, Copy)]
enum Part {
    Once,
    Turn,
    Item,
}

/// The calls of a step with the parts that they stand in.
fn calls(step: &StepPlan) -> impl Iterator<Item = (Part, &CallPlan)> {
    let once = step.once.iter().map(|call| (Part::Once, call));
    let turn = step.begin.iter().chain(&step.end).map(|call| (Part::Turn, call));
    once.chain(turn).chain(step.each.iter().map(|call| (Part::Item, call)))
}

/// The load of a stage that only writes or only reads data; else why it has none.
fn load_of(application: &Application, at: usize) -> Result<StackLoad, &'static str> {
    let (stage, groups) = &application.stages[at];
    let (mut written, mut read, mut syncs) = (Moved::default(), Moved::default(), 0u64);
    for group in groups {
        let (mut writes, mut reads) = (false, false);
        let all = group.steps.iter().flat_map(|step| calls(step).map(move |(part, call)| (step, part, call)));
        for (step, part, call) in all {
            let count = times(group, step, part, call);
            if matches!(call.class, AppClass::Sync | AppClass::Commit) {
                syncs = syncs.saturating_add(count);
            }
            let set = || &application.sets[usize::from(call.set)];
            if call.class.writes() && count > 0 {
                written.add(transfers(set(), call, count, step.shuffled));
                writes = true;
            }
            if call.class.reads() && count > 0 {
                read.add(transfers(set(), call, count, step.shuffled));
                reads = true;
            }
        }
        written.processes += if writes { group.processes } else { 0 };
        read.processes += if reads { group.processes } else { 0 };
    }
    let (moved, writes) = match (written.transfers.is_empty(), read.transfers.is_empty()) {
        (true, true) => return Err("it moves no array data"),
        (false, false) => return Err("it writes and reads at the same time"),
        (is_read, _) => (if is_read { read } else { written }, !is_read),
    };
    let Some(Transfers { transfer_bytes, bytes, calls, is_random }) = moved.most() else {
        return Err("its calls use several transfer sizes");
    };
    let manner = match (writes, is_random) {
        (true, false) => "write",
        (true, true) => "random write",
        (false, false) => "read",
        (false, true) => "random read",
    };
    Ok(StackLoad {
        name: format!(
            "{} {stage}, {manner} {} x {}",
            application.name,
            size_words(transfer_bytes),
            moved.processes
        ),
        of: application.name.clone(),
        writes,
        is_random,
        bytes,
        transfer_bytes,
        workers: moved.processes,
        writes_per_sync: (writes && syncs > 0).then(|| (calls / syncs).max(1)),
    })
}

/// A size as columns have it: `4 MiB`.
fn size_words(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = units.iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit));
    unit.map_or_else(|| format!("{bytes} B"), |(unit, name)| format!("{} {name}", bytes / unit))
}

/// Rows of the application, where one is wanted.
pub(crate) fn rows(request: &StackRequest<'_>) -> Vec<StackRowSpec> {
    let Some(name) = request.app else { return Vec::new() };
    // What cannot be was refused when the loads were asked for.
    let Ok((application, settings)) = settled(request, name) else { return Vec::new() };
    let directory = request.scratch.parent().filter(|path| !path.as_os_str().is_empty());
    let directory = directory.unwrap_or_else(|| std::path::Path::new("."));
    let pool = request.served(StackServed::LOADS_POOL).map(|pool| format!("dfs+vos:{pool}"));
    let store = format!("vos:{}", label_of(request.beside("-app").as_os_str()));
    let targets = [Ok(label_of(directory.as_os_str())), pool, Ok(store)];
    let mut rows = Vec::new();
    for (place, target) in PLACES.into_iter().zip(targets) {
        let target = target.map_err(|error| error.to_string());
        rows.extend((0..application.stages.len()).map(|stage| {
            let spec = match &target {
                Ok(target) => spec_of(request, place, target, (&application.name, &settings)),
                Err(why) => Err(Error::new(driver::ErrorKind::Run, "stack", why.clone())),
            };
            row(request, place, &application, stage, spec)
        }));
    }
    rows
}

/// A stage of the application on one of its places.
fn row(
    request: &StackRequest<'_>,
    place: &Carried,
    application: &Application,
    stage: usize,
    spec: Result<Spec, Error>,
) -> StackRowSpec {
    let load = load_of(application, stage);
    let below = if place.layer == FILES.layer && is_direct(request) { "media" } else { place.below };
    let name = match &load {
        Ok(load) => load.name.clone(),
        Err(_) => format!("{} {}", application.name, application.stages[stage].0),
    };
    let moves = application.stages[stage].1.iter().flat_map(|group| &group.steps);
    let moves = moves.flat_map(StepPlan::calls).any(|call| call.class.writes() || call.class.reads());
    StackRowSpec {
        called: place.called.to_owned(),
        load_of: Some(application.name.clone()),
        kind: if load.is_ok() { StackKind::Software } else { StackKind::Carrier },
        stands_on: load.iter().map(|load| StackCarrier::new(below, &load.name)).collect(),
        faster_by: place.faster_by,
        in_bytes: Some(moves),
        uncompared: load.err().map(str::to_owned),
        window_share: 0.0,
        stage,
        // The directory is the user's: what it cannot carry is for the user to change.
        is_named: place.layer == FILES.layer,
        ..StackRowSpec::new(place.layer, name, spec)
    }
}

fn is_direct(request: &StackRequest<'_>) -> bool {
    let mut options = request.app_options.iter().rev();
    options.find(|(name, _)| name == "direct").is_some_and(|(_, value)| value == "true")
}

fn spec_of(
    request: &StackRequest<'_>,
    place: &Carried,
    target: &str,
    (called, settings): (&str, &[Setting]),
) -> Result<Spec, Error> {
    let name = request.app.unwrap_or_default();
    let mut made = layer::stack::spec(LAYER, target, format!("{}: {called}", place.layer), &[("app", name)])?;
    let own = made.own.get_mut::<AppSpec>();
    own.settings = settings.to_vec();
    own.is_repeated = true;
    own.raw_because = Some("the rows of a stack have the same load".to_owned());
    // The rows below check nothing either, and time between two reads is time for the kernel to read ahead.
    own.no_verify = true;
    for (option, value) in request.app_options {
        if takers(option)?.contains(&place.layer) {
            own.target_options.push((option.clone(), value.clone()));
        }
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::parse;

    fn loads_of(name: &str, settings: &[(&str, &str)]) -> Vec<Result<StackLoad, &'static str>> {
        let settings: Vec<Setting> =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let request = StackRequest { app: Some(name), app_settings: &settings, ..request() };
        let (application, _) = settled(&request, name).unwrap();
        (0..application.stages.len()).map(|at| load_of(&application, at)).collect()
    }

    fn request() -> StackRequest<'static> {
        static NOTHING: StackLoads = StackLoads { loads: Vec::new(), stored_bytes: 0 };
        StackRequest {
            hosts: None,
            scratch: std::path::Path::new("scratch"),
            size_bytes: 256 << 20,
            device: None,
            object: None,
            object_options: &[],
            gpu: None,
            engine: None,
            token_file: None,
            app: None,
            app_settings: &[],
            app_options: &[],
            loads: &NOTHING,
            destroy_data: false,
            served: None,
        }
    }

    fn of(load: &StackLoad) -> (&str, u64, u64, u32, Option<u64>) {
        (&load.name, load.bytes, load.transfer_bytes, load.workers, load.writes_per_sync)
    }

    const MIB: u64 = 1 << 20;

    #[test]
    fn loads_follow_from_the_calls_of_a_stage() {
        let vpic = loads_of("vpic", &[]);
        let [checkpoint, restart] = [vpic[0].as_ref().unwrap(), vpic[1].as_ref().unwrap()];
        // Eight variables of 4 MiB of each of two ranks, and one sync a rank.
        let expected = ("vpic checkpoint, write 4 MiB x 2", 64 * MIB, 4 * MIB, 2, Some(8));
        assert_eq!(of(checkpoint), expected);
        assert!(checkpoint.writes && !checkpoint.is_random && !restart.writes);
        assert_eq!(of(restart), ("vpic restart, read 4 MiB x 2", 64 * MIB, 4 * MIB, 2, None));

        // Items are cut into transfers: 32 MiB of a rank in 64 of 512 KiB.
        let cut = loads_of("checkpoint", &[("transfer", "512KiB"), ("ranks", "3")]);
        let expected = ("checkpoint checkpoint, write 512 KiB x 3", 96 * MIB, MIB / 2, 3, Some(64));
        assert_eq!(of(cut[0].as_ref().unwrap()), expected);

        // Each field has a sync; entries of the index are no data. 2 writers x 30 fields of 1 MiB.
        let fields = loads_of("fdb-hammer", &[]);
        let expected = ("fdb-hammer write, write 1 MiB x 2", 60 * MIB, MIB, 2, Some(1));
        assert_eq!(of(fields[0].as_ref().unwrap()), expected);
        assert_eq!(
            of(fields[1].as_ref().unwrap()),
            ("fdb-hammer read, read 1 MiB x 2", 60 * MIB, MIB, 2, None)
        );

        // 2048 samples of 30 KiB in the mean are loaded by two, the trainer moves nothing.
        let trained = loads_of("cosmic-tagger", &[]);
        let train = trained[1].as_ref().unwrap();
        let expected = ("cosmic-tagger train, random read 40 KiB x 2", 2048 * 30 * 1024, 40 * 1024, 2, None);
        assert_eq!(of(train), expected);
        assert!(train.is_random);
    }

    #[test]
    fn stages_without_a_load_say_why() {
        let both = loads_of("fdb-hammer", &[("pattern", "B")]);
        assert_eq!(both, [Err("it writes and reads at the same time")]);
        let database = loads_of("database", &[]);
        assert_eq!(
            database[0],
            Err("its calls use several transfer sizes"),
            "pages, and segments of the log"
        );
        assert_eq!(database[1], Err("it writes and reads at the same time"));
        assert_eq!(database[2].as_ref().unwrap().name, "database recovery, read 8 KiB x 1");
    }

    #[test]
    fn key_values_alone_are_no_load() {
        let text = "format = 1\nname = 'kv'\nversion = '1'\nsummary = 's'\n\
                    [[set]]\nname = 'values'\nkind = 'index'\nlayout = 'process'\n\
                    [[group]]\nname = 'w'\nstage = 'put'\nprocesses = 1\niterations = 1\n\
                    [[group.step]]\nname = 'x'\nitems = 4\neach = ['put values']\n";
        let application = resolve(&parse(text).unwrap(), &[]).unwrap();
        assert_eq!(load_of(&application, 0), Err("it moves no array data"));
    }

    #[test]
    fn sizes_are_written_whole() {
        for (bytes, words) in [(4 * MIB, "4 MiB"), (40 << 10, "40 KiB"), (1 << 30, "1 GiB"), (5000, "5000 B")]
        {
            assert_eq!(size_words(bytes), words);
        }
    }
}
