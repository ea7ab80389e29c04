//! `--hosts`: services that carry the phases of files, devices and buckets out together.

use driver::Error;
use units::Rate;
use workload::plan::HostTargets;
use workload::spec::Spec;

use super::service;
use super::settings::number;
use super::table::{TABLE, TOOL};
use crate::World;
use crate::words::Words;

/// Options that hosts cannot carry out together: why, and the nearest there is.
const REFUSED: &[(&str, &str, &str)] = &[
    (
        "strided",
        "strided blocks are divided only among the threads of one host",
        "leave it out, or use --rand",
    ),
    ("treefile", "each host would use a different list", "use -n and -N"),
    ("s3listobj", "listing uses one thread of one host", "list without --hosts"),
    ("dryrun", "the work of each host is known only on that host", "leave it out, or leave out --hosts"),
];

/// Hosts that carry a run out together; none where this process does alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hosts {
    names: Vec<String>,
    /// Whether each has paths of its own.
    is_own: bool,
    /// By how many hosts the list is rotated between phases; none: it is not.
    rotated: Option<u32>,
}

/// Whether hosts carry the run out, so that paths are not those of this machine.
pub(crate) fn are_given(words: &Words) -> bool {
    words.has("hosts") || words.has("hostsfile")
}

impl Hosts {
    /// Reads and checks what the options say.
    ///
    /// # Errors
    /// Lists that cannot be, options that hosts cannot carry out together, and options of hosts without any.
    pub(crate) fn read(words: &Words, world: &dyn World) -> Result<Self, Error> {
        const OF_HOSTS: &[&str] = &["svcpwfile", "port", "numhosts", "rotatehosts", "nosvcshare"];
        if let Some(option) = ["foreground", "nodetach"].iter().find(|option| words.has(option)) {
            return TABLE.refuse(format!("--{option} requires --service"), "leave it out");
        }
        if !are_given(words) {
            return match OF_HOSTS.iter().find(|option| words.has(option)) {
                Some(option) => TABLE.refuse(
                    format!("--{option} requires services, but no host is given"),
                    "add --hosts LIST or --hostsfile FILE, or leave it out",
                ),
                None => Ok(Self::default()),
            };
        }
        if let Some((option, reason, remedy)) = REFUSED.iter().find(|(option, ..)| words.has(option)) {
            return TABLE.refuse(format!("--{option} with --hosts: {reason}"), *remedy);
        }
        if words.value("cores") == Some("all") {
            return TABLE.refuse(
                "--cores all with --hosts: each host has different CPUs",
                "leave it out, or give a list",
            );
        }
        let names = listed(words, service::port(words)?, world)?;
        if names.is_empty() {
            return TABLE.refuse("--hosts names no host", "give host names, separated by commas");
        }
        let is_own = words.has("nosvcshare");
        Ok(Self { rotated: rotated(words, names.len(), is_own)?, names, is_own })
    }

    /// Refuses phases in directories between which hosts change places and the tool has none.
    ///
    /// # Errors
    /// An option that makes such phases.
    pub(crate) fn check_phases(&self, words: &Words) -> Result<(), Error> {
        let made = ["sync", "verifydirect"].iter().find(|option| words.has(option));
        match made.filter(|_| self.rotated.is_some()) {
            None => Ok(()),
            Some(option) => TABLE.refuse(
                format!("--rotatehosts with --{option} in directories: the hosts would also rotate before and after its phase"),
                "leave out one of them",
            ),
        }
    }

    /// Processes that carry the run out.
    pub(crate) fn count(&self) -> usize {
        self.names.len().max(1)
    }

    /// Whether the hosts share the paths; none without hosts.
    pub(crate) fn share_paths(&self) -> Option<bool> {
        (!self.names.is_empty()).then_some(!self.is_own)
    }

    /// Has the specs carried out by the hosts. Amounts of specs are those of the paths, rates those of one host.
    ///
    /// # Errors
    /// Rates that cannot be.
    pub(crate) fn carry_out(&self, specs: &mut [Spec]) -> Result<(), Error> {
        if self.names.is_empty() {
            return Ok(());
        }
        let hosts = self.names.len();
        for spec in specs {
            spec.hosts.clone_from(&self.names);
            spec.rotate_hosts = self.rotated;
            spec.host_targets = Some(if self.is_own { HostTargets::Own } else { HostTargets::Shared });
            // Amounts and rates of a spec are shared out to the hosts.
            let each = |count: u64| if self.is_own { count.saturating_mul(hosts as u64) } else { count };
            spec.count = spec.count.map(each);
            let all = |rate: Rate| Rate::new(rate.per_second() * hosts as f64);
            spec.rate =
                spec.rate.map(all).transpose().map_err(|error| Error::usage(TOOL, error.to_string()))?;
        }
        Ok(())
    }
}

/// By how many of so many hosts the list is rotated between phases.
///
/// # Errors
/// Options with which that would be something else than the tool's.
fn rotated(words: &Words, hosts: usize, is_own: bool) -> Result<Option<u32>, Error> {
    let by = number(words, "rotatehosts", 0, 65_535)?.map_or(0, |by| by % hosts as u64);
    if by == 0 {
        return Ok(None);
    }
    if is_own {
        return TABLE.refuse(
            "--rotatehosts with --nosvcshare: each host has its own paths and cannot read data of other hosts",
            "leave out one of them",
        );
    }
    if number(words, "iterations", 1, 100_000)?.is_some_and(|iterations| iterations > 1) {
        return TABLE.refuse(
            "--rotatehosts with -i: the hosts would also rotate between iterations",
            "leave out -i, and run the command several times",
        );
    }
    Ok(Some(by as u32))
}

/// The hosts of `--hosts` and `--hostsfile`, the first `--numhosts` of them.
///
/// # Errors
/// Lists that cannot be read, and more hosts than there are.
pub(crate) fn listed(words: &Words, port: u64, world: &dyn World) -> Result<Vec<String>, Error> {
    let mut names = service::hosts(words, "hosts", "hostsfile", port, world)?;
    if words.value("numhosts") == Some("-1") {
        return Ok(names);
    }
    if let Some(count) = number(words, "numhosts", 1, 65_536)? {
        if count > names.len() as u64 {
            return TABLE.refuse(
                format!("--numhosts {count} is more than the {} hosts given", names.len()),
                "give more hosts or a smaller number",
            );
        }
        names.truncate(count as usize);
    }
    Ok(names)
}
