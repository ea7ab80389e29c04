//! Checks of logs: records that are appended in the order in which they come, and committed in groups.

use driver::Error;
use units::ByteSize;

use super::Set;
use super::parse::refused;
use super::values::Values;
use crate::operation::AppClass;
use crate::plan::{CallPlan, Layout, LogPlan, Selection, SetPlan, StepPlan};

/// Most records of a log: which of them are acknowledged and found is kept in memory.
const RECORDS_MAX: u64 = 1 << 28;
/// Most segments.
const SEGMENTS_MAX: u64 = 1 << 16;
/// Word for a segment that is a group of commits.
const GROUP: &str = "group";
/// Smallest record: its number, and as many bytes of content.
const RECORD_BYTES_MIN: u64 = 16;

/// Kinds of sets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Array,
    Index,
    Log,
}

/// Segments of a set that is a log.
pub(super) fn log_of(values: &Values<'_>, set: &Set, kind: Kind) -> Result<Option<LogPlan>, Error> {
    if kind != Kind::Log {
        let given = [("segment", set.segment.is_some()), ("preallocate", set.preallocate.is_some())];
        return match given.iter().find(|(_, is_given)| *is_given) {
            None => Ok(None),
            Some((field, _)) => {
                Err(refused(format!("the set {} has a {field} but is not a log", set.name), "kind = \"log\""))
            }
        };
    }
    let Some(segment) = &set.segment else {
        return Err(refused(format!("the log {} has no segment", set.name), "segment = \"16MiB\""));
    };
    let ways = [("none", false), ("zero", true)];
    let way = set.preallocate.as_deref().unwrap_or("none");
    let is_preallocated = values.chosen("preallocate", way, &ways)?;
    let is_grouped = segment.text() == GROUP;
    if is_grouped && is_preallocated {
        let given = format!(
            "the log {} has one segment per group of commits, which does not support preallocate",
            set.name
        );
        return Err(refused(given, "one of the two: a group is written whole"));
    }
    let segment_bytes = if is_grouped { 0 } else { values.number(segment)? };
    Ok(Some(LogPlan { segment_bytes, is_preallocated, is_grouped, clients: Vec::new() }))
}

/// Bytes of the largest group of commits: each process of a log has one commit in it.
pub(super) fn group_bytes(step: &StepPlan, set: usize, record_bytes: u64) -> u64 {
    let is_commit = |call: &&CallPlan| call.class == AppClass::Commit && usize::from(call.set) == set;
    let every = step.each.iter().filter(is_commit).map(|call| call.every).min();
    let records = every.unwrap_or(step.space.items).min(step.space.items);
    records.saturating_mul(record_bytes).saturating_mul(step.space.processes)
}

/// Checks a set that is a log.
pub(super) fn check_set(set: &SetPlan) -> Result<(), Error> {
    let name = &set.name;
    if set.layout != Layout::Shared {
        return Err(refused(
            format!("the layout of the log {name} is for arrays only"),
            "layout = \"shared\"",
        ));
    }
    let size = set.size_bytes_max;
    if set.size_bytes_min != size || size < RECORD_BYTES_MIN {
        let given = format!("records of the log {name} have {} to {size} bytes", set.size_bytes_min);
        return Err(refused(given, &format!("one size of at least {RECORD_BYTES_MIN} bytes")));
    }
    let segment = set.object_bytes();
    if segment < size {
        let given = format!(
            "a segment of the log {name} has {}, but a record has {}",
            ByteSize(segment),
            ByteSize(size)
        );
        return Err(refused(given, "segments that hold at least one record"));
    }
    let (records, segments) = (set.space.total(), set.objects());
    if records > RECORDS_MAX || (segments > SEGMENTS_MAX && !set.is_grouped()) {
        let given = format!("the log {name} has {records} records in {segments} segments");
        return Err(refused(given, &format!("at most {RECORDS_MAX} records and {SEGMENTS_MAX} segments")));
    }
    Ok(())
}

/// A call is one of logs where its set is one.
pub(super) fn check_call(place: &str, set: &SetPlan, class: AppClass) -> Result<(), Error> {
    if class.is_of_log() == set.log.is_some() {
        return Ok(());
    }
    Err(refused(
        format!("{place}: {} {}", class.name(), set.name),
        "allocate, append, commit and recover for logs, the other calls for arrays and indexes",
    ))
}

/// Calls of a step on a log are where they can be.
pub(super) fn check_step(place: &str, at: usize, set: &SetPlan, step: &StepPlan) -> Result<(), Error> {
    let has = |class| step.calls().any(|call| call.class == class && usize::from(call.set) == at);
    let refuse = |what: &str, accepted: &str| Err(refused(format!("{place}: {what} {}", set.name), accepted));
    if has(AppClass::Commit) && !has(AppClass::Append) {
        return refuse("commit", "it in the step that appends to the log");
    }
    if set.is_grouped() && has(AppClass::Append) && !has(AppClass::Commit) {
        return refuse("append without commit to", "commit too: a segment is a group of commits");
    }
    if set.is_grouped() && has(AppClass::Allocate) {
        return refuse("allocate", "it for logs with segments of one size");
    }
    if has(AppClass::Append) && step.selection != Selection::Own {
        return refuse("append", "it in a step with items of its own");
    }
    if has(AppClass::Recover) && step.selection != Selection::All {
        return refuse("recover", "it with of = the appending step, and from = \"all\"");
    }
    let is_of = |call: &&CallPlan| call.class == AppClass::Allocate && usize::from(call.set) == at;
    if step.each.iter().any(|call| is_of(&call)) {
        return refuse("allocate", "it in once, begin or end");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::description::{parse, resolve};

    const LOG: &str = "format = 1\nname = 'a'\nversion = '1'\nsummary = 'b'\n\
        [[set]]\nname = 'wal'\nkind = 'log'\nlayout = 'shared'\nsize = 100\nsegment = 1000\nsync = 'data'\n\
        [[group]]\nname = 'w'\nstage = 'one'\nprocesses = 2\niterations = 3\n\
        [[group.step]]\nname = 'put'\nitems = 7\neach = ['append wal', 'commit wal every 2']\nend = ['commit wal']\n\
        [[group]]\nname = 'r'\nstage = 'two'\nprocesses = 1\niterations = 1\n\
        [[group.step]]\nname = 'get'\nof = 'w.put'\nfrom = 'all'\neach = ['recover wal']\n";

    #[test]
    fn records_lie_in_segments_in_their_order() {
        let application = resolve(&parse(LOG).unwrap(), &[]).unwrap();
        let set = &application.sets[0];
        assert_eq!((set.objects(), set.object_bytes(), set.segment_records()), (5, 1000, 10));
        assert_eq!((set.place(0), set.place(23)), ((0, 0), (2, 300)));
        assert!(set.data_sync && set.log.as_ref().is_some_and(|log| !log.is_preallocated));
    }

    #[test]
    fn a_group_of_commits_has_records_of_all_processes() {
        let application = resolve(&parse(&LOG.replace("segment = 1000", "segment = 'group'")).unwrap(), &[]);
        let set = &application.unwrap().sets[0];
        // Two processes with two records each in a commit; 42 records are 42 groups at most.
        assert_eq!((set.object_bytes(), set.transfer_bytes, set.objects()), (400, 400, 42));
        assert_eq!((set.place(0), set.place(23)), ((0, 0), (23, 0)));
    }

    #[test]
    fn faults_are_named() {
        for (from, to, said) in [
            ("segment = 1000\n", "", "has no segment"),
            ("segment = 1000", "segment = 99", "segments that hold at least one record"),
            ("size = 100", "size = 8", "at least 16 bytes"),
            ("size = 100", "size = '100..200'", "one size"),
            ("layout = 'shared'", "layout = 'item'", "layout = \"shared\""),
            ("kind = 'log'", "kind = 'array'", "is not a log"),
            ("segment = 1000\n", "segment = 1000\npreallocate = 'one'\n", "preallocate"),
            ("sync = 'data'", "sync = 'some'", "sync"),
            ("'append wal'", "'write wal'", "append, commit and recover for logs"),
            ("'append wal', ", "", "no step writes the set wal"),
            ("from = 'all'", "from = 'last'", "from = \"all\""),
            ("['recover wal']", "['commit wal']", "it in the step that appends"),
            ("end = ['commit wal']", "end = ['append wal']", "it in each"),
            ("'append wal', ", "'append wal', 'allocate wal', ", "once, begin or end"),
            ("items = 7", "items = 100000000", "at most 268435456 records"),
            ("segment = 1000\n", "segment = 'group'\npreallocate = 'zero'\n", "one of the two"),
        ] {
            assert!(LOG.contains(from), "{from}");
            let described = parse(&LOG.replacen(from, to, 1));
            let error =
                described.and_then(|description| resolve(&description, &[])).expect_err(said).to_string();
            assert!(error.contains(said) && !error.contains('\n'), "{said}: {error}");
        }
    }
}
