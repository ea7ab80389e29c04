//! One operation in flight: its requests, one after the other, on a connection of its own.

use super::watch::Watch;
use crate::operation::ObjectOperation;
use crate::s3::{Circle, HEAD_BYTES, Link, Scanner};

/// Longest token, id or query that has room without growing, in bytes.
const TEXT_BYTES: usize = 512;
/// Room of one line of a finished upload: number and ETag.
pub(super) const PART_LINE_BYTES: usize = 160;

/// State of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Idle,
    Sending,
    Receiving,
    /// It waits before it sends again.
    Pausing,
}

/// Which request of an operation it is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The only one, or a page of a list.
    Whole,
    /// An upload in parts is begun.
    Begin,
    /// Its next part is sent.
    Part,
    /// Its parts are put together.
    Complete,
    /// It is given up.
    Abort,
    /// Who has put the object that is there is asked.
    Owner,
}

impl Step {
    /// Whether a request must not be sent twice: POST is not idempotent (RFC 9110, 9.2.2).
    pub(super) fn is_once(self) -> bool {
        matches!(self, Self::Begin | Self::Complete)
    }
}

/// An upload in parts.
#[derive(Debug, Default)]
pub(super) struct Upload {
    /// Its id, as the server gave it; empty: there is none.
    pub(super) id: Vec<u8>,
    /// Number of the part that is being sent, from 1.
    pub(super) part: u64,
    /// The XML that names the parts.
    pub(super) list: Vec<u8>,
}

/// A slot, and its connection.
pub(super) struct Slot {
    pub(super) state: State,
    pub(super) step: Step,
    pub(super) operation: Option<ObjectOperation>,
    pub(super) link: Option<Link>,
    pub(super) scanner: Scanner,
    /// Escaped name of the object.
    pub(super) name: Vec<u8>,
    pub(super) query: Vec<u8>,
    /// The request's head.
    pub(super) head: Vec<u8>,
    /// Where the next list of this slot goes on; empty: at the beginning.
    pub(super) token: Vec<u8>,
    /// Keys of the pages of a list so far.
    pub(super) listed: u64,
    /// Notices lists that never end.
    pub(super) circle: Circle,
    pub(super) upload: Upload,
    /// The object of this name may be written over, or removed: this run has put it, or is allowed to destroy others'.
    pub(super) is_own: bool,
    /// Step that follows once the owner is known.
    pub(super) after: Step,
    pub(super) deadline_ns: u64,
    /// When a pause ends.
    pub(super) wake_ns: u64,
    pub(super) tries: u32,
    /// Result of the operation once its upload is given up.
    pub(super) outcome: i64,
    pub(super) endpoint: usize,
    /// Which of the endpoint's addresses is next.
    pub(super) address: usize,
    pub(super) watch: Watch,
}

impl Slot {
    /// A slot whose connections go to `endpoint`; `parts`: most parts of an upload.
    pub(super) fn new(endpoint: usize, address: usize, parts: u64) -> Self {
        let room = |bytes: usize| Vec::with_capacity(if parts > 0 { bytes } else { 0 });
        Self {
            state: State::Idle,
            step: Step::Whole,
            operation: None,
            link: None,
            scanner: Scanner::default(),
            name: Vec::with_capacity(TEXT_BYTES),
            query: Vec::with_capacity(TEXT_BYTES),
            head: Vec::with_capacity(HEAD_BYTES),
            token: Vec::with_capacity(TEXT_BYTES),
            listed: 0,
            circle: Circle::default(),
            is_own: false,
            after: Step::Whole,
            upload: Upload {
                id: room(TEXT_BYTES),
                part: 0,
                list: room(2 * PART_LINE_BYTES + parts as usize * PART_LINE_BYTES),
            },
            deadline_ns: 0,
            wake_ns: 0,
            tries: 0,
            outcome: 0,
            endpoint,
            address,
            watch: Watch::default(),
        }
    }
}
