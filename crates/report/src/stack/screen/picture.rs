//! A stack as pages show it: layers by loads, what is advised, and what to be careful about.

use super::super::rows::{Row, rows};
use super::super::step::{Step, steps};
use super::super::verdict::{Verdict, verdict};
use super::{
    Detail, kinds, layers_of, loads, loads_of, loss_cell, owner, owners, reliability, speed_words,
    warnings_and_design,
};
use crate::page::Cell;
use crate::record::{Doubt, Record, StackRecord};
use crate::words::clean;

/// One table: layers by loads.
pub(crate) struct Grid {
    /// Its loads, the columns.
    pub(crate) loads: Vec<String>,
    /// Its layers: the name, and for each load the rate and how many times slower than what carries it; none where the layer does not have the load.
    pub(crate) layers: Vec<(String, Vec<Option<GridCell>>)>,
}

/// A layer at a load: its rate, and its factor with the interval where it is compared.
pub(crate) struct GridCell {
    /// `2.80 GiB/s`.
    pub(crate) speed: String,
    /// `3.6x 3.2-4.0`, or the word that says why there is none.
    pub(crate) loss: Option<Cell>,
}

/// All of it.
pub(crate) struct Picture<'a> {
    /// The tables: loads of data, of names, and those of applications.
    pub(crate) grids: Vec<Grid>,
    /// The verdict, and what to try.
    pub(crate) verdict: Verdict,
    /// `20 of 21 comparisons conclusive, ...`.
    pub(crate) reliability: String,
    /// Warnings of all passes, by the name of their phase.
    pub(crate) warnings: Vec<(String, Vec<&'a Doubt>)>,
    /// Those that state what a row measures on purpose.
    pub(crate) by_design: Vec<String>,
}

/// The stack of a record.
pub(crate) fn picture<'a>(record: &'a Record, stack: &'a StackRecord) -> Picture<'a> {
    let rows = rows(record);
    let steps = steps(&rows);
    let general: Vec<&str> = loads(&rows).into_iter().filter(|load| owner(&rows, load).is_none()).collect();
    let by_names = general.chunk_by(|a, b| super::is_of_names(a) == super::is_of_names(b));
    let own: Vec<Vec<&str>> = owners(&rows).into_iter().map(|of| loads_of(&rows, of)).collect();
    let all = by_names.chain(own.iter().map(Vec::as_slice));
    let grids = all.map(|loads| grid(&rows, &steps, loads)).collect();
    let (warnings, by_design) = warnings_and_design(record, stack);
    let reliability = reliability((&rows, stack), &steps, kinds(&warnings), Detail::Warnings);
    Picture { grids, verdict: verdict(record), reliability, warnings, by_design }
}

/// These loads of the rows.
pub(super) fn grid(rows: &[Row<'_>], steps: &[Step], loads: &[&str]) -> Grid {
    let cell = |layer: &str, load: &str| {
        let at = rows.iter().position(|row| row.row.layer == layer && row.row.load == load)?;
        let step = steps.iter().find(|step| step.row == at);
        Some(GridCell { speed: speed_words(&rows[at]), loss: step.map(loss_cell) })
    };
    let layers = layers_of(rows, loads).into_iter();
    Grid {
        loads: loads.iter().map(|load| clean(load).into_owned()).collect(),
        layers: layers
            .map(|layer| (clean(layer).into_owned(), loads.iter().map(|load| cell(layer, load)).collect()))
            .collect(),
    }
}
