//! Kinds of doubts of all layers against docs/doubts.md.

use report::doubts::{kinds, remedies};

const DOUBTS_PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/doubts.md");

/// Cells of the rows of the docs that begin with a kind, by table.
fn rows(page: &str) -> Vec<(String, Vec<String>)> {
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| `")?.trim_end_matches('|').split(" | ").map(str::trim);
        let kind = cells.next()?.trim_end_matches('`').to_owned();
        Some((kind, cells.map(str::to_owned).collect()))
    };
    page.lines().filter_map(row).collect()
}

#[test]
fn every_kind_is_in_the_docs_and_has_a_remedy() {
    let page = std::fs::read_to_string(DOUBTS_PAGE).unwrap();
    registry::register();
    let names: Vec<_> = kinds().collect();
    let rows: Vec<_> = rows(&page).into_iter().map(|(kind, _)| kind).collect();
    let (what, tests) = rows.split_at(rows.len() / 2);
    assert_eq!(what, names, "docs/doubts.md: the table of kinds");
    assert_eq!(tests, names, "docs/doubts.md: the table of tests");
    assert!(remedies().all(|(_, remedy)| !remedy.is_empty() && remedy.len() <= 110), "a line at most");
}

#[test]
fn every_kind_has_its_two_tests() {
    registry::register();
    let page = std::fs::read_to_string(DOUBTS_PAGE).unwrap();
    let source = |path: &str| {
        let path = format!("{}/../../../{path}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    let files = [
        ("unit", source("crates/report/src/doubts/tests.rs")),
        ("network", source("crates/layers/network/src/report/doubts/tests.rs")),
        ("object", source("crates/layers/object/src/report/doubts/tests.rs")),
        ("path", source("crates/layers/media/src/report/tests/path.rs")),
        ("command", source("crates/strata/tests/command/doubts.rs")),
        ("gpu", source("crates/strata/tests/command/gpu.rs")),
        ("drops", source("crates/strata/tests/command/drops.rs")),
        ("traps", source("crates/strata/tests/command/traps.rs")),
    ];
    for (kind, cells) in rows(&page).into_iter().skip(kinds().count()) {
        assert_eq!(cells.len(), 2, "{kind}: what provokes it, what shows it silent");
        for cell in &cells {
            let (place, name) = cell.trim_matches('`').split_once("::").unwrap_or_default();
            let (_, text) =
                files.iter().find(|(file, _)| *file == place).unwrap_or_else(|| panic!("{kind}: {cell}"));
            assert!(text.contains(&format!("#[test]\nfn {name}() {{")), "{kind}: there is no test {cell}");
        }
    }
}
