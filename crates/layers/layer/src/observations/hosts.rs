//! Observations of several hosts as one.

use super::{CheckpointActivity, CheckpointBlocking, CommitActivity, Observations, Profile, Utilisation};

impl Observations {
    /// Joins what the hosts of a phase observed. Counters of processes add up. So do those of machines and devices, unless all hosts
    /// are processes of one machine and saw the same: then those of the first stand, and what the other hosts' processes used (`cpus_used`, in processors)
    /// is taken from what others kept busy. Of different machines the one stands that others kept busiest.
    #[must_use]
    pub fn of_hosts(hosts: Vec<Self>, cpus_used: &[f64], is_one_machine: bool) -> Self {
        let mut hosts = hosts.into_iter();
        let Some(mut all) = hosts.next() else { return Self::default() };
        for host in hosts {
            // Each has a time of its own, and on one machine each counts the other hosts among others.
            all.timeline.clear();
            all.context_switches += host.context_switches;
            all.major_faults += host.major_faults;
            all.minor_faults += host.minor_faults;
            add(&mut all.kernel_worker_cpu_ns, host.kernel_worker_cpu_ns);
            add(&mut all.process_fetched_bytes, host.process_fetched_bytes);
            join(&mut all.files, host.files, |files, more| files.add(&more));
            join(&mut all.free_fraction, host.free_fraction, |fullest, more| *fullest = fullest.min(more));
            // Each has a quota of its own: the one that held its host back most is told.
            join(&mut all.cpu_throttling, host.cpu_throttling, |most, more| {
                if more.throttled_ns > most.throttled_ns {
                    *most = more;
                }
            });
            join(&mut all.profile, host.profile, Profile::add);
            join(&mut all.utilisation, host.utilisation, Utilisation::add);
            join(&mut all.checkpoint, host.checkpoint, CheckpointActivity::add);
            join(&mut all.commits, host.commits, CommitActivity::add);
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

/// Adds what a host told to what the others did; some may have nothing to tell.
fn join<T>(all: &mut Option<T>, more: Option<T>, add: fn(&mut T, T)) {
    match (&mut *all, more) {
        (Some(all), Some(more)) => add(all, more),
        (None, more) => *all = more,
        (Some(_), None) => {}
    }
}

impl Profile {
    /// Adds the workers of another host: groups and parts of the same name are the same.
    fn add(&mut self, more: Self) {
        for group in more.groups {
            let Some(known) = self.groups.iter_mut().find(|known| known.name == group.name) else {
                self.groups.push(group);
                continue;
            };
            known.processes += group.processes;
            known.wall_ns += group.wall_ns;
            known.is_shared |= group.is_shared;
            for part in group.parts {
                match known.parts.iter_mut().find(|known| known.name == part.name) {
                    Some(known) => {
                        known.calls += part.calls;
                        known.time_ns += part.time_ns;
                    }
                    None => known.parts.push(part),
                }
            }
        }
    }
}

impl Utilisation {
    /// Adds the accelerators of another host. Steps of all hosts are in step, so the interval of all is the mean of theirs: more accelerators do not
    /// make it narrower.
    fn add(&mut self, more: Self) {
        let (own, others) = (f64::from(self.accelerators), f64::from(more.accelerators));
        let mean = |one: f64, other: f64| (one * own + other * others) / (own + others).max(1.0);
        self.fraction = mean(self.fraction, more.fraction);
        self.waiting_fraction = mean(self.waiting_fraction, more.waiting_fraction);
        self.low_fraction = self.low_fraction.zip(more.low_fraction).map(|(one, other)| mean(one, other));
        self.high_fraction = self.high_fraction.zip(more.high_fraction).map(|(one, other)| mean(one, other));
        self.fraction_min = self.fraction_min.min(more.fraction_min);
        self.is_met = self.fraction >= self.limit_fraction;
        self.accelerators += more.accelerators;
        self.steps = self.steps.min(more.steps);
        self.compute_ns += more.compute_ns;
        self.time_ns += more.time_ns;
        let rate = self.samples_per_second + more.samples_per_second;
        // An epoch has as many samples as before.
        let sooner = self.samples_per_second / rate.max(f64::MIN_POSITIVE);
        self.epoch_ns = self.epoch_ns.map(|ns| (ns as f64 * sooner) as u64);
        self.samples_per_second = rate;
        self.bytes_per_second += more.bytes_per_second;
    }
}

impl CheckpointActivity {
    /// Adds the files of another host. Ranks are those of all hosts already, and the slowest host ends the checkpoint.
    fn add(&mut self, more: Self) {
        self.files += more.files;
        self.bytes += more.bytes;
        self.time_ns = self.time_ns.max(more.time_ns);
        self.bytes_per_second = self.bytes as f64 * 1e9 / self.time_ns.max(1) as f64;
        self.share_fraction = match (self.share_fraction, more.share_fraction) {
            (Some(one), Some(other)) => Some(one.max(other)),
            (one, other) => one.or(other),
        };
        join(&mut self.blocking, more.blocking, CheckpointBlocking::add);
    }
}

impl CommitActivity {
    /// Adds the logs of another host. A checkpoint is whole when it is so on all hosts with a part in it.
    fn add(&mut self, more: Self) {
        self.logs += more.logs;
        self.commits += more.commits;
        self.syncs += more.syncs;
        self.objects += more.objects;
        self.commits_per_sync = Self::mean(self.commits, self.syncs);
        self.commits_per_object = Self::mean(self.commits, self.objects);
        self.commits_per_sync_max = self.commits_per_sync_max.max(more.commits_per_sync_max);
        join(&mut self.checkpoints, more.checkpoints, |fewest, more| *fewest = more.min(*fewest));
        self.recovered_records += more.recovered_records;
    }
}

impl CheckpointBlocking {
    /// Adds the ranks of another host: means of all, and a checkpoint is complete when it is so on all hosts.
    fn add(&mut self, more: Self) {
        let (own, others) = (u128::from(self.rank_checkpoints), u128::from(more.rank_checkpoints));
        let all = (own + others).max(1);
        let mean = |one: u64, other: u64| ((u128::from(one) * own + u128::from(other) * others) / all) as u64;
        self.blocking_ns = mean(self.blocking_ns, more.blocking_ns);
        self.copy_ns = mean(self.copy_ns, more.copy_ns);
        self.stall_ns = mean(self.stall_ns, more.stall_ns);
        self.compute_ns = mean(self.compute_ns, more.compute_ns);
        self.flush_ns = self.flush_ns.zip(more.flush_ns).map(|(one, other)| mean(one, other));
        let overlaps = self.overlap_fraction.zip(more.overlap_fraction);
        self.overlap_fraction =
            overlaps.map(|(one, other)| (one * own as f64 + other * others as f64) / all as f64);
        self.blocking_most_ns = self.blocking_most_ns.max(more.blocking_most_ns);
        self.checkpoints = self.checkpoints.min(more.checkpoints);
        self.rank_checkpoints += more.rank_checkpoints;
    }
}

/// Adds a counter that each host must have told.
fn add(all: &mut Option<u64>, more: Option<u64>) {
    *all = all.zip(more).map(|(all, more)| all.saturating_add(more));
}

#[cfg(test)]
mod tests {
    use host::control_group::CpuThrottling;

    use super::super::{GroupProfile, ProfilePart};
    use super::*;

    #[test]
    fn processes_of_all_hosts_are_in_the_profile() {
        let part = |name: &str, calls, time_ns| ProfilePart { name: name.to_owned(), calls, time_ns };
        let group = |name: &str, processes, wall_ns, parts| GroupProfile {
            name: name.to_owned(),
            processes,
            wall_ns,
            is_shared: processes == 2 || processes == 3,
            parts,
        };
        let seen = |groups| Observations { profile: Some(Profile { groups }), ..Observations::default() };
        let first = seen(vec![group("w", 2, 20, vec![part("write", 3, 15), part("wait", 1, 5)])]);
        let second = seen(vec![
            group("w", 1, 10, vec![part("write", 2, 10)]),
            group("r", 1, 7, vec![part("read", 1, 7)]),
        ]);
        let all = Observations::of_hosts(vec![first, second, Observations::default()], &[], true);
        let expected = vec![
            group("w", 3, 30, vec![part("write", 5, 25), part("wait", 1, 5)]),
            group("r", 1, 7, vec![part("read", 1, 7)]),
        ];
        assert_eq!(all.profile.unwrap().groups, expected);
    }

    #[test]
    fn the_host_that_its_quota_held_back_most_and_the_fullest_file_system_are_told() {
        let throttled = |throttled_ns| CpuThrottling { periods: 9, throttled_periods: 3, throttled_ns };
        let seen = |throttling: Option<u64>, free_fraction| Observations {
            cpu_throttling: throttling.map(throttled),
            free_fraction,
            ..Observations::default()
        };
        let hosts = vec![
            seen(None, Some(0.5)),
            seen(Some(7), Some(0.01)),
            seen(Some(90), None),
            seen(Some(8), Some(0.9)),
        ];
        let all = Observations::of_hosts(hosts, &[], true);
        assert_eq!((all.cpu_throttling, all.free_fraction), (Some(throttled(90)), Some(0.01)));
    }

    #[test]
    fn accelerators_and_checkpoints_of_all_hosts_are_told() {
        let accelerators = |accelerators, steps, fraction| Utilisation {
            accelerators,
            steps,
            compute_ns: 10,
            time_ns: 20,
            fraction,
            fraction_min: fraction - 0.1,
            waiting_fraction: 1.0 - fraction,
            limit_fraction: 0.75,
            is_met: true,
            samples_per_second: 100.0,
            epoch_ns: Some(8000),
            bytes_per_second: 1000.0,
            low_fraction: Some(fraction - 0.2),
            high_fraction: Some(fraction + 0.1),
            search: None,
        };
        let checkpoint = |files, bytes, time_ns| CheckpointActivity {
            ranks: 4,
            files,
            bytes,
            time_ns,
            bytes_per_second: 1.0,
            share_fraction: Some(time_ns as f64 / 100.0),
            blocking: Some(CheckpointBlocking {
                is_async: true,
                checkpoints: files + 1,
                rank_checkpoints: files,
                blocking_ns: time_ns,
                blocking_most_ns: 2 * time_ns,
                flush_ns: Some(10 * time_ns),
                overlap_fraction: Some(time_ns as f64 / 100.0),
                ..CheckpointBlocking::default()
            }),
        };
        let seen = |utilisation, checkpoint| Observations {
            utilisation: Some(utilisation),
            checkpoint: Some(checkpoint),
            ..Observations::default()
        };
        let hosts = vec![
            seen(accelerators(3, 9, 0.8), checkpoint(3, 300, 10)),
            seen(accelerators(1, 8, 0.4), checkpoint(1, 100, 40)),
        ];
        let all = Observations::of_hosts(hosts, &[], true);
        let told = all.utilisation.unwrap();
        assert_eq!((told.accelerators, told.steps, told.compute_ns, told.time_ns), (4, 8, 20, 40));
        assert!((told.fraction - 0.7).abs() < 1e-9 && !told.is_met && (told.fraction_min - 0.3).abs() < 1e-9);
        assert!(
            (told.low_fraction.unwrap() - 0.5).abs() < 1e-9
                && (told.samples_per_second - 200.0).abs() < 1e-9
                && told.epoch_ns == Some(4000)
        );
        let told = all.checkpoint.unwrap();
        assert_eq!((told.ranks, told.files, told.bytes, told.time_ns), (4, 4, 400, 40));
        assert!((told.bytes_per_second - 1e10).abs() < 1.0 && told.share_fraction == Some(0.4));
        let blocking = told.blocking.unwrap();
        assert_eq!((blocking.checkpoints, blocking.rank_checkpoints), (2, 4));
        assert_eq!((blocking.blocking_ns, blocking.blocking_most_ns, blocking.flush_ns), (17, 80, Some(175)));
        assert!((blocking.overlap_fraction.unwrap() - 0.175).abs() < 1e-9);
    }

    #[test]
    fn commits_on_the_logs_of_all_hosts_are_told() {
        let seen = |commits, syncs, most, checkpoints| Observations {
            commits: Some(CommitActivity {
                logs: 1,
                commits,
                syncs,
                commits_per_sync: CommitActivity::mean(commits, syncs),
                commits_per_sync_max: most,
                checkpoints,
                recovered_records: commits,
                ..CommitActivity::default()
            }),
            ..Observations::default()
        };
        let hosts = vec![seen(30, 10, 4, None), seen(50, 30, 2, Some(3)), seen(0, 0, 0, Some(2))];
        let told = Observations::of_hosts(hosts, &[], true).commits.unwrap();
        assert_eq!((told.logs, told.commits, told.syncs, told.recovered_records), (3, 80, 40, 80));
        assert_eq!((told.commits_per_sync, told.commits_per_sync_max), (Some(2.0), 4));
        assert_eq!((told.checkpoints, told.commits_per_object), (Some(2), None));
    }

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
