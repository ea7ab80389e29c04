//! A layer that measures nothing, added from here alone: it stands in help, job files, the record, comparisons and the live view as the
//! others do. The test is its own strata: a process of it that finds words in the environment runs them.

use std::sync::Arc;

use driver::{Capabilities, Completions, Driver, Error, Operation, Source, Submitted};
use layer::{
    AcceptLimits, DriverEntry, LayerRun, Measured, Part, Phase, Planning, RunContext, StageContext, masters,
};
use runner::{Job, Opener, WorkerSetup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workload::layers::LayerDef;
use workload::options::{MASTERS, OptionDef};
use workload::plan::{LayerPlan, LoadPlan, MasterPlan, PhasePlan, PlanKind, UNLIMITED_TIME_NS, load};
use workload::spec::Spec;

/// Options of the layer.
#[derive(Clone, Debug, Default, PartialEq)]
struct NopSpec {
    spins: Option<u32>,
}

const HELP: &str = "Hints to the processor that an operation gives";
static OPTIONS: &[OptionDef] = &[OptionDef::new("spins", "N", "0", HELP, |spec, text| {
    spec.own.get_mut::<NopSpec>().spins = Some(units::parse_u64_in("spins", text, 0..=1000)? as u32);
    Ok(())
})];

static DEFINITION: LayerDef = LayerDef {
    options: &[OPTIONS, MASTERS],
    refused: &[("op", "nothing: there is one operation")],
    ..LayerDef::new("nop", "Measure nothing", PlanKind::of::<NopPlan>("Nothing."))
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct NopPlan {
    name: String,
    engine: String,
    spins: u32,
    masters: Vec<MasterPlan>,
    load: LoadPlan,
}

impl LayerPlan for NopPlan {
    workload::plan_parts!("nop");

    fn operation_words(&self) -> String {
        format!("nothing, with {} spins", self.spins)
    }

    fn master_plans(&self) -> &[MasterPlan] {
        &self.masters
    }
}

#[derive(Clone, Copy)]
struct Nop(u32);

impl Operation for Nop {
    const CLASSES: &'static [&'static str] = &["nop"];

    fn class(&self) -> usize {
        0
    }

    fn slot(&self) -> u32 {
        self.0
    }

    fn bytes(&self) -> u64 {
        0
    }
}

/// Source and driver in one.
struct Worker(u32);

impl Source<Nop> for Worker {
    fn next(&mut self, slot: u32) -> Option<Nop> {
        Some(Nop(slot))
    }
}

impl Driver<Nop> for Worker {
    fn submit(&mut self, batch: &[Nop], done: &mut Completions) -> Result<Submitted, Error> {
        for operation in batch {
            (0..self.0).for_each(|_| std::hint::spin_loop());
            done.push(operation.0, 0);
        }
        Ok(Submitted { accepted: batch.len() })
    }
}

const CAPABILITIES: Capabilities = Capabilities::plain(Nop::CLASSES, 64);

struct NopLayer;

impl Measured for NopLayer {
    fn definition(&self) -> &'static LayerDef {
        &DEFINITION
    }

    fn drivers(&self) -> Vec<DriverEntry> {
        let summary = "Completes at once";
        vec![DriverEntry { name: "nothing", target: None, capabilities: CAPABILITIES, summary }]
    }

    fn begin(&self, _context: &RunContext) -> Box<dyn LayerRun> {
        Box::new(Self)
    }

    fn accept(&self, _plan: &PhasePlan, _limits: &AcceptLimits) -> Result<u64, Error> {
        Ok(0)
    }
}

impl LayerRun for NopLayer {
    fn phases(&mut self, spec: &Spec, planning: &Planning<'_>) -> Result<Vec<Phase>, Error> {
        let spins = spec.own.get::<NopSpec>().and_then(|own| own.spins).unwrap_or(0);
        let load = load(spec, spec.depth.unwrap_or(1), Some(UNLIMITED_TIME_NS), planning.seed_of(0))
            .map_err(|error| Error::usage("plan", error.0))?;
        let name = spec.name.clone().unwrap_or_else(|| "nop".to_owned());
        let (engine, masters) = ("nothing".to_owned(), masters::clients(spec)?);
        let plan = PhasePlan::new(NopPlan { name, engine, spins, masters, load });
        Ok(vec![Phase { control: masters::control(spec)?, ..Phase::new(plan, &CAPABILITIES) }])
    }

    fn part<'a>(
        &'a mut self,
        phases: Vec<&'a Phase>,
        _done: &[&PhasePlan],
        context: &StageContext<'_>,
    ) -> Result<Box<dyn Part + 'a>, Error> {
        Ok(layer::plain_part(phases, context, |phase| {
            let spins = phase.plan.of::<NopPlan>().map_or(0, |plan| plan.spins);
            let open = Opener::new(move |_| {
                let (driver, notes, parts) = (Box::new(Worker(spins)), Vec::new(), Vec::new());
                Ok(WorkerSetup { driver, source: Worker(0), notes, parts })
            });
            let plan = &phase.plan;
            Job::new(plan.name(), plan.load(), vec![0], open, Arc::clone(&context.interrupt))
        }))
    }
}

// The layer ends here; what follows tries it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// This strata, with the layer.
fn strata_command(directory: &Path, words: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["as_strata", "--exact", "--nocapture"]).env("STRATA_WORDS", words).current_dir(directory);
    command
}

fn strata(directory: &Path, words: &str) -> Output {
    strata_command(directory, words).output().unwrap()
}

#[test]
fn as_strata() {
    let Ok(words) = std::env::var("STRATA_WORDS") else { return };
    layer::add(&NopLayer);
    // This program takes the words from its environment.
    strata::start_by(|words| strata_command(Path::new("."), &words.join(" ")));
    let words: Vec<String> = std::iter::once("strata").chain(words.split(' ')).map(str::to_owned).collect();
    std::process::exit(strata::run(&words).into());
}

/// Standard output of a command that ends well.
fn said(directory: &Path, words: &str) -> String {
    let output = strata(directory, words);
    assert_eq!(output.status.code(), Some(0), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn refusal(directory: &Path, words: &str) -> String {
    let output = strata(directory, words);
    assert_eq!(output.status.code(), Some(2), "{words}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn it_is_there_as_other_layers_are() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    let help = said(here, "--help");
    assert!(help.contains("nop") && help.contains("Measure nothing"), "{help}");
    let help = said(here, "nop --help");
    assert!(
        help.contains("--spins <N>") && help.contains("--threads") && !help.contains("--block-size"),
        "{help}"
    );
    assert!(said(here, "list").contains("nop     nothing    1-64"), "{}", said(here, "list"));
    assert!(said(here, "schema").contains(r#""const": "nop""#));
    let text = said(here, "nop --spins 7 --count 5000 --depth 4 --json a.json");
    assert!(
        text.contains("nop, nothing, with 7 spins, 1 thread x 4 in flight, nothing, 5000 operations"),
        "{text}"
    );
    let record: Value = serde_json::from_slice(&std::fs::read(here.join("a.json")).unwrap()).unwrap();
    let phase = &record["phases"][0];
    assert_eq!((&phase["plan"]["layer"], &phase["plan"]["spins"]), (&"nop".into(), &7.into()));
    assert_eq!(phase["summary"]["total"]["operations"], 5000);
    assert!(phase["observations"]["context_switches"].is_u64(), "the machine is watched");
    assert!(said(here, "report a.json --csv").contains("\nnop,nop,nothing,nop,nop,"));
    said(here, "nop --spins 90 --count 5000 --depth 4 --json b.json");
    let compared = said(here, "compare a.json b.json");
    assert!(compared.contains("nop") && compared.contains("spins"), "{compared}");
    let rows = said(here, "nop --time 300ms --live-csv -");
    assert!(rows.lines().any(|row| row.contains("nop")), "{rows}");
}

#[test]
fn job_files_mix_it_with_others_and_options_are_refused_by_name() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    let job = "count = 100\n[[phase]]\nlayer = 'nop'\nspins = 3\n[[phase]]\ntargets = ['null:']\nop = 'randread'\nconcurrent = true\n";
    std::fs::write(here.join("job.toml"), job).unwrap();
    said(here, "run job.toml --json job.json");
    let record: Value = serde_json::from_slice(&std::fs::read(here.join("job.json")).unwrap()).unwrap();
    let phases = record["phases"].as_array().unwrap().iter();
    let found: Vec<_> =
        phases.map(|phase| (phase["plan"]["layer"].as_str().unwrap(), &phase["stage"])).collect();
    assert_eq!(found, [("nop", &0.into()), ("media", &0.into())]);
    let refused = refusal(here, "media null: --op nop --spins 3");
    assert!(refused.contains("use it only for the nop layer"), "{refused}");
    assert!(refusal(here, "nop --op read").contains("use nothing: there is one operation"));
    assert!(refusal(here, "nop --spins 5000").contains("--spins: "));
    let plain =
        Command::new(env!("CARGO_BIN_EXE_strata")).args(["report", "job.json"]).current_dir(here).output();
    let plain = plain.unwrap();
    assert_eq!(plain.status.code(), Some(2));
    let told = String::from_utf8_lossy(&plain.stderr).into_owned();
    assert!(told.contains("unknown layer \"nop\", expected one of media, network, object"), "{told}");
}

#[test]
fn hosts_carry_it_out_together() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    let text = said(here, "nop --hosts local:2 --threads 2 --count 701 --spins 3 --json hosts.json");
    assert!(text.contains("2 hosts x 2 threads") && text.contains("by host"), "{text}");
    let record: Value = serde_json::from_slice(&std::fs::read(here.join("hosts.json")).unwrap()).unwrap();
    let phase = &record["phases"][0];
    assert_eq!((&phase["summary"]["total"]["operations"], &phase["plan"]["spins"]), (&701.into(), &3.into()));
    let workers = phase["samples"]["workers"].as_array().unwrap();
    let origins: Vec<_> = workers.iter().map(|worker| worker["origin"].as_str().unwrap()).collect();
    assert_eq!(origins, ["local:0", "local:0", "local:1", "local:1"]);
    assert_eq!(record["hosts"].as_array().unwrap().len(), 2);
    assert!(refusal(here, "nop --hosts local:2 --spins 5000").contains("--spins: "));
}

/// An engine with the layer, and its control address. It ends when its standard input closes.
fn engine(directory: &Path) -> (Child, String) {
    let words = "engine --until-stdin-closes --no-attach-info --listen 127.0.0.1:0 --interface lo";
    let mut command = strata_command(directory, words);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.find_map(|line| line.ok().filter(|line| line.contains(", control "))).unwrap();
    let control = line.split_once(", control ").unwrap().1.split([',', '\n']).next().unwrap().to_owned();
    // Its output is not read any more, and it writes no more.
    (child, control)
}

#[test]
fn two_masters_drive_it_together() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    let (mut first, one) = engine(here);
    let (mut second, other) = engine(here);
    let text = said(here, &format!("nop --clients {one},{other} --count 700 --spins 3 --json two.json"));
    assert!(text.contains("2 masters x 1 thread"), "{text}");
    let record: Value = serde_json::from_slice(&std::fs::read(here.join("two.json")).unwrap()).unwrap();
    let phase = &record["phases"][0];
    assert_eq!(phase["summary"]["total"]["operations"], 1400, "each did its share");
    let origins: Vec<_> =
        phase["samples"]["workers"].as_array().unwrap().iter().map(|worker| &worker["origin"]).collect();
    assert_eq!(origins, [&Value::from(one.as_str()), &Value::from(other.as_str())]);
    drop((first.stdin.take(), second.stdin.take()));
    assert!(first.wait().unwrap().success() && second.wait().unwrap().success());
    let refused = strata(here, &format!("nop --clients {one} --count 10"));
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains(&format!("master {one}: ")), "{refused:?}");
}
