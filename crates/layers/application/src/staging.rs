//! Memory that processes copy items into, and that others write them from while the first go on.
#![allow(unsafe_code)]

use std::sync::{Arc, Mutex, PoisonError};

use driver::{Arena, Error, ErrorKind};
use units::ByteSize;

use crate::operation::{AppClass, AppOperation};
use crate::plan::AppPlan;

/// Copies of the items of an iteration of one process.
struct Copies {
    /// Items of an iteration.
    items: u64,
    /// Distance of items.
    item_bytes: u64,
    /// Never contended: a process copies when the items of its iteration before are written, and they are written when it has copied them.
    bytes: Mutex<Vec<u8>>,
}

/// Memory for the items that are staged, of the processes of this host.
pub(crate) struct Staging {
    /// By set and process; nothing for sets that are not staged and for processes of other hosts.
    copies: Vec<Vec<Option<Copies>>>,
}

impl Staging {
    /// Takes the memory for a stage, every page of it.
    ///
    /// # Errors
    /// When there is not enough of it.
    pub(crate) fn new(plan: &AppPlan) -> Result<Self, Error> {
        let mut copies: Vec<Vec<Option<Copies>>> = plan.sets.iter().map(|_| Vec::new()).collect();
        for (group, set) in plan.staged() {
            let of = &plan.sets[usize::from(set)];
            let all = &mut copies[usize::from(set)];
            all.resize_with(plan.groups[group].processes as usize, || None);
            for process in plan.processes_here(group) {
                let size = of.space.items.saturating_mul(of.size_bytes_max);
                let mut bytes = Vec::new();
                bytes.try_reserve_exact(usize::try_from(size).unwrap_or(usize::MAX)).map_err(|_| {
                    let what = format!("cannot allocate {} for staging in a process", ByteSize(size));
                    Error::new(ErrorKind::System, "stage", what)
                        .remedy("use smaller items, fewer processes, or flush=sync")
                })?;
                // Other bytes than those of an item that begins with zeros; and pages are there before they are measured.
                bytes.resize(size as usize, 0xa5);
                let (items, item_bytes) = (of.space.items.max(1), of.size_bytes_max);
                all[process as usize] = Some(Copies { items, item_bytes, bytes: Mutex::new(bytes) });
            }
        }
        Ok(Self { copies })
    }

    /// Has `use_them` work on the copied bytes that an operation of a process is about; false where its set is not staged.
    fn with(&self, operation: &AppOperation, process: u32, use_them: impl FnOnce(&mut [u8])) -> bool {
        let of_set = self.copies.get(usize::from(operation.set));
        let Some(copies) = of_set.and_then(|of_set| of_set.get(process as usize)?.as_ref()) else {
            return false;
        };
        let from = operation.item % copies.items * copies.item_bytes + operation.item_offset_bytes;
        let mut bytes = copies.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let upto = from + operation.length_bytes;
        match bytes.get_mut(from as usize..upto as usize) {
            Some(part) => use_them(part),
            None => return false,
        }
        true
    }

    /// Fills the buffer of a write with what was staged; false where its set is not staged.
    pub(crate) fn take(&self, operation: &AppOperation, process: u32, into: &mut [u8]) -> bool {
        self.with(operation, process, |staged| into.copy_from_slice(staged))
    }
}

/// Where a process stages what it has in its buffers.
pub(crate) struct Stager {
    pub(crate) staging: Arc<Staging>,
    pub(crate) arena: Arc<Arena>,
    pub(crate) process: u32,
}

impl Stager {
    /// Carries out a copy; its result.
    pub(crate) fn stage(&self, operation: &AppOperation) -> i64 {
        debug_assert_eq!(operation.class, AppClass::Copy);
        // SAFETY: the slot is the driver's from the submission of its operation to its completion.
        let buffer = unsafe { self.arena.slot_mut(operation.slot, operation.length_bytes as usize) };
        let is_staged = self.staging.with(operation, self.process, |staged| staged.copy_from_slice(buffer));
        // Checks of descriptions rule out that there is no place for it.
        if is_staged { 0 } else { -i64::from(libc::EINVAL) }
    }
}
