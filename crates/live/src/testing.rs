//! Snapshots, samples and a clock for the tests of the views.

use std::cell::Cell;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use statistics::{
    ClassTotals, HostRole, HostSnapshot, PhaseSamples, Series, Snapshot, WorkerSamples, WorkerSnapshot,
};

use crate::throttle::Clock;

/// 12 s of a random read of 30 s by two workers.
pub(crate) fn randread() -> Snapshot {
    let worker = WorkerSnapshot {
        operations: 2_472_000,
        bytes: 10_125_312_000,
        operations_per_second: 206_000.0,
        bytes_per_second: 843_776_000.0,
        errors: 0,
        running: true,
    };
    Snapshot {
        phase: "randread".to_owned(),
        phase_number: 1,
        phase_count: 1,
        run_left_ns: None,
        elapsed_ns: 12_000_000_000,
        done_fraction: Some(0.4),
        classes: vec!["read".to_owned()],
        operations_per_second: vec![412_000.0],
        bytes_per_second: vec![1_687_552_000.0],
        p50_ns: Some(77_000),
        p99_ns: Some(210_000),
        operations: 4_944_000,
        bytes: 20_250_624_000,
        errors: 0,
        cpus_used: 1.43,
        workers: vec![worker; 2],
        ..Snapshot::default()
    }
}

/// A host at `gib` GiB/s of 1 MiB operations; it has run for 10 s.
pub(crate) fn host(label: &str, role: HostRole, gib: f64) -> HostSnapshot {
    let drives = role != HostRole::Server;
    HostSnapshot {
        label: label.to_owned(),
        role,
        done_fraction: drives.then_some(0.139),
        operations: (gib * 9.3 * 1024.0) as u64,
        bytes: (gib * 9.3 * f64::from(1 << 30)) as u64,
        operations_per_second: gib * 1024.0,
        bytes_per_second: gib * f64::from(1 << 30),
        p50_ns: drives.then_some(715_000),
        p99_ns: drives.then_some(1_210_000),
        workers_active: 4,
        cpus_used: Some(if drives { 0.3 } else { 0.4 }),
        ..HostSnapshot::default()
    }
}

/// Four clients that write 1 MiB blocks to two servers.
pub(crate) fn netbench() -> Snapshot {
    let servers = [("91", 11.4), ("93", 10.4)];
    let clients = [("131", 5.86), ("133", 5.55), ("135", 5.31), ("137", 5.22)];
    let servers = servers.map(|(name, gib)| host(&format!("172.200.5.{name}:1611"), HostRole::Server, gib));
    let clients = clients.map(|(name, gib)| host(&format!("172.200.5.{name}:1611"), HostRole::Client, gib));
    Snapshot {
        phase: "netbench".to_owned(),
        classes: vec!["rpc".to_owned()],
        elapsed_ns: 10_000_000_000,
        done_fraction: Some(0.139),
        operations_per_second: vec![22_366.0],
        bytes_per_second: vec![22_366.0 * f64::from(1 << 20)],
        hosts: servers.into_iter().chain(clients).collect(),
        cpus_used: 1.2,
        ..randread()
    }
}

/// The end of [`randread`]: 30 s, 12.36 million operations, 7 errors.
pub(crate) fn randread_samples() -> PhaseSamples {
    let class = ClassTotals {
        class: "read".to_owned(),
        operations: 6_180_000,
        bytes: 25_313_280_000,
        errors: 0,
        ..ClassTotals::default()
    };
    let sound = WorkerSamples { worker: 0, classes: vec![class.clone()], ..WorkerSamples::default() };
    let failing = ClassTotals { errors: 7, ..class };
    let faulty = WorkerSamples { worker: 1, classes: vec![failing], ..WorkerSamples::default() };
    PhaseSamples {
        classes: vec!["read".to_owned()],
        window_ns: Some(30_000_000_000),
        started_ns: 0,
        elapsed_ns: 30_000_000_000,
        workers: vec![sound, faulty],
        series: Series::new(1_000_000_000, 16, 1),
        interrupted: None,
        process_cpu_user_ns: 0,
        process_cpu_system_ns: 0,
    }
}

/// A clock that stands where the test puts it, in milliseconds.
#[derive(Clone, Default)]
pub(crate) struct HandClock(Rc<Cell<u64>>);

impl HandClock {
    /// Puts the clock to this moment.
    pub(crate) fn set_ms(&self, ms: u64) {
        self.0.set(ms * 1_000_000);
    }

    /// Clock that a view reads.
    pub(crate) fn clock(&self) -> Clock {
        let now_ns = Rc::clone(&self.0);
        Box::new(move || now_ns.get())
    }
}

/// Output that can be read while a view still owns it.
#[derive(Clone, Default)]
pub(crate) struct Sink(Arc<Mutex<Vec<u8>>>);

impl Sink {
    /// Text written since the last call.
    pub(crate) fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut self.0.lock().unwrap())).unwrap()
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Output onto a full disk.
pub(crate) struct FullDisk;

impl Write for FullDisk {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::Error::from(io::ErrorKind::StorageFull))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
