//! Rules of validity, each reason in words, and what the configuration leaves out.

use driver::{Error, ErrorKind};
use report::record::{PhaseRecord, SuitePhase};
use units::{count, counted};

use super::programme::{Changes, Kind, PHASES, PhaseDef};
use super::settings::Settings;

/// Entry of a phase that the configuration leaves out.
pub(super) fn left_out(def: &PhaseDef) -> SuitePhase {
    let mut entry = def.entry();
    if def.group.name().is_some() {
        entry.invalid.push("it was skipped: run = FALSE".to_owned());
    }
    entry
}

/// Reasons in the settings for which the scores do not count.
pub(super) fn invalid_settings(settings: &Settings, is_dry: bool) -> Vec<String> {
    let Settings { stonewall_s, rule_s, .. } = settings;
    let reasons = [
        (is_dry, "dry run: nothing was measured".to_owned()),
        (
            stonewall_s != rule_s,
            format!("the stonewall is {stonewall_s} s, but the rules require {rule_s} s"),
        ),
        (settings.pause.is_some(), "pause-dir is set".to_owned()),
        (settings.hard_per_directory.is_some(), "files-per-dir is set".to_owned()),
    ];
    reasons.into_iter().filter(|(holds, _)| *holds).map(|(_, reason)| reason).collect()
}

/// Refuses phases whose files no phase makes.
pub(super) fn check_sources(settings: &Settings) -> Result<(), Error> {
    let in_run = || PHASES.iter().filter(|def| def.is_in(settings.mode) && settings.runs(def.name));
    let makes = |set: &str| in_run().any(|def| def.changes == Changes::Makes && def.set() == Some(set));
    for def in in_run() {
        if let Some(set) = def.set().filter(|set| !makes(set)) {
            return Err(Error::usage(
                "io500",
                format!("{} has no files to work on: [{set}-write] run = FALSE", def.name),
            )
            .remedy(format!("set [{}] run = FALSE too, or enable {set}-write", def.name)));
        }
        if def.kind == Kind::Find && def.name != "find-easy" && !settings.runs("timestamp") {
            return Err(Error::new(
                ErrorKind::Run,
                "io500",
                "find compares with the time of the phase timestamp, which is disabled",
            ));
        }
    }
    Ok(())
}

/// Failures in a phase, in words.
pub(super) fn failures(phase: &PhaseRecord) -> Vec<String> {
    let errors =
        || phase.samples.workers.iter().flat_map(|worker| &worker.errors).filter(|error| !error.is_ignored);
    let (wrong, failed): (Vec<_>, Vec<_>) =
        errors().partition(|error| error.errno.is_none() && error.class == "read");
    let mut reasons = Vec::new();
    for (errors, is_wrong) in [(wrong, true), (failed, false)] {
        let number: u64 = errors.iter().map(|error| error.count).sum();
        let Some(first) = errors.iter().min_by_key(|error| error.first_at_ns) else { continue };
        reasons.push(if is_wrong {
            format!("{} not as written: {}", counted(number, "block"), first.cause)
        } else {
            format!("{} operations failed; {}: {}", count(number), first.class, first.cause)
        });
    }
    if reasons.is_empty() {
        reasons.extend(phase.failure.clone());
    }
    reasons
}

/// The rules for all phases.
pub(super) fn judge(settings: &Settings, def: &PhaseDef, entry: &mut SuitePhase) {
    let Settings { stonewall_s, rule_s, .. } = *settings;
    let is_shorter = |seconds: u64| entry.seconds < seconds as f64;
    let mut reasons = Vec::new();
    if def.is_walled && is_shorter(stonewall_s) {
        reasons.push(format!(
            "the phase took {:.3} s, less than the stonewall of {stonewall_s} s: it ran out of work",
            entry.seconds
        ));
    }
    if def.is_walled && is_shorter(rule_s) {
        reasons.push(format!("the phase took {:.3} s, but the rules require {rule_s} s", entry.seconds));
    }
    if def.unit().is_some() && entry.score <= 0.0 {
        reasons.push("its score is 0 and is excluded from the mean".to_owned());
    }
    entry.invalid.extend(reasons);
}
