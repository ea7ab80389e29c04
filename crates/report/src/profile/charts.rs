//! Charts of where the time goes: a bar in parts for each group of workers, and over time.

use layer::observations::{GroupProfile, Profile};
use statistics::IntervalPoint;
use units::human::human_ns;
use units::percent;

use crate::chart::{Axis, Chart, Point, Scale, Series, Style, Unit};
use crate::record::PhaseRecord;

/// Parts that have a colour of their own; the rest is one part, with the last colour of the palette.
const PARTS_MAX: usize = 6;
/// Bars over time.
const BARS_MAX: usize = 40;

/// The charts of a phase with a profile.
pub(crate) fn charts(phase: &PhaseRecord, title: &str) -> Vec<(&'static str, Chart)> {
    let Some(profile) = &phase.observations.profile else { return Vec::new() };
    let mut charts = vec![("profile", groups(profile, title))];
    charts.extend(over_time(phase, title).map(|chart| ("profile-over-time", chart)));
    charts
}

/// Names of the parts with colours, the largest of all first, and whether there are others.
fn names<'a>(sums: impl Iterator<Item = (&'a str, u128)>) -> (Vec<String>, bool) {
    let mut all: Vec<(&str, u128)> = Vec::new();
    for (name, ns) in sums {
        match all.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += ns,
            None => all.push((name, ns)),
        }
    }
    all.retain(|(_, ns)| *ns > 0);
    all.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let has_more = all.len() > PARTS_MAX;
    (all.into_iter().take(PARTS_MAX).map(|(name, _)| name.to_owned()).collect(), has_more)
}

/// Series of parts of bars: `shares` has a row a bar, with the share of each named part, and of the rest behind them.
fn stacked(names: &[String], has_more: bool, shares: &[Vec<f64>]) -> Vec<Series> {
    let rest = has_more.then(|| "others".to_owned());
    let all = names.iter().cloned().chain(rest);
    let series = all.enumerate().map(|(at, name)| {
        let points = shares.iter().enumerate().map(|(bar, row)| Point {
            label: Some(percent(row[at])),
            ..Point::new(bar as f64, row[..=at].iter().sum())
        });
        Series::new(name, Style::Stacked, at, points.collect())
    });
    series.collect()
}

fn chart(title: String, x: Axis, series: Vec<Series>) -> Chart {
    let mut chart = Chart::new(title, x, Axis::new("share of the time", Unit::Share, Scale::Linear));
    chart.series = series;
    chart
}

fn groups(profile: &Profile, title: &str) -> Chart {
    let parts = profile.groups.iter().flat_map(|group| &group.parts);
    let (names, has_more) = names(parts.map(|part| (part.name.as_str(), u128::from(part.time_ns))));
    let row = |group: &GroupProfile| {
        let of = |name: &String| {
            let part = group.parts.iter().find(|part| part.name == *name);
            part.map_or(0.0, |part| group.share_of(part))
        };
        let mut row: Vec<f64> = names.iter().map(of).collect();
        row.push((1.0 - row.iter().sum::<f64>()).max(0.0));
        row
    };
    let shares: Vec<Vec<f64>> = profile.groups.iter().map(row).collect();
    let bars = profile.groups.iter().map(|group| {
        let each = group.wall_ns as f64 / f64::from(group.processes.max(1));
        format!("{} ({} x {})", group.name, group.processes, human_ns(each))
    });
    let x = Axis::new("group", Unit::Plain, Scale::Names(bars.collect()));
    chart(format!("{title}: where the time goes"), x, stacked(&names, has_more, &shares))
}

/// Shares of the time of kinds of calls in a span, and of the rest behind them. Latencies that overlap share the span, and those of an open loop, which
/// count from when calls were due, no more than the time for which calls were in flight.
fn shares(mut times: Vec<f64>, wall_ns: f64, flight_ns: Option<u64>) -> Vec<f64> {
    let most = flight_ns.map_or(wall_ns, |ns| wall_ns.min(ns as f64));
    // Midpoints of buckets and beginnings of spans are not those of the calls either.
    let scale = (most / times.iter().sum::<f64>().max(1.0)).min(1.0) / wall_ns.max(1.0);
    times.iter_mut().for_each(|time| *time *= scale);
    times.push((1.0 - times.iter().sum::<f64>()).max(0.0));
    times
}

/// Calls by spans of time; what strata itself takes, and waits before the first call and behind the last, are not told apart there.
fn over_time(phase: &PhaseRecord, title: &str) -> Option<Chart> {
    let points = &phase.samples.series.points;
    let workers = phase.samples.workers.len().max(1) as f64;
    if points.len() < 2 {
        return None;
    }
    let classes = &phase.samples.classes;
    let sums = points.iter().flat_map(|point| {
        point.classes.iter().zip(classes).map(|(class, name)| (name.as_str(), class.latency.sum_ns()))
    });
    let (names, _) = names(sums);
    let bars: Vec<&[IntervalPoint]> = points.chunks(points.len().div_ceil(BARS_MAX)).collect();
    let span_ns = |bar: &[IntervalPoint]| match (bar.first(), bar.last()) {
        (Some(first), Some(last)) => last.end_ns.saturating_sub(first.start_ns).max(1),
        _ => 1,
    };
    let mut times = vec![vec![0.0; names.len()]; bars.len()];
    for (at, bar) in bars.iter().enumerate() {
        for (part, name) in names.iter().enumerate() {
            let class = classes.iter().position(|class| class == name)?;
            for bucket in bar
                .iter()
                .filter_map(|point| point.classes.get(class))
                .flat_map(|class| class.latency.buckets())
            {
                // A call is recorded where it began, and what is longer than the rest of the time goes on in the bars behind.
                let mut left_ns = bucket.midpoint_ns();
                for (later, times) in bars[at..].iter().zip(&mut times[at..]) {
                    let here_ns = left_ns.min(span_ns(later));
                    times[part] += here_ns as f64 * bucket.count as f64;
                    left_ns -= here_ns;
                    if left_ns == 0 {
                        break;
                    }
                }
            }
        }
    }
    let is_open = phase.plan.load().arrivals.is_some();
    let shares = bars.iter().zip(times).map(|(bar, row)| {
        let flights = bar.iter().filter(|_| is_open).filter_map(|point| point.in_flight_ns);
        shares(row, span_ns(bar) as f64 * workers, flights.reduce(u64::saturating_add))
    });
    let shares: Vec<Vec<f64>> = shares.collect();
    let bars = bars.iter().map(|bar| human_ns(bar.first().map_or(0.0, |first| first.start_ns as f64)));
    let x = Axis::new("time since the begin of the phase", Unit::Plain, Scale::Names(bars.collect()));
    Some(chart(format!("{title}: where the time goes, over time"), x, stacked(&names, true, &shares)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_no_more_than_its_time_and_that_in_flight() {
        let all = [(None, [0.3, 0.1, 0.6]), (Some(200), [0.15, 0.05, 0.8]), (Some(900), [0.3, 0.1, 0.6])];
        for (flight_ns, expected) in all {
            let seen = shares(vec![300.0, 100.0], 1000.0, flight_ns);
            assert!(
                seen.iter().zip(expected).all(|(one, other)| (one - other).abs() < 1e-9),
                "{flight_ns:?}: {seen:?}"
            );
        }
        let deep = shares(vec![6000.0, 2000.0], 1000.0, None);
        assert!((deep[0] - 0.75).abs() < 1e-9 && (deep[1] - 0.25).abs() < 1e-9 && deep[2] < 1e-9, "{deep:?}");
        assert_eq!(shares(vec![0.0], 1000.0, None), [0.0, 1.0]);
    }
}
