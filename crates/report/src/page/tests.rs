use super::*;

fn table() -> Table {
    let mut table = Table::new(&["class", "rate", "p99"]);
    table.row(vec!["read".into(), Cell::styled("412k/s", Style::Strong), "38.1 us".into()]);
    table.heading("all");
    table.row(vec!["write".into(), "9/s".into(), "".into()]);
    table
}

fn page(width: usize, colour: bool) -> String {
    let mut page = Page::new(width, colour);
    page.table(&table());
    page.finish()
}

#[test]
fn columns_line_up_and_lines_end_in_no_space() {
    assert_eq!(page(80, false), "class    rate      p99\nread   412k/s  38.1 us\nall\nwrite     9/s\n");
}

#[test]
fn what_does_not_fit_goes_below_with_the_first_column_again() {
    let widths = [5, 6, 7];
    assert_eq!(Table::blocks(&widths, 2, 22), [vec![0, 1, 2]]);
    assert_eq!(Table::blocks(&widths, 1, 19), [vec![0, 1], vec![0, 2]]);
    assert_eq!(Table::blocks(&widths, 1, 3), [vec![0, 1], vec![0, 2]]);
}

#[test]
fn colour_changes_nothing_but_the_colour() {
    let coloured = page(80, true);
    assert!(coloured.contains("\x1b[1m412k/s\x1b[0m"));
    let mut plain = coloured;
    for style in [Style::Strong, Style::Faint, Style::Doubt, Style::Failure] {
        plain = plain.replace(&format!("\x1b[{}m", style.code()), "");
    }
    assert_eq!(plain.replace("\x1b[0m", ""), page(80, false));
}

#[test]
fn fields_hang_under_their_text() {
    let mut page = Page::new(40, false);
    page.field("doubt", "the window is far shorter than it should be, by any measure", Style::Doubt);
    assert_eq!(
        page.finish(),
        "doubt     the window is far shorter than\n          it should be, by any measure\n"
    );
}

#[test]
fn figures_of_the_first_column_line_up_too() {
    let mut table = Table::of_figures(&["depth", "rate", ""]);
    table.row(vec!["8".into(), "9/s".into(), "".into()]);
    table.row(vec!["16".into(), "10/s".into(), "knee".into()]);
    let mut page = Page::new(80, false);
    page.table(&table);
    assert_eq!(page.finish(), "depth  rate\n    8   9/s\n   16  10/s  knee\n");
}

#[test]
fn numbers_keep_their_units() {
    assert_eq!(wrap("within 4.00 s, or 10 GiB more", 11), ["within", "4.00 s, or", "10 GiB more"]);
    assert_eq!(wrap("file 1 s later", 6), ["file", "1 s", "later"]);
}

#[test]
fn long_words_stay_whole() {
    assert_eq!(wrap("on /a/path/too/long here", 10), ["on", "/a/path/too/long", "here"]);
    assert_eq!(wrap("", 10), Vec::<String>::new());
}
