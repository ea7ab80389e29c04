//! Proofs of the shared secret, and the sessions that stand on them.

use driver::{Error, ErrorKind, Secret};
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac};

/// Length of a nonce, in bytes.
pub(crate) const NONCE_BYTES: usize = 32;

/// Whose proof it is: a proof of one side is worth nothing as that of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

/// Facts of a connection that both sides know and prove the secret over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Challenge {
    pub(crate) client_nonce: Vec<u8>,
    pub(crate) server_nonce: Vec<u8>,
    /// Binding of the TLS connection; empty without TLS.
    pub(crate) binding: Vec<u8>,
}

impl Challenge {
    /// Label and fields: no two challenges have the same, and no other protocol has the label.
    fn parts(&self, side: Side) -> [&[u8]; 4] {
        let label: &[u8] = match side {
            Side::Client => b"strata control v1: client",
            Side::Server => b"strata control v1: server",
        };
        [label, &self.client_nonce, &self.server_nonce, &self.binding]
    }

    pub(crate) fn client_proof(&self, secret: &Secret) -> Vec<u8> {
        secret.prove(&self.parts(Side::Client)).to_vec()
    }

    pub(crate) fn server_proof(&self, secret: &Secret) -> Vec<u8> {
        secret.prove(&self.parts(Side::Server)).to_vec()
    }

    pub(crate) fn accepts_client(&self, secret: &Secret, proof: &[u8]) -> bool {
        secret.accepts(&self.parts(Side::Client), proof)
    }

    pub(crate) fn accepts_server(&self, secret: &Secret, proof: &[u8]) -> bool {
        secret.accepts(&self.parts(Side::Server), proof)
    }
}

/// The id of a session as the server keeps it: comparing takes the same time wherever ids differ.
#[derive(Debug)]
pub(crate) struct SessionCheck {
    key: hmac::Key,
    tag: hmac::Tag,
}

impl SessionCheck {
    /// A new session: its id, and what recognises it.
    pub(crate) fn open() -> Result<(String, Self), Error> {
        let id: String = random_bytes()?.iter().map(|byte| format!("{byte:02x}")).collect();
        let key = hmac::Key::new(hmac::HMAC_SHA256, &random_bytes()?);
        let tag = hmac::sign(&key, id.as_bytes());
        Ok((id, Self { key, tag }))
    }

    pub(crate) fn accepts(&self, id: &[u8]) -> bool {
        hmac::verify(&self.key, id, self.tag.as_ref()).is_ok()
    }
}

/// As many random bytes as a nonce has.
pub(crate) fn random_bytes() -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0; NONCE_BYTES];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| Error::new(ErrorKind::System, "random", "the system provides no random bytes"))?;
    Ok(bytes)
}

/// SHA-256 of a certificate.
pub(crate) fn fingerprint(certificate: &[u8]) -> Vec<u8> {
    digest::digest(&digest::SHA256, certificate).as_ref().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn challenge() -> Challenge {
        Challenge { client_nonce: vec![1; 32], server_nonce: vec![2; 32], binding: vec![3; 64] }
    }

    #[test]
    fn a_proof_holds_for_its_side_secret_and_challenge_only() {
        let secret = Secret::new(b"sixteen bytes...").expect("long enough");
        let other = Secret::new(b"sixteen bytes!!!").expect("long enough");
        let proof = challenge().client_proof(&secret);
        assert!(challenge().accepts_client(&secret, &proof));
        assert!(!challenge().accepts_server(&secret, &proof));
        assert!(!challenge().accepts_client(&other, &proof));
        assert!(!challenge().accepts_client(&secret, &proof[1..]));
        for change in [
            Challenge { client_nonce: vec![9; 32], ..challenge() },
            Challenge { server_nonce: vec![9; 32], ..challenge() },
            Challenge { binding: Vec::new(), ..challenge() },
        ] {
            assert!(!change.accepts_client(&secret, &proof));
        }
    }

    #[test]
    fn a_session_knows_its_id() {
        let (id, check) = SessionCheck::open().expect("random bytes");
        assert_eq!(id.len(), 2 * NONCE_BYTES);
        assert!(check.accepts(id.as_bytes()));
        assert!(!check.accepts(b""));
        assert!(!check.accepts(&id.as_bytes()[1..]));
    }
}
