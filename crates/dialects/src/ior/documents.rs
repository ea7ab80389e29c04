//! IOR's results for programs: JSON and CSV.

use report::record::Record;
use serde_json::{Value, json};

use super::figures::Row;
use super::render::{Done, MIB, Model, api, finished};
use super::settings::Test;
use super::specs::Kind;
use super::table::{TOOL, VERSION};
use super::text::options_of;
use crate::dates::{ctime, moment};
use crate::doubts::told;

/// Head of the CSV.
pub(crate) const CSV_HEAD: &str =
    "access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),open(s),wr/rd(s),close(s),total(s),numTasks,iter\n";

fn kib(bytes: u64) -> f64 {
    bytes as f64 / 1024.0
}

/// The row of a phase in the CSV; nothing for a check.
pub(crate) fn csv_row(test: &Test, (step, phase): Done<'_>) -> String {
    let access = match step.kind {
        Kind::Write => "write",
        Kind::Read => "read",
        Kind::Check => return String::new(),
    };
    let row = Row::of(phase);
    let figures = [
        row.bandwidth() / MIB,
        row.iops(),
        row.latency_s,
        kib(test.block_bytes),
        kib(test.transfer_bytes),
        row.open_s,
        row.move_s,
        row.close_s,
        row.total_s,
    ];
    let figures = figures.map(|figure| format!("{figure:.6}")).join(",");
    format!("{access},{figures},{},{}\n", test.tasks, step.repetition)
}

impl Model {
    /// The whole JSON document.
    pub(crate) fn document(&self, record: &Record) -> String {
        let tests: Vec<Value> =
            (0..self.settings.tests.len()).filter_map(|number| self.test(record, number)).collect();
        let numbers = 0..self.settings.tests.len();
        let summary: Vec<Value> = numbers.flat_map(|number| self.summary_of(record, number)).collect();
        let doubts: Vec<Value> = told(TOOL, &record.phases)
            .iter()
            .map(|doubt| json!({ "kind": doubt.kind, "detail": doubt.detail, "remedy": doubt.remedy }))
            .collect();
        let document = json!({
            "Version": VERSION,
            "Began": ctime(moment(&record.started_at, 0)),
            "Command line": self.command,
            "Machine": self.machine(record),
            "tests": tests,
            "summary": summary,
            "Finished": ctime(finished(record)),
            "strata": { "failure": record.failure, "doubts": doubts },
        });
        format!("{document:#}\n")
    }

    fn test(&self, record: &Record, number: usize) -> Option<Value> {
        let test = &self.settings.tests[number];
        let own: Vec<Done<'_>> = self.done(&record.phases).filter(|(step, _)| step.test == number).collect();
        let (_, first) = own.first()?;
        let results: Vec<Value> = own.iter().filter_map(|done| result(test, *done)).collect();
        let options: serde_json::Map<String, Value> = options_of(test, &self.settings)
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        Some(json!({
            "TestID": number,
            "StartTime": ctime(moment(&first.started_at, 0)),
            "Parameters": self.parameters(test, number),
            "Options": options,
            "Results": results,
        }))
    }

    fn parameters(&self, test: &Test, number: usize) -> Value {
        let flag = u8::from;
        let head = json!({
            "testID": number,
            "refnum": test.reference,
            "api": api(test),
            "platform": format!("{}(Linux)", self.host),
            "testFileName": test.path,
            "deadlineForStonewall": test.stonewall_s,
            "stoneWallingWearOut": flag(test.wear_out),
            "maxTimeDuration": 0,
            "outlierThreshold": test.outlier_s,
            "options": "(null)",
            "dryRun": 0,
            "nodes": 1,
            "memoryPerTask": 0,
            "memoryPerNode": 0,
            "tasksPerNode": test.tasks,
            "repetitions": test.repetitions,
            "multiFile": flag(test.multi_file),
            "interTestDelay": test.delay_s,
            "fsync": flag(test.fsync),
            "fsyncperwrite": flag(test.fsync_per_write),
            "useExistingTestFile": flag(test.existing),
            "uniqueDir": flag(test.unique_directory),
            "singleXferAttempt": flag(test.single_attempt),
            "readFile": flag(test.read),
            "writeFile": flag(test.write),
            "filePerProc": flag(test.file_per_task),
            "reorderTasks": flag(test.reorder),
            "reorderTasksRandom": test.reorder_random,
            "reorderTasksRandomSeed": test.reorder_seed,
            "randomOffset": test.random,
            "checkWrite": flag(test.check_write),
            "checkRead": flag(test.check_read),
        });
        let tail = json!({
            "dataPacketType": "gtoir".find(test.packet).unwrap_or(0),
            "keepFile": flag(test.keep),
            "keepFileWithError": flag(test.keep_with_error),
            "warningAsErrors": 0,
            "verbose": self.settings.show.verbose,
            "data packet type": test.packet.to_string(),
            "setTimeStampSignature/incompressibleSeed": test.signature.unwrap_or(0),
            "collective": 0,
            "segmentCount": test.segments,
            "transferSize": test.transfer_bytes,
            "blockSize": test.block_bytes,
        });
        match (head, tail) {
            (Value::Object(mut head), Value::Object(tail)) => {
                head.extend(tail);
                Value::Object(head)
            }
            (head, _) => head,
        }
    }

    fn summary_of(&self, record: &Record, number: usize) -> Vec<Value> {
        let test = &self.settings.tests[number];
        let mut all = Vec::new();
        for summed in
            [Kind::Write, Kind::Read].into_iter().filter_map(|kind| self.summed(record, number, kind))
        {
            let (bandwidth, operations) = (summed.bandwidth, summed.operations);
            let mut entry = json!({
                "operation": if summed.kind == Kind::Write { "write" } else { "read" },
                "API": api(test),
                "TestID": number,
                "ReferenceNumber": test.reference,
                "segmentCount": test.segments,
                "blockSize": test.block_bytes,
                "transferSize": test.transfer_bytes,
                "numTasks": test.tasks,
                "tasksPerNode": test.tasks,
                "repetitions": test.repetitions,
                "filePerProc": u8::from(test.file_per_task),
                "reorderTasks": u8::from(test.reorder),
                "taskPerNodeOffset": test.offset_tasks,
                "reorderTasksRandom": test.reorder_random,
                "reorderTasksRandomSeed": test.reorder_seed,
                "bwMaxMIB": bandwidth.max / MIB,
                "bwMinMIB": bandwidth.min / MIB,
                "bwMeanMIB": bandwidth.mean / MIB,
                "bwStdMIB": bandwidth.stddev / MIB,
                "OPsMax": operations.max,
                "OPsMin": operations.min,
                "OPsMean": operations.mean,
                "OPsSD": operations.stddev,
                "MeanTime": summed.mean_s,
            });
            if let Some((time, rate)) = summed.stonewall {
                entry["StoneWallTime"] = time.into();
                entry["StoneWallbwMeanMIB"] = (rate / MIB).into();
            }
            entry["xsizeMiB"] = (summed.bytes as f64 / MIB).into();
            all.push(entry);
        }
        all
    }
}

/// The result of a phase; of a check only where something was wrong.
fn result(test: &Test, (step, phase): Done<'_>) -> Option<Value> {
    let row = Row::of(phase);
    if step.kind == Kind::Check {
        return (row.errors > 0).then(|| json!({ "access": "writecheck", "errors": row.errors }));
    }
    Some(json!({
        "access": if step.kind == Kind::Write { "write" } else { "read" },
        "bwMiB": row.bandwidth() / MIB,
        "blockKiB": kib(test.block_bytes),
        "xferKiB": kib(test.transfer_bytes),
        "iops": row.iops(),
        "latency": row.latency_s,
        "openTime": row.open_s,
        "wrRdTime": row.move_s,
        "closeTime": row.close_s,
        "totalTime": row.total_s,
        "errors": row.errors,
    }))
}
