//! Tickets: the memory that an RPC in flight has named, and the number that the engine knows it by.

use std::time::Instant;

use super::device::TicketMemory;

/// Whether a ticket is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nobody uses it.
    Free,
    /// Its RPC is in flight.
    Flying,
    /// Its RPC was given up, but the engine may still write to its memory.
    SetApart,
}

/// One of them. The first ones are those of the slots themselves, and their memory is the slot's buffer.
pub(super) struct Ticket {
    pub(super) state: State,
    pub(super) slot: u32,
    pub(super) link: u32,
    pub(super) sequence: u64,
    /// When it is given up; set by the first tick that sees it.
    pub(super) deadline: Option<Instant>,
    /// Memory of its own, where the slot's buffer was set apart.
    pub(super) memory: Option<TicketMemory>,
}

/// All of them.
pub(super) struct Tickets {
    entries: Vec<Ticket>,
    /// Free ones beyond those of the slots.
    spare: Vec<u32>,
    flying: usize,
}

impl Tickets {
    /// One for each slot.
    pub(super) fn new(slots: u32) -> Self {
        let mut tickets = Self { entries: Vec::new(), spare: Vec::new(), flying: 0 };
        for _ in 0..slots {
            tickets.add(None);
        }
        tickets
    }

    fn add(&mut self, memory: Option<TicketMemory>) -> u32 {
        self.entries.push(Ticket {
            state: State::Free,
            slot: 0,
            link: 0,
            sequence: 0,
            deadline: None,
            memory,
        });
        self.entries.len() as u32 - 1
    }

    /// A free one for the slot: its own, or a spare one, or one with memory that `make` makes; none when it makes none.
    #[inline]
    pub(super) fn pick(
        &mut self,
        slot: u32,
        make: impl FnOnce() -> Option<Option<TicketMemory>>,
    ) -> Option<u32> {
        if self.entries[slot as usize].state == State::Free {
            return Some(slot);
        }
        self.spare.pop().or_else(|| Some(self.add(make()?)))
    }

    /// Gives one back that was picked and not used.
    pub(super) fn put_back(&mut self, ticket: u32, slot: u32) {
        if ticket != slot {
            self.spare.push(ticket);
        }
    }

    /// The RPC has left.
    #[inline]
    pub(super) fn fly(&mut self, ticket: u32, slot: u32, link: u32, sequence: u64) {
        let entry = &mut self.entries[ticket as usize];
        *entry = Ticket {
            state: State::Flying,
            slot,
            link,
            sequence,
            deadline: None,
            memory: entry.memory.take(),
        };
        self.flying += 1;
    }

    /// One of them.
    #[inline]
    pub(super) fn get(&self, ticket: u32) -> Option<&Ticket> {
        self.entries.get(ticket as usize)
    }

    /// The engine is done with it.
    #[inline]
    pub(super) fn land(&mut self, ticket: u32, slots: u32) {
        let entry = &mut self.entries[ticket as usize];
        if entry.state == State::Flying {
            self.flying -= 1;
        }
        entry.state = State::Free;
        if ticket >= slots {
            self.spare.push(ticket);
        }
    }

    /// Its RPC is given up.
    pub(super) fn set_apart(&mut self, ticket: u32) {
        let entry = &mut self.entries[ticket as usize];
        debug_assert_eq!(entry.state, State::Flying);
        entry.state = State::SetApart;
        self.flying -= 1;
    }

    /// RPCs in flight.
    pub(super) fn flying(&self) -> usize {
        self.flying
    }

    /// Those in flight.
    pub(super) fn flying_mut(&mut self) -> impl Iterator<Item = (u32, &mut Ticket)> {
        self.entries
            .iter_mut()
            .enumerate()
            .filter(|(_, ticket)| ticket.state == State::Flying)
            .map(|(index, ticket)| (index as u32, ticket))
    }

    /// Whether an engine may still know the memory of any, of those links that `concerns` names.
    pub(super) fn any_named(&self, concerns: impl Fn(u32) -> bool) -> bool {
        self.entries.iter().any(|ticket| ticket.state != State::Free && concerns(ticket.link))
    }

    /// Gives up the memory of those that an engine may still know.
    pub(super) fn leak(&mut self) {
        for ticket in self.entries.iter_mut().filter(|ticket| ticket.state != State::Free) {
            std::mem::forget(ticket.memory.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_whose_memory_is_set_apart_gets_another_ticket() {
        let mut tickets = Tickets::new(2);
        assert_eq!(tickets.pick(1, || None), Some(1));
        tickets.fly(1, 1, 0, 7);
        tickets.set_apart(1);
        assert_eq!((tickets.flying(), tickets.any_named(|link| link == 0)), (0, true));
        assert_eq!(tickets.pick(1, || None), None, "no memory to be had");
        let other = tickets.pick(1, || Some(None)).expect("a ticket");
        assert_eq!(other, 2);
        tickets.fly(other, 1, 0, 8);
        tickets.land(other, 2);
        assert_eq!(tickets.pick(1, || None), Some(2), "the spare one again");
        tickets.put_back(2, 1);
        tickets.land(1, 2);
        assert_eq!(tickets.pick(1, || None), Some(1), "its own again");
        assert!(!tickets.any_named(|_| true));
    }
}
