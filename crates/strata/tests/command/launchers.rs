//! One run of the processes that a launcher has started: mpirun of Open MPI, Hydra of MPICH, a real Slurm of one node, and what stands in the
//! environment of others.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::engines::Engine;
use super::hosts::await_that;
use super::support::{Scratch, class, names_in, read_record, skipped, state_of, tool};

/// Longest that a launched run may take, in seconds, for timeout(1).
const RUN_SECONDS_MAX: &str = "60";
/// Longest wait for a daemon to serve.
const SERVE_WAIT: Duration = Duration::from_secs(20);

/// Words of mpirun, which refuses root and more processes than cores unless told otherwise.
pub(crate) const MPIRUN: &[&str] = &["mpirun", "--allow-run-as-root", "--oversubscribe"];
const HYDRA: &[&str] = &["mpiexec.hydra"];

/// A command of a launcher in a directory, with the words of strata behind those of the launcher.
pub(crate) fn launch(
    scratch: &Scratch,
    launcher: &[&str],
    words: &str,
    environment: &[(&str, String)],
) -> Command {
    let meeting = scratch.join("meeting");
    fs::create_dir_all(&meeting).unwrap();
    let mut command = Command::new("timeout");
    command
        .arg(RUN_SECONDS_MAX)
        .args(launcher)
        .arg(env!("CARGO_BIN_EXE_strata"))
        .args(words.split_whitespace())
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .env("XDG_STATE_HOME", state_of(scratch.path()))
        .env("XDG_RUNTIME_DIR", &meeting)
        .current_dir(scratch.path())
        .stdin(Stdio::null());
    command
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(crate) fn output(mut command: Command) -> Output {
    command.output().unwrap()
}

/// Whether a program is there; tells that the test is skipped where it is not.
pub(crate) fn has(test: &str, program: &str) -> bool {
    let found = tool(&["sh", "-c", &format!("command -v {program}")]).is_some();
    if !found {
        skipped(test, &format!("{program} is missing"));
    }
    found
}

const WRITE: &str = "media file -s 4m -b 64k --op write --count 60 --json record.json";

/// Asserts one run of three ranks that shared 60 writes out, with output of rank 0 alone and nothing left behind.
fn assert_three_ranks(scratch: &Scratch, ended: &Output) {
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    assert_eq!(text(&ended.stdout).matches(", seed ").count(), 1, "{}", text(&ended.stdout));
    let record = read_record(&scratch.join("record.json"));
    let names: Vec<&str> =
        record["hosts"].as_array().unwrap().iter().map(|host| host["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["rank 0", "rank 1", "rank 2"]);
    assert_eq!(class(&record, 0, "write").0, 60);
    let workers = record["phases"][0]["samples"]["workers"].as_array().unwrap();
    assert_eq!(workers.len(), 3);
    assert_eq!(names_in(&scratch.join("meeting")), Vec::<String>::new());
    assert!(!scratch.join("file").exists());
    fs::remove_file(scratch.join("record.json")).unwrap();
}

#[test]
fn mpirun_makes_one_run_of_its_processes() {
    if !has("mpirun", "mpirun.openmpi") {
        return;
    }
    let scratch = Scratch::new();
    let three = [MPIRUN, &["-np", "3"]].concat();
    // By PMIx, by files where its library is not there, and by files in a directory that the user names.
    let shared = scratch.join("shared");
    fs::create_dir(&shared).unwrap();
    for environment in [
        vec![],
        vec![("STRATA_LIBPMIX", "/nonexistent".to_owned())],
        vec![("STRATA_LAUNCH_DIR", shared.to_str().unwrap().to_owned())],
    ] {
        assert_three_ranks(&scratch, &output(launch(&scratch, &three, WRITE, &environment)));
    }
    assert_eq!(names_in(&shared), Vec::<String>::new());
    // Each by itself, where the user wants it so.
    let none = [("STRATA_LAUNCHER", "none".to_owned())];
    let ended = output(launch(&scratch, &three, "media null: --op read --count 5", &none));
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    assert_eq!(text(&ended.stdout).matches(", seed ").count(), 3);
}

#[test]
fn mpirun_makes_one_run_of_an_application() {
    if !has("applications", "mpirun.openmpi") {
        return;
    }
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("data")).unwrap();
    let two = [MPIRUN, &["-np", "2"]].concat();
    let run = |words: &str| output(launch(&scratch, &two, words, &[]));
    let small = "--steps 2 --set particles=1000,compute=0";
    // The application by its name, and by the path of a description.
    let description = scratch.run("app show vpic --toml").stdout;
    fs::write(scratch.join("mine.toml"), description).unwrap();
    for app in ["vpic", "mine.toml"] {
        let ended = run(&format!("app {app} data {small} --json record.json"));
        assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
        let record = read_record(&scratch.join("record.json"));
        assert_eq!(class(&record, 0, "write"), (2 * 2 * 8, 2 * 2 * 8 * 4000));
        assert_eq!(record["hosts"].as_array().unwrap().len(), 2);
    }
    if scratch.run(&format!("app vpic data {small} --format hdf5")).code != Some(0) {
        return skipped("applications", "libhdf5 is not installed");
    }
    let ended = run(&format!("app vpic data {small},files=rank --format hdf5 --json record.json"));
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    let record = read_record(&scratch.join("record.json"));
    assert_eq!(record["phases"][0]["plan"]["engine"], "hdf5");
    assert_eq!(class(&record, 1, "read").1, 2 * 8 * 4000);
    assert!(names_in(&scratch.join("data")).is_empty());
}

#[test]
fn tools_of_mpi_have_a_task_a_rank() {
    if !has("tools of MPI", "mpirun.openmpi") {
        return;
    }
    let scratch = Scratch::new();
    let ior = |ranks: &str, words: &str| {
        let words = format!("as ior -w -r -b 256k -t 64k -o file {words}");
        let ended = output(launch(&scratch, &[MPIRUN, &["-np", ranks]].concat(), &words, &[]));
        assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
        (text(&ended.stdout), text(&ended.stderr))
    };
    let (shown, _) = ior("4", "-C");
    assert!(
        shown.contains("\ntasks               : 4\n") && shown.contains("aggregate filesize  : 1 MiB"),
        "{shown}"
    );
    assert_eq!(shown.matches("Max Write").count(), 1, "{shown}");
    let (shown, told) = ior("3", "-N 2 -F");
    assert!(shown.contains("\ntasks               : 2\n") && !told.contains("-N"), "{shown}{told}");
    let (shown, told) = ior("2", "-N 8");
    assert!(shown.contains("\ntasks               : 2\n"), "{shown}");
    assert!(told.contains("-N 8 is more than the 2 processes"), "{told}");
    let mdtest = [MPIRUN, &["-np", "3"]].concat();
    let ended = output(launch(&scratch, &mdtest, "as mdtest -n 10 -F -d tree", &[]));
    let shown = text(&ended.stdout);
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    assert!(
        shown.contains("launched with 3 total task(s)") && shown.contains("3 tasks, 30 files"),
        "{shown}"
    );
    let engine = Engine::start(scratch.path(), "--dir tank --pool tank --scm 64m --targets 2");
    let target = format!("engine://{}/tank/box", engine.uri().trim_start_matches("tcp://"));
    let words = format!("as daos_perf --target {target} -o 2 -d 5 -a 2 -n 1 -s 64 -R U;p");
    let ended = output(launch(&scratch, &[MPIRUN, &["-np", "2"]].concat(), &words, &[]));
    let shown = text(&ended.stdout);
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    assert!(shown.contains("2 x 2 (procs)") && shown.contains("UPDATE successfully completed"), "{shown}");
    // What runs in one process says how.
    for (words, told) in [
        ("as vos_perf -f vos --procs 3 -R U", "a multiple of 2"),
        ("as io500 x.ini", "cannot read the file"),
        ("stack", "STRATA_LAUNCHER=none"),
    ] {
        let ended = output(launch(&scratch, &[MPIRUN, &["-np", "2"]].concat(), words, &[]));
        let said = text(&ended.stderr);
        let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("strata: ")).collect();
        assert!(
            ended.status.code() == Some(2) && lines.len() == 1 && lines[0].contains(told),
            "{words}: {said}"
        );
    }
}

#[test]
fn vos_perf_has_a_store_a_rank() {
    if !has("vos_perf", "mpirun.openmpi") {
        return;
    }
    let scratch = Scratch::new();
    let run = |ranks: &str, words: &[&str], tests: &str| {
        let mut command = launch(
            &scratch,
            &[MPIRUN, &["-np", ranks]].concat(),
            "as --json record.json vos_perf -f ./vos -P 16M -d 50 -a 2 -n 1 -s 4K",
            &[],
        );
        command.args(words).args(["-R", tests]);
        let ended = output(command);
        (ended.status.code(), text(&ended.stdout), text(&ended.stderr))
    };
    // Each host has its phases; a test is over once all have done it.
    let hosts_of = |request: u64| -> Vec<u64> {
        let record = read_record(&scratch.join("record.json"));
        let phases = record["phases"].as_array().unwrap();
        let operations = |stage: u64| {
            let own = phases.iter().filter(move |phase| phase["stage"] == stage);
            own.map(|phase| phase["summary"]["total"]["operations"].as_u64().unwrap())
        };
        operations(request).collect()
    };
    let (code, shown, told) = run("3", &["-z"], "U;p F;p V;p");
    assert_eq!(code, Some(0), "{told}");
    assert!(shown.contains("obj_per_cont  : 1 x 3 (procs)") && shown.contains(": ./vos0\n"), "{shown}");
    for test in ["UPDATE", "FETCH", "VERIFY"] {
        assert_eq!(shown.matches(&format!("{test} successfully completed:")).count(), 1, "{shown}");
    }
    for stage in 0..3 {
        assert_eq!(hosts_of(stage), [100, 100, 100]);
    }
    // Duration and rate are those of all ranks.
    let figure = |name: &str| -> f64 {
        let line = shown.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
        line.split(':').nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap()
    };
    assert!((figure("duration") * figure("rate") / 300.0 - 1.0).abs() < 0.02, "{shown}");
    let stores = || -> Vec<String> {
        names_in(scratch.path()).into_iter().filter(|name| name.starts_with("vos")).collect()
    };
    assert!(stores().is_empty());
    // Several stores a process, and processes that stand idle.
    let (code, _, told) = run("2", &["--procs", "4"], "U");
    assert_eq!((code, hosts_of(0).len()), (Some(0), 4), "{told}");
    let (code, _, told) = run("3", &["--procs", "2", "--keep"], "U");
    assert_eq!((code, stores()), (Some(0), vec!["vos0".to_owned(), "vos1".to_owned()]), "{told}");
    // What is there is not overwritten, and is used where it is named; one that is full fails the test of all.
    let (code, _, told) = run("2", &[], "U");
    assert!(code == Some(2) && told.contains("\"./vos0\" already exists"), "{told}");
    let uuid = "a3b7ff28-56ff-4974-9283-62990dd770ad";
    let (code, shown, told) = run("2", &["-u", uuid], "U V;p");
    assert!(code == Some(0) && shown.contains("VERIFY successfully completed"), "{told}");
    assert_eq!(stores().len(), 2);
    let (code, shown, told) = run("2", &["-f", "full", "-P", "1M", "-s", "32K"], "U;p F;p");
    assert!(code == Some(1) && shown.contains("UPDATE failed\n"), "{shown}{told}");
    assert!(told.contains("Failed: host rank ") && !shown.contains("FETCH successfully"), "{told}");
}

#[test]
fn hydra_makes_one_run_of_its_processes_and_bad_usage_is_told_once() {
    if !has("hydra", "mpiexec.hydra") {
        return;
    }
    let scratch = Scratch::new();
    let three = [HYDRA, &["-np", "3"]].concat();
    assert_three_ranks(&scratch, &output(launch(&scratch, &three, WRITE, &[])));
    let ended = output(launch(&scratch, &three, "media file --bogus", &[]));
    assert_eq!((ended.status.code(), text(&ended.stderr).matches("--bogus").count()), (Some(2), 1));
    let ended = output(launch(&scratch, &three, "as ior --help", &[]));
    assert_eq!((ended.status.code(), text(&ended.stdout).matches("Usage: ior").count()), (Some(0), 1));
    let ended = output(launch(&scratch, &three, "media file -s 1m --op read --hosts local:2", &[]));
    assert!(text(&ended.stderr).contains("leave out --hosts"), "{}", text(&ended.stderr));
    // A signal of the launcher: all end, what was made is gone, what was measured is kept.
    let words = "media file -s 4m --op write --time 50s --live none --json record.json";
    let mut command = launch(&scratch, &three, words, &[]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    await_that("a file", SERVE_WAIT, || scratch.join("file").exists());
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    child.wait().unwrap();
    await_that("the end of all", SERVE_WAIT, || {
        fs::read_to_string(scratch.join("record.json")).is_ok_and(|text| text.contains("\"partial\""))
    });
    assert!(!scratch.join("file").exists());
}

/// Daemons of a Slurm of this machine alone; they end with the test.
struct Slurm {
    daemons: Vec<Child>,
    directory: tempfile::TempDir,
}

impl Slurm {
    fn start(test: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skipped(test, "slurmctld and slurmd of a test need root");
            return None;
        }
        if !["munged", "slurmctld", "slurmd", "srun"].iter().all(|program| {
            tool(&["sh", "-c", &format!("PATH=$PATH:/usr/sbin; command -v {program}")]).is_some()
        }) {
            skipped(test, "slurmctld, slurmd, srun or munged is missing");
            return None;
        }
        // Paths of sockets are short, which those of a build need not be.
        let mut slurm = Self { daemons: Vec::new(), directory: tempfile::tempdir().unwrap() };
        slurm.configure();
        let path = |name: &str| slurm.directory.path().join(name).to_str().unwrap().to_owned();
        let (key, socket, configuration) = (path("key"), path("s"), path("slurm.conf"));
        let own = |option: &str, name: &str| format!("--{option}={}", path(name));
        let munge = [
            "munged".to_owned(),
            "--foreground".to_owned(),
            "--force".to_owned(),
            format!("--key-file={key}"),
            format!("--socket={socket}"),
            own("pid-file", "munge.pid"),
            own("log-file", "munge.log"),
            own("seed-file", "munge.seed"),
        ];
        let of = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        slurm.daemon(&munge);
        await_that("munge", SERVE_WAIT, || Path::new(&socket).exists());
        slurm.daemon(&of(&["slurmctld", "-D", "-i", "-f", &configuration]));
        slurm.daemon(&of(&["slurmd", "-D", "-f", &configuration]));
        let is_up = || {
            tool(&["env", &format!("SLURM_CONF={configuration}"), "timeout", "5", "srun", "-n1", "true"])
                .is_some()
        };
        let begun = std::time::Instant::now();
        while !is_up() {
            if begun.elapsed() > SERVE_WAIT {
                skipped(test, "slurmctld and slurmd do not run a job here");
                return None;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Some(slurm)
    }

    fn configure(&self) {
        let at = self.directory.path();
        let write = |name: &str, content: &[u8], mode: u32| {
            fs::write(at.join(name), content).unwrap();
            fs::set_permissions(at.join(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        let mut key = vec![0; 1024];
        std::io::Read::read_exact(&mut fs::File::open("/dev/urandom").unwrap(), &mut key).unwrap();
        write("key", &key, 0o600);
        ["state", "spool"].iter().for_each(|name| fs::create_dir(at.join(name)).unwrap());
        let port = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let name = rustix::system::uname().nodename().to_string_lossy().split('.').next().unwrap().to_owned();
        let place = at.to_str().unwrap();
        let text = format!(
            "ClusterName=strata\nSlurmctldHost={name}(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\nAuthType=auth/munge\n\
             AuthInfo=socket={place}/s\nSlurmctldPort={}\nSlurmdPort={}\nStateSaveLocation={place}/state\n\
             SlurmdSpoolDir={place}/spool\nSlurmctldPidFile={place}/ctld.pid\nSlurmdPidFile={place}/d.pid\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSwitchType=switch/none\nSchedulerType=sched/builtin\n\
             SelectType=select/linear\nReturnToService=2\nMpiDefault=none\nJobAcctGatherType=jobacct_gather/none\n\
             NodeName={name} NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN\n\
             PartitionName=all Nodes=ALL Default=YES OverSubscribe=FORCE:4 State=UP\n",
            port(),
            port()
        );
        write("slurm.conf", text.as_bytes(), 0o644);
    }

    fn daemon(&mut self, words: &[String]) {
        let mut command = Command::new(&words[0]);
        command.env("PATH", format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default()));
        command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.daemons.push(command.spawn().unwrap());
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        vec![("SLURM_CONF", self.directory.path().join("slurm.conf").to_str().unwrap().to_owned())]
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().rev() {
            let _ = kill_process(Pid::from_child(daemon), Signal::TERM);
            let _ = daemon.wait();
        }
    }
}

/// Processes of a command whose environment has this line.
pub(crate) fn process_with(line: &str, under: &Path) -> Option<Pid> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let found = pids.find(|pid| {
        let at = PathBuf::from(format!("/proc/{pid}"));
        let environment = fs::read(at.join("environ")).unwrap_or_default();
        let program = fs::read_link(at.join("exe")).unwrap_or_default();
        let is_leader = !text(&fs::read(at.join("cmdline")).unwrap_or_default()).contains("--local");
        let here = fs::read_link(at.join("cwd")).is_ok_and(|cwd| cwd == under);
        let has = environment.split(|byte| *byte == 0).any(|one| one == line.as_bytes());
        here && has && is_leader && program.ends_with("strata")
    });
    Pid::from_raw(found?)
}

#[test]
fn srun_makes_one_run_of_its_tasks() {
    let Some(slurm) = Slurm::start("srun") else { return };
    let scratch = Scratch::new();
    let environment = slurm.environment();
    for mpi in ["none", "pmi2", "pmix"] {
        let mpi = format!("--mpi={mpi}");
        let three = ["srun", "-n", "3", "--overcommit", "--quiet", &mpi];
        assert_three_ranks(&scratch, &output(launch(&scratch, &three, WRITE, &environment)));
    }
    // A batch script is one process, however many tasks its job has.
    let script =
        format!("#!/bin/sh\nexec {} media null: --op read --count 9\n", env!("CARGO_BIN_EXE_strata"));
    fs::write(scratch.join("job.sh"), script).unwrap();
    let mut batch = Command::new("timeout");
    batch.args([RUN_SECONDS_MAX, "sbatch", "--wait", "-n", "3", "--overcommit", "-o", "job.out", "job.sh"]);
    let ended = output({
        batch.current_dir(scratch.path()).envs(environment.clone());
        batch
    });
    let shown = fs::read_to_string(scratch.join("job.out")).unwrap_or_default();
    assert!(ended.status.success() && shown.contains("1 thread"), "{}{shown}", text(&ended.stderr));
    // Rank 0 is killed: the others say so and end, and what was made is gone.
    let words = "media file -s 4m --op write --time 50s --live none";
    let three = ["srun", "-n", "3", "--overcommit"];
    let mut command = launch(&scratch, &three, words, &environment);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    await_that("a file", SERVE_WAIT, || scratch.join("file").exists());
    let here = fs::canonicalize(scratch.path()).unwrap();
    kill_process(process_with("SLURM_PROCID=0", &here).expect("rank 0"), Signal::KILL).unwrap();
    let ended = child.wait_with_output().unwrap();
    let said = text(&ended.stderr);
    assert!(ended.status.code() != Some(0) && said.contains("rank 0 has ended (rank=1)"), "{said}");
    await_that("the end of its host", SERVE_WAIT, || !scratch.join("file").exists());
}

/// Environment of a rank of a Slurm that gives no channel of its own.
fn rank_of_slurm(scratch: &Scratch, rank: u32) -> Vec<(&'static str, String)> {
    let fixed = [
        ("SLURM_STEP_NUM_TASKS", "2"),
        ("SLURM_STEP_ID", "0"),
        ("SLURM_JOB_ID", "7"),
        ("STRATA_LAUNCH_TIMEOUT", "1"),
    ];
    let mut all: Vec<_> = fixed.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    all.push(("SLURM_PROCID", rank.to_string()));
    all.push(("SLURM_STEP_NUM_NODES", "1".to_owned()));
    all.push(("XDG_RUNTIME_DIR", scratch.path().to_str().unwrap().to_owned()));
    all
}

#[test]
fn a_rank_that_does_not_come_is_named() {
    let scratch = Scratch::new();
    let words = "media null: --op read --count 9";
    let ended = scratch.start_in(words, &rank_of_slurm(&scratch, 0)).end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("rank 1 of 2 did not connect within 1s"), "{}", ended.stderr);
    let ended = scratch.start_in(words, &rank_of_slurm(&scratch, 1)).end();
    assert!(ended.code == Some(1) && ended.stderr.contains("rank 0 did not connect"), "{}", ended.stderr);
    assert_eq!(scratch.names(), Vec::<String>::new());
    // What others may read is no place for a secret.
    let user = rustix::process::geteuid().as_raw();
    let open = scratch.join(&format!("strata-launch-{user}-slurm-7.0"));
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
    let ended = scratch.start_in(words, &rank_of_slurm(&scratch, 1)).end();
    assert!(ended.code == Some(2) && ended.stderr.contains("accessible to other users"), "{}", ended.stderr);
    assert_eq!(names_in(&open), Vec::<String>::new());
    // Over several nodes there is no directory that all see, unless it is given.
    let several = [rank_of_slurm(&scratch, 0), vec![("SLURM_STEP_NUM_NODES", "2".to_owned())]].concat();
    let ended = scratch.start_in(words, &several).end();
    assert!(ended.code == Some(2) && ended.stderr.contains("srun --mpi=pmi2"), "{}", ended.stderr);
}

#[test]
fn variables_that_cannot_be_are_refused() {
    let scratch = Scratch::new();
    for (name, value, told) in [
        ("STRATA_LAUNCHER", "lsf", "accepted: auto, none, openmpi"),
        ("STRATA_LAUNCHER", "mpich", "has no PMI_RANK"),
        ("SLURM_PROCID", "2", "below the size"),
        ("SLURM_PROCID", "x", "SLURM_PROCID"),
    ] {
        let environment = [rank_of_slurm(&scratch, 0), vec![(name, value.to_owned())]].concat();
        let ended = scratch.start_in("media null: --op read --count 9", &environment).end();
        assert_eq!((ended.code, ended.stderr.lines().count()), (Some(2), 1), "{}", ended.stderr);
        assert!(ended.stderr.contains(told), "{}", ended.stderr);
    }
    // A report is each process's own.
    assert_eq!(scratch.start_in("list", &rank_of_slurm(&scratch, 1)).end().code, Some(0));
}

/// Answers one process as a manager that speaks PMI-1 does, but no barrier.
fn manage(stream: TcpStream) {
    let mut writer = stream.try_clone().unwrap();
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        let answer = match line.split_whitespace().next().unwrap_or_default() {
            "cmd=initack" => "cmd=initack rc=0\ncmd=set size=2\ncmd=set rank=0\ncmd=set debug=0\n",
            "cmd=init" => "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n",
            "cmd=get_my_kvsname" => "cmd=my_kvsname kvsname=space\n",
            "cmd=put" => "cmd=put_result rc=0 msg=success\n",
            _ => continue,
        };
        writer.write_all(answer.as_bytes()).unwrap();
    }
}

#[test]
fn a_process_manager_is_reached_by_its_port() {
    let scratch = Scratch::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap().to_string();
    let manager = std::thread::spawn(move || manage(listener.accept().unwrap().0));
    let environment =
        [("PMI_RANK", "0"), ("PMI_SIZE", "2"), ("PMI_PORT", &place), ("STRATA_LAUNCH_TIMEOUT", "1")]
            .map(|(name, value)| (name, value.to_owned()));
    let ended = scratch.start_in("media null: --op read --count 9", &environment).end();
    assert!(ended.code == Some(1) && ended.stderr.contains("not all ranks connected"), "{}", ended.stderr);
    manager.join().unwrap();
    let gone = [("PMI_RANK", "0"), ("PMI_SIZE", "2"), ("PMI_FD", "77")]
        .map(|(name, value)| (name, value.to_owned()));
    let ended = scratch.start_in("media null: --op read --count 9", &gone).end();
    assert!(ended.code == Some(2) && ended.stderr.contains("has not inherited"), "{}", ended.stderr);
}

#[test]
fn pods_of_an_indexed_job_find_each_other_by_name() {
    let scratch = Scratch::new();
    let token = scratch.join("token");
    fs::write(&token, "a token of the tests alone\n").unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let pod = |index: u32| {
        let mut environment = vec![
            ("JOB_COMPLETION_INDEX", index.to_string()),
            ("STRATA_LAUNCH_SIZE", "3".to_owned()),
            // Each address of 127.0.0.0/8 is one of this machine.
            ("STRATA_LAUNCH_ADDRESS", format!("127.0.0.1{{rank}}:{port}")),
        ];
        environment.push(("STRATA_TOKEN_FILE", token.to_str().unwrap().to_owned()));
        environment
    };
    let words = "media null: --op read --count 90 --json record.json";
    let pods = [2, 1, 0].map(|index| scratch.start_in(words, &pod(index)));
    for (ended, index) in pods.map(super::support::Running::end).into_iter().zip([2, 1, 0]) {
        assert_eq!(ended.code, Some(0), "{index}: {}", ended.stderr);
        assert_eq!(ended.stdout.is_empty(), index != 0, "{index}: {}", ended.stdout);
    }
    let record: Value = read_record(&scratch.join("record.json"));
    assert_eq!((record["hosts"].as_array().unwrap().len(), class(&record, 0, "read").0), (3, 90));
    let without: Vec<_> = pod(1).into_iter().filter(|(name, _)| *name != "STRATA_TOKEN_FILE").collect();
    let ended = scratch.start_in(words, &without).end();
    assert!(ended.code == Some(2) && ended.stderr.contains("STRATA_TOKEN_FILE"), "{}", ended.stderr);
}
