//! The shared secret of clients and engines, of coordinators and agents.

use std::fmt;
use std::sync::Arc;

use ring::hmac;

/// A shared secret. It is never sent and never printed: each side proves that it knows it.
///
/// One secret serves all protocols. None of them takes a proof of another, because the first part of whatever is proven is a label of the
/// protocol and the side.
#[derive(Clone)]
pub struct Secret(Arc<[u8]>);

impl Secret {
    /// Fewest bytes.
    pub const BYTES_MIN: usize = 16;

    /// A secret of these bytes; none when they are fewer than [`Secret::BYTES_MIN`].
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (bytes.len() >= Self::BYTES_MIN).then(|| Self(bytes.into()))
    }

    /// HMAC-SHA-256 (RFC 2104) of the parts, each preceded by its length, under the secret.
    #[must_use]
    pub fn prove(&self, parts: &[&[u8]]) -> [u8; 32] {
        let tag = hmac::sign(&self.key(), &joined(parts));
        let mut proof = [0; 32];
        proof.copy_from_slice(tag.as_ref());
        proof
    }

    /// Whether `proof` is that of the parts; takes the same time wherever it differs.
    #[must_use]
    pub fn accepts(&self, parts: &[&[u8]], proof: &[u8]) -> bool {
        hmac::verify(&self.key(), &joined(parts), proof).is_ok()
    }

    fn key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.0)
    }
}

/// The parts, so that no two lists of parts give the same bytes.
fn joined(parts: &[&[u8]]) -> Vec<u8> {
    parts
        .iter()
        .flat_map(|part| (part.len() as u64).to_le_bytes().into_iter().chain(part.iter().copied()))
        .collect()
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_secret_is_none_and_none_is_printed() {
        assert!(Secret::new(b"fifteen bytes..").is_none());
        let secret = Secret::new(b"sixteen bytes...").expect("long enough");
        assert_eq!(format!("{secret:?}"), "Secret(..)");
    }

    /// Python: `hmac.new(b"sixteen bytes...", pack("<Q", 1) + b"a" + pack("<Q", 2) + b"bc", "sha256").hexdigest()`.
    #[test]
    fn the_bytes_of_a_proof_are_those_of_the_protocols() {
        let secret = Secret::new(b"sixteen bytes...").expect("long enough");
        let proof: String = secret.prove(&[b"a", b"bc"]).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(proof, "6ef41ffcd96f8836bd7b9420b514d7bb74abe7977802d52a5ee63adfb2d0573f");
    }

    #[test]
    fn a_proof_holds_for_its_secret_and_parts_only() {
        let secret = Secret::new(b"sixteen bytes...").expect("long enough");
        let other = Secret::new(b"sixteen bytes!!!").expect("long enough");
        let proof = secret.prove(&[b"a", b"bc"]);
        assert!(secret.accepts(&[b"a", b"bc"], &proof));
        assert!(!secret.accepts(&[b"ab", b"c"], &proof), "the same bytes in other parts");
        assert!(!secret.accepts(&[b"a", b"bc"], &proof[1..]));
        assert!(!other.accepts(&[b"a", b"bc"], &proof));
    }
}
