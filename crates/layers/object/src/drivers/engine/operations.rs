//! Requests of operations, to the targets that placement names.
#![allow(unsafe_code)]

use vos::Redundancy;

use crate::plan::{ObjectOp, PunchScope, ValueKind};

use vos::model::Key;

use super::driver::{Cursor, EngineDriver, Running};
use super::issue::{Ask, Moves};
use crate::ObjectOperation;
use object_service::{opcode, select};

/// Bytes of an array's attributes: cell size and cells of a chunk, as they are kept under dkey 0.
pub(super) const ATTRIBUTES_BYTES: usize = 16;

impl EngineDriver {
    /// Starts an operation. One that needs no request is done at once.
    #[inline]
    pub(super) fn begin(&mut self, operation: &ObjectOperation, now_ns: u64) {
        let slot = operation.slot;
        self.running[slot as usize] = Running::new(*operation);
        self.watch.reset(slot);
        if let (Some(staging), true) = (&self.staging, operation.operation.stores()) {
            let length = (operation.value_bytes as usize).min(staging.slot_bytes());
            // SAFETY: the slot is the driver's from submit to completion, in both arenas.
            let (to, from) =
                unsafe { (staging.slot_mut(slot, length), &*self.values.slot_mut(slot, length)) };
            to.copy_from_slice(from);
        }
        self.dispatch(operation, now_ns);
        if self.running[slot as usize].left == 0 {
            self.complete(slot);
        }
    }

    fn dispatch(&mut self, operation: &ObjectOperation, now_ns: u64) {
        let slot = operation.slot;
        match operation.operation {
            ObjectOp::Update | ObjectOp::Put => self.store(operation, now_ns),
            ObjectOp::Fetch | ObjectOp::Get => self.load(operation, now_ns),
            ObjectOp::Write | ObjectOp::Read if self.reopens => self.open_array(operation, now_ns),
            ObjectOp::Write | ObjectOp::Read => self.transfer(operation, now_ns),
            ObjectOp::Punch => self.punch(operation, now_ns),
            ObjectOp::Remove => self.change(operation, opcode::PUNCH, select::DKEY, now_ns),
            ObjectOp::Stat => self.stat(operation, now_ns),
            ObjectOp::List => self.list(operation, now_ns),
            ObjectOp::Create => self.create(operation, now_ns),
            ObjectOp::Open => self.open_array(operation, now_ns),
            // Nothing is asked: the caller knows the attributes.
            ObjectOp::OpenWithAttr => {}
            ObjectOp::Destroy => self.punch_object(operation, now_ns),
            // Arrays have their bytes under the empty akey.
            ObjectOp::Size => {
                let array = ObjectOperation { akey: Key::EMPTY, ..*operation };
                self.every_shard(&array, opcode::LARGEST, 0, self.data_shards(), now_ns);
            }
            ObjectOp::Query => self.every_shard(operation, opcode::LARGEST, 0, self.data_shards(), now_ns),
            ObjectOp::Iterate => self.every_shard(operation, opcode::ITERATE, 0, 1, now_ns),
            ObjectOp::OpenContainer => self.ask_to_open(slot, now_ns),
            ObjectOp::AllocateIds => {
                let length = u64::from(self.plan.ids_per_call);
                let ask = Ask { length, ..self.about_container(slot, opcode::ALLOCATE_IDS) };
                self.ask(slot, &ask, now_ns);
            }
            ObjectOp::Aggregate => self.every_target(operation, opcode::AGGREGATE, now_ns),
            // The engine chooses one epoch for all its targets.
            ObjectOp::Discard => {
                let ask = Ask { opcode: opcode::DISCARD, ..self.about(operation) };
                self.ask(operation.slot, &ask, now_ns);
            }
            ObjectOp::Collect => self.every_target(operation, opcode::COLLECT, now_ns),
        }
    }

    /// A request to nobody yet about the keys of an operation.
    #[inline]
    pub(super) fn about(&self, operation: &ObjectOperation) -> Ask {
        Ask {
            endpoint: 0,
            opcode: 0,
            selector: 0,
            object: operation.object,
            dkey: operation.dkey,
            akey: operation.akey,
            anchor: None,
            offset: 0,
            length: 0,
            moves: Moves::ToScratch,
            from: 0,
            shard: 0,
        }
    }

    /// A request about the container to tag 0.
    pub(super) fn about_container(&self, slot: u32, opcode: u16) -> Ask {
        let operation = self.running[slot as usize].operation;
        Ask { endpoint: self.targets, opcode, ..self.about(&operation) }
    }

    /// The target of a copy of a dkey.
    #[inline]
    pub(super) fn target(&self, operation: &ObjectOperation, dkey: &Key, shard: u32) -> u32 {
        self.placement.target(operation.object, self.placement.group(dkey.as_bytes()), shard)
    }

    /// To all shards of its dkey: the target of the first changes them, in one order for all clients, and the value travels once.
    #[inline]
    fn ask_shards(&mut self, operation: &ObjectOperation, ask: &Ask, now_ns: u64) {
        let opcode = match ask.opcode {
            opcode::UPDATE if self.is_spread() => opcode::UPDATE_SHARDS,
            opcode::PUNCH if self.is_spread() => opcode::PUNCH_SHARDS,
            opcode => opcode,
        };
        self.ask_copy(operation, &Ask { opcode, ..*ask }, now_ns);
    }

    /// Whether a dkey lies on several shards.
    #[inline]
    fn is_spread(&self) -> bool {
        self.placement.redundancy() != Redundancy::None
    }

    fn is_coded(&self) -> bool {
        self.striping.is_some()
    }

    /// Shards of a group that hold data.
    fn data_shards(&self) -> u32 {
        match self.placement.redundancy() {
            Redundancy::ErasureCoded { data, .. } => u32::from(data),
            Redundancy::None | Redundancy::Replicated(_) => 1,
        }
    }

    /// To the copy that is read, the first as long as it is whole; or to the target that puts cells together.
    #[inline]
    fn ask_copy(&mut self, operation: &ObjectOperation, ask: &Ask, now_ns: u64) {
        let endpoint = self.target(operation, &ask.dkey, 0);
        self.ask(operation.slot, &Ask { endpoint, ..*ask }, now_ns);
    }

    /// Asks the next copy for a part of a value, or for all that is left of its cells; false where that was done.
    #[cold]
    pub(super) fn ask_next_copy(&mut self, number: u32) -> bool {
        let slot = number / self.geometry.fan;
        let operation = self.running[slot as usize].operation;
        let piece = self.pieces[number as usize];
        let shard = piece.shard + 1;
        let ways = if self.is_coded() { 2 } else { self.placement.group_size() };
        if shard >= ways || !operation.operation.loads() {
            return false;
        }
        let mut ask = self.load_of(&operation);
        if operation.operation == ObjectOp::Read {
            let at = operation.offset_bytes + piece.offset as u64;
            ask.dkey = Key::integer(at / self.geometry.chunk_bytes + 1);
            ask.akey = Key::EMPTY;
            (ask.selector, ask.offset) = (select::EXTENT, at % self.geometry.chunk_bytes);
        }
        if self.is_coded() {
            (ask.endpoint, ask.opcode) = (piece.endpoint, opcode::RESTORE_SHARDS);
        } else {
            ask.endpoint = self.target(&operation, &ask.dkey, shard);
        }
        let ask = Ask { shard, from: piece.offset, length: piece.length as u64, ..ask };
        let now_ns = self.channel.now_ns();
        self.ask_again(number, &ask, now_ns);
        true
    }

    /// The selector and offset of the value of an update or fetch.
    #[inline]
    pub(super) fn kind_of(&self, operation: &ObjectOperation) -> (u8, u64) {
        let is_key_value = matches!(operation.operation, ObjectOp::Put | ObjectOp::Get | ObjectOp::Stat);
        match self.plan.dataset.value {
            ValueKind::Array if !is_key_value => (select::EXTENT, operation.offset_bytes),
            ValueKind::Array | ValueKind::Single => (select::SINGLE, 0),
        }
    }

    #[inline]
    fn store(&mut self, operation: &ObjectOperation, now_ns: u64) {
        let (selector, offset) = self.kind_of(operation);
        let ask = Ask {
            opcode: opcode::UPDATE,
            selector,
            offset,
            length: operation.value_bytes,
            moves: Moves::Value,
            ..self.about(operation)
        };
        self.ask_shards(operation, &ask, now_ns);
    }

    #[inline]
    fn load(&mut self, operation: &ObjectOperation, now_ns: u64) {
        let ask = self.load_of(operation);
        self.ask_copy(operation, &ask, now_ns);
    }

    /// The opcode that reads values.
    #[inline]
    fn fetching(&self) -> u16 {
        if self.is_coded() { opcode::FETCH_SHARDS } else { opcode::FETCH }
    }

    #[inline]
    fn load_of(&self, operation: &ObjectOperation) -> Ask {
        let (selector, offset) = self.kind_of(operation);
        Ask {
            opcode: self.fetching(),
            selector,
            offset,
            length: operation.value_bytes,
            moves: Moves::ToValue,
            ..self.about(operation)
        }
    }

    /// Writes or reads an array, chunk by chunk.
    pub(super) fn transfer(&mut self, operation: &ObjectOperation, now_ns: u64) {
        let writes = operation.operation == ObjectOp::Write;
        let chunk_bytes = self.geometry.chunk_bytes;
        let Some(end) = operation.offset_bytes.checked_add(operation.value_bytes) else {
            self.running[operation.slot as usize].errno = -libc::EINVAL;
            return;
        };
        let mut at = operation.offset_bytes;
        while at < end {
            let (chunk, within) = (at / chunk_bytes, at % chunk_bytes);
            let length = (chunk_bytes - within).min(end - at);
            let ask = Ask {
                opcode: if writes { opcode::UPDATE } else { self.fetching() },
                selector: select::EXTENT,
                dkey: Key::integer(chunk + 1),
                akey: Key::EMPTY,
                offset: within,
                length,
                moves: if writes { Moves::Value } else { Moves::ToValue },
                from: (at - operation.offset_bytes) as usize,
                ..self.about(operation)
            };
            if writes {
                self.ask_shards(operation, &ask, now_ns);
            } else {
                self.ask_copy(operation, &ask, now_ns);
            }
            at += length;
        }
    }

    fn punch(&mut self, operation: &ObjectOperation, now_ns: u64) {
        let selector = match (self.plan.punch, self.plan.dataset.value) {
            (PunchScope::Object, _) => {
                return self.punch_object(operation, now_ns);
            }
            (PunchScope::Dkey, _) => select::DKEY,
            (PunchScope::Akey, _) | (PunchScope::Record, ValueKind::Single) => select::AKEY,
            (PunchScope::Record, ValueKind::Array) => select::RECORD,
        };
        self.change(operation, opcode::PUNCH, selector, now_ns);
    }

    fn change(&mut self, operation: &ObjectOperation, opcode: u16, selector: u8, now_ns: u64) {
        let is_record = selector == select::RECORD;
        let ask = Ask {
            opcode,
            selector,
            offset: if is_record { operation.offset_bytes } else { 0 },
            length: if is_record { operation.value_bytes } else { 0 },
            ..self.about(operation)
        };
        self.ask_shards(operation, &ask, now_ns);
    }

    /// The size of a value.
    fn stat(&mut self, operation: &ObjectOperation, now_ns: u64) {
        let opcode = if self.is_coded() { opcode::SIZE_SHARDS } else { opcode::SIZE };
        self.ask_copy(operation, &Ask { opcode, ..self.about(operation) }, now_ns);
    }

    /// Attributes of an array, as they are kept.
    pub(super) fn attributes(&self) -> [u8; ATTRIBUTES_BYTES] {
        let mut attributes = [0; ATTRIBUTES_BYTES];
        attributes[..8].copy_from_slice(&self.plan.cell_size_bytes.to_le_bytes());
        attributes[8..].copy_from_slice(&self.plan.chunk_size_cells.to_le_bytes());
        attributes
    }

    /// Attributes under dkey 0.
    fn create(&mut self, operation: &ObjectOperation, now_ns: u64) {
        let attributes = self.attributes();
        let number = self.number(operation.slot, 0);
        // SAFETY: the memory of a request is the driver's while it is not in flight.
        unsafe { self.scratch.slot_mut(number, ATTRIBUTES_BYTES) }.copy_from_slice(&attributes);
        let ask = Ask {
            opcode: opcode::UPDATE,
            selector: select::SINGLE,
            dkey: Key::integer(0),
            akey: Key::EMPTY,
            length: ATTRIBUTES_BYTES as u64,
            moves: Moves::Scratch(ATTRIBUTES_BYTES),
            ..self.about(operation)
        };
        self.ask_shards(operation, &ask, now_ns);
    }

    fn open_array(&mut self, operation: &ObjectOperation, now_ns: u64) {
        let ask = Ask {
            opcode: if self.is_coded() { opcode::RESTORE_SHARDS } else { opcode::FETCH },
            selector: select::SINGLE,
            dkey: Key::integer(0),
            akey: Key::EMPTY,
            length: ATTRIBUTES_BYTES as u64,
            ..self.about(operation)
        };
        self.ask_copy(operation, &ask, now_ns);
    }

    fn punch_object(&mut self, operation: &ObjectOperation, now_ns: u64) {
        let opcode = if self.is_spread() { opcode::PUNCH_SHARDS } else { opcode::PUNCH };
        self.every_shard(operation, opcode, select::OBJECT, 1, now_ns);
    }

    /// To the first `shards` shards of each group of the object.
    fn every_shard(
        &mut self,
        operation: &ObjectOperation,
        opcode: u16,
        selector: u8,
        shards: u32,
        now_ns: u64,
    ) {
        let ask = Ask { opcode, selector, ..self.about(operation) };
        for group in 0..self.placement.groups() {
            for shard in 0..shards {
                let endpoint = self.placement.target(operation.object, group, shard);
                self.ask(operation.slot, &Ask { endpoint, shard, ..ask }, now_ns);
            }
        }
    }

    fn every_target(&mut self, operation: &ObjectOperation, opcode: u16, now_ns: u64) {
        let ask = Ask { opcode, ..self.about(operation) };
        for endpoint in 0..self.targets {
            self.ask(operation.slot, &Ask { endpoint, ..ask }, now_ns);
        }
    }

    /// The next keys of the object, from where the last list of the slot ended.
    fn list(&mut self, operation: &ObjectOperation, now_ns: u64) {
        let cursor = &mut self.cursors[operation.slot as usize];
        if cursor.object != operation.object || cursor.group >= self.placement.groups() {
            *cursor = Cursor { object: operation.object, ..Cursor::default() };
        }
        let is_beginning = cursor.group == 0 && !cursor.is_begun;
        self.running[operation.slot as usize].stage = u8::from(is_beginning);
        self.list_on(operation, now_ns);
    }

    /// The next keys of the group that the cursor is in.
    pub(super) fn list_on(&mut self, operation: &ObjectOperation, now_ns: u64) {
        let cursor = self.cursors[operation.slot as usize];
        let listed = self.running[operation.slot as usize].sum;
        let ask = Ask {
            endpoint: self.placement.target(operation.object, cursor.group, 0),
            opcode: opcode::LIST,
            selector: select::DKEYS,
            anchor: cursor.is_begun.then_some(cursor.anchor),
            length: u64::from(self.plan.list_max).saturating_sub(listed),
            ..self.about(operation)
        };
        self.ask(operation.slot, &ask, now_ns);
    }
}
