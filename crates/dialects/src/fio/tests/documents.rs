//! The tables of docs/dialects/fio.md are what the code does.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::*;
use crate::fio::help;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/dialects/fio.md");
/// Where Debian's package puts its examples.
const EXAMPLES: &str = "/usr/share/doc/fio/examples";

/// The page with what stands between the two marks of a part replaced.
fn with_part(page: &str, part: &str, text: &str) -> String {
    let (begin, end) = (format!("<!-- {part} -->\n"), format!("<!-- end of {part} -->"));
    let (before, rest) =
        page.split_once(&begin).unwrap_or_else(|| panic!("docs/dialects/fio.md lacks {begin}"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("docs/dialects/fio.md lacks {end}"));
    format!("{before}{begin}\n{text}\n{end}{after}")
}

fn check_part(part: &str, text: &str) {
    let page = fs::read_to_string(PAGE).expect("docs/dialects/fio.md");
    let made = with_part(&page, part, text);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(PAGE, &made).expect("write the page");
    } else {
        assert!(page == made, "docs/dialects/fio.md is out of date: run the tests once with UPDATE_DOCS=1");
    }
}

/// One test for both parts: they are written to one file.
#[test]
fn the_page_is_up_to_date() {
    check_part("options", &help::tables());
    if Path::new(EXAMPLES).is_dir() {
        check_part("examples", &examples());
    }
}

/// Results that scripts/fio-examples.py found by running the examples must agree with what the dialect reads today.
#[test]
fn the_examples_that_ran_are_those_that_can() {
    if !Path::new(EXAMPLES).is_dir() {
        return;
    }
    let page = fs::read_to_string(PAGE).expect("docs/dialects/fio.md");
    let part = |name: &str| {
        let (_, rest) = page.split_once(&format!("<!-- {name} -->")).expect("a part");
        rest.split_once(&format!("<!-- end of {name} -->")).expect("the end of a part").0
    };
    let (read, refused) = part("examples").split_once("are rejected:").expect("two tables");
    let names = |text: &str, has: &str| -> Vec<String> {
        let rows = text.lines().filter(|line| line.starts_with("| `") && line.contains(has));
        rows.map(|line| line.split('`').nth(1).unwrap_or("").to_owned()).collect()
    };
    let found = part("examples that ran");
    assert_eq!(names(found, "| ran: "), names(read, ""), "run scripts/fio-examples.py --page");
    assert_eq!(names(found, "| rejected: `"), names(refused, ""), "run scripts/fio-examples.py --page");
}

/// A machine where the devices and files that the examples must find are there and their variables are set.
fn machine_of_examples() -> Machine {
    let set = [
        ("FIO_RW", "randread"),
        ("FIO_IODEPTH", "1"),
        ("FIO_BS", "4k"),
        ("FIO_DIR", "/tmp"),
        ("S3_ID", "id"),
        ("S3_KEY", "secret"),
        ("SSE_KEY", "secret of the client"),
        ("STORAGE_CLASS", "STANDARD"),
        ("POOL", "vos:pool"),
        ("CONT", "dfs"),
        ("SWIFT_id", "token"),
    ];
    let devices = [
        "/dev/XXX",
        "/dev/nvme0n1",
        "/dev/sda",
        "/dev/sdb",
        "/dev/sdb1",
        "/dev/sdd",
        "/dev/sdj",
        "/dev/fioa",
    ];
    let device = PathFacts::BlockDevice { size_bytes: 1 << 30 };
    let mut paths: BTreeMap<String, PathFacts> = devices.map(|path| (path.to_owned(), device)).into();
    for path in ["default.0.0", "override.0.0"] {
        paths.insert(path.to_owned(), PathFacts::File { size_bytes: 12 << 30 });
    }
    Machine {
        variables: set.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        paths,
        ..Machine::default()
    }
}

fn examples() -> String {
    let mut names: Vec<String> = fs::read_dir(EXAMPLES)
        .expect("the examples")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".fio"))
        .collect();
    names.sort();
    let (mut runs, mut refused) = (String::new(), String::new());
    let (mut run_count, mut refused_count) = (0, 0);
    for name in &names {
        let mut machine = machine_of_examples();
        let text = fs::read_to_string(format!("{EXAMPLES}/{name}")).expect("an example");
        machine.texts.insert(name.clone(), text);
        match assembled(name, &machine) {
            Ok(all) => {
                run_count += 1;
                let _ = writeln!(runs, "| `{name}` | {} | {} |", all.jobs.len(), all.warnings.len());
            }
            Err(fault) => {
                refused_count += 1;
                let key = fault.key.as_deref().unwrap_or_else(|| panic!("{name}: no option in {fault}"));
                let _ = writeln!(refused, "| `{name}` | `{key}` | {} |", fault.message.replace('|', "\\|"));
            }
        }
    }
    format!(
        "{run_count} of {} run:\n\n| file | jobs | warnings |\n|---|---|---|\n{runs}\n{refused_count} are rejected:\n\n| file | option | why |\n|---|---|---|\n{refused}",
        names.len()
    )
}
