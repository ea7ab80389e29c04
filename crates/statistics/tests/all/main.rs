//! Known answers: every figure against data whose true value is known.

mod backlog;
mod compare;
mod confidence;
mod coverage;
mod histogram;
mod hosts;
mod knee;
mod merge;
mod packed;
mod random;
mod series;
mod spread;
mod steady;
mod summary;
