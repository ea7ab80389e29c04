//! Reports of layers: what a layer alone knows of its phases, and the list of the layers that have one.

use std::sync::{PoisonError, RwLock};

use statistics::ClassSummary;

use crate::chart::Chart;
use crate::doubts::{Evidence, Kind};
use crate::page::Page;
use crate::profile::{ProfileRemedy, WorkerNoun};
use crate::record::{PhaseRecord, Record};
use crate::stack::{Remedy, RemedyCase};

/// Phases of one load on several sides, which share charts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SideBySide {
    /// Title of the charts.
    pub title: String,
    /// A line for each side: its name, and the number of its phase.
    pub lines: Vec<(String, usize)>,
    /// Phases that have no charts: other passes over the same.
    pub left_out: Vec<usize>,
}

/// The report of a layer on its phases. All but the name may be left out: what any phase has is told without it.
pub trait View: Sync {
    /// Name of the layer, as plans have it.
    fn layer(&self) -> &'static str;

    /// Writes where a phase ran, above the table of its classes.
    fn places(&self, _page: &mut Page, _phase: &PhaseRecord) {}

    /// Writes what a phase moved, below that table.
    fn moved(&self, _page: &mut Page, _phase: &PhaseRecord) {}

    /// Writes counters and tables of its own, after all that any phase has.
    fn detail(&self, _page: &mut Page, _phase: &PhaseRecord) {}

    /// Phases that [`View::overview`] stands for: they have no block of their own in a report.
    fn together(&self, _record: &Record) -> Vec<usize> {
        Vec::new()
    }

    /// Writes what these phases say together. Their notes and doubts come below it.
    fn overview(&self, _page: &mut Page, _record: &Record) {}

    /// Charts of what these phases say together, each with its part of the file's name.
    fn overview_charts(&self, _record: &Record) -> Vec<(&'static str, Chart)> {
        Vec::new()
    }

    /// Of these phases, those that share charts in place of having their own.
    fn side_by_side(&self, _record: &Record) -> Vec<SideBySide> {
        Vec::new()
    }

    /// Kinds of doubts of its own.
    fn doubts(&self) -> &'static [Kind] {
        &[]
    }

    /// The remedy that takes the place of a kind's usual one, where that names what is already so.
    fn remedy(&self, _kind: &str, _evidence: &Evidence<'_>) -> Option<&'static str> {
        None
    }

    /// Charts of its own of a phase with this title, each with its part of the file's name. Their notes go after that on the load.
    fn charts(&self, _phase: &PhaseRecord, _title: &str) -> Vec<(&'static str, Chart)> {
        Vec::new()
    }

    /// A worker as `--profile` names it.
    fn worker_noun(&self) -> WorkerNoun {
        WorkerNoun::COMMON
    }

    /// Remedies for kinds of calls that take much of the time of workers (`--profile`).
    fn profile_remedies(&self) -> &'static [ProfileRemedy] {
        &[]
    }

    /// Classes of operations that are none on storage: computing, and waiting for others.
    fn idle_classes(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether more threads and more operations in flight are options of its loads, and so remedies that can be tried.
    fn takes_more(&self) -> bool {
        true
    }

    /// Where the operations of a phase spent their time, in words by class, for classes of which parts of it were told apart.
    fn spent<'a>(&self, _phase: &'a PhaseRecord) -> Vec<(&'a ClassSummary, String)> {
        Vec::new()
    }

    /// Remedies for a row of a stack of its own, the most promising first; nothing that the plan of the row has already.
    fn stack_remedies(&self, _case: &RemedyCase<'_>) -> Vec<Remedy> {
        Vec::new()
    }
}

static ADDED: RwLock<Vec<&'static dyn View>> = RwLock::new(Vec::new());

/// Adds the report of a layer. One that the list has already leaves it as it is.
pub fn add(view: &'static dyn View) {
    let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
    if added.iter().all(|known| known.layer() != view.layer()) {
        added.push(view);
    }
}

/// The reports of all layers, in the order in which they were added.
pub(crate) fn all() -> Vec<&'static dyn View> {
    ADDED.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The report of a layer on its phases; of one that adds nothing, an empty one.
pub(crate) fn of(layer: &str) -> &'static dyn View {
    all().into_iter().find(|view| view.layer() == layer).unwrap_or(&Plain)
}

struct Plain;

impl View for Plain {
    fn layer(&self) -> &'static str {
        ""
    }
}
