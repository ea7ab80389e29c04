//! Several hosts on the same files: together they do what one with as many workers does, no more and no less.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use driver::{Error, ErrorKind};
use filesystem::{Filesystem, FsPlan};
use layer::hosts::Together;
use layer::observations::FileActivity;
use layer::{Journal, LayerRun, Measured, Phase, Planning, RunContext, Seed, Seen, StageContext};
use runner::NoReports;
use serde_json::Value;
use workload::layers::Layer;
use workload::options;
use workload::plan::{HostPlace, HostTargets};
use workload::spec::Spec;

/// A list of one host, of run 7.
struct List(Mutex<Value>);

impl Journal for List {
    fn run(&self) -> u64 {
        7
    }

    fn owner(&self) -> u64 {
        0
    }

    fn note(&self, _key: &'static str, made: Value) -> Result<(), Error> {
        *self.0.lock().unwrap() = made;
        Ok(())
    }

    fn noted(&self, _key: &str) -> Value {
        self.0.lock().unwrap().clone()
    }
}

/// A host with its layer.
struct Host {
    run: Box<dyn LayerRun>,
    phases: Vec<Phase>,
}

fn spec(words: &[(&str, &str)], target: &Path, place: Option<HostPlace>) -> Spec {
    Layer::add(Filesystem.definition());
    let mut spec = Spec::of_layer("filesystem").unwrap();
    spec.targets = vec![target.to_str().unwrap().to_owned()];
    spec.place = place;
    for (name, value) in words {
        options::apply(&mut spec, name, value).unwrap();
    }
    spec
}

impl Host {
    fn new(spec: &Spec, together: Option<(&Arc<Together>, u32)>) -> Result<Self, Error> {
        let context = RunContext {
            journal: Arc::new(List(Mutex::new(Value::Null))),
            interrupt: Arc::new(AtomicBool::new(false)),
            keep: spec.keep,
            tell: |_| {},
            hosts: together.map(|(together, rank)| together.seen_by(rank)),
        };
        let mut run = Filesystem.begin(&context);
        let mut spec = spec.clone();
        run.find(&mut [&mut spec])?;
        let planning = Planning { before: &[], number: 0, seed: Seed::OfRun(1) };
        let phases = run.phases(&spec, &planning)?;
        Ok(Self { run, phases })
    }

    /// Gets a phase ready and runs it; `ready` is called in between.
    fn stage(&mut self, number: usize, ready: &dyn Fn()) -> Result<Seen, Error> {
        let Self { run, phases } = self;
        let context = StageContext { number, interrupt: Arc::default(), progress: &|_, _| (), tell: |_| {} };
        let part = run.part(vec![&phases[number]], &[], &context);
        ready();
        let (_, mut seen) =
            layer::run(vec![(vec![0], part?)], &mut || Ok(None), &mut |_| {}, &mut NoReports)?;
        Ok(seen.remove(0))
    }
}

/// Work of a phase, of all hosts.
#[derive(Debug, Default, PartialEq)]
struct Done {
    name: String,
    operations: u64,
    errors: u64,
    bytes: u64,
    files: Option<FileActivity>,
    failures: Vec<String>,
}

fn add(done: &mut Done, seen: &Seen) {
    for worker in &seen.0.samples.workers {
        done.errors += worker.errors.iter().map(|error| error.count).sum::<u64>();
        done.failures.extend(worker.errors.iter().map(|error| format!("{}: {}", error.class, error.cause)));
        for class in &worker.classes {
            done.operations += class.operations;
            done.bytes += class.bytes;
        }
    }
    done.failures.extend(seen.0.failure.clone());
}

/// Runs a load on so many hosts: the first gets ready before the others, and is the last to end. Its end removes what is there unless it is kept.
fn run(words: &[(&str, &str)], target: &Path, hosts: u32, ends: bool) -> Vec<Done> {
    let together = (hosts > 1).then(|| Together::new(hosts));
    let mut all: Vec<Host> = (0..hosts)
        .map(|rank| {
            let place = HostPlace { rank, hosts, ..HostPlace::default() };
            let mut spec = spec(words, target, together.as_ref().map(|_| place));
            // They are on one machine.
            spec.host_targets = together.as_ref().map(|_| HostTargets::Shared);
            Host::new(&spec, together.as_ref().map(|together| (together, rank))).unwrap()
        })
        .collect();
    let mut done = Vec::new();
    for number in 0..all[0].phases.len() {
        let seen: Vec<Mutex<Option<Seen>>> = (0..hosts).map(|_| Mutex::new(None)).collect();
        let turn = Mutex::new(0);
        let barrier = std::sync::Barrier::new(hosts as usize);
        std::thread::scope(|scope| {
            for (rank, host) in all.iter_mut().enumerate() {
                let (seen, turn, barrier) = (&seen[rank], &turn, &barrier);
                // A host's state stays with one thread at a time.
                let mut host = Alone(host);
                scope.spawn(move || {
                    let host = &mut host;
                    while *turn.lock().unwrap() != rank {
                        std::thread::yield_now();
                    }
                    let ready = || {
                        *turn.lock().unwrap() += 1;
                        barrier.wait();
                    };
                    *seen.lock().unwrap() = Some(host.0.stage(number, &ready).unwrap());
                });
            }
        });
        let seen: Vec<Seen> = seen.into_iter().map(|seen| seen.into_inner().unwrap().unwrap()).collect();
        let name = all[0].phases[number].plan.name().to_owned();
        let mut one = Done { name, ..Done::default() };
        seen.iter().for_each(|seen| add(&mut one, seen));
        for files in seen.iter().filter_map(|seen| seen.1.files.as_ref()) {
            one.files.get_or_insert(FileActivity { items: 0, ..FileActivity::default() }).add(files);
        }
        done.push(one);
    }
    if ends {
        all.iter_mut().rev().for_each(|host| host.run.end().unwrap());
    }
    done
}

/// A host that one thread at a time has.
struct Alone<'a>(&'a mut Host);

// SAFETY: what a layer keeps is used by the one thread that has it; the scope ends before another has.
unsafe impl Send for Alone<'_> {}

/// Names below a directory, with the content of files.
fn content(at: &Path) -> BTreeMap<String, Option<Vec<u8>>> {
    fn walk(at: &Path, below: &str, to: &mut BTreeMap<String, Option<Vec<u8>>>) {
        for entry in std::fs::read_dir(at).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{below}/{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                walk(&entry.path(), &name, to);
                to.insert(name, None);
            } else {
                to.insert(name, Some(std::fs::read(entry.path()).unwrap()));
            }
        }
    }
    let mut all = BTreeMap::new();
    walk(at, "", &mut all);
    all
}

/// The same load by one host with so many threads, and by so many hosts with one: they do the same, and what they leave is the same to the byte.
fn compare(words: &[(&str, &str)], hosts: u32, file: Option<&str>) {
    let one = tempfile::tempdir().unwrap();
    let many = tempfile::tempdir().unwrap();
    let at = |scratch: &tempfile::TempDir| match file {
        Some(file) => scratch.path().join(file),
        None => scratch.path().join("t"),
    };
    let keep = ("keep", "true");
    let verify_run = [("verify", "true"), ("verify-run", "9")];
    let moves = words
        .iter()
        .any(|(name, value)| *name == "op" && (value.contains("write") || value.contains("read")));
    let with = |threads: &'static str| {
        let own: Vec<(&str, &str)> = words.iter().copied().chain([keep, ("threads", threads)]).collect();
        if moves { own.into_iter().chain(verify_run).collect() } else { own }
    };
    let threads = ["", "1", "2", "3", "4"][hosts as usize];
    let local = run(&with(threads), &at(&one), 1, true);
    let together = run(&with("1"), &at(&many), hosts, true);
    assert_eq!(local, together, "{words:?}");
    assert!(local.iter().all(|done| done.errors == 0 && done.operations > 0), "{local:?}");
    assert_eq!(content(one.path()), content(many.path()), "{words:?}");
}

#[test]
fn trees_of_ranks_are_those_of_one_host() {
    compare(&[("op", "tree-create,create,stat"), ("dirs", "2"), ("files", "3")], 3, None);
    compare(
        &[
            ("op", "write,read"),
            ("dirs", "2"),
            ("files", "3"),
            ("file-size", "9k"),
            ("block-size", "4k"),
            ("rank-shift", "1"),
        ],
        4,
        None,
    );
    compare(
        &[
            ("op", "write,read"),
            ("files", "5"),
            ("item-order", "random"),
            ("order", "random"),
            ("file-size", "16k"),
            ("block-size", "4k"),
            ("rank-shift", "random"),
        ],
        3,
        None,
    );
    compare(
        &[("op", "mkdir,dir-stat,create,readdir,find"), ("branch", "2"), ("levels", "2"), ("files", "3")],
        2,
        None,
    );
    compare(
        &[
            ("op", "tree-create,create,stat,unlink,tree-remove"),
            ("names", "mdtest"),
            ("branch", "2"),
            ("levels", "1"),
            ("files", "2"),
        ],
        3,
        None,
    );
    compare(
        &[("op", "tree-create,create,stat"), ("names", "elbencho"), ("dirs", "2"), ("files", "2")],
        2,
        None,
    );
}

#[test]
fn a_shared_tree_is_that_of_one_host() {
    compare(
        &[("op", "tree-create,create,stat,readdir"), ("dirs", "2"), ("files", "3"), ("shared-tree", "true")],
        3,
        None,
    );
    compare(
        &[
            ("op", "create,stat,unlink"),
            ("dirs", "2"),
            ("files", "3"),
            ("shared-tree", "true"),
            ("rank-shift", "1"),
        ],
        3,
        None,
    );
}

#[test]
fn files_without_a_tree_are_those_of_one_host() {
    let shared = [
        ("shape", "shared"),
        ("op", "write,read"),
        ("file-size", "16k"),
        ("block-size", "4k"),
        ("segments", "3"),
    ];
    compare(&shared, 4, Some("data"));
    compare(
        &[&shared[..], &[("rank-shift", "1"), ("barriers", "true"), ("order", "random")]].concat(),
        3,
        Some("data"),
    );
    let private = [("shape", "private"), ("op", "write,read"), ("file-size", "16k"), ("block-size", "4k")];
    compare(&[&private[..], &[("rank-shift", "1"), ("barriers", "true")]].concat(), 4, Some("data"));
    compare(
        &[&private[..], &[("unique-directories", "true"), ("rank-shift", "random")]].concat(),
        3,
        Some("data"),
    );
}

#[test]
fn what_hosts_made_they_remove() {
    for words in [
        &[("op", "write,read"), ("dirs", "2"), ("files", "3"), ("file-size", "4k")][..],
        &[("op", "create,mkdir"), ("files", "3"), ("shared-tree", "true")],
        &[("op", "create"), ("names", "elbencho"), ("files", "3")],
        &[("op", "write"), ("shape", "private"), ("unique-directories", "true"), ("file-size", "4k")],
        &[("op", "write,read"), ("shape", "shared"), ("file-size", "4k"), ("block-size", "4k")],
    ] {
        let scratch = tempfile::tempdir().unwrap();
        let done = run(words, &scratch.path().join("t"), 3, true);
        assert!(done.iter().all(|done| done.failures.is_empty() && done.operations > 0), "{done:?}");
        assert!(content(scratch.path()).is_empty(), "{words:?}: {:?}", content(scratch.path()).keys());
    }
}

#[test]
fn all_hosts_end_with_as_many_items_at_a_stonewall() {
    let scratch = tempfile::tempdir().unwrap();
    let words = [
        ("op", "create,stat,unlink"),
        ("files", "1000000"),
        ("time", "100ms"),
        ("wear-out", "true"),
        ("keep", "true"),
    ];
    let done = run(&words, scratch.path(), 3, false);
    let wall = done[0].files.unwrap_ref().stonewall.expect("it stood");
    assert!(wall.items_max > 0 && wall.items_min <= wall.items_max && wall.items <= 3 * wall.items_max);
    // Each worker of each host has made as many as the one that had made most.
    assert_eq!(done[0].files.unwrap_ref().items, 3 * wall.items_max, "{done:?}");
    let files = content(scratch.path()).into_values().flatten().count() as u64;
    assert!(done.iter().all(|done| done.errors == 0), "{done:?}");
    assert!(files < 3 * wall.items_max, "unlink has begun");
}

trait UnwrapRef<T> {
    fn unwrap_ref(&self) -> &T;
}

impl<T> UnwrapRef<T> for Option<T> {
    fn unwrap_ref(&self) -> &T {
        self.as_ref().unwrap()
    }
}

#[test]
fn ranks_that_made_less_are_read_as_far_as_they_came() {
    let scratch = tempfile::tempdir().unwrap();
    // The hosts make different numbers of files before time is up; the others look at no more than there are.
    let words = [
        ("op", "create,stat"),
        ("files", "1000000"),
        ("time", "50ms"),
        ("rank-shift", "1"),
        ("keep", "true"),
    ];
    let shift_of_stat = run(&words, scratch.path(), 3, false);
    assert!(
        shift_of_stat.iter().all(|done| done.errors == 0 && done.failures.is_empty()),
        "{shift_of_stat:?}"
    );
    assert!(shift_of_stat[1].operations > 0);
}

#[test]
fn hosts_with_targets_of_their_own_do_what_each_would_alone() {
    let scratch = tempfile::tempdir().unwrap();
    let place = HostPlace { rank: 1, hosts: 2, ..HostPlace::default() };
    let mut asked = spec(&[("op", "write"), ("files", "2"), ("threads", "2")], scratch.path(), Some(place));
    asked.host_targets = Some(HostTargets::Own);
    let together = Together::new(2);
    let host = Host::new(&asked, Some((&together, 1))).unwrap();
    let plan = host.phases.last().unwrap().plan.of::<FsPlan>().unwrap();
    assert_eq!((plan.set.ranks, plan.load.place.unwrap().targets), (2, HostTargets::Own));
    assert_eq!(plan.ranks_here().collect::<Vec<_>>(), [0, 1]);
    asked.host_targets = Some(HostTargets::Shared);
    let host = Host::new(&asked, Some((&together, 1))).unwrap();
    let plan = host.phases.last().unwrap().plan.of::<FsPlan>().unwrap();
    assert_eq!((plan.set.ranks, plan.ranks_here().collect::<Vec<_>>()), (4, vec![2, 3]));
}

#[test]
fn a_host_that_does_not_see_the_first_ones_directory_says_so() {
    let scratch = tempfile::tempdir().unwrap();
    let place = HostPlace { rank: 1, hosts: 2, ..HostPlace::default() };
    let together = Together::new(2);
    let mut asked = spec(&[("op", "create"), ("files", "2")], scratch.path(), Some(place));
    asked.host_targets = Some(HostTargets::Shared);
    let mut host = Host::new(&asked, Some((&together, 1))).unwrap();
    let error = host.stage(0, &|| ()).expect_err("nothing is there");
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().contains("--host-targets own"), "{error}");
    assert!(content(scratch.path()).is_empty());
    let pool = scratch.path().join("pool");
    let mut on_store = spec(&[("op", "create")], &pool, Some(place));
    on_store.host_targets = Some(HostTargets::Shared);
    on_store.targets = vec![format!("dfs+vos:{}", pool.display())];
    let error = Host::new(&on_store, Some((&together, 1))).err().expect("one process has it").to_string();
    assert!(error.contains("engine://"), "{error}");
}
