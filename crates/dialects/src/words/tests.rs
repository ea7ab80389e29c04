//! Splitting of command lines.

use super::*;

static FLAGS: &[Flag] = &[
    Flag::honoured("write", "", "writes").short('w'),
    Flag::honoured("read", "", "reads").short('r'),
    Flag::honoured("threads", "N", "threads").short('t'),
    Flag::honoured("rand", "", "random"),
    Flag::honoured("randamount", "SIZE", "how much"),
    Flag::accepted("nodelerr", "", "nothing is deleted"),
    Flag::refused("gpuids", "LIST", "no GPU | here", "leave it out"),
];
static TABLE: Table = Table { tool: "tool", flags: FLAGS, switch_values: true, single_dash: true };

fn split(words: &[&str]) -> Result<Words, String> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    TABLE.split(&words).map_err(|error| error.to_string())
}

#[test]
fn every_form_of_an_option_is_read() {
    for words in
        [&["-t", "4"][..], &["-t4"], &["--threads", "4"], &["--threads=4"], &["--thr", "4"], &["-wrt4"]]
    {
        assert_eq!(split(words).unwrap().value("threads"), Some("4"), "{words:?}");
    }
    let words = split(&["-wr", "a", "--rand", "b", "--", "-c", "--d"]).unwrap();
    assert!(words.has("write") && words.has("read") && words.has("rand"));
    assert_eq!(words.paths, ["a", "b", "-c", "--d"]);
    assert_eq!(split(&["-", "x"]).unwrap().paths, ["-", "x"]);
}

#[test]
fn a_single_dash_before_a_long_name_is_read_as_meant_and_told() {
    let words = split(&["-rand", "-randamount=4k"]).unwrap();
    assert!(words.has("rand"));
    assert_eq!(words.value("randamount"), Some("4k"));
    assert_eq!(words.warnings, ["-rand is taken as --rand", "-randamount is taken as --randamount"]);
}

#[test]
fn switches_can_be_turned_off() {
    let words = split(&["--write=false", "-r=on"]).unwrap();
    assert!(!words.has("write") && words.has("read"));
    assert_eq!(words.turned_off, ["write"]);
    assert_eq!(
        split(&["--write=maybe"]).unwrap_err(),
        "tool: -w/--write is a switch and does not take the value \"maybe\"; give --write without a value"
    );
}

#[test]
fn refusals_name_the_option_and_the_nearest() {
    assert_eq!(split(&["--gpuids", "1"]).unwrap_err(), "tool: --gpuids: no GPU | here; leave it out");
    assert_eq!(
        split(&["--treads", "1"]).unwrap_err(),
        "tool: \"--treads\" is not an option; the closest match is --threads"
    );
    assert_eq!(
        split(&["--xyzzyxyzzy"]).unwrap_err(),
        "tool: \"--xyzzyxyzzy\" is not an option; see `strata as tool --help` for the list of options"
    );
    assert_eq!(split(&["-wq"]).unwrap_err().split(';').next(), Some("tool: \"-q\" is not an option"));
    assert_eq!(split(&["-t"]).unwrap_err(), "tool: -t/--threads requires a value; give N");
    assert_eq!(
        split(&["--ran"]).unwrap_err(),
        "tool: \"--ran\" is ambiguous; use one of --rand, --randamount"
    );
    assert!(split(&["--=x"]).is_err() && split(&["--\n"]).unwrap_err().lines().count() == 1);
}

#[test]
fn the_docs_say_what_becomes_of_each() {
    let page = TABLE.markdown();
    assert!(page.contains("| `-w`, `--write` | supported | writes |\n"), "{page}");
    assert!(page.contains("| `--nodelerr` | ignored | nothing is deleted |\n"), "{page}");
    assert!(page.contains("| `--gpuids LIST` | rejected | no GPU \\| here; leave it out |\n"), "{page}");
    assert!(TABLE.help().contains("-t, --threads N"));
    assert!(!TABLE.help().contains("gpuids"));
}

/// Compares the block of options in a page of the docs with the table; with `UPDATE_DOCS=1` it is written.
pub(crate) fn check_docs(table: &Table, page: &str) {
    const BEGIN: &str = "<!-- options: written by a test from the table -->\n";
    const END: &str = "<!-- end of options -->";
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/dialects").join(page);
    let text = std::fs::read_to_string(&path).expect("the page is there");
    let (head, rest) = text.split_once(BEGIN).expect("the page has a place for the options");
    let (_, tail) = rest.split_once(END).expect("the place for the options ends");
    let wanted = format!("{head}{BEGIN}{}{END}{tail}", table.markdown());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &wanted).expect("the page can be written");
    } else {
        assert!(text == wanted, "{page} is not up to date: run the tests with UPDATE_DOCS=1");
    }
}
