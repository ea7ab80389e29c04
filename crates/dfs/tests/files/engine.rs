//! The same behind an engine.

use std::path::Path;
use std::sync::Arc;

use dfs::{Errno, FileSystem, Inode, Options, RenameFlags, open};
use driver::Secret;
use object_service::Pools;
use rpc::TagMap;
use rpc::engine::{Engine, EngineRequest};
use tempfile::TempDir;
use testkit::content;
use vos::{Durability, OpenOptions, Pool};

use super::support::{Ground, Paths, READ, READ_WRITE, options, pool_options, scratch};
use super::{concurrent, model};

/// A pool behind an engine of this process.
struct Served {
    engine: Option<Engine>,
    address: String,
    options: Options,
    dir: TempDir,
}

fn start(dir: &Path, targets: u32, listen: Option<&str>, secret: Option<Secret>) -> Engine {
    let open = OpenOptions { durability: Durability::Sync, ..OpenOptions::default() };
    let pool =
        if Pool::exists(dir) { Pool::open(dir, &open) } else { Pool::create(dir, &pool_options(targets)) };
    let pools =
        Pools::new().and_then(|pools| pools.with("tank", Arc::new(pool.expect("a pool")))).expect("a label");
    let mut request = EngineRequest::new(object_service::factory(pools), Arc::new(|line| println!("{line}")));
    request.tags = TagMap::new(targets, 0).expect("few");
    request.secret = secret;
    if let Some(listen) = listen {
        request.listen = vec![listen.parse().expect("an address")];
    }
    Engine::start(request).expect("an engine")
}

impl Served {
    fn new(targets: u32, chunk_bytes: u64) -> Self {
        let dir = scratch();
        let engine = start(&dir.path().join("pool"), targets, None, None);
        let address = engine.uri().strip_prefix("tcp://").expect("sockets").to_owned();
        Self { engine: Some(engine), address, options: options(chunk_bytes), dir }
    }

    fn open(&self) -> Result<Arc<dyn FileSystem>, driver::Error> {
        open(&format!("dfs+engine://{}/tank/home", self.address), &self.options)
    }

    fn stop(&mut self) {
        drop(self.engine.take());
    }

    fn start_again(&mut self, targets: u32) {
        self.engine = Some(start(&self.dir.path().join("pool"), targets, Some(&self.address), None));
    }
}

impl Ground for Served {
    fn client(&self) -> Arc<dyn FileSystem> {
        self.open().expect("a file system")
    }
}

#[test]
fn calls_do_what_those_of_the_system_do() {
    for seed in 100..106 {
        model::run(&Served::new(1 + seed as u32 % 2, 4096), seed, true);
    }
}

#[test]
fn clients_at_the_same_time_keep_to_the_rules() {
    concurrent::one_makes_a_name(&Served::new(2, 4096));
    concurrent::a_rename_leaves_one_name(&Served::new(2, 4096));
    concurrent::nothing_is_made_in_a_directory_that_goes(&Served::new(2, 4096));
    concurrent::attributes_are_changed_one_after_the_other(&Served::new(2, 4096));
    concurrent::what_one_has_closed_others_see(&Served::new(2, 4096));
}

/// Each sees the container empty, the objects of another's file system without its superblock, or all of it.
#[test]
fn clients_that_make_a_file_system_at_the_same_time_all_have_it() {
    let ground = Served::new(2, 4096);
    for round in 0..12 {
        let url = format!("dfs+engine://{}/tank/new{round}", ground.address);
        let barrier = std::sync::Barrier::new(6);
        let make = || {
            barrier.wait();
            open(&url, &ground.options)
        };
        let opened = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..6).map(|_| scope.spawn(make)).collect();
            clients.into_iter().map(|client| client.join().expect("no panic")).collect::<Vec<_>>()
        });
        let files: Vec<_> = opened.into_iter().map(|files| files.expect("a file system")).collect();
        Paths(&*files[0]).put("file", b"content").expect("written");
        for other in &files {
            assert_eq!(Paths(&**other).get("file"), Ok(b"content".to_vec()), "round {round}");
        }
    }
}

#[test]
fn large_chunks_travel_as_bulk_and_long_lists_in_pages() {
    let ground = Served::new(2, 4 << 20);
    let files = ground.client();
    let paths = Paths(&*files);
    let bytes = content(3, (9 << 20) + 77);
    paths.put("large", &bytes).expect("written");
    assert!(paths.get("large") == Ok(bytes.clone()));
    assert_eq!(files.stat_fs().expect("told").name_bytes_max, 255);
    let handle = paths.create("large", READ).expect("opened");
    let mut part = vec![0; 3 << 20];
    assert_eq!(files.read(handle, 5 << 20, &mut part), Ok(3 << 20));
    assert!(part == bytes[5 << 20..8 << 20]);
    files.sync(handle, false).expect("durable");
    files.release(handle).expect("closed");
    for number in 0..3000 {
        let handle = paths.create(&format!("file{number}"), READ_WRITE).expect("created");
        files.release(handle).expect("closed");
    }
    assert_eq!(paths.names("").expect("listed").len(), 3001);
}

#[test]
fn an_engine_that_is_gone_is_an_input_error_until_it_is_back() {
    let mut ground = Served::new(2, 4096);
    ground.options.timeout = std::time::Duration::from_secs(5);
    let files = ground.client();
    let paths = Paths(&*files);
    paths.put("file", b"content").expect("written");
    let handle = paths.create("file", READ_WRITE).expect("opened");
    ground.stop();
    assert_eq!(files.write(handle, 0, b"x"), Err(Errno::IO));
    assert_eq!(paths.stat("file"), Err(Errno::IO));
    assert!(!files.take_findings().is_empty(), "why is told");
    ground.start_again(2);
    assert_eq!(paths.get("file"), Ok(b"content".to_vec()));
    assert_eq!(files.write(handle, 0, b"C"), Ok(1), "handles stay good");
    files.release(handle).expect("closed");
    assert_eq!(paths.get("file"), Ok(b"Content".to_vec()));
    files.rename(Inode::ROOT, b"file", Inode::ROOT, b"other", RenameFlags::default()).expect("renamed");
}

#[test]
fn what_is_not_there_is_refused_in_one_line() {
    let ground = Served::new(1, 4096);
    let refused = |url: String, create| {
        let error = open(&url, &Options { create, ..options(4096) }).map(drop).expect_err("refused");
        assert_eq!(error.to_string().lines().count(), 1);
        error.to_string()
    };
    let base = format!("dfs+engine://{}", ground.address);
    assert!(refused(format!("{base}/other/home"), true).contains("the engine has tank"));
    assert!(refused(format!("{base}/tank/home"), false).contains("has no container \"home\""));
}

#[test]
fn an_engine_that_demands_a_secret_gets_it() {
    let secret = Secret::new(b"0123456789abcdef0123456789abcdef").expect("long enough");
    let dir = scratch();
    let engine = start(&dir.path().join("pool"), 1, None, Some(secret.clone()));
    let address = engine.uri().strip_prefix("tcp://").expect("sockets");
    let url = format!("dfs+engine://{address}/tank/home");
    open(&url, &options(4096)).map(drop).expect_err("no secret");
    let files = open(&url, &Options { secret: Some(secret), ..options(4096) }).expect("a file system");
    Paths(&*files).put("file", b"content").expect("written");
}
