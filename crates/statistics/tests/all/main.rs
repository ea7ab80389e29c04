//! Known answers: every figure against data whose true value is known.

mod confidence;
mod histogram;
mod knee;
mod random;
mod series;
mod steady;
mod summary;
