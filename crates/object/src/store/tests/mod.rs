//! Tests of the store as a whole: known answers, a model, recovery.

mod basics;
mod claims;
mod damage;
mod model;
pub(super) mod outside;
mod repair;
mod space;
mod support;
