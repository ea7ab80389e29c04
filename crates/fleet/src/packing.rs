//! Progress and outcomes as they travel: JSON, and beside it the histograms and series, packed.

use driver::{Error, ErrorKind};
use statistics::Pack;

use crate::messages::{OutcomeMessage, ProgressReport, read_json};

/// JSON and packed histograms of a report. A report that is no JSON would only be missed on a screen: none.
pub(crate) fn pack_progress(report: &ProgressReport) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut histograms = Vec::new();
    let json = match report {
        ProgressReport::Running(snapshot) => {
            let mut snapshot = snapshot.clone();
            snapshot.pack(&mut histograms);
            serde_json::to_vec(&ProgressReport::Running(snapshot))
        }
        ProgressReport::Preparing { .. } => serde_json::to_vec(report),
    };
    Some((json.ok()?, histograms))
}

/// The report of both.
pub(crate) fn unpack_progress(json: Vec<u8>, histograms: &[u8]) -> Result<ProgressReport, Error> {
    let mut report: ProgressReport = read_json(json).map_err(unreadable)?;
    if let ProgressReport::Running(snapshot) = &mut report {
        unpack_all([snapshot].into_iter(), histograms)?;
    }
    Ok(report)
}

/// JSON and packed histograms of an outcome, which is left without them.
pub(crate) fn pack_outcome(outcome: &mut OutcomeMessage) -> serde_json::Result<(Vec<u8>, Vec<u8>)> {
    let mut histograms = Vec::new();
    outcome.samples.iter_mut().for_each(|samples| samples.pack(&mut histograms));
    Ok((serde_json::to_vec(outcome)?, histograms))
}

/// The outcome of both.
pub(crate) fn unpack_outcome(json: Vec<u8>, histograms: &[u8]) -> Result<OutcomeMessage, Error> {
    let mut outcome: OutcomeMessage = read_json(json).map_err(unreadable)?;
    unpack_all(outcome.samples.iter_mut(), histograms)?;
    Ok(outcome)
}

fn unpack_all<'a, T: Pack + 'a>(
    all: impl Iterator<Item = &'a mut T>,
    mut histograms: &[u8],
) -> Result<(), Error> {
    for packed in all {
        packed.unpack(&mut histograms).map_err(unreadable)?;
    }
    if histograms.is_empty() { Ok(()) } else { Err(unreadable("bytes are left over")) }
}

fn unreadable(why: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Run, "fleet", why.to_string())
}
