//! Targets of hosts that carry out a run together: whether they have the same.

use std::path::{Path, PathBuf};

use driver::Error;
use rustix::fs::statfs;
use workload::plan::HostTargets;
use workload::spec::Spec;

/// File systems that several machines mount, by the magic numbers of statfs(2): those of linux/magic.h, and of Lustre, GPFS, BeeGFS, GlusterFS and
/// others in FUSE, which cannot be told apart from local ones.
const NETWORK: &[u32] = &[
    0x6969,      // NFS
    0xff53_4d42, // CIFS
    0xfe53_4d42, // SMB2
    0x0c36_4000, // Ceph
    0x0bd0_0bd0, // Lustre
    0x4750_4653, // GPFS
    0x1983_0326, // BeeGFS
    0x0102_1997, // 9p
    0x6b41_4653, // AFS (kAFS)
    0x5346_414f, // OpenAFS
    0x0116_1970, // GFS2
    0x7461_636f, // OCFS2
];

/// Has a spec say whether the hosts of a run share its targets, where the user leaves it open: they do where each path lies on a file system of the
/// network, and where there is no path.
pub fn settle_host_targets(spec: &mut Spec, paths: &[PathBuf]) {
    if spec.place.is_some() && spec.host_targets.is_none() {
        let is_shared = paths.iter().all(|path| is_on_network(path));
        spec.host_targets = Some(if is_shared { HostTargets::Shared } else { HostTargets::Own });
    }
}

/// Has a spec say that each host of a run has a store of its own: one that a process opens by itself, in a directory, no other process can open.
///
/// # Errors
/// Bad usage where the hosts would open the same: on one machine, and on a file system of the network.
pub fn settle_store_of_process(spec: &mut Spec, directory: &Path) -> Result<(), Error> {
    if spec.place.is_none_or(|place| place.of_run() == 1) {
        return Ok(());
    }
    let is_own = match spec.host_targets {
        Some(said) => said == HostTargets::Own,
        None => !is_on_network(directory),
    };
    if !is_own {
        let message = "only one process can open a store in a directory, but several hosts would open it";
        return Err(Error::usage("plan", message).with("directory", directory.display()).remedy(
            "serve it (strata engine --pool POOL --dir DIR) and use engine://HOST:PORT/POOL, or run each host on another machine with its own directory (--host-targets own)",
        ));
    }
    spec.host_targets = Some(HostTargets::Own);
    Ok(())
}

/// Kinds of targets that have a path behind their names.
const PATH_PREFIXES: &[&str] = &["dfs+vos:", "vos:", "file:"];

/// The path that a target is or has, and what stands in front of it; none for what has a colon and is another kind of target.
pub(crate) fn path_in(target: &str) -> Option<(&'static str, &str)> {
    let behind = |prefix: &&'static str| target.strip_prefix(*prefix).map(|rest| (*prefix, rest));
    match PATH_PREFIXES.iter().find_map(behind) {
        Some((prefix, rest)) => Some((prefix, rest.strip_prefix("//").unwrap_or(rest))),
        None => (target.starts_with('/') || !target.contains(':')).then_some(("", target)),
    }
}

/// Makes a target absolute where it is or has a relative path.
pub fn make_absolute(target: &mut String) {
    let Some((prefix, path)) = path_in(target).filter(|(_, path)| !path.is_empty() && !path.starts_with('/'))
    else {
        return;
    };
    if let Ok(path) = std::path::absolute(units::path_of(path)) {
        *target = format!("{prefix}{}", units::label_of(path.as_os_str()));
    }
}

/// Whether a path, or the directory in which it would be made, lies on a file system of the network.
fn is_on_network(path: &Path) -> bool {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let found = whole.ancestors().find_map(|place| statfs(place).ok());
    found.is_some_and(|found| NETWORK.contains(&(found.f_type as u32)))
}

#[cfg(test)]
mod tests {
    use workload::plan::HostPlace;

    use super::*;

    #[test]
    fn relative_paths_become_absolute_and_other_targets_stay_as_they_are() {
        let here = std::env::current_dir().expect("there is one").display().to_string();
        for (target, absolute) in [
            ("file", "@/file"),
            ("./a/b", "@/a/b"),
            ("vos:pool", "vos:@/pool"),
            ("vos://pool", "vos:@/pool"),
            ("dfs+vos:./a:b", "dfs+vos:@/a:b"),
            ("file:x", "file:@/x"),
        ] {
            let mut made = target.to_owned();
            make_absolute(&mut made);
            assert_eq!(made, absolute.replace('@', &here));
        }
        for target in ["/a", "vos:/a", "vos:///a", "vos:", "null:", "s3://b", "dfs+engine://h/p/c", "rbd:p/i"]
        {
            let mut same = target.to_owned();
            make_absolute(&mut same);
            assert_eq!(same, target);
        }
    }

    #[test]
    fn local_paths_are_each_hosts_own_and_what_has_no_path_is_shared() {
        let mut spec = Spec { place: Some(HostPlace::default()), ..Spec::default() };
        settle_host_targets(&mut spec, &["/proc/none/file".into()]);
        assert_eq!(spec.host_targets, Some(HostTargets::Own));
        spec.host_targets = None;
        settle_host_targets(&mut spec, &[]);
        assert_eq!(spec.host_targets, Some(HostTargets::Shared));
        let local = Path::new("/proc/none/pool");
        settle_store_of_process(&mut spec, local).expect_err("all would open the same");
        spec.host_targets = None;
        settle_store_of_process(&mut spec, local).expect("each its own");
        assert_eq!(spec.host_targets, Some(HostTargets::Own));
        let mut alone = Spec::default();
        settle_store_of_process(&mut alone, local).expect("nobody else");
        settle_host_targets(&mut alone, &[]);
        assert_eq!(alone.host_targets, None);
    }
}
