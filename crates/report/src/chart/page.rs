//! Records as one HTML page that needs nothing from outside, and no JavaScript.

use std::fmt::Write;

use units::{human_bytes_per_second, human_rate};

use super::layout::scene;
use super::model::Look;
use super::svg::{dark_rules, element, escaped};
use super::views::{Named, charts};
use crate::record::{Doubt, PhaseRecord, Record, Status};
use crate::stack::verdict;
use crate::text::render;
use crate::words::{clean, load, percentile_words};

/// Columns of the report within the page.
const REPORT_WIDTH: usize = 120;

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1e1e1e;--muted:#5f5f5f;--paper:#fff;--line:#e2e2e2;--warn:#b03a00}\
@media (prefers-color-scheme:dark){:root{--ink:#e6e6e6;--muted:#a5a5a5;--paper:#181a1e;--line:#383c42;--warn:#ff965a}}\
body{margin:0 auto;padding:1.5rem;max-width:62rem;background:var(--paper);color:var(--ink);\
font:15px/1.45 'Noto Sans','Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif}\
h1{font-size:1.5rem;margin:0 0 1rem}h2{font-size:1.2rem;margin:2rem 0 .5rem;border-bottom:1px solid var(--line)}\
h1,h2,p,li,td.l,td:first-child{overflow-wrap:anywhere}\
figure{margin:1rem 0}svg{display:block;width:100%;height:auto}\
code,pre{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:.85em}\
pre{overflow-x:auto;padding:.75rem;border:1px solid var(--line)}\
.table{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9em}\
th,td{text-align:right;padding:.25rem .75rem .25rem 0;border-bottom:1px solid var(--line);vertical-align:top}\
th:first-child,td:first-child,th.l,td.l{text-align:left}\
th,td{white-space:nowrap}td.l,td:first-child{white-space:normal;min-width:6rem}\
.muted{color:var(--muted)}.warn{color:var(--warn)}summary{cursor:pointer;margin:.75rem 0}ul{padding-left:1.2rem}";

/// A page with the figures, the doubts and the charts of these records.
///
/// Everything is in it: charts as SVG, the style sheet, the whole report of each record folded up. It turns dark where the reader prefers
/// that.
#[must_use]
pub fn to_html(records: &[Named<'_>]) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>{}</title>\n\
         <style>{STYLE}\n{}</style>\n</head>\n<body>\n<h1>strata report</h1>\n",
        escaped(&records.iter().map(|named| clean(named.name)).collect::<Vec<_>>().join(", ")),
        dark_rules()
    );
    for named in records {
        about(named, &mut out);
    }
    let look = Look::default();
    let mut section = None;
    let made = charts(records);
    if made.is_empty() {
        out += "<p class=\"muted\">No chart to draw: no operation completed.</p>\n";
    }
    for made in made {
        if section.as_ref() != Some(&made.section) {
            let _ = writeln!(out, "<h2>{}</h2>", escaped(&made.section));
            section = Some(made.section);
        }
        let image = element(&scene(&made.chart, &look), &look, &made.chart.title);
        let _ = writeln!(out, "<figure>\n{image}</figure>");
    }
    out += "</body>\n</html>\n";
    out
}

fn about(named: &Named<'_>, out: &mut String) {
    let record = named.record;
    let _ = writeln!(
        out,
        "<section>\n<h2>{}</h2>\n<p><code>{}</code></p>\n<p class=\"muted\">{}, strata {}, run {}</p>",
        escaped(&clean(named.name)),
        escaped(&clean(&record.command_line.join(" "))),
        escaped(&clean(&record.started_at)),
        escaped(&clean(&record.strata_version)),
        escaped(&clean(&record.run_id)),
    );
    out.push_str(&ended(record));
    if record.stack.is_some() {
        let found = verdict(record).found;
        let _ = writeln!(out, "<p><b>{}</b></p>", escaped(&found.sentence));
        for chain in found.chains.iter().chain(&found.spent) {
            let _ = writeln!(out, "<p>{}</p>", escaped(chain));
        }
    }
    table(record, out);
    doubts(record, out);
    let _ = writeln!(
        out,
        "<details><summary>The whole report</summary>\n<pre>{}</pre>\n</details>\n</section>",
        escaped(&render(record, REPORT_WIDTH, false))
    );
}

/// Remark on a run that did not do all that was asked for; empty for a complete one.
fn ended(record: &Record) -> String {
    let word = match record.status {
        Status::Complete => return String::new(),
        Status::Running => "the run did not end: these are the results until then",
        Status::Partial => "the run is incomplete",
    };
    let failure = record.failure.as_ref().map_or_else(String::new, |failure| format!(": {}", clean(failure)));
    format!("<p class=\"warn\">{word}{}</p>\n", escaped(&failure))
}

fn table(record: &Record, out: &mut String) {
    *out += "<div class=\"table\"><table>\n<thead><tr><th>phase</th><th class=\"l\">load</th><th>rate</th><th>bandwidth</th><th>p50</th>\
             <th>p99</th><th>p99.9</th><th>max</th><th>errors</th></tr></thead>\n<tbody>\n";
    for phase in &record.phases {
        row(phase, out);
    }
    *out += "</tbody>\n</table></div>\n";
}

fn row(phase: &PhaseRecord, out: &mut String) {
    let total = &phase.summary.total;
    let latency = total.latency.as_ref();
    let times = [
        (50.0, latency.map(|latency| latency.p50_ns)),
        (99.0, latency.and_then(|latency| latency.p99_ns)),
        (99.9, latency.and_then(|latency| latency.p99_9_ns)),
        (100.0, latency.map(|latency| latency.max_ns)),
    ];
    let times: String = times
        .map(|(percent, ns)| format!("<td>{}</td>", escaped(&percentile_words(latency, percent, ns))))
        .concat();
    let _ = writeln!(
        out,
        "<tr><td>{}</td><td class=\"l muted\">{}</td><td>{}/s</td><td>{}</td>{times}<td>{}</td></tr>",
        escaped(&clean(phase.plan.name())),
        escaped(&format!(
            "{}: {}, {}",
            clean(phase.plan.layer()),
            phase.plan.operation_words(),
            load(&phase.plan)
        )),
        human_rate(total.operations_per_second),
        human_bytes_per_second(total.bytes_per_second),
        total.errors
    );
}

/// Most phases that a doubt names; of more, the rest is counted.
const PHASES_MAX: usize = 3;

/// Every kind of doubt once, with the phases that it is about and the figures of the first.
fn doubts(record: &Record, out: &mut String) {
    let mut kinds: Vec<(&str, Vec<(&str, &Doubt)>)> = Vec::new();
    for phase in &record.phases {
        for doubt in &phase.doubts {
            let one = (phase.plan.name().as_str(), doubt);
            match kinds.iter_mut().find(|(kind, _)| *kind == doubt.kind) {
                Some((_, found)) => found.push(one),
                None => kinds.push((&doubt.kind, vec![one])),
            }
        }
    }
    if kinds.is_empty() {
        return;
    }
    *out += "<p class=\"warn\">Warnings about these results:</p>\n<ul>\n";
    for (kind, found) in kinds {
        let first = found[0].1;
        let example =
            if found.iter().all(|(_, doubt)| doubt.detail == first.detail) { "" } else { "for example, " };
        let _ = writeln!(
            out,
            "<li><b>{}</b> ({}): {example}{}; <span class=\"muted\">{}</span></li>",
            escaped(&clean(kind)),
            escaped(&place(&found, record.phases.len())),
            escaped(&clean(&first.detail)),
            escaped(&clean(&first.remedy))
        );
    }
    *out += "</ul>\n";
}

/// Where a doubt was found: `reads, writes`, `everywhere`.
fn place(found: &[(&str, &Doubt)], phases: usize) -> String {
    if phases > 1 && found.len() >= phases {
        return "everywhere".to_owned();
    }
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in found {
        if !names.contains(name) {
            names.push(name);
        }
    }
    let shown = clean(&names[..names.len().min(PHASES_MAX)].join(", ")).into_owned();
    match names.len().saturating_sub(PHASES_MAX) {
        0 if names.len() < found.len() => format!("{shown}, in {} of {phases} phases", found.len()),
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
