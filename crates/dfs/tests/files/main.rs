//! Files and directories over stores, as programs see them.

mod concurrent;
mod damage;
mod model;
mod semantics;
mod support;
