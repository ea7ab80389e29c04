use proptest::prelude::*;
use workload::spec::Operation;

use super::*;
use crate::record::{ArrivalOutcome, Doubt};
use crate::sample::{self, DRIVE, Shape};

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
fn the_header_is_stable() {
    let text = to_csv(&sample::record(vec![]));
    assert_eq!(
        text,
        "name,layer,engine,operation,class,targets,direct,pattern,block_size,block_size_bytes_max,threads,depth,\
         rate_asked_per_second,operations,bytes,errors,elapsed_ns,window_start_ns,window_end_ns,\
         operations_per_second,operations_per_second_low,operations_per_second_high,bytes_per_second,\
         bytes_per_second_low,bytes_per_second_high,latency_ns_min,latency_ns_mean,latency_ns_p50,latency_ns_p90,\
         latency_ns_p95,latency_ns_p99,latency_ns_p99_9,latency_ns_p99_99,latency_ns_max,cpu_ns_per_operation,\
         tool_ns_per_operation,cpus_used,steady,doubts,failure,seed,run_id,started_at,\
         provider,poll,endpoints,masters,connections,interface,request_bytes,reply_bytes,sent_bytes_per_second,\
         received_bytes_per_second,object_class,objects,dkeys,akeys,records,durability,durable_by,\
         latency_lower_bounds,latency_lower_bound_from_percent,door,door_turn,utilisation,\
         samples_per_second,pass,blocking_ns,copy_ns,stall_ns,flush_ns,commits,syncs,epoch_ns\n"
    );
}

#[test]
fn one_row_a_class_and_one_for_all() {
    let mut phase = sample::phase(&Shape { operation: Operation::RandRw, ..DRIVE });
    phase.arrivals = Some(ArrivalOutcome {
        asked_per_second: 4e5,
        started_per_second: 4e5,
        started_operations: 4_000_000,
        unserved_operations: 0,
        ..ArrivalOutcome::default()
    });
    for kind in ["page_cache", "clock"] {
        phase.doubts.push(Doubt { kind: kind.to_owned(), detail: String::new(), remedy: String::new() });
    }
    let total = phase.summary.total.clone();
    let rows = rows(&to_csv(&sample::record(vec![phase])));
    assert_eq!(rows.len(), 4);
    let classes: Vec<_> = (1..4).map(|row| cell(&rows, row, "class")).collect();
    assert_eq!(classes, ["read", "write", "total"]);
    assert_eq!(cell(&rows, 3, "operations"), total.operations.to_string());
    assert_eq!(cell(&rows, 3, "operations_per_second"), total.operations_per_second.to_string());
    // The middle of the bucket that holds 320 us.
    assert_eq!(cell(&rows, 3, "latency_ns_p50"), "320127");
    assert_eq!(cell(&rows, 3, "latency_ns_max"), "1280000");
    assert_eq!(
        (cell(&rows, 3, "cpu_ns_per_operation"), cell(&rows, 1, "cpu_ns_per_operation")),
        ("2400", "")
    );
    assert_eq!(cell(&rows, 1, "rate_asked_per_second"), "400000");
    assert_eq!(cell(&rows, 1, "doubts"), "page_cache;clock");
    assert_eq!(
        (cell(&rows, 1, "depth"), cell(&rows, 1, "steady"), cell(&rows, 1, "seed")),
        ("32", "true", "42")
    );
}

#[test]
fn names_with_commas_quotes_and_newlines_are_quoted() {
    let mut phase = sample::phase(&DRIVE);
    *phase.plan.name_mut() = "a, \"b\"\nc".to_owned();
    let text = to_csv(&sample::record(vec![phase]));
    assert!(text.lines().nth(1).unwrap().starts_with("\"a, \"\"b\"\""), "{text}");
    assert_eq!(cell(&rows(&text), 1, "name"), "a, \"b\"\nc");
}

#[test]
fn figures_that_are_not_known_are_empty() {
    let mut phase = sample::phase(&DRIVE);
    phase.summary.classes.clear();
    phase.summary.total.latency = None;
    phase.summary.total.rate = None;
    let rows = rows(&to_csv(&sample::record(vec![phase])));
    assert_eq!(rows.len(), 2);
    assert_eq!((cell(&rows, 1, "latency_ns_p99"), cell(&rows, 1, "operations_per_second_low")), ("", ""));
}

proptest! {
    #[test]
    fn any_text_reads_back(name in any::<String>(), path in any::<String>(), failure in any::<String>()) {
        let mut phase = sample::phase(&Shape { threads: 1, ..DRIVE });
        phase.plan.name_mut().clone_from(&name);
        sample::change(&mut phase.plan, "/targets/0/path", &path);
        phase.failure = Some(failure.clone());
        let rows = rows(&to_csv(&sample::record(vec![phase])));
        prop_assert_eq!(rows.len(), 3);
        for row in 1..3 {
            prop_assert_eq!(cell(&rows, row, "name"), &name);
            prop_assert_eq!(cell(&rows, row, "targets"), &path);
            prop_assert_eq!(cell(&rows, row, "failure"), &failure);
        }
    }
}
