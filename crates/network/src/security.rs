//! The shared secret of engines and clients.

use std::fmt;
use std::sync::Arc;

/// Shortest secret, in bytes.
pub const TOKEN_BYTES_MIN: usize = 16;

/// A shared secret. It is never sent and never printed: each side proves that it knows it.
#[derive(Clone)]
pub struct Token(Arc<[u8]>);

impl Token {
    /// A secret of these bytes; none when they are fewer than [`TOKEN_BYTES_MIN`].
    #[must_use]
    pub fn new(secret: &[u8]) -> Option<Self> {
        (secret.len() >= TOKEN_BYTES_MIN).then(|| Self(secret.into()))
    }

    /// HMAC-SHA-256 (RFC 2104) of the parts, each preceded by its length, under the secret.
    #[must_use]
    pub fn prove(&self, parts: &[&[u8]]) -> [u8; 32] {
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &self.0);
        let tag = ring::hmac::sign(&key, &joined(parts));
        let mut proof = [0; 32];
        proof.copy_from_slice(tag.as_ref());
        proof
    }

    /// Whether `proof` is that of the parts; takes the same time wherever it differs.
    #[must_use]
    pub fn accepts(&self, parts: &[&[u8]], proof: &[u8]) -> bool {
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &self.0);
        ring::hmac::verify(&key, &joined(parts), proof).is_ok()
    }
}

fn joined(parts: &[&[u8]]) -> Vec<u8> {
    parts
        .iter()
        .flat_map(|part| (part.len() as u64).to_le_bytes().into_iter().chain(part.iter().copied()))
        .collect()
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}
