//! Lines of runs over services.

use workload::plan::HostTargets;

use super::{machine, refusal, run, run_on, spec, specs};
use crate::options::asked::assert_asks;

#[test]
fn the_lines_of_the_talk_are_read_as_written() {
    let line = "/mnt/tree --hosts devel1,devel2 -r -t 3 -n 10 -N 30 -s 128k -b 128k --lat --direct";
    let spec = &run(line).specs[0];
    assert_eq!((spec.layer.name, spec.threads), ("filesystem", Some(3)));
    assert_eq!(spec.hosts, ["devel1:1611", "devel2:1611"]);
    assert_eq!(spec.host_targets, Some(HostTargets::Shared));
    let world = machine().text("myhosts.txt", "a # first\nb:99\nnode[1-2]\n");
    let run = run_on("--hostsfile myhosts.txt --port 7 --svcpwfile secret -r /data/file", &world);
    assert_eq!(run.specs[0].hosts, ["a:7", "b:99", "node1:7", "node2:7"]);
    assert_eq!(run.token_file.as_deref(), Some("secret".as_ref()));
    assert_eq!(specs("--hosts a,b,c --numhosts 2 -r /data/file")[0].hosts, ["a:1611", "b:1611"]);
    assert_eq!(specs("--hosts a,b,c --numhosts -1 -r /data/file")[0].hosts.len(), 3);
}

#[test]
fn the_list_of_hosts_is_rotated_between_phases() {
    let rotated = |options: &str| {
        let specs = specs(&format!("-w -r -s 4k -b 4k {options} /data/file"));
        assert!(specs.iter().all(|spec| spec.rotate_hosts == specs[0].rotate_hosts), "{options}");
        specs[0].rotate_hosts
    };
    assert_eq!(rotated("--hosts a,b,c --rotatehosts 2 -i 1"), Some(2));
    assert_eq!(rotated("--hosts a,b,c --rotatehosts 4"), Some(1), "as often as it takes to be there again");
    for none in [
        "--hosts a,b,c",
        "--hosts a,b,c --rotatehosts 0",
        "--hosts a,b,c --rotatehosts 3",
        "--hosts a --rotatehosts 5",
    ] {
        assert_eq!(rotated(none), None, "{none}");
    }
    let tree = spec("-w --hosts a,b --rotatehosts 1 --sync --dropcache /data/file");
    assert_eq!(tree.rotate_hosts, Some(1), "of a file --sync is no phase");
}

#[test]
fn amounts_are_of_the_shared_paths_and_rates_of_each_thread() {
    let line = "-r --rand -b 1m -t 2 --timelimit 5 --limitread 10m --hosts a,b,c,d /data/file";
    let shared = spec(line);
    assert_eq!((shared.threads, shared.count), (Some(2), Some(1024)));
    assert_eq!(shared.rate.map(|rate| rate.per_second()), Some(80.0));
    let own = spec(&format!("{line} --nosvcshare"));
    assert_eq!((own.count, own.host_targets), (Some(4096), Some(HostTargets::Own)));
    let object = "--s3endpoints http://s:1 --s3key k --s3secret x -w -t 2 -n 3 -N 5 -s 1k -b 1k --hosts a,b s3://bucket";
    assert_asks(&spec(object), "dkeys", "60");
}

#[test]
fn paths_that_are_not_here_are_on_the_hosts() {
    assert_eq!(spec("-r -s 1g --hosts a,b /elsewhere/file").targets, ["/elsewhere/file"]);
    assert_eq!(spec("-r -s 4g --hosts a,b /data/file").targets, ["/data/file"], "as long as it is there");
    assert_eq!(spec("-r -s 1g --hosts a /dev/nvme7n1").layer.name, "media");
    assert_eq!(spec("-r -s 1k --hosts a /elsewhere/tree/").layer.name, "filesystem");
}

#[test]
fn what_hosts_cannot_do_is_refused() {
    for (line, expected) in [
        ("-r --hosts a /elsewhere/file", "the size of \"/elsewhere/file\" is unknown"),
        ("-r --hosts a /dev/nvme0n1", "the size of \"/dev/nvme0n1\" is unknown"),
        ("-r --hosts a,a /data/file", "given twice"),
        ("-r --hosts , /data/file", "names no host"),
        ("-r --hosts a,b --numhosts 3 /data/file", "more than the 2 hosts"),
        ("-r --numhosts 3 /data/file", "requires services, but no host is given"),
        ("-r --nosvcshare /data/file", "requires services, but no host is given"),
        ("-r --svcpwfile secret /data/file", "requires services, but no host is given"),
        ("-r --foreground --hosts a /data/file", "requires --service"),
        ("-r --rotatehosts 1 /data/file", "requires services, but no host is given"),
        ("-w -r --hosts a,b --rotatehosts x /data/file", "rotatehosts"),
        ("-w -r --hosts a,b --rotatehosts 1 --nosvcshare /data/file", "cannot read data of other hosts"),
        ("-w -r --hosts a,b --rotatehosts 1 -i 2 /data/file", "between iterations"),
        ("-w -r --hosts a,b --rotatehosts 1 --sync -n 1 -N 1 /elsewhere/tree/", "--sync in directories"),
        (
            "-w -r --hosts a,b --rotatehosts 1 --verify 1 --verifydirect -n 1 -N 1 -s 4k /elsewhere/tree/",
            "--verifydirect in",
        ),
        ("-r --hosts a --rankoffset 1 /data/file", "ranks always begin at 0"),
        ("-r --hosts a --strided /data/file", "--strided with --hosts"),
        ("-w --hosts a --trunc -s 1m /data/new", "--trunc and --trunctosize with --hosts"),
        ("-r --hosts a --dryrun /data/file", "--dryrun with --hosts"),
        ("-r --hosts a --cores all /data/file", "each host has different CPUs"),
        ("-r --hosts a --treefile list /data", "--treefile with --hosts"),
        ("--service --hosts a", "takes paths and phases only from the client"),
        ("--netbench --servers a --clients b -s 1g --hosts c", "--hosts cannot be combined with --netbench"),
        (
            "--s3endpoints http://s:1 --s3key k --s3secret x -w -s 1k -b 1k --nosvcshare --hosts a s3://bucket",
            "all hosts always share a bucket",
        ),
    ] {
        let refusal = refusal(line);
        assert!(refusal.contains(expected), "{line}: {refusal}");
    }
}
