//! The shared secret of coordinators and agents, and what is proven with it.

use std::fmt;
use std::sync::Arc;

use driver::{Error, ErrorKind};
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac};

/// Shortest secret, in bytes.
pub const SECRET_BYTES_MIN: usize = 16;

/// Length of a nonce, in bytes.
pub(crate) const NONCE_BYTES: usize = 32;

/// A shared secret. It is never sent and never printed: each side proves that it knows it.
#[derive(Clone)]
pub struct Secret(Arc<[u8]>);

impl Secret {
    /// A secret of these bytes.
    ///
    /// # Errors
    ///
    /// Fewer bytes than [`SECRET_BYTES_MIN`].
    pub fn new(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.len() < SECRET_BYTES_MIN {
            return Err(Error::usage("token", format!("the shared token has {} bytes", bytes.len()))
                .remedy(format!("use at least {SECRET_BYTES_MIN} random bytes")));
        }
        Ok(Self(bytes.into()))
    }

    fn prove(&self, side: Side, challenge: &Challenge) -> Vec<u8> {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.0);
        hmac::sign(&key, &challenge.message(side)).as_ref().to_vec()
    }

    fn accepts(&self, side: Side, challenge: &Challenge, proof: &[u8]) -> bool {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.0);
        hmac::verify(&key, &challenge.message(side), proof).is_ok()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Whose proof it is: a proof of one side is worth nothing as that of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

/// What both sides know of a connection and prove the secret over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Challenge {
    pub(crate) client_nonce: Vec<u8>,
    pub(crate) server_nonce: Vec<u8>,
    /// Binding of the TLS connection; empty without TLS.
    pub(crate) binding: Vec<u8>,
}

impl Challenge {
    /// Label and fields, each preceded by its length, so that no two challenges give the same bytes.
    fn message(&self, side: Side) -> Vec<u8> {
        let label: &[u8] = match side {
            Side::Client => b"strata control v1: client",
            Side::Server => b"strata control v1: server",
        };
        [label, &self.client_nonce, &self.server_nonce, &self.binding]
            .iter()
            .flat_map(|part| (part.len() as u64).to_le_bytes().into_iter().chain(part.iter().copied()))
            .collect()
    }

    pub(crate) fn client_proof(&self, secret: &Secret) -> Vec<u8> {
        secret.prove(Side::Client, self)
    }

    pub(crate) fn server_proof(&self, secret: &Secret) -> Vec<u8> {
        secret.prove(Side::Server, self)
    }

    pub(crate) fn accepts_client(&self, secret: &Secret, proof: &[u8]) -> bool {
        secret.accepts(Side::Client, self, proof)
    }

    pub(crate) fn accepts_server(&self, secret: &Secret, proof: &[u8]) -> bool {
        secret.accepts(Side::Server, self, proof)
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
        .map_err(|_| Error::new(ErrorKind::System, "random", "the system gives no random bytes"))?;
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
    fn a_short_secret_is_refused_and_none_is_printed() {
        assert!(Secret::new(b"fifteen bytes..").is_err());
        let secret = Secret::new(b"sixteen bytes...").expect("long enough");
        assert_eq!(format!("{secret:?}"), "Secret(..)");
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
