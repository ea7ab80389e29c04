//! Processor time and context switches: of the machine, of this process, of a thread.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::source;

/// Processor time of the whole machine since it started, over all cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CpuTimes {
    /// In user mode, in nanoseconds.
    pub user_ns: u64,
    /// In the kernel, interrupts left aside, in nanoseconds.
    pub system_ns: u64,
    /// Serving hard and soft interrupts, in nanoseconds.
    pub interrupt_ns: u64,
    /// Idle, in nanoseconds.
    pub idle_ns: u64,
    /// Idle while some task waited for storage, in nanoseconds.
    pub iowait_ns: u64,
    /// Taken by the hypervisor for others, in nanoseconds.
    pub steal_ns: u64,
}

impl CpuTimes {
    /// Reads `/proc/stat`. Its grain is a clock tick: 10 ms on most machines.
    #[must_use]
    pub fn read() -> Option<Self> {
        parse_stat(&source::text("/proc/stat")?, rustix::param::clock_ticks_per_second())
    }

    /// Times since `earlier`. The kernel lets idle and iowait run backwards a little: such steps count as 0.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
            interrupt_ns: self.interrupt_ns.saturating_sub(earlier.interrupt_ns),
            idle_ns: self.idle_ns.saturating_sub(earlier.idle_ns),
            iowait_ns: self.iowait_ns.saturating_sub(earlier.iowait_ns),
            steal_ns: self.steal_ns.saturating_sub(earlier.steal_ns),
        }
    }

    /// Time in which a core did something, in nanoseconds.
    #[must_use]
    pub fn busy_ns(&self) -> u64 {
        self.user_ns.saturating_add(self.system_ns).saturating_add(self.interrupt_ns)
    }

    /// All time, in nanoseconds: about cores times the clock's.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        let idle_ns = self.idle_ns.saturating_add(self.iowait_ns);
        self.busy_ns().saturating_add(idle_ns).saturating_add(self.steal_ns)
    }
}

/// Parses the first line of `/proc/stat` (proc_stat(5)); guest time is part of user time there.
#[must_use]
pub fn parse_stat(text: &str, ticks_per_second: u64) -> Option<CpuTimes> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let mut ticks = [0u64; 8];
    let mut words = line.split_whitespace();
    for (index, slot) in ticks.iter_mut().enumerate() {
        match words.next() {
            Some(word) => *slot = word.parse().ok()?,
            None if index >= 4 => break,
            None => return None,
        }
    }
    let tick_ns = 1_000_000_000u64.checked_div(ticks_per_second)?;
    let [user, nice, system, idle, iowait, irq, softirq, steal] =
        ticks.map(|count| count.saturating_mul(tick_ns));
    Some(CpuTimes {
        user_ns: user.saturating_add(nice),
        system_ns: system,
        interrupt_ns: irq.saturating_add(softirq),
        idle_ns: idle,
        iowait_ns: iowait,
        steal_ns: steal,
    })
}

/// Processor time that the children of this process have used so far, in nanoseconds; none where the kernel does not list them.
#[must_use]
pub fn children_cpu_ns() -> Option<u64> {
    let tick_ns = 1_000_000_000u64.checked_div(rustix::param::clock_ticks_per_second())?;
    let mut total = 0u64;
    for task in std::fs::read_dir("/proc/self/task").ok()? {
        let children = std::fs::read_to_string(task.ok()?.path().join("children")).ok()?;
        for child in children.split_whitespace() {
            // One that has ended meanwhile uses nothing any more.
            let Ok(text) = std::fs::read_to_string(format!("/proc/{child}/stat")) else { continue };
            total += parse_process_ticks(&text)?.saturating_mul(tick_ns);
        }
    }
    Some(total)
}

/// Ticks in user mode and in the kernel, from `/proc/PID/stat` (proc_pid_stat(5)). The name of the program may hold anything.
fn parse_process_ticks(text: &str) -> Option<u64> {
    let (_, rest) = text.rsplit_once(')')?;
    let mut words = rest.split_whitespace().skip(11);
    let user: u64 = words.next()?.parse().ok()?;
    let system: u64 = words.next()?.parse().ok()?;
    user.checked_add(system)
}

/// Processor time, context switches and page faults of a process or a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// In user mode, in nanoseconds.
    pub user_ns: u64,
    /// In the kernel, in nanoseconds.
    pub system_ns: u64,
    /// Times it gave the core away to wait.
    pub voluntary_switches: u64,
    /// Times the core was taken from it.
    pub involuntary_switches: u64,
    /// Page faults served without the disk.
    pub minor_faults: u64,
    /// Page faults that read the disk.
    pub major_faults: u64,
}

impl Usage {
    /// Of this process, all threads together, the ended ones too.
    #[must_use]
    pub fn of_process() -> Self {
        Self::read(libc::RUSAGE_SELF)
    }

    /// Of the calling thread.
    #[must_use]
    pub fn of_thread() -> Self {
        Self::read(libc::RUSAGE_THREAD)
    }

    fn read(who: libc::c_int) -> Self {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: getrusage writes one rusage to the pointer; it cannot fail for the two constants passed,
        // and zeroed memory is a valid rusage in any case.
        let usage = unsafe {
            libc::getrusage(who, usage.as_mut_ptr());
            usage.assume_init()
        };
        Self {
            user_ns: nanoseconds(usage.ru_utime),
            system_ns: nanoseconds(usage.ru_stime),
            voluntary_switches: usage.ru_nvcsw as u64,
            involuntary_switches: usage.ru_nivcsw as u64,
            minor_faults: usage.ru_minflt as u64,
            major_faults: usage.ru_majflt as u64,
        }
    }

    /// Usage since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self.involuntary_switches.saturating_sub(earlier.involuntary_switches),
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
        }
    }

    /// User and kernel time together, in nanoseconds.
    #[must_use]
    pub fn cpu_ns(&self) -> u64 {
        self.user_ns.saturating_add(self.system_ns)
    }
}

fn nanoseconds(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000
}

/// Bytes that this process made the kernel fetch from block devices (or a server of NFS) so far, reading ahead included; `None`
/// where the kernel does not count them.
#[must_use]
pub fn fetched_bytes() -> Option<u64> {
    parse_fetched(&source::text("/proc/self/io")?)
}

fn parse_fetched(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("read_bytes:"))?.trim().parse().ok()
}

/// Load averages over 1, 5 and 15 minutes.
#[must_use]
pub fn load_averages() -> Option<[f64; 3]> {
    parse_loadavg(&source::text("/proc/loadavg")?)
}

fn parse_loadavg(text: &str) -> Option<[f64; 3]> {
    let mut words = text.split_whitespace();
    let mut next = || words.next()?.parse().ok().filter(|load: &f64| load.is_finite());
    Some([next()?, next()?, next()?])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn process_stat_known_answers() {
        let text = "4711 (a) b) S 1 2 3 4 5 6 7 8 9 10 25 17 0 0 20 0 1";
        assert_eq!(parse_process_ticks(text), Some(42));
        assert_eq!(parse_process_ticks("4711 (a) S 1 2"), None);
        assert_eq!(parse_process_ticks(""), None);
    }

    #[test]
    fn stat_known_answers() {
        let text = "cpu  10 1 20 300 4 5 6 7 8 9\ncpu0 1 1 1 1\n";
        let times = parse_stat(text, 100).unwrap();
        let tick_ns = 10_000_000;
        assert_eq!((times.user_ns, times.system_ns), (11 * tick_ns, 20 * tick_ns));
        assert_eq!((times.interrupt_ns, times.idle_ns), (11 * tick_ns, 300 * tick_ns));
        assert_eq!((times.iowait_ns, times.steal_ns), (4 * tick_ns, 7 * tick_ns));
        assert_eq!((times.busy_ns(), times.total_ns()), (42 * tick_ns, 353 * tick_ns));
        assert_eq!(times.since(&times), CpuTimes::default());
        assert_eq!(parse_stat("cpu  1 2 3 4\n", 100).unwrap().iowait_ns, 0);
        assert_eq!(parse_stat("cpu  1 2 3\n", 100), None);
        assert_eq!(parse_stat("cpu  1 2 3 x\n", 100), None);
        assert_eq!(parse_stat(text, 0), None);
    }

    #[test]
    fn loadavg_known_answers() {
        assert_eq!(parse_loadavg("0.13 0.07 0.02 1/80 900"), Some([0.13, 0.07, 0.02]));
        assert_eq!(parse_loadavg("0.13 NaN 0.02"), None);
        assert_eq!(parse_loadavg("0.13"), None);
    }

    #[test]
    fn fetched_known_answers() {
        assert_eq!(parse_fetched("rchar: 1\nread_bytes: 4096\nwrite_bytes: 7\n"), Some(4096));
        assert_eq!(parse_fetched("rchar: 1\n"), None);
    }

    #[test]
    fn work_shows_in_thread_and_process() {
        let (thread, process) = (Usage::of_thread(), Usage::of_process());
        while Usage::of_thread().since(&thread).cpu_ns() < 5_000_000 {
            std::hint::black_box((0..1000).sum::<u64>());
        }
        let (thread, process) = (Usage::of_thread().since(&thread), Usage::of_process().since(&process));
        assert!(thread.cpu_ns() >= 5_000_000 && process.cpu_ns() > 0);
        assert!(CpuTimes::read().unwrap().total_ns() > 0);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "\\PC{0,100}", line in "cpu  ([0-9]{0,21} ){0,12}", ticks in 0u64..3) {
            let _ = parse_stat(&text, 100);
            let _ = parse_loadavg(&text);
            if let Some(times) = parse_stat(&line, ticks) {
                let _ = times.total_ns();
            }
        }
    }
}
