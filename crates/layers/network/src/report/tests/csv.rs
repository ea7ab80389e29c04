//! The network in tables for other programs.

use report::sample::{self, DRIVE};
use report::{to_csv, to_csv_by_pair};

fn rows(text: &str) -> Vec<Vec<String>> {
    csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(text.as_bytes())
        .records()
        .map(|row| row.unwrap().iter().map(str::to_owned).collect())
        .collect()
}

fn cell<'a>(rows: &'a [Vec<String>], row: usize, column: &str) -> &'a str {
    &rows[row][rows[0].iter().position(|header| header == column).unwrap()]
}

#[test]
fn the_network_has_columns_of_its_own() {
    registry::register();
    let record = crate::sample::two_endpoints();
    let found = rows(&to_csv(&record));
    let total = found.len() - 1;
    let cells = ["provider", "poll", "endpoints", "masters", "interface", "request_bytes", "reply_bytes"];
    let cells = cells.map(|column| cell(&found, total, column));
    assert_eq!(cells, ["tcp", "adaptive", "2", "0", "eth0", "1048576", "0"]);
    assert_eq!(cell(&found, total, "sent_bytes_per_second"), cell(&found, total, "bytes_per_second"));
    assert_eq!(cell(&found, total, "received_bytes_per_second"), "0");
    assert_eq!((cell(&found, total, "pattern"), cell(&found, total, "targets")), ("", "0:2;1:2"));
    let media = rows(&to_csv(&sample::record(vec![sample::phase(&DRIVE)])));
    assert_eq!((cell(&media, 1, "provider"), cell(&media, 1, "sent_bytes_per_second")), ("", ""));
}

#[test]
fn pairs_have_rows_of_their_own() {
    registry::register();
    let found = rows(&to_csv_by_pair(&crate::sample::failing_endpoint()));
    assert_eq!(found.len(), 3);
    assert_eq!((cell(&found, 2, "master"), cell(&found, 2, "endpoint")), ("", "1:2"));
    assert_eq!((cell(&found, 2, "errors"), cell(&found, 2, "causes")), ("7", "7 Connection refused"));
    assert_eq!((cell(&found, 1, "operations"), cell(&found, 1, "operations_per_second")), ("8000", "2000"));
    assert_eq!(cell(&found, 1, "sent_bytes_per_second"), (2000u64 << 20).to_string());
    let matrix = rows(&to_csv_by_pair(&crate::sample::matrix(4, &[])));
    assert_eq!(matrix.len(), 17);
    assert_eq!((cell(&matrix, 8, "master"), cell(&matrix, 8, "endpoint")), ("1:0", "3:2"));
    let media = rows(&to_csv_by_pair(&sample::record(vec![sample::phase(&DRIVE)])));
    assert_eq!(media.len(), 1, "files have no pairs");
}
