//! The record of a run, and everything that is made from it: text, CSV, waterfall, verdict. Nothing here measures.

pub mod chart;
pub mod compare;
pub mod csv;
pub mod doubts;
pub mod history;
pub mod json;
pub mod page;
pub mod preset;
pub mod profile;
pub mod recipes;
pub mod record;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
pub mod shares;
pub mod stack;
mod suite;
pub mod text;
pub mod view;
pub mod words;

pub use csv::{to_csv, to_csv_by_host, to_csv_by_pair};
pub use json::{from_json, schema, to_json, unpack};
pub use stack::verdict;
pub use text::{render, render_in, summary_line};
