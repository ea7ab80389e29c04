//! Records as one HTML page that needs nothing from outside, and no JavaScript.

use std::fmt::Write;

use units::{human_bytes_per_second, human_rate};

use super::model::Look;
use super::svg::{dark_rules, escaped};
use super::to_element;
use super::views::{Named, charts};
use crate::page::Style;
use crate::record::{Doubt, PhaseRecord, Record, StackRecord, Status};
use crate::stack::{Grid, picture};
use crate::text::{
    PERCENTILES, Percentile, common_targets, has_tail, hides_fills, is_fill, machine, render, target_lines,
};
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
.stack{margin-bottom:1rem}.stack td{white-space:normal}.stack b{white-space:nowrap}.stack td:first-child{min-width:0}\
@media(max-width:30rem){body{padding:.75rem}.stack{font-size:.72em}.stack th,.stack td{padding-right:.4rem;white-space:normal}\
figure{overflow-x:auto}figure svg{min-width:46rem}td.l{min-width:13rem}}\
.whisker{display:block;width:16rem;height:1.4rem}.whisker line{stroke:var(--ink)}.whisker circle{fill:var(--ink)}\
.whisker .zero{stroke:var(--muted)}.whisker .limit{stroke:var(--warn);stroke-dasharray:3 2}\
.muted{color:var(--muted)}.warn{color:var(--warn)}summary{cursor:pointer;margin:.75rem 0}ul{padding-left:1.2rem}";

/// A page with the figures, the doubts and the charts of these records.
///
/// Everything is in it: charts as SVG, the style sheet, the whole report of each record folded up. It turns dark where the reader prefers
/// that.
#[must_use]
pub fn to_html(records: &[Named<'_>]) -> String {
    let names = records.iter().map(|named| clean(named.name)).collect::<Vec<_>>().join(", ");
    let mut out = String::new();
    for named in records {
        about(named, records.len() > 1, &mut out);
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
        let image = to_element(&made.chart, &look);
        let _ = writeln!(out, "<figure>\n{image}</figure>");
    }
    document(&names, &title(records), &out)
}

/// A page with this title, headline and body. The style sheet is in it; it turns dark where the reader prefers that.
pub(crate) fn document(title: &str, headline: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>{}</title>\n\
         <style>{STYLE}\n{}</style>\n</head>\n<body>\n<h1>{}</h1>\n{body}</body>\n</html>\n",
        escaped(title),
        dark_rules(),
        escaped(headline),
    )
}

/// Headline of the page: of a stack, what it is of.
fn title(records: &[Named<'_>]) -> String {
    match records {
        [named] if named.record.stack.is_some() => {
            let host = named.record.environment.system.hostname.as_deref();
            host.map_or_else(
                || "Storage stack".to_owned(),
                |host| format!("Storage stack of {}", clean(host)),
            )
        }
        _ => "strata report".to_owned(),
    }
}

fn about(named: &Named<'_>, several: bool, out: &mut String) {
    let record = named.record;
    out.push_str("<section>\n");
    if several || record.stack.is_none() {
        let _ = writeln!(out, "<h2>{}</h2>", escaped(&clean(named.name)));
    }
    let mut facts = vec![machine(&record.environment)];
    facts.extend(target_lines(&common_targets(record), &record.environment));
    for line in facts.iter().filter(|line| !line.is_empty()) {
        let _ = writeln!(out, "<p class=\"muted\">{}</p>", escaped(line));
    }
    out.push_str(&ended(record));
    if let Some(stack) = &record.stack {
        of_stack(record, stack, out);
    } else {
        table(record, out);
        let all: Vec<(String, Vec<&Doubt>)> = record
            .phases
            .iter()
            .map(|phase| (phase.plan.name().clone(), phase.doubts.iter().collect()))
            .collect();
        doubts(&all, out);
    }
    let _ = writeln!(
        out,
        "<details><summary>The whole report</summary>\n<pre>{}</pre>\n</details>",
        escaped(&render(record, REPORT_WIDTH, false))
    );
    let _ = writeln!(
        out,
        "<p><code>{}</code></p>\n<p class=\"muted\">{}, strata {}, run {}</p>\n</section>",
        escaped(&clean(&record.command_line.join(" "))),
        escaped(&clean(&record.started_at)),
        escaped(&clean(&record.strata_version)),
        escaped(&clean(&record.run_id)),
    );
}

/// A stack: the verdict, layers by loads, what to try, and the warnings; its passes folded up.
fn of_stack(record: &Record, stack: &StackRecord, out: &mut String) {
    let picture = picture(record, stack);
    let found = &picture.verdict.found;
    let _ = writeln!(out, "<p><b>{}</b></p>", escaped(&found.sentence));
    for chain in found.chains.iter().chain(&found.spent) {
        let _ = writeln!(out, "<p>{}</p>", escaped(chain));
    }
    picture.grids.iter().for_each(|grid| of_grid(grid, out));
    let _ = writeln!(
        out,
        "<p class=\"muted\">Below a rate: how many times slower the layer is than the layer below it, with the 95% confidence interval.</p>\n<p>{}</p>",
        escaped(&picture.reliability)
    );
    if !picture.verdict.remedies.is_empty() {
        let remedies = picture.verdict.remedies.iter();
        let lines: Vec<String> =
            remedies.map(|remedy| format!("<li>{}</li>", escaped(&clean(&remedy.line)))).collect();
        let _ = writeln!(out, "<p>What to try:</p>\n<ul>\n{}\n</ul>", lines.join("\n"));
    }
    doubts(&picture.warnings, out);
    if !picture.by_design.is_empty() {
        let _ = writeln!(out, "<p class=\"muted\">By design: {}</p>", escaped(&picture.by_design.join("; ")));
    }
    out.push_str("<details><summary>All passes</summary>\n");
    table(record, out);
    out.push_str("</details>\n");
}

fn of_grid(grid: &Grid, out: &mut String) {
    let heads: String = grid.loads.iter().map(|load| format!("<th>{}</th>", escaped(load))).collect();
    let _ = writeln!(
        out,
        "<div class=\"table\"><table class=\"stack\">\n<thead><tr><th>layer</th>{heads}</tr></thead>\n<tbody>"
    );
    for (layer, cells) in &grid.layers {
        let cells = cells.iter().map(|cell| {
            let Some(cell) = cell else { return "<td></td>".to_owned() };
            let loss = cell.loss.as_ref().map_or_else(String::new, |loss| {
                let class = if loss.style == Style::Doubt { "warn" } else { "muted" };
                format!("<br/><span class=\"{class}\">{}</span>", escaped(&loss.text))
            });
            format!("<td><b>{}</b>{loss}</td>", escaped(&cell.speed))
        });
        let _ = writeln!(out, "<tr><td>{}</td>{}</tr>", escaped(layer), cells.collect::<String>());
    }
    out.push_str("</tbody>\n</table></div>\n");
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
    let hides_fills = hides_fills(record);
    let phases: Vec<&PhaseRecord> =
        record.phases.iter().filter(|phase| !(hides_fills && is_fill(phase))).collect();
    let has_tail = phases.iter().any(|phase| has_tail(&phase.summary.total));
    let is_shown = |(_, percent, _): &&Percentile| *percent != 90.0 && (has_tail || *percent != 99.99);
    let shown: Vec<Percentile> = PERCENTILES.iter().filter(is_shown).copied().collect();
    let headers: String = shown.iter().map(|(name, ..)| format!("<th>{name}</th>")).collect();
    let _ = writeln!(
        out,
        "<div class=\"table\"><table>\n<thead><tr><th>phase</th><th class=\"l\">load</th><th>rate</th><th>bandwidth</th>{headers}<th>errors</th></tr></thead>\n<tbody>"
    );
    phases.into_iter().for_each(|phase| row(phase, &shown, out));
    *out += "</tbody>\n</table></div>\n";
}

fn row(phase: &PhaseRecord, shown: &[Percentile], out: &mut String) {
    let total = &phase.summary.total;
    let latency = total.latency.as_ref();
    let time = |(_, percent, of): &Percentile| {
        let words = percentile_words(latency, *percent, latency.and_then(of));
        format!("<td>{}</td>", escaped(&words))
    };
    let times: String = shown.iter().map(time).collect();
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

/// Every kind of doubt once, with the phases that it is about and the figures of the first. Doubts are given by phases.
fn doubts(all: &[(String, Vec<&Doubt>)], out: &mut String) {
    let mut kinds: Vec<(&str, Vec<(&str, &Doubt)>)> = Vec::new();
    for (name, doubts) in all {
        for doubt in doubts {
            let one = (name.as_str(), *doubt);
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
            escaped(&place(&found, all.len())),
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
