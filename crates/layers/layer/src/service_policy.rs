//! Rules of a service: which paths, devices and networks its loads may touch, and how much they may take.

use std::io;
use std::path::{Component, Path, PathBuf};

use driver::{Error, ErrorKind};
use units::path_of;
use workload::options;
use workload::plan::PhasePlan;
use workload::spec::Spec;

use crate::list::{all, find};
use crate::places::path_in;

/// Placeholders of options whose values are paths.
const PATH_VALUES: &[&str] = &["FILE", "DIR", "DIRECTORY", "PATH"];
/// Words in placeholders of options whose values are on a network.
const NETWORK_VALUES: &[&str] = &["HOST", "URL"];
/// Targets that are neither on a disk nor on a network.
const HARMLESS: &[&str] = &["null", "null:", "mem", "mem:"];
/// Targets on a network besides those with `://`.
const NETWORK_PREFIXES: &[&str] = &["rbd:", "rados:", "s3:", "daos:", "dfs+daos:", "dfs+engine:", "engine:"];

/// Networks that loads of a service may reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NetworkPolicy {
    /// None.
    #[default]
    None,
    /// These targets, each as far as it is written: `s3://bucket`, `engine://store1:1611/`.
    Targets(Vec<String>),
    /// All.
    All,
}

/// Rules of a service. The token says who may ask; these say what for.
#[derive(Clone, Debug, Default)]
pub struct ServicePolicy {
    /// Directories and devices, resolved, that everything lies below; nothing on this machine is touched where there are none.
    roots: Vec<PathBuf>,
    /// Whether `--destroy-data` is accepted.
    pub allow_destroy: bool,
    /// Networks that loads may reach.
    pub network: NetworkPolicy,
    /// Most workers of a run's phases that run at the same time.
    pub threads_max: Option<u32>,
    /// Longest planned time of a phase, nanoseconds; phases that end by amount need one too where this is set.
    pub time_ns_max: Option<u64>,
}

impl ServicePolicy {
    /// Rules with these roots: directories, and devices by name, as they are now.
    ///
    /// # Errors
    /// A root that is not there.
    pub fn new(roots: &[PathBuf]) -> Result<Self, Error> {
        let resolved = roots.iter().map(|root| {
            std::fs::canonicalize(root).map_err(|error| {
                Error::usage("service", format!("a root cannot be resolved: {error}"))
                    .with("root", root.display())
                    .remedy("give an existing directory or device: --root DIR")
            })
        });
        Ok(Self { roots: resolved.collect::<Result<_, _>>()?, ..Self::default() })
    }

    /// The roots, resolved.
    #[must_use]
    pub fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// Refuses an option of a request, by name and as typed, that reaches outside of the rules.
    ///
    /// # Errors
    /// What is refused, with what would be accepted.
    pub fn check_option(&self, layer: &str, name: &str, value: &str) -> Result<(), Error> {
        if name == "target-options" {
            return self.check_target_options(value);
        }
        let layer = find(layer)?.definition();
        if name == "program" {
            return Err(Error::new(
                ErrorKind::Unsafe,
                "service",
                "a service runs no programs for other hosts (--program)",
            )
            .remedy("run that load on the machine itself"));
        }
        if name == "destroy-data" && value != "false" && !self.allow_destroy {
            return Err(no_destroy());
        }
        let all = layer.options.iter().copied().flatten().chain(options::SHARED.iter().copied().flatten());
        let mut named = all.chain(layer.secrets).filter(|option| option.name == name);
        let Some(option) = named.next() else { return Ok(()) };
        if PATH_VALUES.contains(&option.value) {
            return self.check_path(&path_of(value));
        }
        // Addresses in a switch's or a pair's value belong to other options.
        if NETWORK_VALUES.iter().any(|network| option.value.starts_with(network)) {
            return value.split(',').try_for_each(|target| self.check_network(target.trim()));
        }
        Ok(())
    }

    /// Refuses options, in pairs, of whichever layer has the target.
    fn check_target_options(&self, pairs: &str) -> Result<(), Error> {
        for pair in pairs.split(',') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, "true"));
            let mut layers = all().into_iter().map(|layer| layer.definition().name);
            layers.try_for_each(|layer| self.check_option(layer, name.trim(), value.trim()))?;
        }
        Ok(())
    }

    /// Refuses specs whose targets lie outside of the rules, before anything is planned or opened.
    ///
    /// # Errors
    /// All that is refused, with what would be accepted.
    pub fn check(&self, specs: &[Spec]) -> Result<(), Error> {
        for spec in specs {
            if spec.destroy_data && !self.allow_destroy {
                return Err(no_destroy());
            }
            let layer = find(spec.layer.name)?;
            layer.reached(spec).iter().try_for_each(|target| self.check_target(target))?;
            self.check_group(spec)?;
            spec.clients.iter().try_for_each(|master| self.check_network(master))?;
            spec.token_file.iter().try_for_each(|path| self.check_path(path))?;
            // Relative ones are targets that were looked at above.
            let named = layer.paths(spec);
            named.iter().filter(|path| path.is_absolute()).try_for_each(|path| self.check_path(path))?;
        }
        Ok(())
    }

    /// Refuses plans that take more than a run may.
    ///
    /// # Errors
    /// What is too much, with what is accepted.
    pub fn check_plans(&self, plans: &[&PhasePlan]) -> Result<(), Error> {
        let refused = |what: String, limit: String| {
            Err(Error::usage("service", format!("{what}: this service accepts {limit}"))
                .remedy("request less, or start the service with higher limits"))
        };
        for plan in plans {
            let load = plan.load();
            if let Some(limit) = self.threads_max.filter(|limit| load.threads > *limit) {
                return refused(format!("{} workers", load.threads), format!("at most {limit}"));
            }
            if let Some(limit_ns) = self.time_ns_max {
                let seconds = limit_ns as f64 / 1e9;
                match load.limit.time_ns {
                    Some(time_ns) if time_ns <= limit_ns => {}
                    Some(time_ns) => {
                        return refused(
                            format!("a phase of {} s", time_ns as f64 / 1e9),
                            format!("at most {seconds} s"),
                        );
                    }
                    None => {
                        return refused(
                            "a phase without a time".to_owned(),
                            format!("--time up to {seconds} s"),
                        );
                    }
                }
            }
        }
        Ok(())
    }

    fn check_target(&self, target: &str) -> Result<(), Error> {
        if target.contains('\0') {
            return Err(Error::usage("service", "a target contains a zero byte"));
        }
        if HARMLESS.contains(&target) {
            return Ok(());
        }
        let is_path = |(prefix, path): &(&str, &str)| !prefix.is_empty() || path.starts_with('/');
        if let Some((_, path)) = path_in(target).filter(is_path) {
            return self.check_path(&path_of(path));
        }
        if target.contains("://") || NETWORK_PREFIXES.iter().any(|prefix| target.starts_with(prefix)) {
            return self.check_network(target);
        }
        Err(Error::usage("service", format!("{target:?} is not a target that a service supports"))
            .remedy("give an absolute path, a URL, null: or mem:"))
    }

    /// Refuses loads without targets that find whom they reach by a group: any of its members may be anywhere.
    fn check_group(&self, spec: &Spec) -> Result<(), Error> {
        let has = |name: &str| options::find_in(spec.layer, name).is_some();
        let names_servers = spec.said.names().any(|name| name == "servers");
        if has("group") && spec.targets.is_empty() && !names_servers {
            return self.check_network("the members of a group");
        }
        Ok(())
    }

    fn check_network(&self, target: &str) -> Result<(), Error> {
        let is_allowed = match &self.network {
            NetworkPolicy::None => false,
            NetworkPolicy::All => true,
            NetworkPolicy::Targets(targets) => targets.iter().any(|allowed| {
                // `s3://bucket` is not the beginning of `s3://bucket2`.
                let rest = target.strip_prefix(allowed.as_str());
                rest.is_some_and(|rest| {
                    rest.is_empty() || allowed.ends_with(['/', ':']) || rest.starts_with(['/', '?'])
                })
            }),
        };
        if is_allowed {
            return Ok(());
        }
        let accepted = match &self.network {
            NetworkPolicy::Targets(targets) => format!("this service may only access {}", targets.join(", ")),
            _ => "this service may not access the network".to_owned(),
        };
        Err(Error::new(ErrorKind::Unsafe, "service", accepted)
            .with("target", target)
            .remedy("start the service with --allow-network TARGET, or --allow-network all"))
    }

    /// Refuses a path that does not lead below a root.
    ///
    /// # Errors
    /// The path, where it leads, and the roots.
    pub fn check_path(&self, path: &Path) -> Result<(), Error> {
        let place = resolve(path).map_err(|error| {
            let why = format!("the path cannot be resolved: {error}");
            Error::new(ErrorKind::Unsafe, "service", why).with("path", path.display())
        })?;
        if self.roots.iter().any(|root| place.starts_with(root)) {
            return Ok(());
        }
        let roots: Vec<_> = self.roots.iter().map(|root| root.display().to_string()).collect();
        let accepted = if roots.is_empty() {
            "this service may not access any paths".to_owned()
        } else {
            format!("this service may only access paths below {}", roots.join(", "))
        };
        Err(Error::new(ErrorKind::Unsafe, "service", accepted)
            .with("path", path.display())
            .with("leads_to", place.display())
            .remedy("use another path, or start the service with --root DIR"))
    }
}

fn no_destroy() -> Error {
    Error::new(
        ErrorKind::Unsafe,
        "service",
        "this service may not overwrite data that strata did not write (--destroy-data)",
    )
    .remedy("start the service with --allow-destroy")
}

/// Where a path leads: links and `..` of what is there are followed; what is not there yet has neither.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    if !path.is_absolute() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not absolute"));
    }
    let mut place = PathBuf::from("/");
    let mut is_there = true;
    for component in path.components() {
        match component {
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            Component::ParentDir if is_there => drop(place.pop()),
            Component::ParentDir => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "it has .. after a component that does not exist",
                ));
            }
            Component::Normal(name) => {
                place.push(name);
                // A link that leads nowhere is an error too: what is made through it would lie there.
                match std::fs::symlink_metadata(&place) {
                    Ok(_) => place = std::fs::canonicalize(&place)?,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => is_there = false,
                    Err(error) => return Err(error),
                }
            }
        }
    }
    Ok(place)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Scratch {
        directory: tempfile::TempDir,
        policy: ServicePolicy,
    }

    fn scratch() -> Scratch {
        let directory = tempfile::tempdir().expect("a directory");
        for name in ["held/data", "held2", "outside"] {
            std::fs::create_dir_all(directory.path().join(name)).expect("made");
        }
        std::fs::write(directory.path().join("outside/secret"), "x").expect("written");
        let policy = ServicePolicy::new(&[directory.path().join("held")]).expect("it is there");
        Scratch { directory, policy }
    }

    impl Scratch {
        fn target(&self, target: &str) -> Result<(), Error> {
            self.policy.check_target(&target.replace('@', &self.directory.path().display().to_string()))
        }
    }

    #[test]
    fn what_lies_below_a_root_is_accepted_also_where_it_is_not_there_yet() {
        let scratch = scratch();
        symlink("data", scratch.directory.path().join("held/inner")).expect("made");
        for target in [
            "@/held",
            "@/held/file",
            "@/held/a/b/c",
            "@/held/data/../file",
            "@/held/inner/file",
            "vos:@/held/pool",
            "vos://@/held/pool",
            "dfs+vos:@/held/pool",
            "file:@/held/x",
            "null:",
            "mem:",
        ] {
            scratch.target(target).unwrap_or_else(|error| panic!("{target}: {error}"));
        }
    }

    #[test]
    fn what_leads_out_is_refused_with_the_roots() {
        let scratch = scratch();
        let base = scratch.directory.path();
        symlink(base.join("outside"), base.join("held/link")).expect("made");
        symlink(base.join("outside/none"), base.join("held/dangling")).expect("made");
        symlink("loop", base.join("held/loop")).expect("made");
        symlink("/proc/self/root", base.join("held/proc")).expect("made");
        for target in [
            "/etc/passwd",
            "@/outside/secret",
            "@/held2/file",
            "@/held/../outside/secret",
            "@/held/data/../../outside/x",
            "@/held/link/secret",
            "@/held/link",
            "@/held/dangling",
            "@/held/loop",
            "@/held/none/../../outside/x",
            "@",
            "/proc/self/root",
            "/proc/self/cwd/x",
            "@/held/proc/etc/passwd",
            "vos:@/outside",
            "vos:/",
            "file:/dev/sda",
            "dfs+vos:@/held/link/pool",
            "/dev/sda",
            "//etc/passwd",
            "@/held/\0/x",
            "held/data",
            "../x",
            "",
            ".",
            "vos:",
            "other:thing",
        ] {
            let refused = scratch.target(target).expect_err(target);
            assert_eq!(refused.exit_code(), 2, "{target}: {refused}");
        }
        let said = scratch.target("/etc/passwd").expect_err("outside").to_string();
        assert!(
            said.contains("/etc/passwd") && said.contains("/held") && said.contains("--root DIR"),
            "{said}"
        );
        let nothing = ServicePolicy::default();
        assert!(
            nothing
                .check_target("/tmp/x")
                .expect_err("no roots")
                .to_string()
                .contains("may not access any paths")
        );
        assert!(ServicePolicy::new(&[base.join("none")]).is_err());
    }

    #[test]
    fn a_device_is_a_root_by_itself() {
        let policy = ServicePolicy::new(&[PathBuf::from("/dev/null")]).expect("it is there");
        assert!(policy.check_target("/dev/null").is_ok());
        assert!(policy.check_target("/dev/zero").is_err());
    }

    #[test]
    fn networks_are_closed_unless_opened() {
        let mut policy = ServicePolicy::default();
        let targets = [
            "s3://bucket",
            "engine://store:1611/pool/c",
            "rbd:pool/image",
            "tcp://node:1",
            "dfs+engine://a/b/c",
        ];
        for target in targets {
            assert!(policy.check_target(target).expect_err(target).to_string().contains("--allow-network"));
        }
        policy.network =
            NetworkPolicy::Targets(vec!["s3://bucket".to_owned(), "engine://store:1611/".to_owned()]);
        let accepted: Vec<bool> = targets.iter().map(|target| policy.check_target(target).is_ok()).collect();
        assert_eq!(accepted, [true, true, false, false, false]);
        assert!(policy.check_target("s3://bucket2").is_err() && policy.check_target("s3://bucket/x").is_ok());
        policy.network = NetworkPolicy::All;
        assert!(targets.iter().all(|target| policy.check_target(target).is_ok()));
    }
}
