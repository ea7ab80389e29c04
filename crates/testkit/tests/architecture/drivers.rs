//! A driver is one file and one line in its layer's table.

use crate::repository::Text;

/// Complaints about a directory of drivers: every file must be declared and registered in `mod.rs`.
pub(crate) fn complaints(directory: &str, files: &[Text]) -> Vec<String> {
    let Some((_, table)) = files.iter().find(|(name, _)| name == "mod.rs") else {
        return vec![format!("{directory}: there is no mod.rs")];
    };
    let names = files.iter().filter_map(|(name, _)| name.strip_suffix(".rs"));
    let drivers = names.filter(|name| !["mod", "tests"].contains(name));
    drivers
        .filter(|name| !table.contains(&format!(" {name}::REGISTRATION,")))
        .map(|name| format!("{directory}{name}.rs: mod.rs has no line {name}::REGISTRATION"))
        .collect()
}

#[test]
fn a_driver_that_nobody_lists_is_found() {
    let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let files = [
        file(
            "mod.rs",
            "pub static DRIVERS: &[R] = &[\n    null::REGISTRATION,\n    other_psync::REGISTRATION,\n];\n",
        ),
        file("null.rs", ""),
        file("psync.rs", ""),
        file("tests.rs", ""),
    ];
    assert_eq!(complaints("d/", &files), ["d/psync.rs: mod.rs has no line psync::REGISTRATION"]);
}
