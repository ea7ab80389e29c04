//! Searches for the most accelerators that a storage feeds, during a run: `accelerators=max`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use driver::Error;
use layer::Tell;
use layer::observations::{AcceleratorTry, Utilisation};
use layer::storage::Storage;
use units::ByteSize;
use units::random::derive_seed;
use workload::plan::buffer_bytes_max;
use workload::spec::Spec;

use crate::dlio::search::Search;
use crate::dlio::{self, Try};
use crate::plan::AppPlan;
use crate::{planning, spec};

/// A search during a run.
pub(crate) struct Feeding {
    spec: Spec,
    storage: Arc<dyn Storage>,
    content_seed: u64,
    state: Mutex<State>,
}

struct State {
    search: Search,
    /// The last run that was planned has not ended with a utilisation: there is nothing to go on from.
    is_open: bool,
}

/// Whether a spec asks for a search.
fn is_asked(spec: &Spec) -> bool {
    let own = spec::of(spec);
    own.app.as_deref() == Some(dlio::NAME) && dlio::is_search(&own.settings)
}

/// Refuses a search of several hosts, before the target is asked whether it has room for one.
///
/// # Errors
/// Bad usage with what would be accepted.
pub(crate) fn check_hosts(spec: &Spec) -> Result<(), Error> {
    if !is_asked(spec) || spec.place.is_none_or(|place| place.hosts < 2) {
        return Ok(());
    }
    Err(Error::usage("plan", "the search for the most accelerators does not support several hosts")
        .with("accelerators", "max")
        .remedy("set the number (--accelerators N), or omit --hosts"))
}

impl Feeding {
    /// The search that a spec asks for, whose first run is planned; none where it asks for none.
    ///
    /// # Errors
    /// Settings that cannot be.
    pub(crate) fn of(
        spec: &Spec,
        storage: &Arc<dyn Storage>,
        first: &AppPlan,
    ) -> Result<Option<Arc<Self>>, Error> {
        if !is_asked(spec) {
            return Ok(None);
        }
        let settings = &spec::of(spec).settings;
        let (_, facts) = dlio::load_try(settings, &Try { accelerators: 1, run: 0, number: 0 })?;
        let memory = buffer_bytes_max(host::memory::memory().total_bytes);
        let of_memory = (memory / first.transfer_bytes_max().saturating_mul(facts.processes).max(1)).max(1);
        let max = facts.accelerators_max.min(of_memory);
        let reason = match () {
            () if max < facts.accelerators_max => {
                format!("memory is full: no more buffers of {} fit", ByteSize(first.transfer_bytes_max()))
            }
            () if facts.is_of_data_set => {
                "the data set has too few samples per step for more; use more files".to_owned()
            }
            () => "a run supports no more accelerators".to_owned(),
        };
        Ok(Some(Arc::new(Self {
            spec: spec.clone(),
            storage: Arc::clone(storage),
            content_seed: first.content_seed,
            state: Mutex::new(State { search: Search::new(max, reason), is_open: true }),
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its storage.
    pub(crate) fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }

    /// The spec that asks for it.
    pub(crate) fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The plan of the next run; none where the last has not ended yet, or the search is over.
    ///
    /// # Errors
    /// A run that cannot be.
    pub(crate) fn next(&self) -> Result<Option<AppPlan>, Error> {
        let mut state = self.state();
        let Some(accelerators) = state.search.next().filter(|_| !state.is_open) else { return Ok(None) };
        let (run, number) = (state.search.runs_of(accelerators), state.search.runs());
        let (description, _) =
            dlio::load_try(&spec::of(&self.spec).settings, &Try { accelerators, run, number })?;
        let seeds = (self.content_seed, derive_seed(self.content_seed, &[number as u64]));
        let plan = planning::plan_last(&self.spec, &description, &*self.storage, seeds)?;
        state.is_open = true;
        Ok(Some(plan))
    }

    /// Takes the result of a run in: the search so far goes with it, and the user is told.
    pub(crate) fn take(&self, seen: &mut Utilisation, tell: Tell) {
        let mut state = self.state();
        state.search.add(u64::from(seen.accelerators), seen);
        state.is_open = false;
        let found = state.search.so_far();
        if let Some(one) = found.tries.iter().find(|one| one.accelerators == u64::from(seen.accelerators)) {
            let next = state.search.next();
            let then = match next {
                Some(next) if next == one.accelerators => "run again".to_owned(),
                Some(next) => format!("next: {next}"),
                None => "done".to_owned(),
            };
            tell(format_args!("accelerators {}; {then}", words(one, seen.limit_fraction)));
        }
        seen.search = Some(found);
    }
}

/// A try in words: `4: 93.1 % (95 % CI 92.8-93.4 %), passes 90.0 %`.
fn words(one: &AcceleratorTry, limit: f64) -> String {
    let verdict = match (one.is_met, one.is_near) {
        (true, false) => "passes",
        (false, false) => "below",
        (true, true) => "passes within noise of",
        (false, true) => "below within noise of",
    };
    let interval = interval(one).map_or(String::new(), |interval| format!(" (95 % CI {interval})"));
    format!("{}: {:.1} %{interval}, {verdict} {:.1} %", one.accelerators, one.fraction * 100.0, limit * 100.0)
}

/// The interval of a try in words.
pub(crate) fn interval(one: &AcceleratorTry) -> Option<String> {
    let (low, high) = one.low_fraction.zip(one.high_fraction)?;
    Some(format!("{:.1}-{:.1} %", low * 100.0, high * 100.0))
}
