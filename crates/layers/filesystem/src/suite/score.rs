//! Scores: of a phase from its record, and of a run as geometric means.

use report::record::{PhaseRecord, SuitePhase, SuiteScore};

use super::programme::Kind;

/// Nanoseconds of a second.
const SECOND_NS: f64 = 1e9;
const GIB: f64 = (1u64 << 30) as f64;

/// Figures of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Figures {
    /// GiB, or thousands of operations, per second of the whole phase.
    pub(super) score: f64,
    /// Length of the whole phase.
    pub(super) seconds: f64,
    /// Bytes or operations.
    pub(super) amount: u64,
    /// The same rate up to the stonewall, where one stood.
    pub(super) at_stonewall: Option<f64>,
}

/// An amount per second; 0 where there was no time.
fn per(amount: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { amount / seconds } else { 0.0 }
}

/// Figures of a phase, from its record: all that it did, by the time from its start to the end of its slowest worker.
pub(super) fn figures(kind: Kind, block_bytes: u64, phase: &PhaseRecord) -> Figures {
    let seconds = phase.samples.elapsed_ns as f64 / SECOND_NS;
    let of_class = |name: &str| phase.summary.classes.iter().find(|class| class.class == name);
    let files = phase.observations.files.as_ref();
    let (amount, unit) = match kind {
        Kind::Transfer(class) => (of_class(class).map_or(0, |class| class.bytes), GIB),
        Kind::Items(class) => (of_class(class).map_or(0, |class| class.operations), 1000.0),
        Kind::Find => (files.and_then(|files| files.found).map_or(0, |found| found.entries), 1000.0),
        Kind::Timestamp => (0, 1.0),
    };
    // A phase that was out of work before has no rate there.
    let stood =
        files.and_then(|files| files.stonewall).filter(|wall| wall.after_ns <= phase.samples.elapsed_ns);
    let at_stonewall = stood.map(|wall| {
        let each = if matches!(kind, Kind::Transfer(_)) { block_bytes as f64 } else { 1.0 };
        per(wall.items as f64 * each / unit, wall.after_ns as f64 / SECOND_NS)
    });
    Figures { score: per(amount as f64 / unit, seconds), seconds, amount, at_stonewall }
}

/// Geometric mean of the scores that are above 0; 0 where there are none.
fn mean(scores: impl Iterator<Item = f64>) -> f64 {
    let (mut count, mut logarithms) = (0u32, 0.0);
    for score in scores.filter(|score| *score > 0.0) {
        count += 1;
        logarithms += score.ln();
    }
    if count == 0 { 0.0 } else { (logarithms / f64::from(count)).exp() }
}

/// Score of a run over its phases, those of the extended mode too where `extended` is set.
pub(super) fn of(phases: &[SuitePhase], extended: bool, is_valid: bool) -> SuiteScore {
    let counted = || phases.iter().filter(|phase| extended || !phase.is_extended);
    let of_group = |name: &'static str| {
        mean(counted().filter(move |phase| phase.group.as_deref() == Some(name)).map(|phase| phase.score))
    };
    let (bandwidth, metadata) = (of_group("bandwidth"), of_group("metadata"));
    SuiteScore {
        name: if extended { "SCOREX" } else { "SCORE" }.to_owned(),
        bandwidth_gib_per_second: bandwidth,
        metadata_kiops: metadata,
        total: (bandwidth * metadata).sqrt(),
        is_valid,
    }
}

#[cfg(test)]
mod tests {
    use super::super::programme::PHASES;
    use super::*;

    /// Rates of the example in IO500's README.
    const PUBLISHED: &[(&str, f64)] = &[
        ("ior-easy-write", 0.186620),
        ("mdtest-easy-write", 103.300821),
        ("ior-hard-write", 0.001313),
        ("mdtest-hard-write", 58.939081),
        ("find", 1486.435084),
        ("ior-easy-read", 1.575557),
        ("mdtest-easy-stat", 839.392805),
        ("ior-hard-read", 2.272671),
        ("mdtest-hard-stat", 1212.558124),
        ("mdtest-easy-delete", 160.765642),
        ("mdtest-hard-read", 275.011939),
        ("mdtest-hard-delete", 132.015851),
    ];

    fn published() -> Vec<SuitePhase> {
        let scored = |phase: &&super::super::programme::PhaseDef| {
            PUBLISHED.iter().any(|(name, _)| *name == phase.name)
        };
        let score =
            |name: &str| PUBLISHED.iter().find(|(known, _)| *known == name).map_or(0.0, |(_, score)| *score);
        PHASES
            .iter()
            .filter(scored)
            .map(|phase| SuitePhase { score: score(phase.name), ..phase.entry() })
            .collect()
    }

    #[test]
    fn a_published_score_comes_out() {
        let phases = published();
        assert_eq!(phases.len(), PUBLISHED.len());
        let score = of(&phases, false, true);
        // The README says 0.172092, 292.625029 and 7.096374, of rates with more digits than it prints: 0.001313 has four.
        let is_near = |found: f64, published: f64| (found / published - 1.0).abs() < 2e-4;
        assert!(is_near(score.bandwidth_gib_per_second, 0.172092), "{score:?}");
        assert!(is_near(score.metadata_kiops, 292.625029), "{score:?}");
        assert!(is_near(score.total, 7.096374), "{score:?}");
    }

    #[test]
    fn what_does_not_count_is_left_out() {
        let mut phases = published();
        let before = of(&phases, false, true);
        for def in PHASES.iter().filter(|def| def.is_extended || def.name == "ior-rnd4K-easy-read") {
            phases.push(SuitePhase { score: 1e6, ..def.entry() });
        }
        assert_eq!(of(&phases, false, true), before);
        let extended = of(&phases, true, true);
        assert!(extended.metadata_kiops > before.metadata_kiops && extended.name == "SCOREX");
        assert_eq!(extended.bandwidth_gib_per_second, before.bandwidth_gib_per_second);
        assert_eq!(of(&[], false, false).total, 0.0);
        phases.iter_mut().for_each(|phase| phase.score = 0.0);
        assert_eq!(of(&phases, false, false).total, 0.0);
    }
}
