//! Engines: started, found, refused, attacked and stopped.

#[path = "engine/accepting.rs"]
mod accepting;
#[path = "engine/attach_info.rs"]
mod attach_info;
#[path = "engine/common.rs"]
mod common;
#[path = "engine/life.rs"]
mod life;
#[path = "engine/settle.rs"]
mod settle;
#[path = "engine/share.rs"]
mod share;
#[path = "engine/times.rs"]
mod times;
#[path = "engine/watch.rs"]
mod watch;
