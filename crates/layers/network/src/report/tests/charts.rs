use report::chart::{Chart, Look, Named, NamedChart, Ramp, to_html, to_png, to_svg};
use report::record::Record;
use roxmltree::Document;

/// Charts of records, with the report of the network.
fn charts(records: &[Named<'_>]) -> Vec<NamedChart> {
    report::view::add(crate::VIEW);
    report::chart::charts(records)
}

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
fn links_have_heat_maps() {
    let matrix = crate::sample::matrix(4, &[(1, 3, 3)]);
    let records = [named(&matrix)];
    let stems: Vec<_> = charts(&records).into_iter().map(|chart| chart.file_stem).collect();
    // Intervals of the sample have operations enough for percentiles over time.
    assert_eq!(stems[4..], ["5-matrix-percentiles", "6-matrix-links", "7-matrix-links-p99"]);
    let chart = chart_of(&records, "links");
    let heat = chart.heat.as_ref().unwrap();
    assert_eq!((heat.rows.len(), heat.columns.len(), heat.ramp), (4, 4, Ramp::Blues));
    assert!(chart.note.contains("link 1 → 3 is slow"), "{}", chart.note);
    let svg = to_svg(&chart, &Look::default());
    // Paper, 16 cells, nine levels of the bar.
    assert_eq!(count(&svg, "rect"), 26);
    let texts = texts(&svg);
    assert!(texts.contains(&"326 MiB/s".to_owned()) && texts.contains(&"to (ranks)".to_owned()), "{texts:?}");
    assert!(svg.contains("<title>1 → 3: 326 MiB/s</title>"), "a pointing reader sees the pair");
    assert!(to_png(&chart, &Look::default(), 1.0).unwrap().starts_with(b"\x89PNG"));
    assert!(to_html(&records).contains("matrix: p99 by link"));
    let large = crate::sample::matrix(13, &[]);
    let svg = to_svg(&chart_of(&[named(&large)], "links"), &Look::default());
    assert_eq!(count(&svg, "rect"), 1 + 169 + 9);
    assert!(!self::texts(&svg).iter().any(|text| text == "961 MiB/s"), "no numbers in small cells");
    let alone = crate::sample::two_endpoints();
    assert!(charts(&[named(&alone)]).iter().all(|made| !made.file_stem.contains("links")));
}
