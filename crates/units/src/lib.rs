//! Bytes, durations, rates and shares: how strata reads them and how it prints them.
//!
//! Every type reads the text that a person types (`4k`, `1.5g`, `30s`, `300k`, `70%`), refuses all other text with
//! a [`ParseError`] of one line that says what is accepted, and prints (`Display`) a text that reads back as the
//! same value. The functions of [`human`] print rounded values for tables. [`random`] has the seeds and numbers that all random choices
//! are drawn from.

mod byte_size;
mod decimal;
mod error;
pub mod human;
mod list;
mod name;
mod nearest;
mod password;
mod percent;
pub mod random;
mod rate;
mod schema;
mod span;
mod text;

pub use byte_size::ByteSize;
pub use error::ParseError;
pub use human::{human_bits_per_second, human_bytes_per_second, human_ns, human_rate, percent};
pub use list::{parse_index_list, parse_u64_in, split_list};
pub use name::{label_of, path_of};
pub use nearest::{changes, nearest};
pub use password::without_password;
pub use percent::Percent;
pub use rate::Rate;
pub use span::Span;
pub use text::{clean, count, counted, rate};
