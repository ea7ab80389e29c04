//! Specs that single hosts carry out (`Spec::host`), each as a run of its own, beside those of other hosts.

use std::collections::BTreeMap;

use driver::Error;
use serde_json::Value;
use workload::spec::Spec;

use super::messages::{PlannedPhase, StageAsked, StepAsked, written};
use crate::planning::{self, Planned, Programme};

/// Which host carries out which phase of the programme.
#[derive(Clone, Debug, Default)]
pub(super) struct Apart {
    /// By number in the programme: the host, and the number of the phase among those that it planned.
    phases: Vec<(usize, usize)>,
}

/// A host's own specs, and their numbers among all.
pub(super) struct OwnSpecs {
    pub(super) specs: Vec<Spec>,
    requests: Vec<usize>,
}

/// Place of phases in the order of the programme: the stage of the specs that they come from; before, in or after what is asked for; and
/// which of these it is.
type Turn = (usize, u8, usize);

/// The specs of each host by number; none where the hosts carry out all specs together.
///
/// # Errors
/// Bad usage: specs of one host beside specs of all, or a host without any.
pub(super) fn of_hosts(specs: &[Spec], hosts: usize) -> Result<Option<Vec<OwnSpecs>>, Error> {
    if specs.iter().all(|spec| spec.host.is_none()) {
        return Ok(None);
    }
    let own = (0..hosts).map(|host| OwnSpecs::of(specs, host as u32)).collect::<Vec<_>>();
    let count: usize = own.iter().map(|own| own.specs.len()).sum();
    if count != specs.len() || own.iter().any(|own| own.specs.is_empty()) {
        return Err(Error::usage("hosts", "phases of single hosts and phases of all hosts in one run")
            .remedy("give every host its own phases, or none of them"));
    }
    Ok(Some(own))
}

impl OwnSpecs {
    fn of(specs: &[Spec], host: u32) -> Self {
        let mut own = Self { specs: Vec::new(), requests: Vec::new() };
        let mut request = 0;
        for stage in specs.chunk_by(|_, next| next.concurrent) {
            let before = own.specs.len();
            for spec in stage {
                if spec.host == Some(host) {
                    let concurrent = own.specs.len() > before;
                    own.specs.push(Spec { concurrent, ..spec.clone() });
                    own.requests.push(request);
                }
                request += 1;
            }
        }
        own
    }
}

/// The programme of all hosts, without its phases.
///
/// # Errors
/// Specs of a host that do not go together.
pub(super) fn outline(own: &[OwnSpecs]) -> Result<Programme, Error> {
    let mut programme = Programme { phases: Vec::new(), ladder: None, saturate: None, keep: false };
    for own in own {
        let Programme { ladder, saturate, keep, .. } = planning::outline(&own.specs)?;
        if ladder.is_some() || saturate.is_some() {
            return Err(Error::usage("hosts", "--ladder and --saturate apply to all hosts together")
                .remedy("leave out --ladder and --saturate"));
        }
        programme.keep |= keep;
    }
    Ok(programme)
}

impl Apart {
    /// Joins what the hosts have planned: specs that run at the same time do so on all hosts.
    pub(super) fn join(
        specs: &[Spec],
        own: &[OwnSpecs],
        plans: Vec<Vec<PlannedPhase>>,
    ) -> (Vec<Planned>, Self) {
        let stages = specs.chunk_by(|_, next| next.concurrent).enumerate();
        let stage_of: Vec<usize> =
            stages.flat_map(|(number, stage)| stage.iter().map(move |_| number)).collect();
        let mut turns: BTreeMap<Turn, Vec<(usize, usize, PlannedPhase)>> = BTreeMap::new();
        for (host, (phases, own)) in plans.into_iter().zip(own).enumerate() {
            let mut counts: BTreeMap<(usize, u8), (usize, Option<usize>)> = BTreeMap::new();
            for (number, mut phase) in phases.into_iter().enumerate() {
                phase.request = own.requests.get(phase.request).copied().unwrap_or(phase.request);
                let stage = stage_of.get(phase.request).copied().unwrap_or_default();
                let kind = phase.kind();
                // Phases that its own plan runs together stay together.
                let (count, last) = counts.entry((stage, kind)).or_default();
                *count += usize::from(last.is_some_and(|last| last != phase.stage));
                *last = Some(phase.stage);
                turns.entry((stage, kind, *count)).or_default().push((host, number, phase));
            }
        }
        let (mut joined, mut apart) = (Vec::new(), Self::default());
        for (stage, phases) in turns.into_values().enumerate() {
            for (host, number, mut phase) in phases {
                phase.stage = stage;
                joined.push(phase.planned(joined.len()));
                apart.phases.push((host, number));
            }
        }
        (joined, apart)
    }

    /// The tasks of each host in a stage, which is the one of this number that runs.
    ///
    /// # Errors
    /// Where they cannot be written.
    pub(super) fn tasks(
        &self,
        (stage, ran): (&[Planned], usize),
        hosts: usize,
    ) -> Result<Vec<Option<Value>>, Error> {
        let mut steps: Vec<Vec<StepAsked>> = vec![Vec::new(); hosts];
        for planned in stage {
            let (host, number) = self.phases[planned.number];
            let mut step = StepAsked::of(planned);
            step.phase = number;
            steps[host].push(step);
        }
        let asked = |steps| written(StageAsked { number: ran, steps, done: Vec::new() });
        let task = |steps: Vec<StepAsked>| (!steps.is_empty()).then(|| asked(steps)).transpose();
        steps.into_iter().map(task).collect()
    }

    /// The host that carries out the phase with this number in a stage, and its number among those of this host there.
    pub(super) fn place(&self, stage: &[Planned], number: usize) -> (usize, usize) {
        let host_of = |planned: &Planned| self.phases[planned.number].0;
        let host = host_of(&stage[number]);
        (host, stage[..number].iter().filter(|planned| host_of(planned) == host).count())
    }
}
