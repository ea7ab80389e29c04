//! A run that several hosts carry out together, each by plans that it made itself: one session a host, from planning to the end.

pub(crate) mod host;
mod leader;
mod link;
pub(crate) mod meeting;
mod messages;
mod patch;
mod stage;

pub use host::{HostSession, SessionHost, SessionLink};
pub use leader::{SessionTerms, Sessions};
pub use meeting::HostMeetings;
pub use messages::{SessionRequest, StagePart, report_interval};
pub use stage::{HostStageEnd, SessionProgress, StageOutcome, StageRequest, StageTasks};
