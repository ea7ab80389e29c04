//! Options of `strata history`.

use std::time::{Duration, SystemTime};

use report::compare::{self, FigureName, Limit};
use units::ParseError;
use workload::options::{Group, OptionDef, path};

use crate::compare::Form;
use crate::phase_record::utc;

/// Most runs that an expected range comes from.
const LAST_MAX: u64 = 1000;

/// Options of the commands below `strata history`.
#[derive(Clone, Debug, Default)]
pub(super) struct HistorySpec {
    pub(super) series: Option<String>,
    pub(super) phase: Option<String>,
    pub(super) metric: Option<FigureName>,
    pub(super) last: Option<usize>,
    /// Moment before which runs do not count, RFC 3339 UTC.
    pub(super) since: Option<String>,
    pub(super) limits: Vec<Limit>,
    pub(super) html: Option<String>,
    pub(super) csv: Option<String>,
    pub(super) json: Option<String>,
    /// Forms of the comparisons, and where they go.
    pub(super) forms: Vec<(Form, String)>,
}

type Apply = fn(&mut HistorySpec, &str) -> Result<(), ParseError>;

const fn option(
    name: &'static str,
    value: &'static str,
    default: &'static str,
    help: &'static str,
    group: Group,
    apply: Apply,
) -> OptionDef<HistorySpec> {
    OptionDef { name, short: None, value, default, help, group, apply }
}

const fn place(name: &'static str, help: &'static str, apply: Apply) -> OptionDef<HistorySpec> {
    option(name, "FILE", "none", help, Group::Output, apply)
}

fn form(spec: &mut HistorySpec, name: &str, form: Form, text: &str) -> Result<(), ParseError> {
    path(name, text)?;
    spec.forms.push((form, text.to_owned()));
    Ok(())
}

const SERIES: OptionDef<HistorySpec> = option(
    "series",
    "NAME",
    "all of them",
    "Only this series: the name that was given to history add, or host and target as shown",
    Group::Run,
    |spec, text| {
        spec.series = Some(text.to_owned());
        Ok(())
    },
);

const LAST: OptionDef<HistorySpec> = option(
    "last",
    "N",
    "10",
    "Runs before a run that say how much it may vary, 2 to 1000",
    Group::Run,
    |spec, text| {
        spec.last = Some(units::parse_u64_in("number of runs", text, 2..=LAST_MAX)? as usize);
        Ok(())
    },
);

const SINCE: OptionDef<HistorySpec> = option(
    "since",
    "DATE|AGE",
    "the first run",
    "Leave out earlier runs, for example those before a change that was accepted: 2026-11-29, 2026-11-29T18:00:00Z, or an age such as 30d",
    Group::Run,
    |spec, text| {
        spec.since = Some(moment(text)?);
        Ok(())
    },
);

/// Options of `strata history add`.
pub(super) static ADD: &[OptionDef<HistorySpec>] = &[option(
    "series",
    "NAME",
    "host and target of the run",
    "Add to the series of this name, whatever host and target the run has, as for CI on changing machines; letters, digits, '.', '_', '-'",
    Group::Run,
    |spec, text| {
        spec.series = Some(text.to_owned());
        Ok(())
    },
)];

/// Options of `strata history show`.
pub(super) static SHOW: &[OptionDef<HistorySpec>] = &[
    SERIES,
    option(
        "phase",
        "TEXT",
        "all of them",
        "Only phases, or rows of a stack, whose names contain this",
        Group::Run,
        |spec, text| {
            spec.phase = Some(text.to_owned());
            Ok(())
        },
    ),
    option(
        "metric",
        "rate|bandwidth|mean|p50|p90|p99|p99.9|cpu",
        "rate; p99 of open loops; bandwidth of rows of a stack with large operations",
        "Metric to show",
        Group::Run,
        |spec, text| {
            spec.metric = Some(text.parse()?);
            Ok(())
        },
    ),
    LAST,
    SINCE,
    place(
        "html",
        "Write one page with a graph over time for each phase; - for standard output",
        |spec, text| {
            path("html", text)?;
            spec.html = Some(text.to_owned());
            Ok(())
        },
    ),
    place("csv", "Write a row for each value of each run; - for standard output", |spec, text| {
        path("csv", text)?;
        spec.csv = Some(text.to_owned());
        Ok(())
    }),
    place("json", "Write the history as JSON; - for standard output", |spec, text| {
        path("json", text)?;
        spec.json = Some(text.to_owned());
        Ok(())
    }),
];

/// Options of `strata history check`.
pub(super) static CHECK: &[OptionDef<HistorySpec>] = &[
    option(
        "series",
        "NAME",
        "all; of records that are named: their hosts and targets",
        "Only this series; of records that are named: the series to compare them with",
        Group::Run,
        |spec, text| {
            spec.series = Some(text.to_owned());
            Ok(())
        },
    ),
    LAST,
    SINCE,
    option(
        "fail-if",
        "LIMIT",
        "slower:0%: significantly slower at all",
        "Exit with 1 if the run is significantly slower than those before it, by at least this: slower:5% (the verdict), or \
         p99-slower:10% (rate, mean, p50, p90, p99, p99.9 or cpu); may be given several times",
        Group::Run,
        |spec, text| {
            spec.limits.push(text.parse()?);
            Ok(())
        },
    ),
    place("html", "Write one page with verdicts and differences; - for standard output", |spec, text| {
        form(spec, "html", compare::to_html, text)
    }),
    place(
        "markdown",
        "Write the verdicts and tables as Markdown, for summaries in CI; - for standard output",
        |spec, text| form(spec, "markdown", compare::to_markdown, text),
    ),
    place(
        "junit",
        "Write JUnit XML, a test case for each phase and limit; - for standard output",
        |spec, text| form(spec, "junit", compare::to_junit, text),
    ),
    place("json", "Write the check as JSON; - for standard output", |spec, text| {
        path("json", text)?;
        spec.json = Some(text.to_owned());
        Ok(())
    }),
];

/// A date, a moment, or an age, as a moment.
fn moment(text: &str) -> Result<String, ParseError> {
    let refused =
        || ParseError::new("a date", text, "2026-11-29, 2026-11-29T18:00:00Z, or an age such as 30d or 12h");
    let whole = if text.len() == 10 { format!("{text}T00:00:00Z") } else { text.to_owned() };
    if let Ok(at) = humantime::parse_rfc3339(&whole) {
        return Ok(utc(at));
    }
    let age: Duration = humantime::parse_duration(text).map_err(|_| refused())?;
    SystemTime::now().checked_sub(age).map(utc).ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_ages_are_moments() {
        assert_eq!(moment("2026-11-29").unwrap(), "2026-11-29T00:00:00.000Z");
        assert_eq!(moment("2026-11-29T18:00:00Z").unwrap(), "2026-11-29T18:00:00.000Z");
        let age = moment("30d").unwrap();
        assert!(age < utc(SystemTime::now()) && age > moment("31d").unwrap(), "{age}");
        for text in
            ["", "yesterday", "2026-13-01", "2026-11-29 extra", "-5d", "99999999999999999y", "11/29/2026"]
        {
            assert!(moment(text).is_err(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn moments_are_read_or_refused(text in ".{0,24}") {
            if let Ok(found) = moment(&text) {
                proptest::prop_assert!(humantime::parse_rfc3339(&found).is_ok(), "{} {}", text, found);
            }
        }
    }
}
