//! Files and directories over stores, as programs see them.

mod concurrent;
mod damage;
mod engine;
mod model;
mod semantics;
mod support;
