//! CSV rows, one an interval, for a program that watches the run.

use std::io::{self, Write};

use statistics::{Event, HostSnapshot, Snapshot};

use crate::{LiveError, View};

/// Number of columns.
const COLUMNS: usize = 15;
/// Columns of the rows; the last four are those of a host alone.
const HEADER: [&str; COLUMNS] = [
    "phase",
    "elapsed_ns",
    "class",
    "operations_per_second",
    "bytes_per_second",
    "p50_ns",
    "p99_ns",
    "operations",
    "bytes",
    "errors",
    "cpus_used",
    "host",
    "role",
    "workers_active",
    "failure",
];
/// Class of the row that stands for all classes of a mix.
const ALL: &str = "all";

/// Rows on a file or on standard output, flushed after each interval.
pub(crate) struct RowsView {
    csv: csv::Writer<Box<dyn Write>>,
    name: String,
    last: Option<(String, u64)>,
    failure: Option<LiveError>,
    closed: bool,
}

impl RowsView {
    /// Rows on `out`, which errors call `name`. Writes the header.
    ///
    /// # Errors
    /// When the header cannot be written.
    pub(crate) fn new(out: Box<dyn Write>, name: String) -> Result<Self, LiveError> {
        // A file that is not flushed in one write shows a reader half a row.
        let csv = csv::WriterBuilder::new().buffer_capacity(64 * 1024).from_writer(out);
        let mut view = Self { csv, name, last: None, failure: None, closed: false };
        match view.csv.write_record(HEADER).map_err(io::Error::from).and_then(|()| view.flush()) {
            Ok(()) => Ok(view),
            Err(cause) => Err(view.error(&cause)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.csv.flush()
    }

    fn error(&self, cause: &io::Error) -> LiveError {
        LiveError::unwritable(&format!("cannot write live CSV rows to {}", self.name), cause)
    }

    fn write(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        let mixed = snapshot.classes.len() != 1;
        if mixed {
            for index in 0..snapshot.classes.len() {
                self.csv.write_record(class_row(snapshot, index))?;
            }
        }
        let class = if mixed { ALL } else { snapshot.classes[0].as_str() };
        self.csv.write_record(whole_row(snapshot, class))?;
        for host in &snapshot.hosts {
            self.csv.write_record(host_row(snapshot, host))?;
        }
        self.flush()
    }
}

/// Row of one class of a mix: its rates; the rest stays empty.
fn class_row(snapshot: &Snapshot, index: usize) -> [String; COLUMNS] {
    let figure = |values: &[f64]| values.get(index).map_or_else(String::new, |value| rounded(*value));
    let mut row: [String; COLUMNS] = Default::default();
    row[0].clone_from(&snapshot.phase);
    row[1] = snapshot.elapsed_ns.to_string();
    row[2].clone_from(&snapshot.classes[index]);
    row[3] = figure(&snapshot.operations_per_second);
    row[4] = figure(&snapshot.bytes_per_second);
    row
}

/// Everything that all classes did together.
fn whole_row(snapshot: &Snapshot, class: &str) -> [String; COLUMNS] {
    let [host, role, active, failure] = <[String; 4]>::default();
    [
        snapshot.phase.clone(),
        snapshot.elapsed_ns.to_string(),
        class.to_owned(),
        total(&snapshot.operations_per_second),
        total(&snapshot.bytes_per_second),
        latency(snapshot.p50_ns),
        latency(snapshot.p99_ns),
        snapshot.operations.to_string(),
        snapshot.bytes.to_string(),
        snapshot.errors.to_string(),
        rounded(snapshot.cpus_used),
        host,
        role,
        active,
        failure,
    ]
}

/// Row of one of several hosts, all classes together.
fn host_row(snapshot: &Snapshot, host: &HostSnapshot) -> [String; COLUMNS] {
    [
        snapshot.phase.clone(),
        snapshot.elapsed_ns.to_string(),
        ALL.to_owned(),
        rounded(host.operations_per_second),
        rounded(host.bytes_per_second),
        latency(host.p50_ns),
        latency(host.p99_ns),
        host.operations.to_string(),
        host.bytes.to_string(),
        host.errors.to_string(),
        host.cpus_used.map_or_else(String::new, rounded),
        host.label.clone(),
        host.role.to_string(),
        host.workers_active.to_string(),
        host.failure.clone().unwrap_or_default(),
    ]
}

fn latency(ns: Option<u64>) -> String {
    ns.map_or_else(String::new, |ns| ns.to_string())
}

fn total(values: &[f64]) -> String {
    rounded(values.iter().sum())
}

/// To a thousandth, as short as it reads back the same.
fn rounded(value: f64) -> String {
    // An empty sum of floats is -0; adding 0 makes it 0.
    ((value * 1e3).round() / 1e3 + 0.0).to_string()
}

impl View for RowsView {
    fn event(&mut self, event: &Event<'_>) {
        let Event::Running(snapshot) = event else { return };
        let moment = (snapshot.phase.clone(), snapshot.elapsed_ns);
        // The same interval told twice is still one row.
        if self.closed || self.last.as_ref() == Some(&moment) {
            return;
        }
        self.last = Some(moment);
        if let Err(cause) = self.write(snapshot) {
            self.closed = true;
            self.failure = Some(self.error(&cause));
        }
    }

    fn finish(&mut self) {
        self.closed = true;
    }

    fn failure(&self) -> Option<&LiveError> {
        self.failure.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FullDisk, Sink, netbench, randread};

    const HEADER_LINE: &str = "phase,elapsed_ns,class,operations_per_second,bytes_per_second,p50_ns,p99_ns,\
                               operations,bytes,errors,cpus_used,host,role,workers_active,failure\n";

    fn view(sink: &Sink) -> RowsView {
        RowsView::new(Box::new(sink.clone()), "test".to_owned()).unwrap()
    }

    #[test]
    fn a_row_an_interval_flushed_at_once() {
        let sink = Sink::default();
        let mut view = view(&sink);
        assert_eq!(sink.take(), HEADER_LINE);
        view.event(&Event::Preparing("laying out", 0.5));
        view.event(&Event::Running(&randread()));
        view.event(&Event::Running(&randread()));
        assert_eq!(
            sink.take(),
            "randread,12000000000,read,412000,1687552000,77000,210000,4944000,20250624000,0,1.43,,,,\n"
        );
        view.event(&Event::Running(&Snapshot { elapsed_ns: 13_000_000_000, ..randread() }));
        assert!(sink.take().starts_with("randread,13000000000,read,"));
        view.finish();
        view.event(&Event::Running(&Snapshot { elapsed_ns: 14_000_000_000, ..randread() }));
        assert_eq!(sink.take(), "");
    }

    #[test]
    fn a_mix_has_a_row_a_class_and_one_for_all() {
        let sink = Sink::default();
        let mut view = view(&sink);
        view.event(&Event::Running(&Snapshot {
            classes: vec!["read".to_owned(), "write".to_owned()],
            operations_per_second: vec![700.5, 250.0],
            bytes_per_second: vec![3e6, 1e6],
            p50_ns: None,
            ..randread()
        }));
        let rows = sink.take();
        assert_eq!(
            rows.strip_prefix(HEADER_LINE).unwrap(),
            "randread,12000000000,read,700.5,3000000,,,,,,,,,,\n\
             randread,12000000000,write,250,1000000,,,,,,,,,,\n\
             randread,12000000000,all,950.5,4000000,,210000,4944000,20250624000,0,1.43,,,,\n"
        );
    }

    #[test]
    fn every_host_has_a_row() {
        let sink = Sink::default();
        let mut snapshot = netbench();
        snapshot.hosts.drain(1..5);
        snapshot.hosts[1].failure = Some("connection reset, after 3 s".to_owned());
        view(&sink).event(&Event::Running(&snapshot));
        let text = sink.take();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        let hosts: Vec<Vec<&str>> = rows.iter().map(|row| row.iter().skip(10).collect()).collect();
        assert_eq!(
            hosts,
            [
                ["1.2", "", "", "", ""],
                ["0.4", "172.200.5.91:1611", "server", "4", ""],
                ["0.3", "172.200.5.137:1611", "client", "4", "connection reset, after 3 s"],
            ]
        );
        assert_eq!(
            rows[1].iter().take(7).collect::<Vec<_>>()[1..],
            ["10000000000", "all", "11673.6", "12240656793.6", "", ""]
        );
        assert_eq!((&rows[2][5], &rows[2][6]), ("715000", "1210000"));
    }

    #[test]
    fn an_odd_name_reads_back_as_it_was() {
        let sink = Sink::default();
        let name = "a \"b\", c\nd";
        view(&sink).event(&Event::Running(&Snapshot { phase: name.to_owned(), ..randread() }));
        let text = sink.take();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        assert_eq!(reader.headers().unwrap(), &HEADER[..]);
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 1);
        assert_eq!(&rows[0][0], name);
        assert_eq!(rows[0][3].parse(), Ok(412_000.0));
        assert_eq!(rows[0][10].parse(), Ok(1.43));
    }

    #[test]
    fn a_phase_without_classes_is_a_row_of_all() {
        let sink = Sink::default();
        let idle = Snapshot {
            classes: Vec::new(),
            operations_per_second: Vec::new(),
            bytes_per_second: Vec::new(),
            ..randread()
        };
        view(&sink).event(&Event::Running(&idle));
        assert!(
            sink.take()
                .ends_with("\nrandread,12000000000,all,0,0,77000,210000,4944000,20250624000,0,1.43,,,,\n")
        );
    }

    #[test]
    fn figures_are_rounded_to_a_thousandth() {
        assert_eq!(rounded(182_372.715_040_664_48), "182372.715");
        assert_eq!(rounded(0.000_4), "0");
        assert_eq!(rounded(-0.0), "0");
        assert_eq!(rounded(f64::NAN), "NaN");
    }

    #[test]
    fn a_full_disk_is_told_once_and_ends_the_rows() {
        let error = RowsView::new(Box::new(FullDisk), "/full/x.csv".to_owned()).err().unwrap();
        assert_eq!(error.to_string(), "cannot write live CSV rows to /full/x.csv: no storage space");
    }

    #[test]
    fn a_disk_that_fills_up_later_is_a_failure_of_the_view_alone() {
        let mut view = view(&Sink::default());
        view.csv = csv::Writer::from_writer(Box::new(FullDisk));
        assert!(view.failure().is_none());
        view.event(&Event::Running(&randread()));
        assert_eq!(
            view.failure().unwrap().to_string(),
            "cannot write live CSV rows to test: no storage space"
        );
        view.event(&Event::Running(&randread()));
        assert!(view.closed);
    }
}
