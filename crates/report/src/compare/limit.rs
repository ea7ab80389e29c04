//! `--fail-if`: how much slower B may be.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statistics::{Difference, Verdict};
use units::ParseError;

use super::text::{signed, unsigned};
use super::{FigureComparison, FigureName, Method, PhaseComparison, Unmatched};

/// A limit: `slower:5%` on the headline of every phase, `p99-slower:10%` on a figure of every phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    figure: Option<FigureName>,
    percent: f64,
}

/// Outcome of a limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitOutcome {
    /// The limit as asked for.
    pub limit: String,
    /// Phases that are certainly slower, and by at least as much, with their figures.
    pub exceeded_by: Vec<String>,
    /// Phases where this data would not have shown such a difference, and why.
    pub blind_to: Vec<String>,
}

const ACCEPTED: &str = "slower:PERCENT or FIGURE-slower:PERCENT, such as slower:5% or p99-slower:10%; FIGURE is rate, mean, \
                        p50, p90, p99, p99.9 or cpu";

impl FromStr for Limit {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refused = || ParseError::new("a limit", text, ACCEPTED);
        let (what, percent) = text.split_once(':').ok_or_else(refused)?;
        let figure = match what.strip_suffix("slower").ok_or_else(refused)? {
            "" => None,
            named => {
                let name = named.strip_suffix('-').ok_or_else(refused)?;
                // A rate stands for the bandwidth too.
                let figure =
                    name.parse::<FigureName>().ok().filter(|figure| *figure != FigureName::Bandwidth);
                Some(figure.ok_or_else(refused)?)
            }
        };
        let digits = percent.strip_suffix('%').unwrap_or(percent);
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let percent = digits
            .parse()
            .ok()
            .filter(|percent: &f64| is_number && percent.is_finite())
            .ok_or_else(refused)?;
        Ok(Self { figure, percent })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(figure) = self.figure {
            write!(out, "{}-", figure.key())?;
        }
        write!(out, "slower:{}%", self.percent)
    }
}

impl Limit {
    /// Its figure, none for the one that decides about a phase, and its percent.
    pub(super) fn parts(self) -> (Option<FigureName>, f64) {
        (self.figure, self.percent)
    }

    /// Exceeded where the verdict is slower and the difference itself reaches the limit, or where B completed nothing.
    pub(super) fn judge(
        &self,
        phases: &[PhaseComparison],
        unmatched: &[Unmatched],
        method: Method,
    ) -> LimitOutcome {
        let names = method.names();
        let mut outcome =
            LimitOutcome { limit: self.to_string(), exceeded_by: Vec::new(), blind_to: Vec::new() };
        for phase in phases {
            self.judge_phase(phase, names.b, &mut outcome);
        }
        for alone in unmatched {
            outcome.blind_to.push(format!(
                "{}: this phase exists only in {}",
                alone.label(),
                if alone.side == "a" { names.a } else { names.b }
            ));
        }
        outcome
    }

    fn judge_phase(&self, phase: &PhaseComparison, b: &str, outcome: &mut LimitOutcome) {
        let Some((figure, verdict)) = self.of(phase) else {
            outcome.blind_to.push(format!("{}: the phase has no such metric", phase.label()));
            return;
        };
        let place = format!("{}: {}", phase.label(), figure.figure.name());
        if phase.b_is_idle() {
            outcome.exceeded_by.push(format!("{}: {b} completed nothing", phase.label()));
            return;
        }
        let Some(difference) = figure.difference else {
            let why = figure.missing.as_deref().unwrap_or("too little data");
            outcome.blind_to.push(format!("{place}: {why}"));
            return;
        };
        let direction = figure.figure.direction();
        let slower_percent = difference.slower_percent(direction);
        let unseen_percent = difference.detectable_percent(direction);
        if verdict == Verdict::Slower && slower_percent >= self.percent {
            outcome.exceeded_by.push(format!("{place} {}", words(&difference)));
        } else if verdict == Verdict::NoDifference && self.percent > 0.0 && unseen_percent > self.percent {
            // A limit of 0 takes whatever is significant: any run can exceed it.
            let unseen = unsigned(unseen_percent);
            outcome.blind_to.push(format!("{place}: only differences above {unseen} are detectable"));
        }
    }

    /// The figure that counts, and its verdict.
    fn of<'a>(&self, phase: &'a PhaseComparison) -> Option<(&'a FigureComparison, Verdict)> {
        match self.figure {
            None => Some((phase.total(phase.headline.figure)?, phase.headline.verdict)),
            Some(name) => {
                let own = phase.total(name);
                let figure =
                    own.or_else(|| phase.total(FigureName::Bandwidth).filter(|_| name == FigureName::Rate))?;
                Some((figure, figure.verdict))
            }
        }
    }
}

/// `-3.90% (-4.80% to -3.10%)`.
pub(super) fn words(difference: &Difference) -> String {
    format!(
        "{} ({} to {})",
        signed(difference.percent),
        signed(difference.percent_low),
        signed(difference.percent_high)
    )
}
