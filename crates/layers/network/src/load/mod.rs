//! Loads on the network: who is sent to, who drives, their phases, and what is seen around them.

mod accept;
mod link;
mod monitor;
mod reach;
mod resolve;
mod run;
mod servers;
mod sync;

use driver::{Error, Registration};
use layer::{AcceptLimits, DriverEntry, LayerRun, Measured, Part, Phase, Planning, RunContext, StageContext};
use rpc::interface::ProviderFacts;
use workload::layers::LayerDef;
use workload::plan::PhasePlan;
use workload::spec::Spec;

use crate::{DRIVERS, LAYER, OpenRequest, Rpc};
use reach::Reaches;
use run::{MasterPart, NetworkPart};

/// RPCs to engines, or between them.
#[derive(Debug)]
pub struct Network;

impl Measured for Network {
    fn definition(&self) -> &'static LayerDef {
        LAYER.definition()
    }

    fn drivers(&self) -> Vec<DriverEntry> {
        DRIVERS.iter().map(DriverEntry::of).collect()
    }

    fn list_notes(&self) -> Vec<String> {
        vec![match providers() {
            Ok(found) => {
                let names = rpc::ofi::typed_names(found.iter().map(|facts| facts.name.as_str()));
                format!("providers: {}", names.join(" "))
            }
            Err(why) => why,
        }]
    }

    fn options_title(&self) -> String {
        "Options of a load on the network (`strata net`, `layer = \"network\"` in a job file)".to_owned()
    }

    fn commands(&self) -> Vec<layer::Command> {
        crate::commands::all()
    }

    fn stack_rows(&self, request: &layer::StackRequest<'_>) -> Vec<layer::StackRowSpec> {
        crate::stack::rows(request)
    }

    fn begin(&self, context: &RunContext) -> Box<dyn LayerRun> {
        Box::new(NetworkRun { context: context.clone(), reaches: Reaches::default() })
    }

    fn accept(&self, plan: &PhasePlan, limits: &AcceptLimits) -> Result<u64, Error> {
        accept::accept(plan, limits)
    }
}

/// The network during a run: engines that were found, and those that the run started.
struct NetworkRun {
    context: RunContext,
    reaches: Reaches,
}

impl LayerRun for NetworkRun {
    fn phases(&mut self, spec: &Spec, planning: &Planning<'_>) -> Result<Vec<Phase>, Error> {
        let reach = self.reaches.find(spec, self.context.tell)?;
        resolve::phases(spec, &reach, planning)
    }

    fn keeps_parts(&self, _plan: &PhasePlan, _all: &[&PhasePlan]) -> Option<String> {
        Some("a network load leaves no data for another host to read".to_owned())
    }

    fn keeps_hosts(&self, _plan: &PhasePlan, _all: &[&PhasePlan]) -> Option<String> {
        None
    }

    fn part<'a>(
        &'a mut self,
        phases: Vec<&'a Phase>,
        _done: &[&PhasePlan],
        context: &StageContext<'_>,
    ) -> Result<Box<dyn Part + 'a>, Error> {
        Ok(Box::new(NetworkPart::new(&phases, context)?))
    }

    fn master_part<'a>(
        &'a mut self,
        phases: Vec<(&'a Phase, usize)>,
        context: &StageContext<'_>,
    ) -> Result<Box<dyn Part + 'a>, Error> {
        Ok(Box::new(MasterPart::new(&phases, context)?))
    }
}

/// Asks libfabric for its providers, for the choice of an interface.
///
/// # Errors
/// A sentence that says why there are none.
pub fn providers() -> Result<Vec<ProviderFacts>, String> {
    rpc::ofi::providers().map_err(|error| error.to_string())
}

/// The driver that reaches a provider: `tcp`, `ofi+tcp`, `null`.
fn driver_of(provider: &str) -> Result<&'static Registration<Rpc, OpenRequest>, Error> {
    driver::find(DRIVERS, provider.split('+').next().unwrap_or(provider))
}
