use media::of;
use units::ByteSize;
use workload::spec::Operation;

use super::*;

/// The job of LU-4198, as it was reported.
const LUSTRE: &str = "[randread]
ioengine=sync
;ioengine=libaio
rw=randread
blocksize=4096
iodepth=32
direct=1
size=1g
runtime=120
numjobs=128
group_reporting
directory=/cache0/fio.out
filename_format=f.$jobnum.$filenum
";

#[test]
fn the_job_of_lu_4198_is_read_as_written() {
    let made = job(LUSTRE);
    assert_eq!(made.len(), 1);
    let spec = &made[0];
    assert_eq!((spec.threads, spec.depth, of(spec).options.direct), (Some(128), Some(1), true));
    assert_eq!(spec.targets.len(), 128);
    assert_eq!(
        (spec.targets[0].as_str(), spec.targets[127].as_str()),
        ("/cache0/fio.out/f.0.0", "/cache0/fio.out/f.127.0")
    );
    assert_eq!((of(spec).size, spec.bytes), (Some(ByteSize(1 << 30)), Some(ByteSize(128 << 30))));
    assert_eq!(spec.time.map(|time| time.ns()), Some(120_000_000_000));
}

#[test]
fn sections_comments_and_globals() {
    let made = job(
        "; words\n[global]\nsize=1m # all\n  bs = 8k  \nthread\n\n[a]\nrw=write\n[global]\nbs=16k\n[b]\nrw=randread\nstonewall\n",
    );
    assert_eq!(made.len(), 2);
    assert_eq!(made[0].block_size.as_deref(), Some("8192"));
    assert_eq!((made[1].block_size.as_deref(), made[1].concurrent), (Some("16384"), false));
    assert_eq!(of(&made[1]).operations, [Operation::RandRead]);
}

#[test]
fn a_file_waits_for_the_one_before_and_has_globals_of_its_own() {
    let mut machine = Machine::with_job("[global]\nsize=1m\n[a]\n[b]\n");
    machine.texts.insert("b.fio".to_owned(), "[c]\nrw=write\nsize=2m\n[d]\nsize=2m\n".to_owned());
    let all = assembled("--bs=8k a.fio b.fio", &machine).expect("read");
    assert_eq!(all.specs.iter().map(|spec| spec.concurrent).collect::<Vec<_>>(), [false, true, false, true]);
    let blocks: Vec<_> = all.specs.iter().map(|spec| spec.block_size.as_deref()).collect();
    assert_eq!(blocks, [Some("8192"), Some("8192"), Some("4096"), Some("4096")], "as in fio");
    assert_eq!(all.jobs.iter().map(|job| job.group).collect::<Vec<_>>(), [0, 0, 1, 1]);
    let all = assembled("a.fio b.fio --section=c", &machine).expect("read");
    assert_eq!(all.jobs.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(), ["c"]);
}

#[test]
fn includes_are_read_beside_the_file() {
    let mut machine = Machine::default();
    machine.texts.insert("jobs/a.fio".to_owned(), "[x]\ninclude common\nrw=write\n".to_owned());
    machine.texts.insert("jobs/common".to_owned(), "size=2m\nbs=8k\n".to_owned());
    let all = assembled("jobs/a.fio", &machine).expect("read");
    assert_eq!(
        (of(&all.specs[0]).size, all.specs[0].block_size.as_deref()),
        (Some(ByteSize(2 << 20)), Some("8192"))
    );
    machine.texts.insert("jobs/common".to_owned(), "include common\n".to_owned());
    let fault = assembled("jobs/a.fio", &machine).err().expect("refused").to_string();
    assert_eq!(fault, "job file jobs/common, line 1, section [x], include: more than 16 nested files");
    machine.texts.insert("jobs/common".to_owned(), "[y]\n".to_owned());
    let fault = assembled("jobs/a.fio", &machine).err().expect("refused").to_string();
    assert_eq!(
        fault,
        "job file jobs/common, line 1, section [x], an included file can contain only options, no sections"
    );
}

#[test]
fn variables_and_arithmetic() {
    let mut machine = Machine::with_job(
        "[x]\nsize=${SIZE}\nnumjobs=$ncpus*2\nbs=$pagesize\ndirectory=/mnt/${WHERE}/$ncpus\ngroup_reporting\nio_size=(2*$mb_memory)m\n",
    );
    machine.variables = [("SIZE".to_owned(), "4m".to_owned()), ("WHERE".to_owned(), "a".to_owned())].into();
    let text = machine.texts["a.fio"].replace("(2*$mb_memory)m", "(2 * 1m)");
    machine.texts.insert("a.fio".to_owned(), text);
    let spec = assembled("a.fio", &machine).expect("read").specs.remove(0);
    assert_eq!((of(&spec).size, spec.threads), (Some(ByteSize(4 << 20)), Some(4)));
    assert_eq!((spec.block_size.as_deref(), spec.targets[3].as_str()), (Some("4096"), "/mnt/a/2/x.3.0"));
    assert_eq!(spec.bytes, Some(ByteSize(4 * (2 << 20))));
}

#[test]
fn a_job_has_its_own_name_and_the_section_names_the_file() {
    let shown = |text: &str| {
        let all = assembled("a.fio", &Machine::with_job(text)).expect("read");
        (all.jobs[0].name.clone(), all.specs[0].targets[0].clone())
    };
    let named = |name: &str| (name.to_owned(), "file1.0.0".to_owned());
    assert_eq!(shown("[global]\nname=all\nsize=1m\n[file1]\n"), named("file1"), "a name for all is no job's");
    assert_eq!(shown("[global]\nname=all\nsize=1m\n[file1]\nname=shown\n"), named("shown"));
}

#[test]
fn an_error_names_file_line_section_and_key() {
    let fault = |text: &str| assembled("a.fio", &Machine::with_job(text)).err().expect("refused").to_string();
    assert_eq!(
        fault("[global]\nsize=1m\n\n[x]\nbs=4zz\n"),
        "job file a.fio, line 5, section [x], bs: \"4zz\": use a whole number with an optional k, m, g, t or p, such as 4k"
    );
    assert_eq!(
        fault("[x]\nsize=1m\nthraed=1\n"),
        "job file a.fio, line 3, section [x], thraed: unknown option; the closest match is thread"
    );
    assert_eq!(
        fault("[x]\nsize=1m\nrw=randrw\nba=4k,8k\n"),
        "job file a.fio, line 4, section [x], ba: different values for reads and writes of one job are not supported; alternative: two jobs at the same time"
    );
    assert_eq!(
        fault("size=1m\n"),
        "job file a.fio, line 1, \"size=1m\" is outside of all sections: begin with [global] or [name]"
    );
    assert_eq!(fault("[x\n"), "job file a.fio, line 1, \"[x\" is not a section: use [name]");
    assert_eq!(
        fault("[x]\nsize=${NONE}\n"),
        "job file a.fio, line 2, section [x], size: the variable NONE is not set"
    );
    assert_eq!(
        fault("[x]\nrw=read\n"),
        "job x, size: x.0.0 has no size yet: give size=, which fio also requires"
    );
    assert_eq!(
        crate::fio::request(&words("a.fio"), &Machine::with_job("[global]\nsize=1m\n"))
            .err()
            .expect("refused")
            .to_string(),
        "no job: give --name=... with its options, or a job file; see --help"
    );
    let error =
        crate::fio::parse(&words("a.fio"), &Machine::with_job("[x]\nbs=4zz\n")).err().expect("refused");
    assert!(error.to_string().starts_with("fio: job file a.fio, line 2, section [x], bs: "), "{error}");
    assert_eq!(error.exit_code(), 2);
}
