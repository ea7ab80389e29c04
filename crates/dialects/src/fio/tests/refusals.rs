use super::*;
use crate::fio::options::{Fate, OPTIONS, Takes};
use media::of;

#[track_caller]
fn refused(options: &str, parts: &[&str]) {
    let line = format!("--name=x --filename=f --size=1g {options}");
    let message = match request(&line) {
        Err(fault) => fault.to_string(),
        Ok(_) => panic!("{options} is not refused"),
    };
    assert_eq!(message.lines().count(), 1, "{message}");
    for part in parts {
        assert!(message.contains(part), "{options}: {message}");
    }
}

#[test]
fn values_that_fio_takes_and_gets_wrong() {
    refused("--rwmixread=150", &["rwmixread: ", "0 to 100"]);
    refused("--iodepth=0", &["iodepth: ", "1 or more"]);
    refused("--size=1zzm", &["size: ", "1zzm"]);
    refused("--size=1.5g", &["size: ", "1.5g"]);
    refused("--size=-1", &["size: "]);
    refused("--runtime=-1", &["runtime: "]);
    refused("--runtime=5sec", &["runtime: ", "such as 500ms"]);
    refused("--numjobs=0", &["numjobs: "]);
    refused("--direct=2", &["direct: ", "0 or 1"]);
    refused("--bssplit=4k/60:8k/60", &["bssplit: ", "add up to 100"]);
    refused("--bs=0", &["bs: "]);
    refused("--size=1k --bs=4k", &["size: ", "less than the block size of 4096"]);
    refused("--rw=sideways", &["rw: ", "randread"]);
    refused("--bs=(4*", &["bs: "]);
    refused("--bs=(4/0)", &["bs: ", "divides by 0"]);
}

#[test]
fn engines_are_refused_by_name() {
    for (engine, nearest) in
        [("net", "strata net"), ("io_uring_cmd", "io_uring"), ("external:./x.so", "cannot be loaded")]
    {
        refused(&format!("--ioengine={engine}"), &["ioengine: engine ", engine, nearest]);
    }
}

#[test]
fn options_are_refused_by_name_with_the_nearest() {
    refused("--thinkcycles=2", &["thinkcycles: is not supported: ", "alternative: "]);
    refused("--numa_mem_policy=bind:7", &["numa_mem_policy: there is no NUMA node 7: this machine has 0"]);
    refused("--num_range=8", &["num_range: is not supported: ", "io_uring_cmd"]);
    refused("--unified_rw_reporting=all", &["unified_rw_reporting: ", "mixed"]);
    refused("--ss=iops", &["ss: ", "such as iops:10%"]);
    refused("--ss=iops:1% --ss_dur=1", &["steadystate: ", "at least two intervals"]);
    refused("--latency_target=50ms", &["latency_target: requires latency_window"]);
    refused("--ignore_error=EWHAT", &["ignore_error: ", "such as EIO"]);
    refused("--prio=9", &["prio: level 9: use 0"]);
    refused("--prioclass=4", &["prio: class 4: use 1"]);
    refused("--cmdprio_percentage=10", &["cmdprio_percentage: ", "ioengine=libaio or io_uring"]);
    refused(
        "--force_async=2",
        &["force_async: is not supported with ioengine=psync; alternative: ioengine=io_uring"],
    );
    refused("--log_window_value=least", &["log_window_value: \"least\": use one of avg", "both"]);
    refused("--log_issue_time=1", &["log_issue_time: requires write_lat_log and log_offset=1"]);
    refused("--random_generator=x", &["random_generator: \"x\": use one of tausworthe"]);
    refused("--nice=30", &["nice: ", "-20 to 19"]);
    refused("--iodeph=4", &["--iodeph: ", "the closest match is --iodepth"]);
    refused("--zzzzzzzzzz=4", &["--zzzzzzzzzz: unknown option"]);
    refused("--client=host", &["--name: is not supported with --client: ", "job file"]);
    refused("--server", &["--server: is not supported: ", "strata service"]);
    refused("--status-interval=x", &["--status-interval: \"x\": use a time such as 10s"]);
    refused("--append-terse", &["--append-terse", "normal,terse"]);
    refused("--output-format=xml", &["--output-format: ", "json+"]);
    refused("--terse-version=2", &["3, 4 or 5"]);
    refused("--section=nope", &["--section: section [nope] does not exist"]);
    refused("--section=global", &["section"]);
    refused("--direct --rw=read", &["--direct: needs a value"]);
    refused("--rw", &["--rw: needs a value"]);
}

#[test]
fn what_cannot_be_the_same_is_refused() {
    refused(
        "--rw=randread --file_service_type=sequential --filename=a:b",
        &["file_service_type: sequential is not supported"],
    );
    refused("--rw=read --zonesize=8k", &["zonesize: ", "zonemode=strided"]);
    refused("--zonemode=strided", &["zonemode: ", "zonesize"]);
    refused("--rw=write --zonemode=zbd --verify=md5", &["verify: ", "rewritten"]);
    refused("--rw=randread:4 --zonemode=zbd", &["rw: ", "write pointers"]);
    refused(
        "--rw=randread --zonemode=zbd --random_distribution=zipf:1.2",
        &["random_distribution: ", "uniformly"],
    );
    refused("--rw=write --zonemode=zbd --write_zone_remainder=1", &["write_zone_remainder: ", "finishes"]);
    refused("--rw=write --zonemode=zbd --zone_reset_threshold=2", &["zone_reset_threshold", "0 to 1"]);
    refused("--rw=randread:4 --percentage_random=50", &["percentage_random: "]);
    refused("--rw=randrw --bs=4k,8k --bs_is_seq_rand=1 --percentage_random=50", &["bs_is_seq_rand: "]);
    refused("--rwmixread=50.x", &["rwmixread: ", "0 to 100"]);
    refused("--rw=randread --random_distribution=zoned_abs:60/10", &["zoned_abs is not supported"]);
    refused("--rw=randread --random_distribution=zipf:1.2:0.5", &["the centre"]);
    refused("--startdelay=1-5", &["startdelay: "]);
    refused("--filesize=1k-2k", &["filesize: "]);
    refused("--ioengine=libaio --iodepth=8 --iodepth_low=4", &["iodepth_low: 4 is not supported"]);
    refused(
        "--ioengine=libaio --iodepth=8 --iodepth_batch_complete_min=4 --iodepth_batch_complete_max=2",
        &["iodepth_batch_complete_max", "use 4 or more"],
    );
    refused(
        "--fixedbufs",
        &["fixedbufs: is not supported with ioengine=psync; alternative: ioengine=io_uring"],
    );
    refused("--rw=write --fsync=1 --fdatasync=1", &["fdatasync: "]);
    refused("--rw=randrw --create_on_open=1", &["create_on_open: "]);
    refused("--rw=randrw --rate=1m,2m", &["rate: ", "ratio"]);
    refused("--rate=1m --rate_iops=10", &["rate_iops: "]);
    refused("--verify=md5 --verify_pattern=0xzz", &["verify_pattern: ", "%o, or a file in single quotes"]);
    refused("--rw=write --buffer_pattern=0x01%o", &["buffer_pattern: %o is not supported"]);
    refused("--rw=write --verify=md5 --verify_backlog=x", &["verify_backlog: ", "a whole number"]);
    refused("--verify_policy=issued", &["verify_policy: ", "one of completed, fsynced"]);
    refused("--rw=randwrite --verify=md5 --numjobs=2", &["verify: clones that write the same file"]);
    refused(
        "--rw=write --verify=md5 --buffer_pattern=0xff",
        &["buffer_pattern: is not supported with verify"],
    );
    refused("--rw=write --buffer_pattern='file'", &["buffer_pattern: file: "]);
    refused("--rw=randrw --ba=4k,8k", &["ba: different values"]);
    refused(
        "--exitall --name=y --size=1m --new_group --name=z --size=1m",
        &["exit_what", "alternative: exit_what=stonewall"],
    );
    refused("--unlink=1 --name=y --size=1m", &["unlink: differs"]);
    refused("--randseed=3 --name=y --size=1m", &["randseed: differs"]);
    refused("--numjobs=5000", &["numjobs: a run can have at most 4096 jobs"]);
    refused("--destroy-data", &["--destroy-data: is an option of strata", "strata as --destroy-data fio"]);
    refused("--allow_file_create=0", &["allow_file_create: f does not exist"]);
    refused("--filename=-", &["filename: standard input"]);
    refused("--readonly --rw=randwrite", &["--readonly: job x has rw=randwrite"]);
    refused("--ioengine=sync --warnings-fatal", &["--warnings-fatal: x: ioengine=sync"]);
}

#[test]
fn every_refused_option_is_refused_by_its_own_name() {
    for option in OPTIONS {
        let Fate::Refused { unless, .. } = &option.fate else { continue };
        for name in [option.name].iter().chain(option.aliases) {
            refused(&format!("--{name}=77777"), &[&format!("{name}: is not supported: "), "; alternative: "]);
        }
        for value in *unless {
            let line = format!("--parse-only --name=x --filename=f --size=1g --{}={value}", option.name);
            assert!(request(&line).is_ok(), "{line}");
        }
    }
}

#[test]
fn names_are_said_once() {
    let mut names: Vec<&str> =
        OPTIONS.iter().flat_map(|option| option.aliases.iter().copied().chain([option.name])).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn a_bare_option_in_a_job_file_is_1_where_it_can_be() {
    for option in OPTIONS.iter().filter(|option| option.takes == Takes::Value) {
        let machine = Machine::with_job(&format!("[x]\nsize=1m\n{}\n", option.name));
        let message =
            assembled("a.fio", &machine).err().unwrap_or_else(|| panic!("{}", option.name)).to_string();
        assert!(message.contains(option.name), "{message}");
    }
    let made = job("[x]\nsize=1m\ndirect\nrw=write\n");
    assert!(of(&made[0]).options.direct);
}

#[test]
fn images_are_named_whole_and_must_be_reached() {
    let engine = "--ioengine=rbd --rw=read";
    for (more, words) in [
        ("--rbdname=i", &["pool: ", "requires it"][..]),
        ("--pool=p", &["rbdname: ", "requires it"]),
        ("--pool=p --rbdname=a/b", &["rbdname: ", "separator of image names"]),
        ("--pool=p --rbdname=i --nrfiles=2", &["nrfiles: ", "one job per image"]),
        ("--pool=p --rbdname=i --conf=a:b", &["conf: ", "colon"]),
        ("--pool=p --rbdname=absent", &["rbdname: ", "the image does not exist"]),
        ("--pool=p --rbdname=i --clustername=other", &["clustername: "]),
    ] {
        refused(&format!("{engine} {more}"), words);
    }
    refused("--rbdname=i --size=1m", &["rbdname: ", "ioengine=rbd"]);
    refused("--ioengine=rados --pool=p --rbdname=i --size=1m", &["rbdname: "]);
}
