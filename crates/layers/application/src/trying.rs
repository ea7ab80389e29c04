//! Tries the first remedy for an expensive part of the time, in turns with the application as it was: `--try`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use driver::Error;
use layer::observations::Profile;
use layer::profile::EXPENSIVE_SHARE_MIN;
use layer::{Planning, RunContext, Tell};
use workload::plan::{LayerPlan as _, LoadPlan};
use workload::spec::Spec;

use crate::beside::{BesidePlan, TriedRemedy};
use crate::description::{RemedyValue, remedies};
use crate::operation::AppClass;
use crate::plan::AppPlan;
use crate::planning::Opening;
use crate::spec::AppSpec;
use crate::{planning, spec};

/// An application that is planned, as it is or with a remedy, for turns on one target.
#[derive(Clone)]
pub(crate) struct Side {
    pub(crate) spec: Spec,
    pub(crate) beside: BesidePlan,
    pub(crate) plans: Vec<AppPlan>,
    pub(crate) opening: Arc<Opening>,
}

/// The remedies of a run, all planned before it, and what its first stages showed.
pub(crate) struct Trying {
    /// The application as it is, for turns.
    as_it_is: Side,
    remedies: Vec<(RemedyValue, Side)>,
    passes: u32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Profiles of the stages of the first run.
    profiles: Vec<Profile>,
    is_over: bool,
}

impl Trying {
    /// The remedies of a spec, for an application that is planned.
    ///
    /// # Errors
    /// A description that offers none for this load.
    pub(crate) fn of(
        spec: &Spec,
        plans: &[AppPlan],
        opening: &Arc<Opening>,
        (planning, context): (&Planning<'_>, &RunContext),
    ) -> Result<Arc<Self>, Error> {
        let own = spec::of(spec);
        let (description, settings) = planning::loaded(spec)?;
        let mut found = Vec::new();
        let mut refused = None;
        for remedy in remedies(&description, &settings)? {
            let mut spec = spec.clone();
            // What is given last holds.
            spec.own.get_mut::<AppSpec>().settings.push((remedy.name.clone(), remedy.value.clone()));
            // What the target cannot have is no remedy on it.
            let app = match planning::plan(&spec, planning, context) {
                Ok(app) => app,
                Err(error) => {
                    refused.get_or_insert(error);
                    continue;
                }
            };
            app.storage.end()?;
            found.push((remedy, Side::of(spec, app.plans, Arc::new(app.opening))));
        }
        if found.is_empty() {
            let message = format!("{} has no remedy for this load", description.name);
            return Err(match refused {
                Some(error) => error.with("try", message),
                None => Error::usage("plan", message).remedy(
                    "omit --try, or add [[remedy]] entries to the description (docs/applications.md)",
                ),
            });
        }
        Ok(Arc::new(Self {
            as_it_is: Side::of(spec.clone(), plans.to_vec(), Arc::clone(opening)),
            remedies: found,
            passes: own.passes(),
            state: Mutex::default(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the profile of a stage of the first run in; the note of what follows, when it was the last.
    pub(crate) fn take(&self, profile: Profile, tell: Tell) -> Option<String> {
        let mut state = self.state();
        state.profiles.push(profile);
        if state.profiles.len() < self.as_it_is.plans.len() {
            return None;
        }
        let note = match self.choice(&state) {
            Some((tried, _)) => {
                tell(format_args!("try {}: {}", tried.set, tried.words()));
                return None;
            }
            None => "--try: no part with 5 % of the time or more has a remedy".to_owned(),
        };
        state.is_over = true;
        tell(format_args!("{note}"));
        Some(note)
    }

    /// The remedy for the largest part of the time that has one.
    fn choice(&self, state: &State) -> Option<(TriedRemedy, &Side)> {
        let mut largest: Option<(TriedRemedy, &Side)> = None;
        let stages = state.profiles.iter().zip(&self.as_it_is.plans);
        for (group, plan) in
            stages.flat_map(|(profile, plan)| profile.groups.iter().map(move |group| (group, plan)))
        {
            for part in &group.parts {
                if part.name == AppClass::Wait.name() && plan.works_behind(&group.name) {
                    continue;
                }
                let share_fraction = group.share_of(part);
                let is_larger = largest.as_ref().is_none_or(|(one, _)| share_fraction > one.share_fraction);
                let remedy = self.remedies.iter().find(|(remedy, _)| remedy.part == part.name);
                if let Some((remedy, side)) =
                    remedy.filter(|_| share_fraction >= EXPENSIVE_SHARE_MIN && is_larger)
                {
                    let tried = TriedRemedy {
                        group: group.name.clone(),
                        part: part.name.clone(),
                        share_fraction,
                        by_stage: remedy.by_stage,
                        set: format!("{}={}", remedy.name, remedy.value),
                    };
                    largest = Some((tried, side));
                }
            }
        }
        largest
    }

    /// The two sides of the turns and how many passes there are; none where there is nothing to try, or its turns are planned already.
    pub(crate) fn turns(&self) -> Option<(Vec<Side>, u32)> {
        let mut state = self.state();
        if state.is_over || state.profiles.len() < self.as_it_is.plans.len() {
            return None;
        }
        let (tried, side) = self.choice(&state)?;
        state.is_over = true;
        let target = side.spec.targets.first().cloned().unwrap_or_default();
        let all = BesidePlan {
            targets: vec![target.clone(), target],
            labels: vec!["unchanged".to_owned(), tried.set.clone()],
            at: 0,
            pass: 1,
            remedy: Some(tried),
        };
        let sides = [&self.as_it_is, side].into_iter().enumerate();
        let sides = sides
            .map(|(at, side)| Side { beside: BesidePlan { at: at as u32, ..all.clone() }, ..side.clone() });
        Some((sides.collect(), self.passes))
    }
}

impl Side {
    /// Of a spec, whose turns have no profile of their own.
    fn of(spec: Spec, plans: Vec<AppPlan>, opening: Arc<Opening>) -> Self {
        let without = |plan: AppPlan| AppPlan { load: LoadPlan { profile: false, ..plan.load }, ..plan };
        let plans = plans.into_iter().map(without).collect();
        Self { spec, beside: BesidePlan::default(), plans, opening }
    }
}
