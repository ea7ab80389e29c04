//! Observations of several hosts as one.

use super::Observations;

impl Observations {
    /// Joins what the hosts of a phase observed. Counters of processes add up. So do those of machines and devices, unless all hosts
    /// are processes of one machine and saw the same: then those of the first stand, and what the other hosts' processes used (`cpus_used`, in processors)
    /// is taken from what others kept busy. Of different machines the one stands that others kept busiest.
    #[must_use]
    pub fn of_hosts(hosts: Vec<Self>, cpus_used: &[f64], is_one_machine: bool) -> Self {
        let mut hosts = hosts.into_iter();
        let Some(mut all) = hosts.next() else { return Self::default() };
        for host in hosts {
            all.context_switches += host.context_switches;
            all.major_faults += host.major_faults;
            all.minor_faults += host.minor_faults;
            add(&mut all.kernel_worker_cpu_ns, host.kernel_worker_cpu_ns);
            add(&mut all.process_fetched_bytes, host.process_fetched_bytes);
            match (&mut all.files, host.files) {
                (Some(files), Some(more)) => files.add(&more),
                (files @ None, more) => *files = more,
                (Some(_), None) => {}
            }
            if !is_one_machine {
                for (known, more) in [
                    (&mut all.machine_cpus_busy, host.machine_cpus_busy),
                    (&mut all.other_cpus_busy, host.other_cpus_busy),
                    (&mut all.other_cpus_user, host.other_cpus_user),
                    (&mut all.stolen_cpus, host.stolen_cpus),
                    (&mut all.cached_before_fraction, host.cached_before_fraction),
                    (&mut all.unwritten_fraction, host.unwritten_fraction),
                ] {
                    *known = known.zip(more).map(|(known, more)| known.max(more));
                }
                add(&mut all.device_read_bytes, host.device_read_bytes);
                add(&mut all.device_written_bytes, host.device_written_bytes);
                add(&mut all.tcp_retransmitted_segments, host.tcp_retransmitted_segments);
                add(&mut all.tcp_sent_segments, host.tcp_sent_segments);
                all.devices.extend(host.devices);
                all.bottom_devices.extend(host.bottom_devices);
                all.links.extend(host.links);
                all.io_limits.extend(host.io_limits);
            }
        }
        if is_one_machine {
            let beside: f64 = cpus_used.iter().skip(1).sum();
            for busy in [&mut all.other_cpus_busy, &mut all.other_cpus_user] {
                *busy = busy.map(|busy| (busy - beside).max(0.0));
            }
        }
        all
    }
}

/// Adds a counter that each host must have told.
fn add(all: &mut Option<u64>, more: Option<u64>) {
    *all = all.zip(more).map(|(all, more)| all.saturating_add(more));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(switches: u64, busy: f64, read_bytes: Option<u64>) -> Observations {
        Observations {
            context_switches: switches,
            other_cpus_busy: Some(busy),
            device_read_bytes: read_bytes,
            ..Observations::default()
        }
    }

    #[test]
    fn machines_add_up_and_processes_of_one_machine_see_the_same() {
        let apart = Observations::of_hosts(vec![seen(1, 0.5, Some(7)), seen(2, 1.5, Some(8))], &[], false);
        assert_eq!(apart, seen(3, 1.5, Some(15)));
        let together = vec![seen(1, 1.25, Some(7)), seen(2, 1.5, None)];
        assert_eq!(Observations::of_hosts(together, &[0.5, 1.0], true), seen(3, 0.25, Some(7)));
        let untold = vec![seen(1, 0.5, Some(7)), seen(2, 0.25, None)];
        assert_eq!(Observations::of_hosts(untold, &[], false).device_read_bytes, None);
    }
}
