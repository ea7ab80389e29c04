//! Actions around phases: caches are purged, pauses are waited for, other programs search, files that an interrupted phase had removed come back.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use driver::Error;
use units::path_of;

use super::keys::DROP_CACHES;
use super::settings::External;
use crate::operation::NameKind;
use crate::plan::FsPlan;

/// Time between two looks at a file of a pause.
const PAUSE_STEP: Duration = Duration::from_millis(100);

/// Purges the page cache by a command; why it was not, where it was not.
pub(super) fn drop_caches(command: &str) -> Option<String> {
    // 3: pages, and inodes with their names.
    if command == DROP_CACHES && std::fs::write("/proc/sys/vm/drop_caches", "3\n").is_ok() {
        return None;
    }
    match Command::new("sh").args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null()).status() {
        Ok(status) if status.success() => None,
        Ok(status) => Some(format!("the caches were not purged: {command}: {status}")),
        Err(error) => Some(format!("the caches were not purged: {command}: {error}")),
    }
}

/// Waits while a file with the name of the phase lies in a directory, until it is gone or the run is interrupted.
pub(super) fn pause(directory: &Path, phase: &str, is_interrupted: impl Fn() -> bool) {
    while directory.join(phase).exists() && !is_interrupted() {
        std::thread::sleep(PAUSE_STEP);
    }
}

/// Outcome of a search by another program.
#[derive(Debug, Default)]
pub(super) struct Searched {
    pub(super) seconds: f64,
    /// Entries that it says it saw; else those that it printed.
    pub(super) total: u64,
    pub(super) matched: u64,
    pub(super) output: String,
    pub(super) last_line: String,
    /// Reasons not to count it.
    pub(super) invalid: Vec<String>,
    /// Reasons to doubt its figures.
    pub(super) doubts: Vec<String>,
}

/// The command line of a search by another program.
pub(super) fn command_line(external: &External, arguments: &str) -> String {
    let External { script, before, arguments: own } = external;
    let words = [before, script, own, arguments];
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Searches by another program.
///
/// # Errors
/// When it cannot be started, or its output cannot be read.
pub(super) fn search(command: &str) -> Result<Searched, Error> {
    let failed =
        |error| Error::system("find", "cannot run the external script", error).with("command", command);
    let begun = Instant::now();
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut found = Searched::default();
    let mut lines = 0;
    if let Some(output) = child.stdout.take() {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        while output.read_until(b'\n', &mut line).map_err(failed)? > 0 {
            let text = String::from_utf8_lossy(&line).into_owned();
            found.output.push_str(&text);
            found.last_line = text.trim_end().to_owned();
            lines += 1;
            line.clear();
        }
    }
    let status = child.wait().map_err(failed)?;
    found.seconds = begun.elapsed().as_secs_f64();
    if !status.success() {
        found.invalid.push(format!("the external script ended with {status}"));
    }
    match matched(&found.last_line) {
        Some((matched, total)) => (found.matched, found.total) = (matched, total),
        None => {
            (found.matched, found.total) = (lines, lines);
            found.doubts.push(
                "no_count: the last line of the external script is not MATCHED x/y: its output lines were counted"
                    .to_owned(),
            );
        }
    }
    Ok(found)
}

/// The numbers of `MATCHED 12/345`.
fn matched(line: &str) -> Option<(u64, u64)> {
    let (matched, total) = line.strip_prefix("MATCHED ")?.split_once('/')?;
    Some((matched.trim().parse().ok()?, total.trim().parse().ok()?))
}

/// Makes files of a set again that a phase which was interrupted had removed.
///
/// # Errors
/// As the system says.
pub(super) fn refill(plan: &FsPlan, counts: &[u64], bytes: u64) -> Result<(), Error> {
    let content = vec![0; bytes as usize];
    for (rank, &count) in (0..).zip(counts) {
        for item in 0..count {
            let mut path = format!("{}/", plan.target(rank)).into_bytes();
            plan.set.push_node(rank, plan.set.node_of(item), &mut path);
            path.push(b'/');
            plan.set.push_name(NameKind::File, rank, item, &mut path);
            let path = String::from_utf8_lossy(&path).into_owned();
            let made = std::fs::File::create_new(path_of(&path));
            let made = made.and_then(|mut file| std::io::Write::write_all(&mut file, &content));
            match made {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    return Err(
                        Error::system("resume", "cannot create a file again", error).with("path", path)
                    );
                }
                _ => {}
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_scripts_is_read_as_io500_reads_it() {
        assert_eq!(matched("MATCHED 12/345"), Some((12, 345)));
        assert_eq!(matched("MATCHED 12"), None);
        let found = search("echo a; echo 'MATCHED 3/10'; exit 0").expect("it runs");
        assert_eq!((found.matched, found.total, found.invalid.len()), (3, 10, 0));
        let found = search("echo a; echo b; exit 3").expect("it runs");
        assert_eq!((found.matched, found.total), (2, 2));
        assert_eq!((found.invalid.len(), found.doubts.len()), (1, 1), "{found:?}");
    }

    #[test]
    fn a_command_that_fails_is_told() {
        assert_eq!(drop_caches("true"), None);
        assert!(drop_caches("exit 4").is_some_and(|why| why.contains("exit 4") && why.contains("status: 4")));
    }
}
