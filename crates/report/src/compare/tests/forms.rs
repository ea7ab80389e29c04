//! The comparison as a page, as Markdown and as JUnit XML.

use roxmltree::Document;

use super::*;

const NASTY: &str = "a|b <i>*x*</i> & \"y\"";

/// Six repeats a side, B a tenth slower, of a phase with a name that no format takes as it is; with limits that are exceeded and not.
fn slower() -> Comparison {
    let rates = |of: f64| [1.0, 1.01, 0.99, 1.005, 0.995, 1.0].map(|times| times * of);
    let named = |mut side: Operand| {
        for (_, record) in &mut side.records {
            *record.phases[0].plan.name_mut() = NASTY.to_owned();
        }
        side
    };
    let (a, b) = (named(at_rates("a", &rates(400_000.0))), named(at_rates("b", &rates(360_000.0))));
    compare(&a, &b, true, &limits(&["slower:5%", "mean-slower:50%", "cpu-slower:5%"])).unwrap()
}

#[test]
fn markdown_shows_verdicts_and_tables_as_they_are() {
    let found = slower();
    let text = to_markdown(std::slice::from_ref(&found));
    let name = r#"a\|b \<i\>\*x\*\</i\> \& "y""#;
    assert!(text.contains(&format!("- **{name}: B is slower: rate -10.0%")), "{text}");
    assert!(text.contains(&format!("#### {name}\n\n| metric | A | B |")), "{text}");
    assert!(text.contains("- **failed**: --fail-if slower:5%: "), "{text}");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| ")).collect();
    assert_eq!(rows.len(), 1 + found.phases[0].classes[0].figures.len(), "{rows:?}");
    let cells = |row: &str| row.replace("\\|", "").matches('|').count();
    assert!(rows.iter().all(|row| cells(row) == 7), "{rows:?}");
    assert!(rows[1].starts_with("| rate | 400k/s | 360k/s | -10.0% | "), "{}", rows[1]);
}

#[test]
fn junit_has_a_suite_for_each_limit_and_a_case_for_each_phase() {
    let found = slower();
    let text = to_junit(std::slice::from_ref(&found));
    let document = Document::parse(&text).unwrap();
    let suites: Vec<_> = document.descendants().filter(|node| node.has_tag_name("testsuite")).collect();
    let counts = |at: usize| ["tests", "failures", "skipped"].map(|name| suites[at].attribute(name).unwrap());
    assert_eq!(suites.len(), 3);
    assert_eq!(suites[0].attribute("name"), Some("strata compare --fail-if slower:5%"));
    assert_eq!(counts(0), ["1", "1", "0"]);
    assert_eq!(counts(1), ["1", "0", "0"]);
    let failure = document.descendants().find(|node| node.has_tag_name("failure")).unwrap();
    assert!(failure.attribute("message").unwrap().starts_with("rate -10.0% ("), "{text}");
    assert_eq!(failure.parent().unwrap().attribute("name"), Some(NASTY));
    let plain = compare(&at_rates("a", &[1e5]), &at_rates("b", &[1e5, 1.1e5]), false, &[]).unwrap();
    let text = to_junit(std::slice::from_ref(&plain));
    assert!(
        text.contains("tests=\"1\" failures=\"0\" skipped=\"0\"") && !text.contains("<skipped"),
        "{text}"
    );
}

#[test]
fn junit_skips_what_the_data_cannot_show_and_tells_names_apart() {
    let lines = [
        ("read", "read: rate: only differences above 12.0% are detectable"),
        ("read: 4k", "read: 4k: rate: only differences above 3.0% are detectable"),
    ];
    let mut found = slower();
    let phase = |name: &str| PhaseComparison { name: name.to_owned(), ..found.phases[0].clone() };
    found.phases = vec![phase("read"), phase("read: 4k"), phase("write")];
    found.unmatched = vec![Unmatched { side: "a".to_owned(), phase: "gone".to_owned(), occurrence: 0 }];
    let mut blind_to: Vec<String> = lines.iter().map(|(_, line)| (*line).to_owned()).collect();
    blind_to.push("gone: this phase exists only in A".to_owned());
    found.limits = vec![LimitOutcome { limit: "slower:1%".to_owned(), exceeded_by: vec![], blind_to }];
    let text = to_junit(std::slice::from_ref(&found));
    let document = Document::parse(&text).unwrap();
    let skipped = document.descendants().filter(|node| node.has_tag_name("skipped"));
    let told: Vec<_> = skipped
        .map(|node| (node.parent().unwrap().attribute("name").unwrap(), node.attribute("message").unwrap()))
        .collect();
    assert_eq!(
        told,
        [
            ("read", "rate: only differences above 12.0% are detectable"),
            ("read: 4k", "rate: only differences above 3.0% are detectable"),
            ("gone", "this phase exists only in A"),
        ]
    );
    assert!(text.contains("tests=\"4\" failures=\"0\" skipped=\"3\""), "{text}");
}

#[test]
fn the_page_draws_each_difference_with_its_interval_and_the_limits() {
    let found = slower();
    let html = to_html(std::slice::from_ref(&found));
    let end = html.rfind("</html>").unwrap();
    let body = html[..end + 7].replace("<!DOCTYPE html>", "").replace("<meta charset=\"utf-8\">", "");
    let start = body.find("<meta").unwrap();
    let close = start + body[start..].find('>').unwrap();
    let text = format!("{}{}", &body[..start], &body[close + 1..]);
    let document = Document::parse(&text).unwrap();
    let drawn: Vec<_> =
        document.descendants().filter(|node| node.attribute("class") == Some("whisker")).collect();
    let figures = &found.phases[0].classes[0].figures;
    assert_eq!(drawn.len(), figures.iter().filter(|figure| figure.difference.is_some()).count());
    let lines = |at: usize, class: &str| -> Vec<f64> {
        let lines = drawn[at].descendants().filter(|node| node.attribute("class") == Some(class));
        lines.map(|node| node.attribute("x1").unwrap().parse().unwrap()).collect()
    };
    // The scale reaches to the largest limit, 50 %, and a twentieth further.
    let x = |percent: f64| percent / 52.5 * 128.0 + 128.0;
    assert_eq!(lines(0, "zero"), [128.0]);
    assert!((lines(0, "limit")[0] - x(-5.0)).abs() < 0.06, "a rate is slower to the left");
    assert!((lines(1, "limit")[0] - x(50.0)).abs() < 0.06, "a latency is slower to the right");
    let dot = drawn[0].descendants().find(|node| node.tag_name().name() == "circle").unwrap();
    assert!((dot.attribute("cx").unwrap().parse::<f64>().unwrap() - x(-10.0)).abs() < 0.2);
    assert!(html.contains("a|b &lt;i&gt;*x*") && !html.contains("<i>"));
    let rest = html.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    assert!(["http:", "https:", "src=", "href=", "url(", "<script"].iter().all(|word| !rest.contains(word)));
}
