//! `daos://` on the libdaos of the object layer's tests, which behaves as libdaos 2.8 does: no DAOS system is needed.

use std::path::PathBuf;
use std::sync::OnceLock;

use rustix::process::Signal;

use crate::support::{Ended, Running, Scratch, names_in, read_record, skipped, state_of};

#[path = "../../../layers/object/tests/fake_daos/mod.rs"]
mod fake_daos;

/// The library, compiled once; none where there is no C compiler.
fn library() -> Option<&'static PathBuf> {
    static LIBRARY: OnceLock<Option<PathBuf>> = OnceLock::new();
    let made = LIBRARY.get_or_init(|| match fake_daos::compile() {
        Ok(file) => Some(file),
        Err(missing) => {
            skipped("daos", &missing);
            None
        }
    });
    made.as_ref()
}

/// A directory to run in, and what stands behind the library.
struct Bed {
    scratch: Scratch,
    world: Vec<(&'static str, String)>,
}

impl Bed {
    fn new(world: &str) -> Option<Self> {
        let scratch = Scratch::new();
        let library = library()?.display().to_string();
        let left = scratch.join("left").display().to_string();
        let world =
            vec![("STRATA_LIBDAOS", library), ("FAKE_DAOS", world.to_owned()), ("FAKE_DAOS_LEFT", left)];
        Some(Self { scratch, world })
    }

    /// With a container of others, in which object 1 of every type holds a key.
    fn of_others(world: &str) -> Option<Self> {
        let mut bed = Self::new(world)?;
        bed.world
            .extend([("FAKE_DAOS_CONTAINER", "theirs".to_owned()), ("FAKE_DAOS_OBJECT", "1".to_owned())]);
        Some(bed)
    }

    fn start(&self, words: &str) -> Running {
        self.scratch.start_in(words, &self.world)
    }

    fn run(&self, words: &str) -> Ended {
        self.start(&format!("{words} --json record.json")).end()
    }

    /// Objects in the pool at the end.
    fn left(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.scratch.join("left")).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn manifests(&self) -> Vec<String> {
        let state = state_of(self.scratch.path()).join("strata");
        if state.exists() { names_in(&state) } else { Vec::new() }
    }
}

#[test]
fn cells_of_every_size_come_back_whole() {
    for cell in [1, 8, 4096] {
        let Some(bed) = Bed::new("") else { return };
        let chunk = 3 * cell;
        let load = format!(
            "--cell-size {cell} --chunk-size {chunk} --value-size 16KiB --records 4 --count 100 --verify --depth 4"
        );
        for operations in ["write,read", "create,write,read,size,destroy"] {
            let ended = bed.run(&format!("object daos://pool --op {operations} {load}"));
            assert_eq!(ended.code, Some(0), "{operations}, cells of {cell}: {}", ended.stderr);
        }
        assert!(bed.left().is_empty(), "{:?}", bed.left());
    }
}

#[test]
fn the_pool_tells_its_targets_and_classes_follow() {
    let Some(bed) = Bed::new("targets=4") else { return };
    let load = "object daos://pool --op update,fetch --dkeys 20 --count 1000 --value-size 100";
    for class in ["", "--class S2", "--class S4"] {
        let ended = bed.run(&format!("{load} {class}"));
        assert_eq!(ended.code, Some(0), "{class}: {}", ended.stderr);
        let record = read_record(&bed.scratch.join("record.json"));
        assert_eq!(record["phases"][0]["observations"]["store"]["targets"], 4, "{class}");
    }
    let ended = bed.run(&format!("{load} --class S8"));
    assert!(ended.code == Some(2) && ended.stderr.contains("the store has 4"), "{}", ended.stderr);
    for class in ["RP_2G1", "EC_2P1G1"] {
        let ended = bed.run(&format!("{load} --class {class}"));
        assert_eq!(ended.code, Some(1), "{class}: {}", ended.stderr);
        assert!(ended.stderr.contains("engines=1"), "{class}: {}", ended.stderr);
        assert!(bed.left().is_empty() && bed.manifests().is_empty(), "{class}: {:?}", bed.left());
    }
    let Some(bed) = Bed::new("targets=4 engines=4") else { return };
    for class in ["RP_2G1", "EC_2P1G1"] {
        let ended = bed.run(&format!("{load} --class {class}"));
        assert_eq!(ended.code, Some(0), "{class}: {}", ended.stderr);
    }
}

#[test]
fn what_others_put_into_a_container_stays_and_what_the_run_put_there_goes() {
    let Some(bed) = Bed::of_others("") else { return };
    let theirs = |lines: &[String]| lines.iter().filter(|line| line.ends_with("dkey others")).count();
    let load = "object daos://pool/theirs --class S1 --count 1000 --value-size 100";
    for operations in ["update,fetch,punch --dkeys 10", "put,get,list,remove --dkeys 10", "write,read"] {
        let ended = bed.run(&format!("{load} --op {operations}"));
        assert_eq!(ended.code, Some(2), "{operations}: {}", ended.stderr);
        assert!(ended.stderr.contains("--destroy-data"), "{operations}: {}", ended.stderr);
        assert_eq!(bed.left().len(), 17, "{:?}", bed.left());
        let ended = bed.run(&format!("{load} --op {operations} --first-id 2 --objects 3"));
        assert_eq!(ended.code, Some(0), "{operations}: {}", ended.stderr);
        assert_eq!((bed.left().len(), theirs(&bed.left())), (17, 16), "{operations}: {:?}", bed.left());
    }
    let ended = bed.run(&format!("{load} --dkeys 10 --op put --first-id 2 --keep"));
    assert_eq!((ended.code, bed.left().len()), (Some(0), 27), "{}", ended.stderr);
    let record = read_record(&bed.scratch.join("record.json"));
    let made = &record["made"][0]["made"][0];
    assert_eq!(
        (&made["kind"], &made["first"], &made["last"]),
        (&"object_ids".into(), &2.into(), &2.into()),
        "{made}"
    );
    let ended = bed.run(&format!("{load} --dkeys 10 --op put --destroy-data"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("1 of the objects contained data before"), "{}", ended.stderr);
    assert_eq!((bed.left().len(), theirs(&bed.left())), (27, 16), "{:?}", bed.left());
    assert!(bed.manifests().is_empty());
}

#[test]
fn signals_remove_what_the_run_put_into_a_container_of_others() {
    let Some(bed) = Bed::of_others("") else { return };
    let words = "object daos://pool/theirs --op put --dkeys 100000 --value-size 100 --first-id 2 --depth 4 --time 100s --live-csv -";
    let mut running = bed.start(words);
    running.await_row("put");
    assert_eq!(bed.manifests().len(), 1);
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(bed.left().len() == 17 && bed.manifests().is_empty(), "{:?}", bed.left());
}

#[test]
fn whose_fault_it_is_is_told() {
    let load = "object daos://pool --op put --dkeys 10";
    for (world, more, told) in [
        ("", "--daos-system other", "the agent on this host does not know system other"),
        ("starts_with=-2034", "", "daos_agent"),
        ("starts_with=-1020", "", "engines do not answer"),
        ("dies_after=0", "", "engines do not answer"),
        ("redundancy=1", "", "rd_fac"),
    ] {
        let Some(bed) = Bed::new(world) else { return };
        let ended = bed.run(&format!("{load} {more}"));
        assert!(ended.code == Some(1) && ended.stderr.contains(told), "{world} {more}: {}", ended.stderr);
        assert!(!ended.stderr.contains("agent") || told.contains("agent"), "{world}: {}", ended.stderr);
    }
}

/// Engines that die answer no more, and libdaos tries again for ever: what hangs counts, and the run ends.
#[test]
fn engines_that_die_in_a_run() {
    let Some(mut bed) = Bed::new("dies_after=40 hangs=8") else { return };
    let hangs = bed.scratch.join("hangs");
    bed.world.push(("FAKE_DAOS_HANGS", hangs.display().to_string()));
    let words = "object daos://pool --op put --dkeys 100000 --value-size 100 --depth 8 --time 100s --live-csv - --json record.json";
    let mut running = bed.start(words);
    running.await_row("put");
    running.await_file(&hangs);
    // Interrupted, it waits for 3 s in place of 30.
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("DER_TIMEDOUT") && ended.stderr.contains("strata clean"),
        "{}",
        ended.stderr
    );
    assert_eq!(bed.manifests().len(), 1, "what is left can be found");
    let record = read_record(&bed.scratch.join("record.json"));
    let phase = &record["phases"][0];
    let summary = &phase["summary"];
    assert_eq!((&record["status"], &summary["unfinished_operations"]), (&"partial".into(), &8.into()));
    let used = summary["cpus_used"].as_f64().unwrap();
    let cores = std::thread::available_parallelism().unwrap().get() as f64;
    assert!(used <= cores, "{used} of {cores} processors");
}

#[test]
fn a_snapshot_is_looked_for_before_it_is_read() {
    let Some(mut bed) = Bed::of_others("") else { return };
    bed.world.push(("FAKE_DAOS_SNAPSHOT", "2107132845183926273".to_owned()));
    let list = |epoch: &str| {
        bed.run(&format!("object daos://pool/theirs --op list --class S1 --count 3 --snapshot {epoch}"))
    };
    let ended = list("2107132845183926273");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let record = read_record(&bed.scratch.join("record.json"));
    assert_eq!(record["phases"][0]["plan"]["snapshot"], 2_107_132_845_183_926_273_u64);
    assert_eq!(list("0x1d3e0c58ac200001").code, Some(2));
    let refused = list("17");
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("existing snapshots: 2107132845183926273"), "{}", refused.stderr);
    let missing = bed.run("object daos://pool/none --op list --count 3 --snapshot 17");
    assert!(missing.code == Some(2) && missing.stderr.contains("has no container none"), "{missing:?}");
}
