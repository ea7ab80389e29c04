//! The `strata` command as its users meet it: real files, loop devices, signals, records.

mod bad_input;
mod charts;
mod compare;
mod damage;
mod dialects;
mod doubts;
mod durability;
mod engines;
mod faults;
mod hostile;
mod hosts;
mod loads;
mod memory;
mod namespaces;
mod network;
mod outputs;
mod patterns;
mod safety;
mod seeds_network;
mod signals;
mod stack;
mod stages;
mod support;
mod verification;
