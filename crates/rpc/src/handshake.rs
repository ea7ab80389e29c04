//! How a connection begins: who is there, and does each side know the shared secret.
//!
//! ```text
//! client                                   engine
//! Hello {role, tag, rank, session, nonce, fabric name}
//!                                          Challenge {nonce, rank, group, is a token demanded}
//! Proof {HMAC over both nonces}
//!                                          Welcome {the engine's own HMAC, rank, fabric name} or Refusal {code, text}
//! ```
//!
//! The secret is never sent. Each proof is an HMAC-SHA-256 over the label of its direction and every byte that was exchanged
//! before, so it fits one connection, one direction and one set of words. A client that has a token takes no engine that cannot prove it.

mod client;
mod frames;
mod server;

pub use client::{Connected, Probe, connect, new_session, probe};
pub use frames::{
    CHALLENGE_BYTES, Challenge, FABRIC_NAME_BYTES_MAX, HELLO_BYTES_MAX, HELLO_BYTES_MIN, Hello, MAGIC,
    Malformed, PROOF_BYTES, Proof, REFUSAL_TEXT_BYTES_MAX, Refusal, RefusalCode, Reply, Welcome, hello_bytes,
    parse_hello, parse_proof, parse_reply, reply_bytes,
};
pub(crate) use server::{Pending, ServedEngine, Step};

const CLIENT_LABEL: &[u8] = b"strata handshake 1 client";
const ENGINE_LABEL: &[u8] = b"strata handshake 1 engine";
/// Bytes in the field of a proof when there is no token.
const NO_PROOF: [u8; 32] = [0; 32];

fn client_words<'a>(hello: &'a [u8], challenge: &'a [u8]) -> [&'a [u8]; 3] {
    [CLIENT_LABEL, hello, challenge]
}

/// The names that the engine gives are under its proof as well.
fn engine_words<'a>(
    hello: &'a [u8],
    challenge: &'a [u8],
    rank: &'a [u8; 4],
    fabric_name: &'a [u8],
) -> [&'a [u8]; 5] {
    [ENGINE_LABEL, hello, challenge, rank, fabric_name]
}

/// A number for the name of a group: says that two engines belong together, no more.
#[must_use]
pub fn group_label(group: &str) -> u64 {
    workload::random::label(group)
}
