use statistics::{
    ClassPoint, ClassTotals, Histogram, PhaseSamples, Series, SparseHistogram, WorkerSamples, merge,
};

fn latencies(latency_ns: u64, count: u64) -> SparseHistogram {
    let mut histogram = Histogram::new();
    histogram.record_n(latency_ns, count);
    SparseHistogram::from(&histogram)
}

/// A phase of one class and one worker: so many operations in each interval.
fn phase(class: &str, started_ns: u64, interval_ns: u64, done: &[u64], latency_ns: u64) -> PhaseSamples {
    let mut series = Series::new(interval_ns, 64, 1);
    for (at, &operations) in done.iter().enumerate() {
        let latency = latencies(latency_ns, operations);
        let point =
            ClassPoint { operations, bytes: operations * 512, errors: 0, latency, ..ClassPoint::default() };
        series.add(at as u64 * interval_ns, 0, &point);
    }
    let (operations, elapsed_ns) = (done.iter().sum(), done.len() as u64 * interval_ns);
    series.finish(elapsed_ns);
    let totals = ClassTotals {
        class: class.to_owned(),
        operations,
        bytes: operations * 512,
        errors: 2,
        latency: latencies(latency_ns, operations),
        ..ClassTotals::default()
    };
    let worker = WorkerSamples { finished_ns: elapsed_ns, classes: vec![totals], ..WorkerSamples::default() };
    PhaseSamples {
        classes: vec![class.to_owned()],
        window_ns: Some(elapsed_ns),
        started_ns,
        elapsed_ns,
        workers: vec![worker],
        series,
        interrupted: None,
        process_cpu_user_ns: 30,
        process_cpu_system_ns: 4,
    }
}

fn operations(samples: &PhaseSamples, class: usize) -> Vec<u64> {
    samples.series.points.iter().map(|point| point.classes[class].operations).collect()
}

#[test]
fn nothing_merges_into_nothing_and_one_into_itself() {
    assert_eq!(merge(&[]), None);
    let only = phase("read", 5, 100, &[1, 2, 3], 10);
    assert_eq!(merge(&[&only]), Some(only));
}

#[test]
fn classes_are_united_by_name_and_workers_follow_each_other() {
    let reads = phase("read", 0, 100, &[1, 2], 10);
    let writes = phase("write", 0, 100, &[4, 8], 20);
    let merged = merge(&[&reads, &writes, &reads]).unwrap();
    assert_eq!(merged.classes, ["read", "write"]);
    let numbers: Vec<_> = merged.workers.iter().map(|worker| worker.worker).collect();
    assert_eq!(numbers, [0, 1, 2]);
    for worker in &merged.workers {
        let names: Vec<_> = worker.classes.iter().map(|totals| totals.class.as_str()).collect();
        assert_eq!(names, ["read", "write"]);
    }
    let done: Vec<_> = merged.workers.iter().map(|worker| worker.operations()).collect();
    assert_eq!(done, [3, 12, 3]);
    assert_eq!((merged.workers[1].classes[0].operations, merged.workers[1].classes[1].errors), (0, 2));
    assert_eq!((operations(&merged, 0), operations(&merged, 1)), (vec![2, 4], vec![4, 8]));
    assert_eq!((merged.process_cpu_user_ns, merged.process_cpu_system_ns), (90, 12));
}

#[test]
fn series_are_added_on_the_coarser_grid() {
    let fine = phase("read", 0, 100, &[1, 2, 3, 4, 5], 10);
    let coarse = phase("read", 0, 200, &[10, 20], 30);
    let merged = merge(&[&fine, &coarse]).unwrap();
    assert_eq!(merged.series.interval_ns, 200);
    assert_eq!(operations(&merged, 0), [13, 27, 5]);
    let spans: Vec<_> = merged.series.points.iter().map(|point| (point.start_ns, point.end_ns)).collect();
    assert_eq!(spans, [(0, 200), (200, 400), (400, 500)]);
    let first = &merged.series.points[0].classes[0].latency;
    assert_eq!((first.count(), first.min_ns(), first.max_ns()), (13, Some(10), Some(30)));
    assert_eq!((merged.elapsed_ns, merged.window_ns), (500, Some(500)));
}

#[test]
fn a_phase_that_began_later_is_moved_by_whole_intervals() {
    let first = phase("read", 1000, 100, &[1, 1, 1], 10);
    let late = phase("read", 1160, 100, &[5, 5], 10);
    let merged = merge(&[&late, &first]).unwrap();
    assert_eq!(merged.started_ns, 1000);
    assert_eq!(operations(&merged, 0), [1, 1, 6, 5]);
    assert_eq!(merged.elapsed_ns, 300, "the longest of them");
}

#[test]
fn a_window_without_end_and_an_interruption_are_kept() {
    let timed = phase("read", 0, 100, &[1], 10);
    let mut counted = phase("read", 0, 100, &[1], 10);
    counted.window_ns = None;
    counted.interrupted = Some("interrupted by the user".to_owned());
    let merged = merge(&[&timed, &counted]).unwrap();
    assert_eq!(merged.window_ns, None);
    assert_eq!(merged.interrupted.as_deref(), Some("interrupted by the user"));
}
