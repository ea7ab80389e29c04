//! Kills of a process that writes: what was synced and closed is there.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use dfs::{Errno, FileSystem, Inode, Options, RenameFlags, open};
use tempfile::TempDir;
use testkit::content;
use vos::{Durability, OpenOptions};

use super::support::{Paths, READ_WRITE, options, pool_options};

const DIRECTORY: &str = "STRATA_TEST_DFS_DIRECTORY";

fn open_at(directory: &Path) -> std::sync::Arc<dyn FileSystem> {
    let mut pool = pool_options(2);
    pool.open = OpenOptions { durability: Durability::Sync, ..OpenOptions::default() };
    let options = Options { pool, ..options(4096) };
    open(&format!("dfs+vos:{}", directory.display()), &options).expect("a file system")
}

fn bytes_of(number: u64) -> Vec<u8> {
    content(number, (number * 977 % 20_000) as usize)
}

#[test]
#[ignore = "the process that another test kills"]
fn writer() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let files = open_at(Path::new(&directory));
    let paths = Paths(&*files);
    let taken = |error: Errno| if error == Errno::EXIST { Ok(()) } else { Err(error) };
    paths.mkdir("done").or_else(taken).expect("made");
    let begin = paths.names("done").expect("listed").len() as u64;
    for number in begin.. {
        let name = format!("new{number}");
        let handle = paths.create(&name, READ_WRITE).expect("created");
        files.write(handle, 0, &bytes_of(number)).expect("written");
        files.sync(handle, false).expect("durable");
        files.release(handle).expect("closed");
        // Every other one by a rename into another directory.
        if number % 2 == 0 {
            paths
                .at(&format!("done/{number}"), |directory, to| {
                    files.rename(Inode::ROOT, name.as_bytes(), directory, to, RenameFlags::default())
                })
                .expect("renamed");
        } else {
            paths.put(&format!("done/{number}"), b"").expect("made");
        }
        println!("\ndone {number}");
        std::io::stdout().flush().expect("told");
    }
}

/// Lets a process write until it has told of so many files, and kills it. The last one that it told of.
fn kill_after(directory: &Path, files: usize) -> u64 {
    let own = std::env::current_exe().expect("a path");
    let arguments = ["--exact", "crash::writer", "--ignored", "--nocapture", "--test-threads=1"];
    let child = Command::new(own).args(arguments).env(DIRECTORY, directory).stdout(Stdio::piped()).spawn();
    let mut child = child.expect("started");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let told = lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("done ")?.parse().ok());
    let last = told.take(files).last().expect("it told of some");
    child.kill().expect("killed");
    child.wait().expect("gone");
    last
}

fn survives(scratch: &TempDir) {
    let directory = scratch.path().join("pool");
    for round in 1..4 {
        let last = kill_after(&directory, 17 * round);
        let files = open_at(&directory);
        let paths = Paths(&*files);
        for number in 0..=last {
            let path = if number % 2 == 0 { format!("done/{number}") } else { format!("new{number}") };
            assert!(paths.get(&path) == Ok(bytes_of(number)), "{path} of {last}");
            assert!(number % 2 == 1 || paths.stat(&format!("new{number}")).is_err(), "it has one name");
        }
        assert_eq!(files.take_findings(), Vec::<String>::new());
    }
}

#[test]
fn synced_files_survive_kills_in_memory() {
    survives(&super::support::scratch());
}

#[test]
fn synced_files_survive_kills_on_a_disk() {
    let own = std::env::current_exe().expect("a path");
    survives(&tempfile::tempdir_in(own.parent().expect("a directory")).expect("a directory"));
}
