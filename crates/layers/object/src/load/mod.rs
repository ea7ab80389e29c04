//! Loads on object stores: which stores a run opens, what its phases are, and what is seen around them.

mod journal;
mod leftovers;
pub mod plan;
mod progress;
mod run;
pub mod scratch;
mod secret;
mod stores;

use std::path::PathBuf;
use std::sync::Arc;

use driver::{Error, ErrorKind};
use layer::server::SharedStores;
use layer::storage::{Storage, StorageNeeds};
use layer::{DriverEntry, LayerRun, Leftovers, Measured, Part, Phase, Planning, RunContext, StageContext};
use units::{label_of, path_of};
use vos::Pool;
use workload::layers::LayerDef;
use workload::plan::{PhasePlan, ServedStore, expand_ladder};
use workload::spec::Spec;

use leftovers::InStores;
use run::{ObjectPart, Ready};

use crate::plan::{ObjectOp, ObjectPlan, Scope, object_phases};
use crate::{DRIVERS, LAYER};

pub use journal::{JOURNAL_KEY, StoreJournal};
pub use progress::Told;
pub use secret::{of_files, s3_key};
pub use stores::{Store, Stores, directory_of, refusal};

/// Forms of targets that applications may use.
const STORAGE_TARGETS: &[&str] = &[
    "null:",
    "vos:DIR",
    "engine://HOST:PORT/POOL/CONTAINER",
    "rados://POOL",
    "daos://POOL/CONTAINER",
    "s3://BUCKET",
];

/// Object stores.
#[derive(Debug)]
pub struct Objects;

impl Measured for Objects {
    fn definition(&self) -> &'static LayerDef {
        LAYER.definition()
    }

    fn drivers(&self) -> Vec<DriverEntry> {
        let entry = |driver: &crate::Registration| DriverEntry {
            name: driver.name,
            target: Some(driver.target),
            capabilities: driver.capabilities,
            summary: driver.summary,
        };
        DRIVERS.iter().map(entry).collect()
    }

    fn paths(&self, spec: &Spec) -> Vec<PathBuf> {
        spec.targets.iter().filter_map(|target| Some(path_of(directory_of(target)?).into_owned())).collect()
    }

    fn leftovers(&self) -> Vec<&'static dyn Leftovers> {
        vec![&InStores]
    }

    fn storage_targets(&self) -> &'static [&'static str] {
        STORAGE_TARGETS
    }

    fn storage_options(&self) -> &'static [&'static str] {
        crate::storage::OPTIONS
    }

    fn takes_storage_option(&self, target: &str, option: &str) -> bool {
        crate::storage::takes_option(target, option)
    }

    fn serves_storage(&self, target: &str) -> bool {
        crate::backend::driver_of(target).is_ok()
    }

    fn shared_storage(&self, target: &str, stores: &mut SharedStores) -> Result<Option<ServedStore>, Error> {
        let Some(directory) = directory_of(target).map(path_of) else { return Ok(None) };
        if !Pool::exists(&directory) {
            return Err(Error::usage("object", "the directory contains no pool")
                .with("directory", directory.display())
                .remedy(format!("create one: strata pool create vos:{}", directory.display())));
        }
        let (directory, address) = stores.serve(target, &directory)?;
        Ok(Some(ServedStore {
            store: format!("vos:{}", label_of(directory.as_os_str())),
            target: format!("engine://{address}/{}", SharedStores::POOL),
        }))
    }

    fn storage(
        &self,
        spec: &Spec,
        needs: &StorageNeeds,
        context: &RunContext,
    ) -> Result<Arc<dyn Storage>, Error> {
        Ok(Arc::new(crate::storage::ObjectStorage::open(spec, needs, context)?))
    }

    fn options_title(&self) -> String {
        "Options of a load on an object store (`strata object`, `layer = \"object\"` in a job file)"
            .to_owned()
    }

    fn engine_service(&self) -> Option<&'static dyn layer::server::EngineService> {
        Some(&crate::served::PoolService)
    }

    fn commands(&self) -> Vec<layer::Command> {
        crate::commands::all()
    }

    fn stack_serve(
        &self,
        request: &layer::StackRequest<'_>,
        context: &RunContext,
    ) -> Vec<layer::StackServed> {
        crate::stack::serve(request, context)
    }

    fn stack_rows(&self, request: &layer::StackRequest<'_>) -> Vec<layer::StackRowSpec> {
        crate::stack::rows(request)
    }

    fn begin(&self, context: &RunContext) -> Box<dyn LayerRun> {
        Box::new(ObjectRun { stores: Stores::new(context) })
    }
}

/// Object stores during a run.
pub struct ObjectRun {
    stores: Stores,
}

impl ObjectRun {
    /// A run on stores that were found already.
    #[must_use]
    pub fn on(stores: Stores) -> Self {
        Self { stores }
    }
}

impl LayerRun for ObjectRun {
    fn find(&mut self, specs: &mut [&mut Spec]) -> Result<(), Error> {
        self.stores.find(specs)
    }

    fn phases(&mut self, spec: &Spec, planning: &Planning<'_>) -> Result<Vec<Phase>, Error> {
        let store = self.stores.of(spec)?;
        let earlier = planning.before.iter().filter_map(|plan| plan.of::<ObjectPlan>()).cloned();
        let mut earlier: Vec<ObjectPlan> = earlier.collect();
        let mut phases: Vec<Phase> = Vec::new();
        for step in expand_ladder(spec) {
            for phase in object_phases(&step).map_err(plan::usage)? {
                let planned = plan::one(&step, &phase, store, planning.seed_of(phases.len()))?;
                if planned.fills {
                    let fills = plan::fills(&planned, &earlier);
                    earlier.extend(fills.iter().filter_map(|fill| fill.plan.of::<ObjectPlan>()).cloned());
                    phases.extend(fills);
                }
                earlier.extend(planned.plan.of::<ObjectPlan>().cloned());
                phases.push(planned);
            }
        }
        Ok(phases)
    }

    fn keeps_parts(&self, plan: &PhasePlan, _all: &[&PhasePlan]) -> Option<String> {
        let changes = |plan: &ObjectPlan| plan.containers == Scope::Private && plan.any(ObjectOp::changes);
        let is_rotated = plan.load().place.is_some_and(|place| place.rotated > 0);
        let is_kept = is_rotated && plan.of().is_some_and(changes);
        is_kept.then(|| {
            "only the host of a worker may change that worker's containers (--containers private)".to_owned()
        })
    }

    fn keeps_hosts(&self, _plan: &PhasePlan, _all: &[&PhasePlan]) -> Option<String> {
        None
    }

    fn fills(&self, phase: &Phase, earlier: &[&PhasePlan]) -> Vec<Phase> {
        let earlier: Vec<ObjectPlan> =
            earlier.iter().filter_map(|plan| plan.of::<ObjectPlan>()).cloned().collect();
        if phase.fills { plan::fills(phase, &earlier) } else { Vec::new() }
    }

    fn part<'a>(
        &'a mut self,
        phases: Vec<&'a Phase>,
        done: &[&PhasePlan],
        context: &StageContext<'_>,
    ) -> Result<Box<dyn Part + 'a>, Error> {
        let done: Vec<&ObjectPlan> = done.iter().filter_map(|plan| plan.of()).collect();
        let run = self.stores.run();
        let ready = |phase: &Phase| {
            let (Some(plan), Some(store)) = (phase.plan.of::<ObjectPlan>(), phase.state::<Store>()) else {
                return Err(Error::new(ErrorKind::Run, "stage", "a phase was planned without its store"));
            };
            Ok(Ready {
                replaced: crate::replaced_series(&done, plan, run),
                plan: plan.clone(),
                store,
                run,
                gpu_notes: plan.gpu_notes(),
                accepts_foreign: !phase.fills,
            })
        };
        let stage = phases.into_iter().map(ready).collect::<Result<_, Error>>()?;
        Ok(Box::new(ObjectPart::new(stage, &context.interrupt)?))
    }

    fn end(&mut self) -> Result<(), Error> {
        self.stores.end()
    }
}
