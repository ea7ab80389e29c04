//! Files and directories over stores, as programs see them.

mod concurrent;
mod crash;
mod damage;
mod engine;
mod model;
mod semantics;
mod support;
