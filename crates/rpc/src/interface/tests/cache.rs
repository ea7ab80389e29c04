use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::time::Duration;

use proptest::prelude::*;

use super::super::{cache, turns};
use super::*;

/// A machine that counts how often its providers were asked.
struct Counting {
    links: Mutex<Vec<Link>>,
    tree: Tree,
    scans: AtomicUsize,
    _directory: tempfile::TempDir,
}

impl Counting {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let tree = two_sockets(directory.path());
        Self { links: Mutex::new(links(&tree)), tree, scans: AtomicUsize::new(0), _directory: directory }
    }

    fn find(&self, cache: &Cache) -> Found {
        let machine = Machine::new(&self.tree.class(), || Ok(self.links.lock().unwrap().clone()));
        let providers = || {
            self.scans.fetch_add(1, Ordering::SeqCst);
            Ok(vec![facts("tcp", "ib0")])
        };
        cache.find(&machine, &providers).unwrap()
    }

    fn scans(&self) -> usize {
        self.scans.load(Ordering::SeqCst)
    }
}

fn at(directory: &tempfile::TempDir) -> Cache {
    Cache::in_directory(directory.path(), None)
}

fn is_cached(found: &Found) -> bool {
    matches!(found.origin, Origin::Cached { .. })
}

#[test]
fn of_many_at_once_one_scans_and_all_have_the_same() {
    let (machine, directory, barrier) = (Counting::new(), tempfile::tempdir().unwrap(), Barrier::new(16));
    let found: Vec<Found> = std::thread::scope(|scope| {
        let begin = || {
            let cache = at(&directory);
            barrier.wait();
            machine.find(&cache)
        };
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(begin)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(machine.scans(), 1);
    assert_eq!(found.iter().filter(|found| is_cached(found)).count(), 15);
    assert!(found.iter().all(|other| other.scan == found[0].scan && other.messages.is_empty()));
    let mode = std::fs::metadata(at(&directory).path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let left: Vec<_> =
        std::fs::read_dir(directory.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left.len(), 2, "the file and its lock: {left:?}");
}

#[test]
fn a_change_of_any_interface_is_seen() {
    type Change = fn(&mut Vec<Link>);
    let (machine, directory) = (Counting::new(), tempfile::tempdir().unwrap());
    let changes: [(&str, Change); 5] = [
        ("MTU", |links| links[1].mtu_bytes = Some(1500)),
        ("address", |links| links[1].addresses.clear()),
        ("state", |links| links[2].flags = 0),
        ("name", |links| links[1].name = "renamed".into()),
        ("gone", |links| drop(links.pop())),
    ];
    machine.find(&at(&directory));
    for (at_change, (what, change)) in changes.into_iter().enumerate() {
        assert!(is_cached(&machine.find(&at(&directory))), "{what}");
        change(&mut machine.links.lock().unwrap());
        let found = machine.find(&at(&directory));
        assert_eq!((found.origin, machine.scans()), (Origin::Scanned, at_change + 2), "{what}");
    }
    machine.tree.write("class/net/ib1/carrier_changes", "2");
    assert_eq!(machine.find(&at(&directory)).origin, Origin::Scanned, "a carrier that went and came back");
}

#[test]
fn the_agents_variable_turns_it_off() {
    let (machine, directory) = (Counting::new(), tempfile::tempdir().unwrap());
    for value in ["true", "1", "TRUE"] {
        let found = machine.find(&Cache::in_directory(directory.path(), Some(value)));
        assert_eq!(
            (found.origin, found.messages.as_slice()),
            (Origin::Scanned, [DISABLED_MESSAGE.into()].as_slice())
        );
    }
    assert_eq!((machine.scans(), std::fs::read_dir(directory.path()).unwrap().count()), (3, 0));
    for value in ["false", "0", ""] {
        assert!(machine.find(&Cache::in_directory(directory.path(), Some(value))).messages.is_empty());
    }
    assert_eq!(machine.scans(), 4);
    let unclear = machine.find(&Cache::in_directory(directory.path(), Some("maybe")));
    assert!(is_cached(&unclear) && unclear.messages[0].contains("neither true nor false"));
}

#[test]
fn a_link_in_its_place_is_not_followed() {
    let (machine, directory) = (Counting::new(), tempfile::tempdir().unwrap());
    let victim = directory.path().join("victim");
    // Even one that would be believed.
    machine.find(&at(&directory));
    std::fs::rename(at(&directory).path(), &victim).unwrap();
    let before = std::fs::read(&victim).unwrap();
    symlink(&victim, at(&directory).path()).unwrap();
    assert_eq!(machine.find(&at(&directory)).origin, Origin::Scanned);
    assert_eq!(std::fs::read(&victim).unwrap(), before);
    assert!(is_cached(&machine.find(&at(&directory))), "the link was replaced");

    let lock = at(&directory).path().with_extension("lock");
    std::fs::remove_file(&lock).unwrap();
    std::fs::remove_file(at(&directory).path()).unwrap();
    symlink(directory.path().join("made"), &lock).unwrap();
    let found = machine.find(&at(&directory));
    assert!(found.messages[0].starts_with("the scan cannot be cached in "), "{:?}", found.messages);
    assert!(!directory.path().join("made").exists());
}

#[test]
fn files_that_are_not_ours_alone_are_not_believed() {
    type Spoil = fn(&Path);
    let (machine, directory) = (Counting::new(), tempfile::tempdir().unwrap());
    let path = at(&directory).path();
    let spoil: [(&str, Spoil); 4] = [
        ("others may write", |path| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666)).unwrap();
        }),
        ("another name", |path| std::fs::hard_link(path, path.with_extension("other")).unwrap()),
        ("a directory", |path| {
            std::fs::remove_file(path).unwrap();
            std::fs::create_dir(path).unwrap();
        }),
        ("a pipe", |path| {
            std::fs::remove_dir(path).unwrap();
            rustix::fs::mknodat(
                rustix::fs::CWD,
                path,
                rustix::fs::FileType::Fifo,
                rustix::fs::Mode::from_raw_mode(0o600),
                0,
            )
            .unwrap();
        }),
    ];
    for (what, spoil) in spoil {
        machine.find(&at(&directory));
        spoil(&path);
        assert_eq!(machine.find(&at(&directory)).origin, Origin::Scanned, "{what}");
    }
}

#[test]
fn a_file_of_another_user_is_not_believed() {
    let (machine, directory) = (Counting::new(), tempfile::tempdir().unwrap());
    machine.find(&at(&directory));
    if std::os::unix::fs::chown(at(&directory).path(), Some(12_345), None).is_err() {
        eprintln!("skipped: a_file_of_another_user_is_not_believed: cannot give files away here");
        return;
    }
    assert_eq!(machine.find(&at(&directory)).origin, Origin::Scanned);
    assert!(is_cached(&machine.find(&at(&directory))), "it was replaced");
}

#[test]
fn a_damaged_or_outdated_file_is_made_anew() {
    let (machine, directory) = (Counting::new(), tempfile::tempdir().unwrap());
    let path = at(&directory).path();
    let good = {
        machine.find(&at(&directory));
        std::fs::read_to_string(&path).unwrap()
    };
    let scanned_at = cache::parse(&good)[0].scanned_at_unix_ns;
    let dated = |ns: u64| good.replace(&scanned_at.to_string(), &ns.to_string());
    let unknown = dated(scanned_at - 11_000_000_000)
        .replace("\"providers_unknown\":null", "\"providers_unknown\":\"x\"");
    let texts = [
        ("cut", good[..good.len() / 2].to_owned(), false),
        ("empty", String::new(), false),
        ("another version", good.replace("\"form\":1", "\"form\":2"), false),
        ("another boot", good.replace("\"boot_id\":\"", "\"boot_id\":\"x"), false),
        ("too old", dated(scanned_at - 3_700_000_000_000), false),
        ("of the future", dated(scanned_at + 3_700_000_000_000), false),
        ("long without libfabric", unknown, false),
        ("a minute old", dated(scanned_at - 60_000_000_000), true),
    ];
    for (what, text, expected) in texts {
        std::fs::write(&path, text).unwrap();
        assert_eq!(is_cached(&machine.find(&at(&directory))), expected, "{what}");
    }
}

#[test]
fn scans_of_other_places_are_kept_beside() {
    let (machine, directory) = (Counting::new(), tempfile::tempdir().unwrap());
    let namespace = format!("\"namespace\":{}", host::network::namespace());
    machine.find(&at(&directory));
    for other in 0..20 {
        // Now the file has a scan of another network namespace alone.
        let path = at(&directory).path();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace(&namespace, &format!("\"namespace\":{other}"))).unwrap();
        assert_eq!(machine.find(&at(&directory)).origin, Origin::Scanned);
        let kept = cache::parse(&std::fs::read_to_string(&path).unwrap());
        assert_eq!(kept.len(), (other + 2).min(8));
    }
    assert!(is_cached(&machine.find(&at(&directory))));
}

#[test]
fn nobody_waits_for_ever() {
    let (machine, directory) = (Counting::new(), tempfile::tempdir().unwrap());
    let holder = std::fs::File::create(at(&directory).path().with_extension("lock")).unwrap();
    holder.lock().unwrap();
    let found = machine.find(&at(&directory).waiting(Duration::from_millis(20)));
    assert_eq!(found.origin, Origin::Scanned);
    assert!(
        found.messages[0].ends_with("another process held the lock for too long"),
        "{:?}",
        found.messages
    );
}

#[test]
fn turns_are_shared_and_each_is_given_once() {
    let directory = tempfile::tempdir().unwrap();
    let cache = at(&directory);
    let mut given: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| cache.turns(true).next("tcp 0"))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    given.sort_unstable();
    assert_eq!(given, (0..8).collect::<Vec<_>>());
    assert_eq!(
        (cache.turns(false).next("tcp 0"), cache.turns(false).next("tcp 0")),
        (8, 8),
        "only looked at"
    );
    assert_eq!(cache.turns(true).next("tcp 1"), 0);
    for set in 0..300 {
        cache.turns(true).next(&format!("set {set}"));
    }
    let file =
        directory.path().join(format!("strata-fabric-turns-{}.json", rustix::process::geteuid().as_raw()));
    assert!(turns::parse(&std::fs::read_to_string(&file).unwrap()).len() <= 256);
    std::fs::write(&file, "{\"tcp 0\":").unwrap();
    assert_eq!(cache.turns(true).next("tcp 0"), 0, "a damaged file is begun anew");
    std::fs::remove_file(&file).unwrap();
    symlink("/dev/null", &file).unwrap();
    assert_eq!(cache.turns(true).next("tcp 0"), u64::from(std::process::id()));
}

proptest! {
    #[test]
    fn any_text_is_survived(text in "\\PC{0,200}", list in "\\{\"scans\":[\\[\\]{}\",:a-z0-9]{0,100}") {
        prop_assert!(cache::parse(&text).is_empty());
        let _ = cache::parse(&list);
        let _ = turns::parse(&text);
    }

    #[test]
    fn any_damage_is_survived(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        static GOOD: std::sync::OnceLock<String> = std::sync::OnceLock::new();
        let good = GOOD.get_or_init(|| {
            let (machine, directory) = (Counting::new(), tempfile::tempdir().unwrap());
            machine.find(&super::cache::at(&directory));
            std::fs::read_to_string(super::cache::at(&directory).path()).unwrap()
        });
        prop_assert_eq!(cache::parse(good).len(), 1);
        let mut bytes = good.clone().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = cache::parse(&String::from_utf8_lossy(&bytes));
    }
}
