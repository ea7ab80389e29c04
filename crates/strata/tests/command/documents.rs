//! Commands of README and docs run as they stand there, in the order of each document, in a directory that stands for the machine. Sizes and
//! times are reduced by the rules of documents/reduce.sed; documents/machine.sh makes what the commands find.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use testkit::s3::{S3Options, S3Server};

use crate::support::{Loop, NO_ROOT, Scratch, skipped};

/// Commands that are not run, by how they begin, and why.
const NOT_RUN: &[(&str, &str)] = &[
    ("make ", "a build of its own"),
    ("ln -s ", "changes the home of its user"),
    ("strata media TARGET", "no command but its form"),
    ("strata object rados:", "needs a Ceph cluster"),
    ("strata object recipes rados:", "needs a Ceph cluster"),
    ("strata media rbd:", "needs a Ceph cluster"),
    ("strata as fio --name=x --ioengine=rbd", "needs a Ceph cluster"),
    ("strata as fio --name=x --ioengine=dfs --pool=tank", "needs a DAOS system"),
    ("strata object daos:", "needs a DAOS system"),
    ("strata as daos_perf -u", "needs a DAOS system"),
    ("strata as self_test -u", "needs a group of 16 targets for 100,000 repetitions"),
    ("strata as spdk_nvme_perf", "needs a drive"),
    ("strata mount ", "stays in the foreground until it is unmounted"),
    ("strata net --endpoint 0-3:2 --master", "needs engines of several ranks"),
    (
        "strata net --path /shared --token-file secret --endpoint 0-3:2 --master",
        "needs engines of several ranks",
    ),
    ("strata net tcp://192", "needs a server elsewhere"),
    ("strata stack --engine", "needs a server elsewhere"),
    ("strata stack --stack-object", "needs a server elsewhere"),
    ("strata as elbencho --netbench", "needs services on other machines"),
    ("elbencho --service", "needs services on other machines"),
    ("elbencho --netbench", "needs services on other machines"),
    ("elbencho --s3endpoints", "needs servers elsewhere"),
    ("elbencho --hosts", "needs services on other machines"),
    ("srun ", "needs a cluster with Slurm"),
    ("ssh ", "needs a cluster with Slurm"),
    ("mpirun ", "needs a cluster with MPI"),
    ("strata media data --size 4g --op read --block-size 1m --memory gpu", "needs a GPU"),
    ("strata media data --size 4g --op read --block-size 1m --gpu-path", "needs a GPU"),
    ("strata media mem: --op read --block-size 64m --memory gpu", "needs a GPU"),
    ("strata as fdb-hammer --read ...", "no command but its form"),
    ("jq ", "a tool of others"),
    ("h5ls ", "names the directory of a run"),
    ("strata fs dfs+vos:/dev/shm/pool --door all", "needs the interception library beside the program"),
    ("strata app fdb-hammer engine://HOST:PORT", "names a server of the reader's"),
    ("strata container snapshot vos:/dev/shm/pool cont --destroy EPOCH", "names an epoch of a moment"),
    (
        "strata object vos:/dev/shm/pool --container cont --op get --dkeys 100000 --snapshot",
        "names an epoch of a moment",
    ),
    (
        "strata object engine://127.0.0.1:31416/tank/cont --op list,stat,get --snapshot",
        "names an epoch of a moment",
    ),
    ("strata object engine://node00", "needs a server elsewhere"),
    ("strata object audit said engine:", "needs the same pool on another machine"),
    ("strata suite io500 /mnt/fs --ranks 16", "takes an hour"),
    ("strata as io500 config.ini --ranks 16", "takes an hour"),
    ("strata as io500 config.ini --verify", "names the results of a run of a moment"),
    ("strata suite io500 --resume", "names the results of a run of a moment"),
    ("strata clean --yes r", "names the results of a run of a moment"),
    ("strata clean --yes R", "names a record of the reader's"),
];

/// Places that stand for others: `@` is the directory of the document.
const PLACES: &[(&str, &str)] = &[
    ("/mnt/", "@/mnt/"),
    ("/scratch", "@/scratch"),
    ("/lustre/", "@/lustre/"),
    ("/var/lib/db", "@/db"),
    (" /data/", " @/vol/"),
    ("/dev/shm", "@/shm"),
    ("/tmp/test", "@/test"),
    ("--path /shared", "--path @/shared"),
    ("10.0.0.1:0", "127.0.0.1:0"),
    ("HOST:PORT/POOL", "127.0.0.1:$PORT/tank"),
    ("31416", "$PORT"),
    ("/dev/nvme0n1", "$LOOP"),
    ("/dev/nvme1n1", "$LOOP"),
    ("https://s3.example", "$S3"),
    ("http://127.0.0.1:7480", "$S3"),
    ("http://gw:7480", "$S3"),
];

/// The root of the sources.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the sources")
}

/// The commands of a document: the lines of its blocks of shell, those that go on with a backslash as one.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_shell = false;
    for line in text.replace("\\\n", " ").replace(" |\n", " | ").lines() {
        match line {
            "```sh" => is_shell = true,
            "```" => is_shell = false,
            _ if is_shell && !line.trim().is_empty() && !line.starts_with('#') => {
                found.push(line.trim().to_owned());
            }
            _ => {}
        }
    }
    found
}

fn is_run(command: &str) -> bool {
    !NOT_RUN.iter().any(|(begin, _)| command.starts_with(begin))
}

/// All documents, by their path below the root.
fn documents() -> Vec<String> {
    let mut found = vec!["README.md".to_owned()];
    for folder in ["docs", "docs/dialects"] {
        let entries = fs::read_dir(root().join(folder)).expect("documents");
        let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"));
        found.extend(names.filter(|name| name.ends_with(".md")).map(|name| format!("{folder}/{name}")));
    }
    found.sort();
    found
}

/// The command for this machine: `sed` with the rules.
fn reduced(commands: &[String], directory: &Path) -> Vec<String> {
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command/documents/reduce.sed");
    let mut text = commands.join("\n");
    for (place, here) in PLACES {
        text = text.replace(place, &here.replace('@', directory.to_str().expect("a plain path")));
    }
    let mut sed = Command::new("sed")
        .arg("-Ef")
        .arg(rules)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("sed");
    sed.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("sed reads");
    let output = sed.wait_with_output().expect("sed ends");
    assert!(output.status.success(), "sed refuses the rules");
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
}

/// Runs the commands of a document; those that fail, with their last lines.
fn failures(document: &str, device: &Loop, server: &S3Server, options: &S3Options) -> String {
    let commands: Vec<_> = commands(&fs::read_to_string(root().join(document)).expect("a document"))
        .into_iter()
        .filter(|command| is_run(command))
        .collect();
    if commands.is_empty() {
        return String::new();
    }
    let scratch = Scratch::new();
    let mut script = String::from(". \"$MACHINE\"\n");
    for command in reduced(&commands, scratch.path()) {
        script += &format!("run <<'COMMAND'\n{command}\nCOMMAND\n");
    }
    script += "finish\n";
    let mut bash = Command::new("bash");
    bash.arg("-c").arg(script).current_dir(scratch.path()).stdin(Stdio::null());
    bash.env("MACHINE", Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command/documents/machine.sh"));
    bash.env("STRATA", env!("CARGO_BIN_EXE_strata")).env("ROOT", root()).env("LOOP", &device.device);
    bash.env("S3", server.endpoint()).env("AWS_ACCESS_KEY_ID", &options.access);
    bash.env("AWS_SECRET_ACCESS_KEY", &options.secret);
    let output = bash.output().expect("bash");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let is_good = output.status.success() && text.is_empty();
    if is_good { text } else { format!("{document}:\n{text}{}\n", String::from_utf8_lossy(&output.stderr)) }
}

/// Documents that are asked for (`make documents`): all, or these, parted by commas.
const ASKED: &str = "STRATA_DOCUMENTS";

/// Documents that run beside each other: most of their commands wait.
const BESIDE: usize = 3;

#[test]
fn commands_of_documents_run_as_they_stand() {
    let test = "commands_of_documents_run_as_they_stand";
    let Ok(asked) = std::env::var(ASKED) else {
        return skipped(test, "it takes minutes: make documents, or STRATA_DOCUMENTS=all");
    };
    let is_asked = |name: &String| asked == "all" || asked.split(',').any(|other| other == name);
    let mut left: Vec<String> = documents().into_iter().filter(is_asked).collect();
    // The longest begins first, so that none of them runs alone at the end: a stack takes as long as many other commands.
    let length = |name: &String| {
        let commands = commands(&fs::read_to_string(root().join(name)).expect("a document"));
        let is_long = |command: &&String| command.starts_with("strata stack") && is_run(command);
        commands.len() + 20 * commands.iter().filter(is_long).count()
    };
    left.sort_by_cached_key(length);
    let (left, failed, skips) = (Mutex::new(left), Mutex::new(String::new()), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..BESIDE {
            scope.spawn(|| {
                let scratch = Scratch::new();
                let Some(device) = Loop::new(scratch.path(), 64 << 20) else {
                    return skips.store(true, Ordering::Relaxed);
                };
                let options = S3Options::default();
                let server = S3Server::start(S3Options::default()).expect("a server");
                assert!(server.store().create_bucket("bucket"));
                let next = || left.lock().expect("a list").pop();
                while let Some(document) = next() {
                    let told = failures(&document, &device, &server, &options);
                    failed.lock().expect("text").push_str(&told);
                }
            });
        }
    });
    if skips.into_inner() {
        return skipped(test, NO_ROOT);
    }
    let failed = failed.into_inner().expect("text");
    assert!(failed.is_empty(), "commands of documents that fail as they stand:\n{failed}");
}

#[test]
fn commands_that_are_not_run_are_there() {
    let all: Vec<_> = documents()
        .iter()
        .flat_map(|document| commands(&fs::read_to_string(root().join(document)).expect("a document")))
        .collect();
    let stale: Vec<_> =
        NOT_RUN.iter().filter(|(begin, _)| !all.iter().any(|command| command.starts_with(begin))).collect();
    assert!(stale.is_empty(), "in no document: {stale:?}");
    let run = all.iter().filter(|command| is_run(command)).count();
    assert!(run > 130, "{run} of {} commands", all.len());
}
