//! The media layer: files, block devices, character devices and memory, through the system calls that reach them, and images of block devices
//! through their library.

mod by_path;
pub mod cache;
pub mod content;
pub mod course;
mod descriptor;
mod drive;
pub mod drivers;
pub mod engine;
mod expected;
mod in_flight;
pub mod layout;
mod leftovers;
pub mod names;
mod on_device;
mod one_by_one;
mod operation;
pub mod options;
pub mod plan;
pub mod planning;
pub mod probe;
pub mod program;
pub mod rbd;
mod region;
mod report;
mod request;
mod run;
pub mod safety;
mod shaping;
mod source;
pub mod spec;
mod stack;
mod stage;
pub mod target;
mod verify;
pub mod zoned;

pub use self::report::VIEW;
pub use drivers::DRIVERS;
pub use expected::operations_of;
pub use operation::{MediaClass, MediaOperation};
pub use options::LAYER;
pub use plan::MediaPlan;
pub use region::check_plan;
pub use request::OpenRequest;
pub use run::Media;
pub use source::MediaSource;
pub use spec::{MediaSpec, of};
pub use stage::{JobSetup, MediaPhase, MediaRun, job};
pub use verify::{Ledger, Verifier, overlap};

/// Whether this process may use io_uring: sysctl, seccomp and the kernel all have a say, so a ring of one entry is tried.
#[must_use]
pub fn io_uring_is_available() -> bool {
    io_uring::IoUring::new(1).is_ok()
}
