//! Specs of hosts that have options of their own (`--host-options`).

use driver::Error;
use fleet::{HostAddress, ListedHost, listed_hosts};
use layer::masters::CONTROL_PORT;
use workload::plan::HostPlace;
use workload::spec::Spec;

use super::messages::PlannedPhase;
use crate::world::read_text;

/// The specs of a host, and the options of its own in them.
pub(super) struct HostSpecs {
    pub(super) specs: Vec<Spec>,
    pub(super) options: Vec<[String; 2]>,
}

/// The hosts of a run, by which options name them.
pub(super) struct Names<'a> {
    /// Those that are used, by rank.
    pub(super) addresses: &'a [HostAddress],
    /// All that the user lists; none under a launcher.
    pub(super) listed: &'a [ListedHost],
}

/// The specs of each host by rank; none where all have the same.
///
/// # Errors
/// Bad usage: hosts that are none of the run, options that their layer does not have, and what hosts of different sizes cannot do.
pub(super) fn of_hosts(specs: &[Spec], names: &Names<'_>) -> Result<Option<Vec<HostSpecs>>, Error> {
    if specs.iter().all(|spec| spec.host_options.is_empty()) {
        return Ok(None);
    }
    let count = names.addresses.len();
    let mut hosts: Vec<HostSpecs> =
        (0..count).map(|_| HostSpecs { specs: Vec::new(), options: Vec::new() }).collect();
    for spec in specs {
        check(spec)?;
        let used = spec.hosts_used.map_or(count, |used| (used as usize).min(count));
        let common = Spec { host_options: Vec::new(), ..spec.clone() };
        let mut own = vec![common; count];
        for options in &spec.host_options {
            for rank in names.ranks(&options.hosts)?.into_iter().filter(|rank| *rank < used) {
                options.apply(&mut own[rank]).map_err(|error| refusal(error.to_string()))?;
                let said = options.options().map(|(name, value)| [name.to_owned(), value.to_owned()]);
                let new = said.filter(|option| !hosts[rank].options.contains(option)).collect::<Vec<_>>();
                hosts[rank].options.extend(new);
            }
        }
        number_workers(spec, &mut own[..used])?;
        hosts.iter_mut().zip(own).for_each(|(host, spec)| host.specs.push(spec));
    }
    Ok(Some(hosts))
}

/// Numbers the workers of hosts one after the other, where these have different numbers of them.
fn number_workers(spec: &Spec, own: &mut [Spec]) -> Result<(), Error> {
    let threads = |spec: &Spec| spec.threads.unwrap_or(1);
    if own.iter().all(|other| threads(other) == threads(&own[0])) {
        return Ok(());
    }
    let refused = [
        (spec.saturate, "--saturate raises the threads of all hosts together"),
        (spec.ladder.is_some(), "--ladder gives all hosts the same steps"),
        (spec.rotate_hosts.is_some(), "--rotate-hosts exchanges parts of the same size"),
    ];
    if let Some((_, why)) = refused.iter().find(|(is_given, _)| *is_given) {
        return Err(refusal(format!("{why}, but hosts have different numbers of threads"))
            .remedy("give all hosts the same threads, or leave it out"));
    }
    let all: u64 = own.iter().map(|spec| u64::from(threads(spec))).sum();
    let workers = u32::try_from(all).map_err(|_| refusal("too many threads of all hosts together"))?;
    let (hosts, mut first_worker) = (own.len() as u32, 0);
    for spec in own {
        spec.place = Some(HostPlace { hosts, workers, first_worker, ..HostPlace::default() });
        first_worker += threads(spec);
    }
    Ok(())
}

fn check(spec: &Spec) -> Result<(), Error> {
    match spec.host {
        Some(_) if !spec.host_options.is_empty() => {
            Err(refusal("each host has phases of its own, which have their own options")
                .remedy("leave it out, and give the options to the phases"))
        }
        _ => Ok(()),
    }
}

/// Refuses plans whose workers are not those that were numbered: parts of the work would be nobody's.
///
/// # Errors
/// A layer that does not take the threads of its spec.
pub(super) fn check_workers(plans: &[Vec<PlannedPhase>]) -> Result<(), Error> {
    for (number, first) in plans.first().into_iter().flatten().enumerate() {
        let Some(place) = first.plan.load().place.filter(|place| place.is_uneven()) else { continue };
        let of_phase = plans.iter().take(place.hosts as usize).filter_map(|host| host.get(number));
        let workers: u64 = of_phase.map(|phase| u64::from(phase.plan.load().threads)).sum();
        if workers != u64::from(place.workers) {
            return Err(refusal("this load does not use different numbers of threads on its hosts")
                .with("phase", first.plan.name())
                .remedy("give all hosts the same threads"));
        }
    }
    Ok(())
}

fn refusal(message: impl AsRef<str>) -> Error {
    Error::usage("hosts", format!("--host-options: {}", message.as_ref()))
}

impl Names<'_> {
    /// Ranks of the hosts that options are for. Those that are listed and not used have none.
    fn ranks(&self, hosts: &str) -> Result<Vec<usize>, Error> {
        if let Some(ranks) = hosts.strip_prefix("rank:") {
            return self.numbered(ranks);
        }
        let none = || {
            refusal(format!("\"{}\" is not in --hosts", hosts.escape_debug())).remedy(
                "name hosts as in --hosts, or by their rank, such as rank:1 or rank:1-3; processes of local:N and of launchers have only ranks",
            )
        };
        let named = listed_hosts(&[hosts.to_owned()], CONTROL_PORT, &|path| read_text(path));
        let named = named.map_err(|error| refusal(error.to_string()))?;
        let mut ranks = Vec::new();
        for host in named {
            let ListedHost::At(address) = &host else { return Err(none()) };
            match self.addresses.iter().position(|other| other == address) {
                Some(rank) => ranks.push(rank),
                None if self.listed.contains(&host) => {}
                None => return Err(none()),
            }
        }
        Ok(ranks)
    }

    /// `1` or `1-3`.
    fn numbered(&self, text: &str) -> Result<Vec<usize>, Error> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let number = |text: &str| text.parse::<usize>().ok().filter(|rank| *rank < self.count_max());
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => {
                Ok((first..=last).filter(|rank| *rank < self.addresses.len()).collect())
            }
            _ => {
                let message = format!("\"rank:{}\" is not a rank of the run", text.escape_debug());
                let last = self.count_max().saturating_sub(1);
                Err(refusal(message).remedy(format!("ranks are 0 to {last}; rank:1-3 is a range")))
            }
        }
    }

    /// Hosts of the list, used or not.
    fn count_max(&self) -> usize {
        self.listed.len().max(self.addresses.len())
    }
}

#[cfg(test)]
mod tests {
    use workload::host_options::HostOptions;

    use super::*;

    fn address(name: &str) -> HostAddress {
        HostAddress::parse(name, CONTROL_PORT).expect("an address")
    }

    fn spec(options: &[&str]) -> Spec {
        let host_options = options.iter().map(|text| HostOptions::parse(text).expect("options")).collect();
        Spec { targets: vec!["/a".to_owned()], host_options, threads: Some(2), ..Spec::default() }
    }

    fn own(spec: &Spec) -> Result<Option<Vec<HostSpecs>>, String> {
        let addresses = ["a", "b", "c"].map(address);
        let mut listed: Vec<ListedHost> = addresses.iter().cloned().map(ListedHost::At).collect();
        listed.push(ListedHost::At(address("unused")));
        let names = Names { addresses: &addresses, listed: &listed };
        of_hosts(std::slice::from_ref(spec), &names).map_err(|error| error.to_string())
    }

    #[test]
    fn hosts_have_their_own_targets_and_their_workers_are_numbered() {
        assert!(own(&spec(&[])).unwrap().is_none());
        let hosts =
            own(&spec(&["b:threads=3,target=/b", "rank:2:target=/c", "unused:threads=9"])).unwrap().unwrap();
        let specs: Vec<&Spec> = hosts.iter().map(|host| &host.specs[0]).collect();
        let targets: Vec<&str> = specs.iter().map(|spec| &*spec.targets[0]).collect();
        assert_eq!(targets, ["/a", "/b", "/c"]);
        let places = specs.iter().map(|spec| spec.place.expect("a place"));
        assert_eq!(
            places.map(|place| (place.first_worker, place.workers)).collect::<Vec<_>>(),
            [(0, 7), (2, 7), (5, 7)]
        );
        assert_eq!(hosts[1].options, [["threads", "3"], ["target", "/b"]]);
        assert!(specs.iter().all(|spec| spec.host_options.is_empty()));
        // As many on each: nothing is numbered otherwise than without.
        let even = own(&spec(&["a:nice=5"])).unwrap().unwrap();
        assert!(even.iter().all(|host| host.specs[0].place.is_none()));
        // Hosts that take no part in a phase have no workers in it.
        let few = Spec { hosts_used: Some(2), ..spec(&["b:threads=3", "c:threads=8"]) };
        let few = own(&few).unwrap().unwrap();
        assert_eq!(few[1].specs[0].place.map(|place| (place.hosts, place.workers)), Some((2, 5)));
        assert_eq!((few[2].specs[0].place, few[2].specs[0].threads), (None, Some(2)));
    }

    #[test]
    fn hosts_of_other_runs_and_climbs_are_refused() {
        for (options, expected) in [
            ("d:threads=3", "\"d\" is not in --hosts"),
            ("local:2:threads=3", "not in --hosts"),
            ("rank:4:threads=3", "ranks are 0 to 3"),
            ("rank:2-1:threads=3", "is not a rank"),
            ("b:threads=none", "none"),
        ] {
            let error = own(&spec(&[options])).err().expect(options);
            assert!(error.contains(expected), "{options}: {error}");
        }
        let climb = Spec { saturate: true, ..spec(&["b:threads=3"]) };
        assert!(own(&climb).err().expect("a climb").contains("--saturate"));
    }
}
