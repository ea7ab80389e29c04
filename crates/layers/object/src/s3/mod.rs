//! S3: signatures, requests and answers over HTTP/1.1, and the bucket of a run.
//!
//! The hot path is written out: heads of requests are built and signed in buffers that are kept, values go from and to the worker's own
//! buffers, and a socket carries one request at a time. Where a measured loop needs no speed, the same pieces are used one request after
//! the other.

mod answers;
mod backend;
mod cleaning;
mod client;
mod endpoint;
mod link;
mod names;
mod request;
pub mod response;
pub mod scanner;
pub mod signing;
mod site;
mod stream;
pub mod text;

pub use backend::connect_with;

pub(crate) use answers::{Answers, Cause, errno_of, errno_of_loss, is_temporary, words_of_loss};
pub(crate) use client::{Circle, Client, LIST, NO_LIST, NO_TOKEN, TOKEN_AGAIN, Upload as LostUpload};
pub(crate) use link::{Expected, Link, Progress, Reply, Trouble};
pub(crate) use names::{Own, mark};
pub(crate) use request::{Ask, Condition, HEAD_BYTES, Writer};
pub(crate) use scanner::Scanner;
pub(crate) use site::{Names, Site};
pub(crate) use stream::Opening;
