//! A history as CSV: a row for each value.

use super::History;

const COLUMNS: &[&str] = &[
    "series",
    "load",
    "run_id",
    "started_at",
    "record",
    "phase",
    "metric",
    "value",
    "expected_low",
    "expected_high",
    "outside",
    "warnings",
    "failure",
];

/// A row for each value of each run, the oldest first; latencies and CPU time in nanoseconds, bandwidth in bytes a second (RFC 4180).
#[must_use]
pub fn to_csv(history: &History) -> String {
    let mut out = csv::Writer::from_writer(Vec::new());
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let mut write = |row: &[String]| {
        // A vector takes every row.
        let _ = out.write_record(row);
    };
    write(&COLUMNS.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    for series in &history.series {
        for phase in &series.phases {
            for point in &phase.points {
                let run = &series.runs[point.run];
                write(&[
                    series.name.clone(),
                    series.load.clone(),
                    run.run_id.clone(),
                    run.started_at.clone(),
                    run.path.clone(),
                    phase.label(),
                    phase.metric.key().to_owned(),
                    point.value.to_string(),
                    number(point.expected_low),
                    number(point.expected_high),
                    if point.is_outside() { "yes" } else { "no" }.to_owned(),
                    point.warnings.join(" "),
                    run.failure.clone().unwrap_or_default(),
                ]);
            }
        }
    }
    String::from_utf8(out.into_inner().unwrap_or_default()).unwrap_or_default()
}
