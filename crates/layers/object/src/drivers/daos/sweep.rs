//! Work on many objects outside the measured window: whether they hold anything, and taking them away.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::ids::ObjectIds;
use crate::daos::abi::{Anchor, Event, Handle, Iov, KeyDescriptor, OBJECT_READ_WRITE, Sgl, TX_NONE};
use crate::daos::errors::{NONEXISTENT, TIMED_OUT};
use crate::daos::session::Container;

/// Objects worked on at a time.
const SEATS: u64 = 32;
const SLEEP_US: i64 = 50_000;
/// `-DER_KEY2BIG`: there is a key, larger than there is room for.
const KEY_TOO_LARGE: c_int = -2012;

/// Action on each object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// Its first key is asked for.
    Look,
    /// It is punched.
    Punch,
}

/// An object in flight.
#[repr(C)]
struct Seat {
    /// First: an event's address is its seat's.
    event: Event,
    lower: u64,
    handle: Handle,
    count: u32,
    anchor: Anchor,
    descriptor: KeyDescriptor,
    name: [u8; 64],
    value: Iov,
    sgl: Sgl,
}

impl Seat {
    fn new() -> Self {
        Self {
            event: Event::EMPTY,
            lower: 0,
            handle: Handle::default(),
            count: 0,
            anchor: Anchor::START,
            descriptor: KeyDescriptor::default(),
            name: [0; 64],
            value: Iov::EMPTY,
            sgl: Sgl { count: 1, count_out: 0, iovs: std::ptr::null_mut() },
        }
    }
}

/// Objects of one container, several at a time.
pub(super) struct Sweep<'a> {
    container: &'a Container,
    objects: &'a ObjectIds,
    task: Task,
    queue: Handle,
    seats: Box<[Seat]>,
    in_flight: usize,
}

impl<'a> Sweep<'a> {
    /// Does `task` with the objects `lowers` of `objects`; `met` hears of each that was there (looked at) or taken away (punched). `interrupt` ends it.
    ///
    /// # Errors
    /// The library's code; `-DER_TIMEDOUT` where nothing was answered for 30 s, or it was interrupted.
    pub(super) fn run(
        container: &'a Container,
        objects: &'a ObjectIds,
        task: Task,
        lowers: &mut dyn Iterator<Item = u64>,
        interrupt: Option<&AtomicBool>,
        met: &mut dyn FnMut(u64),
    ) -> Result<(), c_int> {
        let api = container.pool.api;
        let mut queue = Handle::default();
        // SAFETY: a place for the handle.
        match unsafe { (api.daos_eq_create)(&raw mut queue) } {
            0 => {}
            code => return Err(code),
        }
        let seats = (0..SEATS.min(objects.ids.count())).map(|_| Seat::new()).collect();
        let mut sweep = Self { container, objects, task, queue, seats, in_flight: 0 };
        let swept = sweep.all(lowers, interrupt, met);
        if sweep.in_flight > 0 {
            // The library may still write to them.
            container.pool.calls.note_stuck();
            std::mem::forget(sweep.seats);
            return swept.and(Err(TIMED_OUT));
        }
        // SAFETY: nothing is in flight.
        unsafe { (api.daos_eq_destroy)(queue, 0) };
        swept
    }

    fn all(
        &mut self,
        lowers: &mut dyn Iterator<Item = u64>,
        interrupt: Option<&AtomicBool>,
        met: &mut dyn FnMut(u64),
    ) -> Result<(), c_int> {
        let mut failure = Ok(());
        for seat in 0..self.seats.len() {
            self.next(seat, lowers, &mut failure);
        }
        let mut heard = Instant::now();
        while self.in_flight > 0 {
            let mut events: [*mut Event; SEATS as usize] = [std::ptr::null_mut(); SEATS as usize];
            let poll = self.container.pool.api.daos_eq_poll;
            // SAFETY: a place for so many events of our queue.
            let count = unsafe { poll(self.queue, 0, SLEEP_US, SEATS as u32, events.as_mut_ptr()) };
            let Ok(count) = usize::try_from(count) else { return Err(count) };
            let is_cut = interrupt.is_some_and(|interrupt| interrupt.load(Ordering::Relaxed));
            if count > 0 {
                heard = Instant::now();
            } else if is_cut || heard.elapsed() > self.container.pool.calls.quiet() {
                return Err(TIMED_OUT);
            }
            for event in &events[..count] {
                let seat = (*event as usize - self.seats.as_ptr() as usize) / size_of::<Seat>();
                self.in_flight -= 1;
                if self.land(seat, &mut failure, met) {
                    self.next(seat, lowers, &mut failure);
                }
            }
        }
        failure
    }

    /// Begins with the next object in a seat, unless one has failed.
    fn next(&mut self, seat: usize, lowers: &mut dyn Iterator<Item = u64>, failure: &mut Result<(), c_int>) {
        if failure.is_err() {
            return;
        }
        let Some(lower) = lowers.next() else { return };
        let (api, oid, container) = (self.container.pool.api, self.objects.oid(lower), self.container.handle);
        let queue = self.queue;
        let seat_of = &mut self.seats[seat];
        (seat_of.lower, seat_of.anchor) = (lower, Anchor::START);
        let (event, place) = (&raw mut seat_of.event, &raw mut seat_of.handle);
        let (none, mode) = (std::ptr::null_mut(), OBJECT_READ_WRITE);
        // SAFETY: seats stay where they are; opening asks no server and ends before it returns.
        let code = unsafe {
            match (api.daos_event_init)(event, queue, std::ptr::null_mut()) {
                0 => (api.daos_obj_open)(container, oid, mode, place, none),
                code => code,
            }
        };
        let code = if code == 0 { self.ask(seat) } else { code };
        if code != 0 {
            *failure = Err(code);
        }
    }

    /// Asks for the first key of a seat's object, or for what follows; or punches it.
    fn ask(&mut self, seat: usize) -> c_int {
        let (api, task) = (self.container.pool.api, self.task);
        let seat = &mut self.seats[seat];
        seat.count = 1;
        seat.value = Iov::of(seat.name.as_ptr(), seat.name.len());
        seat.sgl = Sgl { count: 1, count_out: 0, iovs: &raw mut seat.value };
        let (handle, event) = (seat.handle, &raw mut seat.event);
        let (count, descriptor) = (&raw mut seat.count, &raw mut seat.descriptor);
        let (sgl, anchor) = (&raw mut seat.sgl, &raw mut seat.anchor);
        // SAFETY: seats stay where they are until the event has come back.
        let code = unsafe {
            match task {
                Task::Look => {
                    (api.daos_obj_list_dkey)(handle, TX_NONE, count, descriptor, sgl, anchor, event)
                }
                Task::Punch => (api.daos_obj_punch)(handle, TX_NONE, 0, event),
            }
        };
        self.in_flight += usize::from(code == 0);
        code
    }

    /// An event has come back: whether the seat is free.
    fn land(&mut self, seat: usize, failure: &mut Result<(), c_int>, met: &mut dyn FnMut(u64)) -> bool {
        let Seat { event, lower, handle, count, anchor, .. } = &self.seats[seat];
        let (code, lower, handle, listed) = (event.error, *lower, *handle, *count);
        // A page without keys is not the end of a list: objects lie on several targets.
        if self.task == Task::Look && code == 0 && listed == 0 && !anchor.is_end() {
            match self.ask(seat) {
                0 => return false,
                code => *failure = Err(code),
            }
        }
        let is_there = match (self.task, code) {
            (Task::Look, 0) => listed > 0,
            (Task::Look, KEY_TOO_LARGE) | (Task::Punch, 0) => true,
            (_, NONEXISTENT) => false,
            (_, code) => {
                *failure = Err(code);
                false
            }
        };
        if is_there {
            met(lower);
        }
        let api = self.container.pool.api;
        // SAFETY: a handle of ours, closed once, and an event that has come back.
        unsafe {
            (api.daos_obj_close)(handle, std::ptr::null_mut());
            (api.daos_event_fini)(&raw mut self.seats[seat].event);
        }
        true
    }
}
