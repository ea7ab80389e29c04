//! Cost of a description for each operation: what a process does next, without filling, calls and checks.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use application::{AppPlan, AppSource};
use criterion::{Criterion, criterion_group, criterion_main};
use driver::{Error, Source};
use layer::{Journal, Measured, Planning, RunContext, Seed};
use serde_json::Value;
use workload::spec::Spec;

/// Keeps nothing.
struct Forgetful;

impl Journal for Forgetful {
    fn run(&self) -> u64 {
        1
    }

    fn owner(&self) -> u64 {
        1
    }

    fn note(&self, _: &'static str, _: Value) -> Result<(), Error> {
        Ok(())
    }

    fn noted(&self, _: &str) -> Value {
        Value::Null
    }
}

/// The plan of a stage of an application on the null driver.
fn plan(app: &str, stage: usize) -> Arc<AppPlan> {
    layer::add(&object::Objects);
    layer::add(&application::Applications);
    let mut spec = Spec::of_layer("application").expect("it was added");
    spec.targets = vec![app.to_owned(), "null:".to_owned()];
    // So many that no process comes to its end while it is measured: a new one would have its buffers made.
    workload::options::apply(&mut spec, "steps", "10000000").expect("a parameter of all of them");
    let context = RunContext {
        hosts: None,
        journal: Arc::new(Forgetful),
        interrupt: Arc::new(AtomicBool::new(false)),
        keep: false,
        tell: |_| {},
    };
    let mut run = application::Applications.begin(&context);
    run.find(&mut [&mut spec]).expect("a name and a target");
    let planning = Planning { before: &[], number: 0, seed: Seed::Given(1) };
    let phases = run.phases(&spec, &planning).expect("it can be planned");
    Arc::new(phases[stage].plan.of::<AppPlan>().expect("an application").clone())
}

fn next(criterion: &mut Criterion) {
    for (app, stage) in [("fdb-hammer", 0), ("fdb-hammer", 1), ("vpic", 0), ("bd-cats", 1)] {
        let plan = plan(app, stage);
        let mut source = AppSource::alone(&plan, 0).expect("a process");
        criterion.bench_function(&format!("{app} stage {stage}"), |bencher| {
            bencher.iter(|| match source.next(0) {
                Some(operation) => Some(operation),
                None => {
                    source = AppSource::alone(&plan, 0).expect("a process");
                    None
                }
            });
        });
    }
}

criterion_group!(benches, next);
criterion_main!(benches);
