//! The comparison as results of tests in JUnit's XML, which CI systems collect.

use super::text::verdict_sentence;
use super::{Comparison, LimitOutcome, Method, PhaseComparison};
use crate::chart::escaped;

/// Outcome of a limit at a phase.
enum Case<'a> {
    Passed,
    Failed(&'a str),
    /// The data cannot show such a difference.
    Skipped(&'a str),
}

/// Comparisons as JUnit XML: a test suite for each limit of `--fail-if`, with a test case for each phase. A phase at which a limit cannot trigger is skipped, with the
/// reason: a pass would promise what nobody knows. Without a limit every phase is a test case that passes.
#[must_use]
pub fn to_junit(comparisons: &[Comparison]) -> String {
    let suites: String = comparisons.iter().flat_map(suites).collect();
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n{suites}</testsuites>\n")
}

fn suites(comparison: &Comparison) -> Vec<String> {
    let headline = comparison.headline();
    let mut suites = Vec::new();
    for limit in &comparison.limits {
        let cases: Vec<(String, Case<'_>)> =
            comparison.phases.iter().map(|phase| (phase.label(), case(comparison, phase, limit))).collect();
        let alone = comparison.unmatched.iter().map(|phase| phase.label());
        let alone = alone.map(|label| {
            let why = found(&limit.blind_to, &label, comparison).unwrap_or("it has no counterpart");
            (label, Case::Skipped(why))
        });
        let name = format!("{headline} --fail-if {}", limit.limit);
        suites.push(suite(&name, comparison, cases.into_iter().chain(alone)));
    }
    if comparison.limits.is_empty() {
        let cases = comparison.phases.iter().map(|phase| (phase.label(), Case::Passed));
        suites.push(suite(&headline, comparison, cases));
    }
    suites
}

fn case<'a>(comparison: &Comparison, phase: &PhaseComparison, limit: &'a LimitOutcome) -> Case<'a> {
    let label = phase.label();
    match (found(&limit.exceeded_by, &label, comparison), found(&limit.blind_to, &label, comparison)) {
        (Some(why), _) => Case::Failed(why),
        (None, Some(why)) => Case::Skipped(why),
        (None, None) => Case::Passed,
    }
}

/// The line about the phase of this label. A label may begin with that of another phase: the longest is meant.
fn found<'a>(lines: &'a [String], label: &str, comparison: &Comparison) -> Option<&'a str> {
    let labels = || {
        let phases = comparison.phases.iter().map(PhaseComparison::label);
        phases.chain(comparison.unmatched.iter().map(|phase| phase.label()))
    };
    let is_of = |line: &str, label: &str| line.strip_prefix(label).is_some_and(|rest| rest.starts_with(": "));
    let line = lines.iter().find(|line| {
        let longest = labels().filter(|other| is_of(line, other)).max_by_key(String::len);
        longest.is_some_and(|longest| longest == label)
    })?;
    Some(line[label.len()..].trim_start_matches(": "))
}

fn suite<'a>(name: &str, comparison: &Comparison, cases: impl Iterator<Item = (String, Case<'a>)>) -> String {
    let cases: Vec<(String, Case<'a>)> = cases.collect();
    let count = |of: fn(&Case<'_>) -> bool| cases.iter().filter(|(_, case)| of(case)).count();
    let mut out = format!(
        "<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" errors=\"0\">\n",
        escaped(name),
        cases.len(),
        count(|case| matches!(case, Case::Failed(_))),
        count(|case| matches!(case, Case::Skipped(_))),
    );
    let class = match comparison.method {
        Method::History => "strata.history",
        _ => "strata.compare",
    };
    for (label, case) in &cases {
        let inner = match case {
            Case::Passed => String::new(),
            Case::Failed(why) => format!("<failure message=\"{}\"/>", escaped(why)),
            Case::Skipped(why) => format!("<skipped message=\"{}\"/>", escaped(why)),
        };
        let phase = comparison.phases.iter().find(|phase| phase.label() == *label);
        let told = phase.map_or_else(String::new, |phase| {
            format!("<system-out>{}</system-out>", escaped(&verdict_sentence(phase, comparison.method)))
        });
        out += &format!(
            "<testcase classname=\"{class}\" name=\"{}\">{inner}{told}</testcase>\n",
            escaped(label)
        );
    }
    out + "</testsuite>\n"
}
