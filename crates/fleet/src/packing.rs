//! Progress and outcomes as they travel: JSON, and beside it the histograms and series, packed.

use driver::{Error, ErrorKind};
use statistics::Pack;

use crate::messages::{OutcomeMessage, ProgressReport, read_json};
use crate::session::StagePart;

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

/// JSON and packed histograms of a part of a stage, which is left without them.
pub(crate) fn pack_part(part: &mut StagePart) -> serde_json::Result<(Vec<u8>, Vec<u8>)> {
    let mut histograms = Vec::new();
    part.samples.iter_mut().for_each(|samples| samples.pack(&mut histograms));
    part.workers.iter_mut().for_each(|worker| worker.pack(&mut histograms));
    Ok((serde_json::to_vec(part)?, histograms))
}

/// The part of both.
pub(crate) fn unpack_part(json: Vec<u8>, mut histograms: &[u8]) -> Result<StagePart, Error> {
    let mut part: StagePart = read_json(json).map_err(unreadable)?;
    let bytes = &mut histograms;
    part.samples.iter_mut().try_for_each(|samples| samples.unpack(bytes)).map_err(unreadable)?;
    part.workers.iter_mut().try_for_each(|worker| worker.unpack(bytes)).map_err(unreadable)?;
    if histograms.is_empty() { Ok(part) } else { Err(unreadable("bytes are left over")) }
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

#[cfg(test)]
mod tests {
    use statistics::{ClassTotals, Histogram, PhaseSamples, Series, SparseHistogram, WorkerSamples};

    use super::*;

    fn worker(number: usize) -> WorkerSamples {
        let mut latency = Histogram::new();
        (1..100).for_each(|value| latency.record_n(value * 1000 + number as u64, value));
        let class = ClassTotals { latency: SparseHistogram::from(&latency), ..ClassTotals::default() };
        WorkerSamples { worker: number, classes: vec![class], ..WorkerSamples::default() }
    }

    fn parts() -> Vec<StagePart> {
        let samples = PhaseSamples {
            classes: vec![String::new()],
            window_ns: None,
            started_ns: 1,
            elapsed_ns: 2,
            workers: (0..40).map(worker).collect(),
            series: Series::new(1000, 16, 1),
            interrupted: None,
            process_cpu_user_ns: 3,
            process_cpu_system_ns: 4,
        };
        StagePart::split(0, samples, serde_json::json!({ "notes": ["a"] }))
    }

    #[test]
    fn parts_of_a_stage_arrive_as_they_left() {
        for part in parts() {
            let (json, histograms) = pack_part(&mut part.clone()).expect("JSON");
            assert!(!String::from_utf8_lossy(&json).contains("[1000,"), "histograms travel beside the JSON");
            assert_eq!(unpack_part(json, &histograms).expect("as it left"), part);
        }
    }

    #[test]
    fn parts_that_were_changed_on_the_way_are_refused() {
        for part in parts() {
            let (json, histograms) = pack_part(&mut part.clone()).expect("JSON");
            for cut in [0, 1, histograms.len() / 2, histograms.len() - 1] {
                let error = unpack_part(json.clone(), &histograms[..cut]).expect_err("too short").to_string();
                assert!(error.contains("invalid packed samples"), "{error}");
            }
            let longer = [&histograms[..], &[0]].concat();
            let error = unpack_part(json.clone(), &longer).expect_err("too long").to_string();
            assert!(error.contains("bytes are left over"), "{error}");
            assert!(unpack_part(json[1..].to_vec(), &histograms).is_err());
        }
    }
}
