//! Tests of the store as a whole: known answers, a model, recovery.

mod basics;
mod cache;
mod check;
mod claims;
mod conditional;
mod damage;
mod lives;
mod model;
pub(super) mod outside;
mod repair;
mod space;
mod support;
