mod over_time;

use proptest::prelude::*;
use roxmltree::Document;
use workload::spec::Operation;

use super::*;
use crate::record::{Doubt, Record, StackPass};
use crate::sample::{self, DRIVE, INTERVALS, Shape, ladder, phase, record, stack};

const NASTY: &str = "<script>&\"'\u{1}\u{1b}]0;\u{FFFE}";

fn named(record: &Record) -> Named<'_> {
    Named { name: "sample", record }
}

fn chart_of(records: &[Named<'_>], end: &str) -> Chart {
    let all = charts(records);
    let stems: Vec<_> = all.iter().map(|chart| chart.file_stem.clone()).collect();
    all.into_iter()
        .find(|chart| chart.file_stem.ends_with(end))
        .unwrap_or_else(|| panic!("{end}: {stems:?}"))
        .chart
}

/// Texts of an SVG that are no halo of another.
fn texts(svg: &str) -> Vec<String> {
    let document = Document::parse(svg).unwrap();
    let shown =
        |node: &roxmltree::Node<'_, '_>| node.has_tag_name("text") && node.attribute("aria-hidden").is_none();
    document.descendants().filter(shown).map(|node| node.text().unwrap_or_default().to_owned()).collect()
}

fn count(svg: &str, tag: &str) -> usize {
    Document::parse(svg).unwrap().descendants().filter(|node| node.has_tag_name(tag)).count()
}

#[test]
fn a_phase_has_five_charts() {
    let record = record(vec![phase(&DRIVE)]);
    let stems: Vec<_> = charts(&[named(&record)]).into_iter().map(|chart| chart.file_stem).collect();
    assert_eq!(
        stems,
        [
            "1-randread-rate",
            "2-randread-latency",
            "3-randread-latencies",
            "4-randread-histogram",
            "5-randread-percentiles"
        ]
    );
}

#[test]
fn rates_are_those_of_the_intervals() {
    let record = record(vec![phase(&Shape { jitter: 0.0, ..DRIVE })]);
    let chart = chart_of(&[named(&record)], "rate");
    assert_eq!((chart.series.len(), chart.series[0].points.len()), (1, INTERVALS as usize));
    assert!(
        chart.series[0].points.iter().all(|point| (point.y - 400_000.0).abs() < 100.0),
        "{:?}",
        chart.series[0]
    );
    assert_eq!((chart.series[0].points[0].x, chart.y.unit), (0.05, Unit::PerSecond));
    assert_eq!(chart.note, "4KiB random reads, 4 threads x depth 32, io_uring, direct, 4.00 s");
    let svg = to_svg(&chart, &Look::default());
    let texts = texts(&svg);
    for expected in ["randread: rate over time", "400k", "operations/s", "time (s)"] {
        assert!(texts.iter().any(|text| text == expected), "{expected}: {texts:?}");
    }
}

#[test]
fn large_blocks_are_about_bandwidth() {
    let shape = Shape { block_bytes: 1 << 20, operations_per_second: 2000.0, jitter: 0.0, ..DRIVE };
    let record = record(vec![phase(&shape)]);
    let chart = chart_of(&[named(&record)], "rate");
    assert_eq!(chart.y.unit, Unit::BytesPerSecond);
    assert!((chart.series[0].points[3].y - 2000.0 * 1_048_576.0).abs() < 1e-3 * 2e9);
    assert!(texts(&to_svg(&chart, &Look::default())).contains(&"bandwidth (GiB/s)".to_owned()));
}

#[test]
fn classes_have_lines_of_their_own() {
    let record = record(vec![phase(&Shape { operation: Operation::RandRw, jitter: 0.0, ..DRIVE })]);
    let chart = chart_of(&[named(&record)], "rate");
    let rates: Vec<_> = chart
        .series
        .iter()
        .map(|series| (series.name.as_str(), (series.points[5].y / 1000.0).round()))
        .collect();
    assert_eq!(rates, [("all", 400.0), ("read", 280.0), ("write", 120.0)]);
}

#[test]
fn several_records_share_their_charts() {
    let slow = Shape { operations_per_second: 100_000.0, ..DRIVE };
    let (first, second) = (record(vec![phase(&DRIVE)]), record(vec![phase(&slow)]));
    let records = [Named { name: "before", record: &first }, Named { name: "after", record: &second }];
    assert_eq!(charts(&records).len(), 4);
    let names = |chart: &Chart| chart.series.iter().map(|series| series.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&chart_of(&records, "rate")), ["before", "after"]);
    assert_eq!(
        names(&chart_of(&records, "-latency")),
        ["before: p50", "before: p99", "after: p50", "after: p99"]
    );
    // Two phases of one name are not taken for one.
    let mut twice = record(vec![phase(&DRIVE), phase(&DRIVE)]);
    twice.phases[1].stage = 1;
    assert_eq!(charts(&[named(&twice)]).len(), 10);
}

#[test]
fn phases_that_ran_at_the_same_time_have_charts_together() {
    let (mut late, name) = (phase(&DRIVE), "writes".to_owned());
    *late.plan.name_mut() = name;
    late.plan.load_mut().start_delay_ns = 2_000_000_000;
    let record = record(vec![phase(&DRIVE), late]);
    let made = charts(&[named(&record)]);
    assert_eq!((made.len(), made[0].section.as_str()), (13, "randread, writes at the same time"));
    let rate = &made[0].chart;
    let first = |at: usize| (rate.series[at].name.as_str(), rate.series[at].points[0].x);
    assert_eq!((first(0), first(1)), (("randread", 0.05), ("writes", 2.05)));
    // By itself a phase counts from its own start.
    assert_eq!(chart_of(&[named(&record)], "writes-rate").series[0].points[0].x, 0.05);
    // Rungs of a ladder run one after another.
    assert!(
        charts(&[named(&ladder(&[1, 2], 1e5, 1e5))])
            .iter()
            .all(|made| !made.section.contains("at the same time"))
    );
}

#[test]
fn percentiles_are_those_of_the_summary() {
    let record = record(vec![phase(&DRIVE)]);
    let latency = record.phases[0].summary.total.latency.clone().unwrap();
    let chart = chart_of(&[named(&record)], "-latency");
    let names: Vec<_> = chart.series.iter().map(|series| series.name.as_str()).collect();
    assert_eq!(names, ["p50", "p99", "p99.9", "max"]);
    assert_eq!(chart.series[0].points[7].y, latency.p50_ns as f64);
    assert_eq!(chart.series[3].points[7].y, latency.max_ns as f64);
    let curve = chart_of(&[named(&record)], "percentiles");
    let points = &curve.series[0].points;
    assert!(points.is_sorted_by(|a, b| a.x < b.x && a.y <= b.y));
    let at = |nines: f64| points.iter().find(|point| (point.x - nines).abs() < 1e-9).unwrap().y;
    assert_eq!((at(1.0), at(3.0)), (latency.p90_ns.unwrap() as f64, latency.p99_9_ns.unwrap() as f64));
}

#[test]
fn a_histogram_holds_every_operation_of_the_window() {
    let mut record = record(vec![phase(&DRIVE)]);
    for cut in [false, true] {
        let phase = &mut record.phases[0];
        if cut {
            // As if the first half had been warm-up.
            phase.summary.window_start_ns = phase.samples.series.points[20].start_ns;
            let rest = &phase.samples.series.points[20..];
            phase.summary.total.window_operations = rest.iter().map(|point| point.operations()).sum();
        }
        let chart = chart_of(&[named(&record)], "histogram");
        let shares: f64 = chart.series[0].points.iter().map(|point| point.y).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{shares}");
        let slow: f64 =
            chart.series[0].points.iter().filter(|point| point.x > 1e6).map(|point| point.y).sum();
        assert!((slow - 0.01).abs() < 1e-3, "a hundredth takes four times as long: {slow}");
        assert_eq!(chart_of(&[named(&record)], "rate").bands.len(), usize::from(cut));
    }
}

#[test]
fn a_ladder_shows_its_knee() {
    let record = ladder(&[1, 2, 4, 8, 16, 32], 100_000.0, 80_000.0);
    let chart = chart_of(&[named(&record)], "ladder");
    let labels: Vec<_> = chart.series[0].points.iter().filter_map(|point| point.label.as_deref()).collect();
    assert_eq!(labels, ["1", "2", "4", "8", "16", "32"]);
    assert_eq!((chart.marks.len(), chart.marks[0].label.as_str()), (1, "knee: depth 8"));
    assert!((chart.marks[0].x - 80_000.0).abs() < 800.0, "{:?}", chart.marks);
    assert!(chart.note.contains("knee at 8 in flight: 80.0k/s"), "{}", chart.note);
    let svg = to_svg(&chart, &Look::default());
    // Six points on each of two lines, a dot for each line in the legend, and the ring.
    assert_eq!(count(&svg, "circle"), 12 + 2 + 1);
    let climbing = ladder(&[1, 2, 4], 100_000.0, 1e9);
    let chart = chart_of(&[named(&climbing)], "ladder");
    assert!(chart.marks.is_empty() && chart.note.contains("still climbs"), "{}", chart.note);
}

#[test]
fn a_stack_is_a_waterfall() {
    let rows = [
        ("null", Operation::RandRead, 4096, 3e7),
        ("memory", Operation::RandRead, 4096, 3e6),
        ("media", Operation::RandRead, 4096, 4e5),
        ("file", Operation::RandRead, 4096, 1e5),
    ];
    let record = stack(&rows);
    let chart = chart_of(&[named(&record)], "waterfall");
    assert_eq!(chart.x.scale, Scale::Names(["memory", "media", "file"].map(str::to_owned).to_vec()));
    let labels: Vec<_> = chart.series[0].points.iter().map(|point| point.label.clone().unwrap()).collect();
    assert_eq!(labels, ["3.00M/s", "400k/s", "100k/s"]);
    assert!(to_html(&[named(&record)]).contains("<p><b>file is the largest loss"));
}

/// Two passes of a stack.
fn stack_of_two_passes() -> crate::record::Record {
    let rows = |times: f64| {
        [
            ("memory", Operation::RandRead, 4096, 3e6 * times),
            ("media", Operation::RandRead, 4096, 4e5),
            ("file", Operation::RandRead, 4096, 1e5),
        ]
    };
    let mut record = stack(&rows(1.0));
    record.phases.extend(stack(&rows(4.0)).phases);
    let stack = record.stack.as_mut().unwrap();
    for (at, row) in stack.rows.iter_mut().enumerate() {
        row.passes =
            [0, 3].iter().zip(1..).map(|(from, pass)| StackPass { pass, phase: at + from }).collect();
    }
    record
}

#[test]
fn bars_of_a_stack_are_means_of_passes_with_intervals_in_colours_of_layers() {
    let record = stack_of_two_passes();
    let chart = chart_of(&[named(&record)], "waterfall");
    let bars = &chart.series[0].points;
    // 3M/s and 12M/s; the mean of logarithms has Student's t of one degree of freedom: 12.7 times ln(2).
    assert_eq!(bars[0].label.as_deref(), Some("6.00M/s"));
    let (low, high) = bars[0].interval.unwrap();
    let half = 12.706 * 2f64.ln();
    assert!(
        ((high / 6e6).ln() - half).abs() < 1e-3 && ((low / 6e6).ln() + half).abs() < 1e-3,
        "{low} {high}"
    );
    assert!(bars.iter().map(|bar| bar.colour).eq([Some(0), Some(1), Some(2)]));
    assert!(chart.note.contains("95% confidence interval"), "{}", chart.note);
    let colours = |kind: &str| -> Vec<usize> {
        chart_of(&[named(&record)], kind).series.iter().map(|series| series.colour).collect()
    };
    assert_eq!(colours("percentiles"), [0, 1, 2]);
    // The bar, its line up and down, and its two ends.
    let lines = count(&to_svg(&chart, &Look::default()), "polyline");
    assert!(lines >= 3 * 3, "{lines}");
    let one = stack(&[("memory", Operation::RandRead, 4096, 3e6)]);
    assert_eq!(chart_of(&[named(&one)], "waterfall").series[0].points[0].interval, None);
}

#[test]
fn the_page_of_a_stack_begins_with_its_verdict_and_its_layers() {
    let mut record = stack_of_two_passes();
    record.environment.system.hostname = Some("store<1>".to_owned());
    let html = to_html(&[named(&record)]);
    let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("no {text}: {html}"));
    assert!(html.contains("<h1>Storage stack of store&lt;1&gt;</h1>"));
    let grid = at("<table class=\"stack\">");
    assert!(at("<p><b>") < grid && grid < at("comparisons conclusive"));
    assert!(at("comparisons conclusive") < at("<summary>All passes</summary>") && grid < at("<svg"));
    assert!(html.contains("<td>memory</td><td><b>6.00M/s</b></td>"), "{html}");
    assert!(html.contains("<td>file</td><td><b>100k/s</b><br/><span class="), "{html}");
}

#[test]
fn doubts_stand_in_the_chart() {
    let mut record = record(vec![phase(&DRIVE)]);
    record.phases[0].doubts.push(crate::record::Doubt {
        kind: "page_cache".to_owned(),
        detail: "seen".to_owned(),
        remedy: "use --direct".to_owned(),
    });
    assert_eq!(chart_of(&[named(&record)], "rate").warning, "Warnings: page cache");
    assert!(to_html(&[named(&record)]).contains("use --direct"));
}

#[test]
fn indexes_out_of_range_are_passed_over() {
    let mut record = ladder(&[1, 2], 100_000.0, 80_000.0);
    record.ladder.as_mut().unwrap().phases = vec![7, 1, usize::MAX];
    assert!(!charts(&[named(&record)]).is_empty());
    record.phases.clear();
    assert!(charts(&[named(&record)]).is_empty());
    assert!(to_html(&[named(&record)]).ends_with("</html>\n"));
}

#[test]
fn names_cannot_break_out() {
    let mut record = record(vec![phase(&Shape { operation: Operation::RandRw, ..DRIVE })]);
    record.command_line.push(NASTY.to_owned());
    record.failure = Some(NASTY.to_owned());
    record.status = crate::record::Status::Partial;
    let phase = &mut record.phases[0];
    *phase.plan.name_mut() = NASTY.to_owned();
    sample::change(&mut phase.plan, "/engine", NASTY);
    phase.summary.classes[0].class = NASTY.to_owned();
    phase.failure = Some(NASTY.to_owned());
    let records = [Named { name: NASTY, record: &record }];
    for chart in charts(&records) {
        assert!(chart.file_stem.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-'));
        let svg = to_svg(&chart.chart, &Look::default());
        assert!(texts(&svg).iter().any(|text| text.contains("<script>&\"'")), "{svg}");
        assert!(!svg.contains("<script"), "{svg}");
    }
    let html = to_html(&records);
    assert!(!html.contains("<script") && html.contains("&lt;script&gt;&amp;&quot;&#39;"));
    assert!(!html.contains(['\u{1}', '\u{1b}', '\u{FFFE}']));
}

#[test]
fn a_page_needs_nothing_from_outside() {
    let record = record(vec![phase(&DRIVE)]);
    let html = to_html(&[named(&record)]);
    // The only address is the name of SVG's vocabulary, which nothing loads.
    let rest = html.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    for word in ["http:", "https:", "src=", "href=", "url(", "@import", "<script", "<link"] {
        assert!(!rest.contains(word), "{word}");
    }
    assert!(html.contains("prefers-color-scheme:dark") && html.matches("<svg").count() == 5);
    assert!(html.contains("<td>400k/s</td>"), "{html}");
    let end = html.rfind("</html>").unwrap();
    let body = html[..end + 7].replace("<!DOCTYPE html>", "").replace("<meta charset=\"utf-8\">", "");
    let start = body.find("<meta").unwrap();
    let close = start + body[start..].find('>').unwrap();
    // Everything but the two meta elements is well-formed XML too.
    Document::parse(&format!("{}{}", &body[..start], &body[close + 1..])).unwrap();
}

/// Width and height of a PNG.
fn size(png: &[u8]) -> (u32, u32) {
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

#[test]
fn images_have_the_size_asked_for() {
    let chart = Chart::new(
        "empty",
        Axis::new("", Unit::Plain, Scale::Linear),
        Axis::new("", Unit::Plain, Scale::Log),
    );
    let look = Look { width: 300.0, height: 200.0, ..Look::default() };
    assert_eq!(size(&to_png(&chart, &look, 1.0).unwrap()), (300, 200));
    assert_eq!(size(&to_png(&chart, &look, 2.0).unwrap()), (600, 400));
    assert!(to_png(&chart, &Look { width: 0.0, ..look.clone() }, 1.0).unwrap_err().contains("0 x 200"));
    assert!(texts(&to_svg(&chart, &look)).contains(&"nothing was measured".to_owned()));
}

#[test]
fn an_image_holds_what_is_drawn() {
    let names = Scale::Names(vec!["a".to_owned()]);
    let mut chart =
        Chart::new("", Axis::new("", Unit::Plain, names), Axis::new("", Unit::Plain, Scale::Linear));
    chart.series.push(Series::new("", Style::Bars, 0, vec![Point::new(0.0, 10.0)]));
    let look = Look { width: 200.0, height: 100.0, palette: vec![Rgb(255, 0, 0)], ..Look::default() };
    let png = to_png(&chart, &look, 1.0).unwrap();
    let image = tiny_skia::Pixmap::decode_png(&png).unwrap();
    let red = image
        .pixels()
        .iter()
        .filter(|pixel| (pixel.red(), pixel.green(), pixel.blue()) == (255, 0, 0))
        .count();
    assert!(red > 1000, "{red} pixels of the bar");
    assert_eq!(image.pixel(0, 0).unwrap().red(), 255);
    let clear = Look { theme: Theme::Fixed(None), ..look };
    let image = tiny_skia::Pixmap::decode_png(&to_png(&chart, &clear, 1.0).unwrap()).unwrap();
    assert_eq!(image.pixel(0, 0).unwrap().alpha(), 0);
}

#[test]
fn labels_do_not_overlap() {
    let names: Vec<String> = (0..200).map(|at| format!("a name that is long {at}")).collect();
    let points = (0..200).map(|at| Point::new(f64::from(at), f64::from(at))).collect();
    let mut chart = Chart::new(
        "",
        Axis::new("", Unit::Plain, Scale::Names(names)),
        Axis::new("", Unit::Plain, Scale::Linear),
    );
    chart.series.push(Series::new("line", Style::Points, 0, points));
    let svg = to_svg(&chart, &Look::default());
    let document = Document::parse(&svg).unwrap();
    let places: Vec<(f64, f64)> = document
        .descendants()
        .filter(|node| {
            node.has_tag_name("text") && node.text().is_some_and(|text| text.starts_with("a name"))
        })
        .map(|node| {
            let half = font::exact_width(node.text().unwrap(), 13.0, false) / 2.0;
            let x: f64 = node.attribute("x").unwrap().parse().unwrap();
            (x - half, x + half)
        })
        .collect();
    assert!(places.len() >= 3 && places.windows(2).all(|pair| pair[0].1 < pair[1].0), "{places:?}");
}

fn any_value() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>(),
        -10.0..10.0f64,
        Just(0.0),
        Just(f64::NAN),
        Just(f64::MAX),
        Just(f64::MIN_POSITIVE)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_values_are_drawn(
        values in prop::collection::vec((any_value(), any_value(), ".{0,12}"), 0..12),
        (scale, style, unit) in (0..3usize, 0..4usize, 0..7usize),
        (width, height, degrees) in (20.0..400.0f64, 20.0..300.0f64, -90.0..90.0f64),
        name in ".{0,40}",
    ) {
        let scales = [Scale::Linear, Scale::Spanning, Scale::Log];
        let units = [
            Unit::Plain, Unit::PerSecond, Unit::BytesPerSecond, Unit::Seconds, Unit::Nanoseconds, Unit::Share, Unit::Nines,
        ];
        let styles = [Style::Line, Style::Points, Style::Steps { filled: true }, Style::Bars];
        let mut chart = Chart::new(
            name.clone(),
            Axis::new(name.clone(), units[unit], scales[scale].clone()),
            Axis::new("y", units[6 - unit], scales[2 - scale].clone()),
        );
        chart.note.clone_from(&name);
        let points = values.iter().map(|(x, y, label)| Point { label: Some(label.clone()), ..Point::new(*x, *y) });
        let mut series = Series::new(name.clone(), styles[style], 3, points.collect());
        series.pale_until = Some(0.0);
        chart.series.push(series);
        chart.marks.push(Mark { x: 1.0, y: 1.0, label: name.clone() });
        chart.bands.push(Band { from: 0.0, to: 1.0, label: name });
        let look = Look { width, height, x_label_degrees: degrees, legend: Legend::Right, ..Look::default() };
        let svg = to_svg(&chart, &look);
        prop_assert!(Document::parse(&svg).is_ok(), "{}", svg);
        prop_assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{}", svg);
        prop_assert!(to_png(&chart, &look, 1.0).is_ok());
    }
}

#[test]
fn a_page_tells_each_kind_of_doubt_once() {
    let mut record = ladder(&[1, 2, 4], 1e5, 1e5);
    let doubt = |kind: &str, detail: &str| Doubt {
        kind: kind.to_owned(),
        detail: detail.to_owned(),
        remedy: "measure again".to_owned(),
    };
    for (at, phase) in record.phases.iter_mut().enumerate() {
        phase.doubts.push(doubt("too_short", &format!("{at} ms long")));
    }
    record.phases[0].doubts.push(doubt("page_cache", "from memory"));
    record.phases[2].doubts.push(doubt("page_cache", "from memory"));
    let page = to_html(&[named(&record)]);
    assert_eq!(page.matches("<li>").count(), 2);
    assert!(page.contains("<b>too_short</b> (everywhere): for example, 0 ms long;"), "{page}");
    assert!(page.contains("<b>page_cache</b> (randread, in 2 of 3 phases): from memory;"), "{page}");
    assert!(!page.contains("No chart to draw"));
    assert!(to_html(&[named(&crate::sample::record(vec![]))]).contains("No chart to draw"));
}
