//! Memory that requests are sent from and replies go to.
#![allow(unsafe_code)]

use std::sync::Arc;

use driver::Arena;

/// A part of a slot's buffer in one of the channel's regions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    /// Index of the region in [`super::ChannelRequest::regions`].
    pub region: u32,
    /// Slot of the region.
    pub slot: u32,
    /// Where it begins in the slot's buffer, in bytes.
    pub offset_bytes: usize,
    /// How long it is, in bytes.
    pub length_bytes: usize,
}

/// The same as an address. It is inside a region that the channel holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    from: *mut u8,
    length: usize,
}

// SAFETY: plain memory; a slot's buffer is the channel's from the start of a request to its completion (the protocol of `Arena`), and a
// channel is used by one thread at a time.
unsafe impl Send for Window {}

impl Window {
    pub(super) const NONE: Self = Self { from: std::ptr::NonNull::<u8>::dangling().as_ptr(), length: 0 };

    pub(super) fn length(&self) -> usize {
        self.length
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: inside a region that the channel holds; the slot's turn is the channel's.
        unsafe { std::slice::from_raw_parts(self.from, self.length) }
    }

    /// The bytes from `at` to `end`.
    ///
    /// # Panics
    /// When they are not inside.
    ///
    /// # Safety
    /// The slot's turn is the channel's, and no other reference to these bytes is alive.
    #[allow(clippy::mut_from_ref)]
    pub(super) unsafe fn part_mut(&self, at: usize, end: usize) -> &mut [u8] {
        assert!(at <= end && end <= self.length);
        // SAFETY: inside a region that the channel holds; exclusive by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.from.add(at), end - at) }
    }

    /// Goes on by so many bytes; returns what is left of it.
    pub(super) fn advance(&mut self, bytes: usize) -> usize {
        assert!(bytes <= self.length);
        // SAFETY: stays inside the window.
        self.from = unsafe { self.from.add(bytes) };
        self.length -= bytes;
        self.length
    }
}

/// The regions of a channel.
pub(super) struct Regions(pub(super) Vec<Arc<Arena>>);

impl Regions {
    /// Where a stretch is; none when it is in no region.
    #[inline]
    pub(super) fn window(&self, stretch: &Stretch) -> Option<Window> {
        if stretch.length_bytes == 0 {
            return Some(Window::NONE);
        }
        let region = self.0.get(stretch.region as usize)?;
        let end = stretch.offset_bytes.checked_add(stretch.length_bytes)?;
        if stretch.slot >= region.slots() || end > region.slot_bytes() {
            return None;
        }
        // SAFETY: the offset is inside the slot.
        let from = unsafe { region.slot_ptr(stretch.slot).add(stretch.offset_bytes) };
        Some(Window { from, length: stretch.length_bytes })
    }
}

#[cfg(test)]
mod tests {
    use driver::PageSize;

    use super::*;

    #[test]
    fn only_what_is_inside_a_region_is_a_window() {
        let arena = Arc::new(Arena::new(2, 4096, PageSize::Base).expect("memory"));
        let regions = Regions(vec![arena]);
        let whole = Stretch { slot: 1, length_bytes: 4096, ..Stretch::default() };
        assert_eq!(regions.window(&whole).expect("inside").length(), 4096);
        let outside = [
            Stretch { slot: 2, ..whole },
            Stretch { region: 1, ..whole },
            Stretch { offset_bytes: 1, ..whole },
            Stretch { offset_bytes: usize::MAX, ..whole },
        ];
        assert!(outside.iter().all(|stretch| regions.window(stretch).is_none()));
        assert_eq!(regions.window(&Stretch::default()).expect("nothing").bytes(), b"");
    }
}
