//! `exec`: an operation runs another program; strata moves nothing.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::program::Program;
use driver::{Capabilities, Completions, Driver, Error, Opened, Registration, Submitted};
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

use crate::descriptor::{self, INVALID, UNSUPPORTED};
use crate::{MediaClass, MediaOperation, OpenRequest};

const NAME: &str = "exec";
/// How often it is seen after whether the program has ended.
const LOOK: Duration = Duration::from_millis(5);
/// Time between the demand to end and the end by force, where nothing is said.
const GRACE: Duration = Duration::from_secs(1);

const CAPABILITIES: Capabilities = Capabilities {
    classes: &["nop"],
    asynchronous: false,
    depth_max: 1,
    targetless: true,
    direct: false,
    options: &["program", "program-arguments", "program-output", "program-time", "program-grace"],
};

/// The table line.
pub(super) const REGISTRATION: Registration<MediaOperation, OpenRequest> = Registration {
    name: NAME,
    summary: "runs another program; moves no data itself",
    capabilities: CAPABILITIES,
    open,
};

fn open(request: &OpenRequest) -> Result<Opened<MediaOperation>, Error> {
    descriptor::check(request, NAME, &CAPABILITIES)?;
    let program = request.options.program.clone().unwrap_or_default();
    Ok(Opened { driver: Box::new(Exec { program, findings: Vec::new() }), notes: Vec::new() })
}

struct Exec {
    program: Program,
    findings: Vec<String>,
}

impl Exec {
    fn start(&self) -> io::Result<Child> {
        let mut command = Command::new(&self.program.path);
        command.args(self.program.arguments.split_whitespace()).stdin(Stdio::null());
        if let Some(prefix) = &self.program.output {
            command.stdout(File::create(format!("{prefix}.stdout"))?);
            command.stderr(File::create(format!("{prefix}.stderr"))?);
        }
        // SAFETY: one system call between fork and exec, which allocates nothing and takes no lock.
        unsafe {
            // Strata may be killed; the program must not outlive it.
            command.pre_exec(|| set_parent_process_death_signal(Some(Signal::TERM)).map_err(io::Error::from));
        }
        command.spawn()
    }

    /// Runs the program to its end, or to that of its time: then it is told to end, and killed.
    fn run(&self) -> io::Result<Option<String>> {
        let mut child = self.start()?;
        let (begun, grace) = (Instant::now(), self.program.grace_ns.map_or(GRACE, Duration::from_nanos));
        let time = self.program.time_ns.map(Duration::from_nanos);
        let (mut was_told, mut was_killed) = (false, false);
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            let elapsed = begun.elapsed();
            if time.is_some_and(|time| !was_told && elapsed >= time) {
                was_told = true;
                if let Some(pid) = Pid::from_raw(child.id() as i32) {
                    // It may have ended this moment.
                    let _ = kill_process(pid, Signal::TERM);
                }
            }
            if time.is_some_and(|time| !was_killed && elapsed >= time + grace) {
                was_killed = true;
                child.kill()?;
            }
            sleep(LOOK);
        };
        let ended_by_us = was_told && status.signal().is_some();
        Ok((!status.success() && !ended_by_us).then(|| format!("{}: {status}", self.program.path)))
    }
}

impl Driver<MediaOperation> for Exec {
    fn submit(&mut self, batch: &[MediaOperation], done: &mut Completions) -> Result<Submitted, Error> {
        let Some(operation) = batch.first() else { return Ok(Submitted { accepted: 0 }) };
        if operation.class != MediaClass::Nop {
            done.push(operation.slot, UNSUPPORTED);
            return Ok(Submitted { accepted: 1 });
        }
        let result = match self.run() {
            Ok(None) => i64::from(operation.length),
            Ok(Some(finding)) => {
                self.findings.push(finding);
                -i64::from(libc::EIO)
            }
            Err(error) => {
                self.findings.push(format!("cannot run {}: {error}", self.program.path));
                error.raw_os_error().map_or(INVALID, |number| -i64::from(number))
            }
        };
        done.push(operation.slot, result);
        Ok(Submitted { accepted: 1 })
    }

    fn findings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.findings)
    }
}
