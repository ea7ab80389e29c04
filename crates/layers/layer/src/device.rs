//! Counters of a block device over a phase.

use host::block::DeviceNumber;
use host::traffic::{self, Traffic};

use crate::observations::DeviceActivity;

/// Activity of a device since an earlier reading; none when that cannot be told.
pub fn device_activity(device: DeviceNumber, before: &Traffic) -> Option<DeviceActivity> {
    let done = Traffic::read(device)?.since(before);
    Some(DeviceActivity {
        name: traffic::name_of(device)?,
        reads: done.reads,
        reads_merged: done.reads_merged,
        read_bytes: done.read_bytes,
        read_ns: done.read_ns,
        writes: done.writes,
        writes_merged: done.writes_merged,
        written_bytes: done.written_bytes,
        write_ns: done.write_ns,
        busy_ns: done.busy_ns,
        queue_ns: done.queue_ns,
    })
}
