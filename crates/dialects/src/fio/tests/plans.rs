//! The specs are ones that planning takes.

use media::of;
use media::plan::{EngineFacts, resolve};
use media::target::TargetFacts;
use workload::target::TargetKind;

use super::*;

const OPTIONS: &[&str] = &[
    "sync",
    "register-files",
    "register-buffers",
    "sqpoll",
    "sqpoll-core",
    "iopoll",
    "hipri",
    "nowait",
    "dontcache",
    "advise",
    "force-async",
    "operation-priority",
];

fn engine(name: &'static str) -> EngineFacts {
    EngineFacts {
        name,
        classes: &["read", "write", "discard", "sync", "nop"],
        asynchronous: ["libaio", "io_uring", "null"].contains(&name),
        depth_max: 4096,
        targetless: name == "null",
        direct: !["mmap", "null"].contains(&name),
        options: OPTIONS,
    }
}

fn facts(path: &str) -> TargetFacts {
    let is_null = path == "null:";
    TargetFacts {
        path: path.to_owned(),
        kind: if is_null { TargetKind::Null } else { TargetKind::File },
        exists: is_null,
        size_bytes: 0,
        allocated_bytes: 0,
        direct_alignment_bytes: 512,
        free_bytes: None,
        zoned: None,
    }
}

#[test]
fn every_load_can_be_planned() {
    for line in [
        "",
        "--rw=randrw --rwmixread=70 --bs=8k --ioengine=libaio --iodepth=32 --direct=1 --numjobs=4 --runtime=60 --time_based --group_reporting",
        "--rw=randwrite --bssplit=512/10:4k/60:64k/30 --direct=1 --ioengine=io_uring --iodepth=8",
        "--rw=rw --bsrange=4k-64k",
        "--rw=read:-8k --bs=4k",
        "--rw=randtrim",
        "--rw=randread --norandommap --random_distribution=zoned:50/5:30/15:20/",
        "--rw=randwrite --verify=crc32c --bs=64k --numjobs=1",
        "--rw=randwrite --verify=crc32c --verify_only --bs=64k",
        "--rw=write --buffer_compress_percentage=50 --dedupe_percentage=10",
        "--rw=write --buffer_pattern=0xff --fsync=4",
        "--rw=write --end_fsync=1 --zero_buffers",
        "--rw=write --end_fsync=1 --runtime=5 --time_based",
        "--rate_iops=500 --rate_process=poisson --number_ios=100 --io_submit_mode=offload",
        "--thinktime=10 --startdelay=1 --ramp_time=2 --runtime=5",
        "--numjobs=3 --offset_increment=1g",
        "--ioengine=null --rw=randread --numjobs=2 --iodepth=4 --direct=1",
        "--ioengine=io_uring --iodepth=4 --iodepth_batch=2 --iodepth_batch_complete_min=2 --hipri --direct=1 --fixedbufs --registerfiles --sqthread_poll --sqthread_poll_cpu=1",
        "--ioengine=pvsync2 --hipri --direct=1 --sync=dsync",
        "--ioengine=mmap --rw=randread",
        "--filename=a:b:c --rw=randread --size=10m",
    ] {
        for spec in specs(&format!("--name=x --filename=f --size=1g {line}")) {
            let engines = ["psync", "pvsync2", "libaio", "io_uring", "mmap", "null"];
            let name = engines
                .into_iter()
                .find(|name| of(&spec).engine.as_deref() == Some(name))
                .expect("an engine");
            let facts: Vec<TargetFacts> = spec.targets.iter().map(|path| facts(path)).collect();
            let plan = resolve(&spec, of(&spec).operations[0], &facts, &engine(name), 1);
            assert!(plan.is_ok(), "{line}: {}", plan.err().map(|error| error.0).unwrap_or_default());
        }
    }
}
