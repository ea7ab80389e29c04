//! `strata pool check`: what is wrong with the pool of a directory, and its repair.

use std::collections::BTreeMap;
use std::fmt::Write;

use clap::ArgMatches;
use driver::Error;
use layer::Console;
use units::{ByteSize, path_of};
use vos::{CheckReport, Finding, FindingKind, Pool, RepairReport};

use super::show;
use crate::load::directory_of;

/// Findings that are shown as text; JSON has all.
const SHOWN_MAX: usize = 100;

/// Exit code 0 where nothing is wrong (any more), else 1.
///
/// # Errors
/// A target that is none, no pool, one that is open elsewhere.
pub(super) fn run(matches: &ArgMatches, console: &dyn Console) -> Result<u8, Error> {
    let target = matches.get_one::<String>("target").map_or("", String::as_str);
    let Some(directory) = directory_of(target) else {
        let is_engine = target.starts_with("engine:") || target.starts_with("engine+");
        return Err(if is_engine {
            Error::usage("pool", "a pool cannot be checked while an engine serves it")
                .with("target", target)
                .remedy("stop the engine, then run on its host: strata pool check vos:DIR")
        } else {
            super::not_managed(target)
        });
    };
    let (path, as_json) = (path_of(directory), matches.get_flag("json"));
    if matches.get_flag("repair") {
        let report = Pool::repair(&path)?;
        show(console, &report, as_json, repaired)?;
        Ok(u8::from(!report.is_whole()))
    } else {
        let report = Pool::check(&path)?;
        show(console, &report, as_json, checked)?;
        Ok(u8::from(!report.is_clean()))
    }
}

/// Word of a kind, as JSON has it.
fn word(kind: FindingKind) -> String {
    serde_json::to_value(kind).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Where a finding is, in words.
fn place(finding: &Finding) -> String {
    let mut text = String::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            // Writing to a String cannot fail.
            let _ = write!(text, "{}{name} {value}", if text.is_empty() { "" } else { " " });
        }
    };
    add("target", finding.target.map(|target| target.to_string()));
    add("container", finding.container.clone());
    add("object", finding.object.clone());
    add("dkey", finding.dkey.clone());
    add("akey", finding.akey.clone());
    add("epoch", finding.epoch.map(|epoch| epoch.to_string()));
    if text.is_empty() { text } else { text + ": " }
}

fn findings(report: &CheckReport) -> String {
    let mut text = String::new();
    for finding in report.findings.iter().take(SHOWN_MAX) {
        let how = if finding.can_repair { "repair" } else { "remains" };
        let _ = writeln!(
            text,
            "found       {}: {}{}\n  {how:<9} {}",
            word(finding.kind),
            place(finding),
            finding.what,
            finding.plan
        );
    }
    if let Some(more) = report.findings.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
        let _ = writeln!(text, "found       {more} more (--json shows all)");
    }
    text
}

fn examined(report: &CheckReport) -> String {
    let closed = if report.is_closed { "" } else { "; it was not closed cleanly, so its log was replayed" };
    let uuid = report.uuid.as_deref().unwrap_or("not known");
    let mut text = format!(
        "pool        {}\nuuid        {uuid}\nexamined    {} targets, {} containers, {} records, {} of values verified, {} values compared with their copies or parity{closed}\n",
        report.pool,
        report.targets,
        report.containers,
        report.records,
        ByteSize(report.verified_bytes).human(),
        report.compared_values,
    );
    if report.unverified_values > 0 {
        let _ = writeln!(
            text,
            "note        {} values have no checksum (--checksum off): only their record headers were verified",
            report.unverified_values
        );
    }
    for note in &report.notes {
        let _ = writeln!(text, "note        {note}");
    }
    text
}

/// Counts of findings by kind: `2 value, 1 copy`.
fn counts(report: &CheckReport) -> String {
    let mut counts: BTreeMap<FindingKind, usize> = BTreeMap::new();
    report.findings.iter().for_each(|finding| *counts.entry(finding.kind).or_default() += 1);
    let parts: Vec<String> = counts.iter().map(|(kind, count)| format!("{count} {}", word(*kind))).collect();
    parts.join(", ")
}

fn checked(report: &CheckReport) -> String {
    let result = if report.is_clean() {
        "clean".to_owned()
    } else {
        let (all, repairable) = (report.findings.len(), report.repairable());
        let mended = match repairable {
            0 => "--repair can fix none of them".to_owned(),
            _ => format!("--repair can fix {repairable} of them"),
        };
        format!("{all} findings ({}); {mended}", counts(report))
    };
    format!("{}{}result      {result}\n", examined(report), findings(report))
}

fn repaired(report: &RepairReport) -> String {
    if report.before.is_clean() {
        return checked(&report.before);
    }
    let mut text = format!(
        "{}{}found       {} in total: {}\n",
        examined(&report.before),
        findings(&report.before),
        report.before.findings.len(),
        counts(&report.before)
    );
    for line in report.done.iter().take(SHOWN_MAX) {
        let _ = writeln!(text, "done        {line}");
    }
    if let Some(more) = report.done.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
        let _ = writeln!(text, "done        {more} more (--json shows all)");
    }
    for line in &report.left {
        let _ = writeln!(text, "left        {line}");
    }
    text.push_str("checked again\n");
    text.push_str(&findings(&report.after));
    let result = match (report.after.findings.len(), report.left.len()) {
        (0, 0) => "clean".to_owned(),
        (0, left) => format!("no damage remains; {left} parts could not be repaired, see above"),
        (found, _) => format!("{found} findings remain ({})", counts(&report.after)),
    };
    let _ = writeln!(text, "result      {result}");
    text
}
