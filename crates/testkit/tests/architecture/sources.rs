//! Sizes of files and functions, and words that must not be in them.

use crate::edges::PURE;
use crate::masked::{mask, words};

const FILE_LINES_MAX: usize = 500;
/// Tests and tables.
const EXEMPT_FILE_LINES_MAX: usize = 1000;
/// 70, and 2 % above.
const FUNCTION_LINES_MAX: usize = 71;

/// Files that are one table.
const TABLES: &[&str] = &["crates/layers/object/src/options/table.rs"];

/// Complaints about one Rust source.
pub(crate) fn complaints(path: &str, text: &str) -> Vec<String> {
    let masked = mask(text);
    let mut complaints = Vec::new();
    let lines = text.lines().count();
    let is_test = is_test(path);
    let limit = if is_test || TABLES.contains(&path) { EXEMPT_FILE_LINES_MAX } else { FILE_LINES_MAX };
    if lines > limit {
        complaints.push(format!("{path}: {lines} lines, at most {limit}"));
    }
    if !is_test {
        complaints.extend(long_functions(path, &masked));
        complaints.extend(impurities(path, &masked));
        complaints.extend(layers_named(path, &masked));
        complaints.extend(layers_wired(path, &masked));
    }
    complaints.extend(forbidden_words(path, &masked));
    complaints.extend(vague_documentation(path, text));
    complaints
}

/// Doc comments whose first sentence begins with "What": it names nothing of the field.
fn vague_documentation(path: &str, text: &str) -> Vec<String> {
    let marker = |line: &str| {
        let line = line.trim_start();
        ["///", "//!"].into_iter().find(|marker| line.starts_with(marker))
    };
    let mut complaints = Vec::new();
    let mut before = None;
    for (number, line) in (1..).zip(text.lines()) {
        let own = marker(line);
        let is_first = own.is_some() && own != before;
        if is_first && line.trim_start().get(3..).is_some_and(|rest| rest.starts_with(" What ")) {
            complaints.push(format!("{path}:{number}: a doc comment begins with \"What\": name it"));
        }
        before = own;
    }
    complaints
}

pub(crate) fn is_test(path: &str) -> bool {
    let (directories, name) = path.rsplit_once('/').unwrap_or(("", path));
    name == "tests.rs" || directories.split('/').any(|directory| ["tests", "benches"].contains(&directory))
}

/// Functions of masked text: line of `fn` (from 1), name, lines from there to the closing brace.
fn functions(masked: &str) -> Vec<(usize, String, usize)> {
    let mut found = Vec::new();
    for (at, _) in masked.match_indices("fn ") {
        let before = masked[..at].chars().next_back();
        let rest = &masked[at + 3..];
        let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if name.is_empty() || before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        if let Some(length) = body_end(rest) {
            let line = masked[..at].matches('\n').count() + 1;
            found.push((line, name, rest[..length].matches('\n').count() + 1));
        }
    }
    found
}

/// Where the body that follows a function's name ends; none for a declaration.
fn body_end(text: &str) -> Option<usize> {
    let mut nesting = 0_i32;
    let mut braces = 0_i32;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' => nesting += 1,
            ')' | ']' => nesting -= 1,
            ';' if nesting == 0 && braces == 0 => return None,
            '{' => braces += 1,
            '}' => {
                braces -= 1;
                if braces <= 0 {
                    return (braces == 0 && nesting == 0).then_some(at);
                }
            }
            _ => {}
        }
    }
    None
}

fn long_functions(path: &str, masked: &str) -> Vec<String> {
    let long = functions(masked).into_iter().filter(|(_, _, lines)| *lines > FUNCTION_LINES_MAX);
    long.map(|(line, name, lines)| {
        format!("{path}:{line}: {name} has {lines} lines, at most {FUNCTION_LINES_MAX}")
    })
    .collect()
}

/// A pure crate does not reach for clocks, files, sockets, processes or the terminal.
fn impurities(path: &str, masked: &str) -> Vec<String> {
    let is_pure = PURE.iter().any(|name| {
        path.strip_prefix("crates/").is_some_and(|below| below.starts_with(&format!("{name}/src/")))
    });
    if !is_pure {
        return Vec::new();
    }
    let reaches = [
        "std::fs",
        "std::net",
        "std::process",
        "std::thread",
        "Instant::now",
        "SystemTime",
        "println!",
        "eprintln!",
    ];
    let found = reaches.iter().filter(|reach| masked.contains(**reach));
    found.map(|reach| format!("{path}: {reach} in a crate that is pure")).collect()
}

/// Words of a layer that stand in its own folder alone.
const OF_A_LAYER: &[(&str, &[&str])] = &[
    ("media", &["MediaPlan", "MediaSpec", "use media::", "media::of"]),
    ("network", &["NetworkPlan", "NetworkSpec", "use network::", "network::of"]),
    ("object", &["ObjectPlan", "ObjectSpec", "MadeInStore", "use object::"]),
];
/// The part that names layers: their list.
const NAMES_LAYERS: &[&str] = &["crates/layers/registry/"];

fn names_layers(path: &str) -> bool {
    NAMES_LAYERS.iter().any(|names| path.starts_with(names))
}

fn layers_named(path: &str, masked: &str) -> Vec<String> {
    if names_layers(path) || !path.contains("/src/") {
        return Vec::new();
    }
    let is_elsewhere = |layer: &str| !path.starts_with(&format!("crates/layers/{layer}/"));
    let words = OF_A_LAYER.iter().filter(|(layer, _)| is_elsewhere(layer)).flat_map(|(_, words)| *words);
    let found = words.filter(|word| masked.contains(**word));
    found.map(|word| format!("{path}: {word} is of one layer")).collect()
}

/// The command knows layers by their trait alone.
fn layers_wired(path: &str, masked: &str) -> Vec<String> {
    if names_layers(path) || !path.starts_with("crates/strata/src/") {
        return Vec::new();
    }
    let is_named = |layer: &&&str| {
        masked.match_indices(**layer).any(|(at, _)| {
            let before = masked[..at].chars().next_back();
            !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':')
        })
    };
    let crates = ["media::", "network::", "object::", "vos::"];
    let found = crates.iter().filter(is_named);
    found.map(|layer| format!("{path}: {layer} is of one layer")).collect()
}

/// Names that say nothing to those who know the field.
const FIGURATIVE: &[&str] = &[
    "Porter", "Steward", "Hall", "Door", "Floor", "Station", "Books", "Shelf", "Letter", "Landing", "Place",
];

fn forbidden_words(path: &str, masked: &str) -> Vec<String> {
    let unsafe_allowed = opens_with_unsafe_allowed(masked);
    let mut complaints = Vec::new();
    for (line, word, after) in words(masked) {
        let is_macro = after.starts_with('!');
        match word {
            "todo" | "unimplemented" | "dbg" if is_macro => {
                complaints.push(format!("{path}:{line}: {word}!"));
            }
            "unsafe" if !unsafe_allowed => {
                complaints.push(format!(
                    "{path}:{line}: unsafe in a file that does not open with #![allow(unsafe_code)]"
                ));
            }
            "struct" | "enum" | "trait" | "type" => {
                let name: String = after.trim_start().chars().take_while(|c| c.is_alphanumeric()).collect();
                if FIGURATIVE.contains(&name.as_str()) {
                    complaints.push(format!("{path}:{line}: {name} is no term of the field"));
                }
            }
            _ => {}
        }
    }
    for (at, lint) in masked.match_indices("clippy::mut_from_ref") {
        let before_fn = masked[at..].split(" fn ").next().unwrap_or_default();
        if !before_fn.trim_end().ends_with("unsafe") {
            complaints.push(format!("{path}: {lint} on a function that is safe"));
        }
    }
    for attribute in ["#[ignore", "allow(dead_code"] {
        if masked.contains(attribute) {
            complaints.push(format!("{path}: {attribute}"));
        }
    }
    complaints
}

/// Whether the attribute stands before anything but other inner attributes.
fn opens_with_unsafe_allowed(masked: &str) -> bool {
    let code = masked.lines().map(str::trim).filter(|line| !line.is_empty());
    code.take_while(|line| line.starts_with("#![")).any(|line| line.contains("allow(unsafe_code)"))
}

/// Paths that exist on one person's machine only.
pub(crate) fn machine_paths(path: &str, text: &str) -> Vec<String> {
    // Put together here, so that this file does not contain them.
    let homes = [["/ro", "ot/"].concat(), ["/wo", "rk/"].concat()];
    let mut complaints = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for home in &homes {
            let begins_a_path = |at: usize| {
                let before = line[..at].chars().next_back();
                !before.is_some_and(|c| c.is_alphanumeric() || "_-.~/}*".contains(c))
            };
            if line.match_indices(home.as_str()).any(|(at, _)| begins_a_path(at)) {
                complaints.push(format!("{path}:{}: {home} is a path of one machine", index + 1));
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: &str = "crates/layers/media/src/sample.rs";

    #[track_caller]
    fn check(path: &str, text: &str, expected: &[&str]) {
        assert_eq!(complaints(path, text), expected);
    }

    fn function_of(lines: usize) -> String {
        format!(
            "impl T {{\n    pub fn long<const N: usize>(x: [u8; 4]) -> u8\n    where\n        T: U,\n    {{\n{}    }}\n}}\n",
            "        x();\n".repeat(lines - 5)
        )
    }

    #[test]
    fn a_function_is_measured_from_fn_to_its_brace() {
        assert_eq!(functions(&function_of(40)), [(2, "long".to_owned(), 40)]);
        assert_eq!(functions("trait T {\n    fn declared(&self, x: [u8; 2]) -> fn(u8) -> u8;\n}\n"), []);
        assert_eq!(
            functions("static F: fn(u8) -> u8 = f;\nfn f(x: u8) -> u8 { x }\n"),
            [(2, "f".to_owned(), 1)]
        );
    }

    #[test]
    fn a_long_function_is_found() {
        check(PLACE, &function_of(71), &[]);
        check(
            PLACE,
            &function_of(72),
            &["crates/layers/media/src/sample.rs:2: long has 72 lines, at most 71"],
        );
        check("crates/layers/media/src/sample/tests.rs", &function_of(72), &[]);
    }

    #[test]
    fn braces_in_strings_and_comments_do_not_end_a_function() {
        let body = "    x(\"}\"); // }\n    y('}');\n".repeat(36);
        check(
            PLACE,
            &format!("fn f() {{\n{body}}}\n"),
            &["crates/layers/media/src/sample.rs:1: f has 74 lines, at most 71"],
        );
    }

    #[test]
    fn a_long_file_is_found() {
        check(PLACE, &"x();\n".repeat(500), &[]);
        check(PLACE, &"x();\n".repeat(501), &["crates/layers/media/src/sample.rs: 501 lines, at most 500"]);
        check("crates/layers/media/tests/sample.rs", &"x();\n".repeat(1000), &[]);
        check(
            TABLES[0],
            &"x();\n".repeat(1001),
            &["crates/layers/object/src/options/table.rs: 1001 lines, at most 1000"],
        );
    }

    #[test]
    fn words_that_must_not_be_there_are_found() {
        check(
            PLACE,
            "pub(crate) struct Porter;\nstruct Placement;\ntype Place = u8; // a struct Hall\n",
            &[
                "crates/layers/media/src/sample.rs:1: Porter is no term of the field",
                "crates/layers/media/src/sample.rs:3: Place is no term of the field",
            ],
        );
        let lint = "#![allow(unsafe_code)]\n#[allow(clippy::mut_from_ref)]\n";
        check(PLACE, &format!("{lint}pub(crate) unsafe fn f(&self) -> &mut u8;\n"), &[]);
        check(
            PLACE,
            &format!("{lint}pub fn f(&self) -> &mut u8;\n"),
            &["crates/layers/media/src/sample.rs: clippy::mut_from_ref on a function that is safe"],
        );
        check(PLACE, "// todo!()\nlet x = \"dbg!\"; let todo = 1;\n", &[]);
        check(PLACE, "fn f() {\n    todo!()\n}\n", &["crates/layers/media/src/sample.rs:2: todo!"]);
        check(
            PLACE,
            "unimplemented!();\ndbg!(1);\n",
            &[
                "crates/layers/media/src/sample.rs:1: unimplemented!",
                "crates/layers/media/src/sample.rs:2: dbg!",
            ],
        );
        check(PLACE, "#[ignore = \"slow\"]\n", &["crates/layers/media/src/sample.rs: #[ignore"]);
    }

    #[test]
    fn unsafe_needs_the_attribute_at_the_top() {
        check(PLACE, "//! Doc.\n#![allow(unsafe_code)]\nuse a;\nfn f() { unsafe { g() } }\n", &[]);
        let unsafe_code = "crates/layers/media/src/sample.rs:2: unsafe in a file that does not open with #![allow(unsafe_code)]";
        check(PLACE, "use a;\nfn f() { unsafe { g() } }\n#![allow(unsafe_code)]\n", &[unsafe_code]);
    }

    #[test]
    fn a_doc_comment_that_names_nothing_is_found() {
        let text = "//! What it is.\n\n/// Size of it.\n/// What is more, it counts.\nstruct A;\n    /// What a header says.\n    b: u8,\n";
        let found = complaints("crates/units/src/a.rs", text);
        let name =
            |line: u32| format!("crates/units/src/a.rs:{line}: a doc comment begins with \"What\": name it");
        assert_eq!(found, [name(1), name(6)]);
    }

    #[test]
    fn a_clock_in_a_pure_crate_is_found() {
        let text = "fn f() { Instant::now(); }\n";
        check(
            "crates/statistics/src/x.rs",
            text,
            &["crates/statistics/src/x.rs: Instant::now in a crate that is pure"],
        );
        check("crates/statistics/src/x/tests.rs", text, &[]);
        check(PLACE, text, &[]);
    }

    #[test]
    fn a_layer_that_is_named_outside_its_folder_is_found() {
        let text = "use network::NetworkPlan;\n";
        check(
            "crates/fleet/src/x.rs",
            text,
            &[
                "crates/fleet/src/x.rs: NetworkPlan is of one layer",
                "crates/fleet/src/x.rs: use network:: is of one layer",
            ],
        );
        check("crates/fleet/src/x.rs", "use host::network::links;\n", &[]);
        check("crates/layers/registry/src/x.rs", text, &[]);
    }

    #[test]
    fn a_plan_outside_the_folder_of_its_layer_is_found() {
        let text = "fn f(plan: &MediaPlan, spec: &NetworkSpec) {}\n";
        check("crates/report/src/x/tests.rs", text, &[]);
        check(PLACE, text, &["crates/layers/media/src/sample.rs: NetworkSpec is of one layer"]);
        check(
            "crates/report/src/x.rs",
            "type T = MediaPlan;",
            &["crates/report/src/x.rs: MediaPlan is of one layer"],
        );
    }

    #[test]
    fn a_layer_named_by_the_command_is_found() {
        let text =
            "fn g() { media::probe(); }\nuse workload::object::Checksum;\nfn f() { self::network::g(); }\n";
        check("crates/strata/src/sample.rs", text, &["crates/strata/src/sample.rs: media:: is of one layer"]);
        check("crates/strata/src/stack.rs", text, &["crates/strata/src/stack.rs: media:: is of one layer"]);
    }

    #[test]
    fn a_path_of_one_machine_is_found() {
        let home = ["/ro", "ot/"].concat();
        assert_eq!(machine_paths("README.md", &format!("a\nsee {home}notes\n")).len(), 1);
        assert!(machine_paths("README.md", &format!("net{home}x and ${{TOP}}{home}x\n")).is_empty());
    }
}
