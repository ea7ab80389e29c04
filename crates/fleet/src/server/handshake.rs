//! Calls open to strangers.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use driver::Secret;
use tonic::{Request, Response, Status};

use crate::audit::AuditEvent;
use crate::limits::{PROTOCOL_VERSION, WRONG_PROOF_DELAY};
use crate::messages::line;
use crate::proof::{Challenge, NONCE_BYTES, SessionCheck, random_bytes};
use crate::server::accept::{Connection, Standing};
use crate::server::job::Caller;
use crate::server::log::Log;
use crate::wire;
use crate::wire::handshake_server::Handshake;

/// Version of this strata.
pub(crate) const STRATA_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Longest name of a caller that is kept.
const CALLER_CHARS_MAX: usize = 128;

/// Lets callers in.
pub(crate) struct HandshakeService {
    pub(crate) secret: Option<Secret>,
    pub(crate) log: Log,
}

#[tonic::async_trait]
impl Handshake for HandshakeService {
    async fn hello(
        &self,
        request: Request<wire::HelloRequest>,
    ) -> Result<Response<wire::HelloReply>, Status> {
        let connection = connection(&request)?;
        let hello = request.into_inner();
        if hello.protocol_version != PROTOCOL_VERSION {
            return Err(Status::failed_precondition(line(&format!(
                "the agent uses control protocol {PROTOCOL_VERSION} (strata {STRATA_VERSION}), the coordinator {} \
                 (strata {}); use the same version of strata on all hosts",
                hello.protocol_version, hello.strata_version
            ))));
        }
        if hello.nonce.len() != NONCE_BYTES {
            return Err(Status::invalid_argument(format!("a nonce must have {NONCE_BYTES} bytes")));
        }
        if !hello.caller.is_empty() {
            // The first name counts: Hello comes once.
            let _ = connection.caller.set(line(&hello.caller).chars().take(CALLER_CHARS_MAX).collect());
        }
        let server_nonce = random_bytes().map_err(|error| Status::internal(error.to_string()))?;
        let mut standing = connection.standing.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(*standing, Standing::Stranger) {
            return Err(Status::failed_precondition("Hello is allowed only once per connection"));
        }
        *standing = Standing::Challenged(Challenge {
            client_nonce: hello.nonce,
            server_nonce: server_nonce.clone(),
            binding: connection.binding.clone(),
        });
        Ok(Response::new(wire::HelloReply {
            protocol_version: PROTOCOL_VERSION,
            strata_version: STRATA_VERSION.to_owned(),
            nonce: server_nonce,
            secret_required: self.secret.is_some(),
        }))
    }

    async fn prove(
        &self,
        request: Request<wire::ProveRequest>,
    ) -> Result<Response<wire::ProveReply>, Status> {
        let connection = connection(&request)?;
        match self.judge(&connection, &request.into_inner().proof) {
            Ok(reply) => {
                self.log.audit(connection.peer, Some(connection.caller_name()), &AuditEvent::Connected);
                Ok(Response::new(reply))
            }
            Err(status) => {
                self.log.refuse(connection.peer, status.message());
                tokio::time::sleep(WRONG_PROOF_DELAY).await;
                Err(status)
            }
        }
    }
}

impl HandshakeService {
    /// Uses up the challenge of the connection: a proof is looked at once.
    fn judge(&self, connection: &Connection, proof: &[u8]) -> Result<wire::ProveReply, Status> {
        let mut standing = connection.standing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *standing, Standing::Refused);
        let challenge = match before {
            Standing::Challenged(challenge) => challenge,
            Standing::Proven(check) => {
                *standing = Standing::Proven(check);
                return Err(Status::failed_precondition("Prove is allowed only once per connection"));
            }
            Standing::Stranger | Standing::Refused => {
                return Err(Status::unauthenticated("Prove is allowed only once, after Hello"));
            }
        };
        let server_proof = match &self.secret {
            None => Vec::new(),
            Some(secret) if challenge.accepts_client(secret, proof) => challenge.server_proof(secret),
            Some(_) => return Err(Status::unauthenticated("the proof of the shared token is wrong")),
        };
        let (session, check) = SessionCheck::open().map_err(|error| Status::internal(error.to_string()))?;
        *standing = Standing::Proven(check);
        connection.is_proven.store(true, Ordering::Relaxed);
        Ok(wire::ProveReply { proof: server_proof, session })
    }
}

impl Connection {
    /// Name that the caller gives itself.
    pub(crate) fn caller_name(&self) -> &str {
        self.caller.get().map_or("unnamed", String::as_str)
    }

    /// The caller, for those who ask who it is.
    pub(crate) fn caller(&self) -> Caller {
        Caller::new(self.peer, self.caller.get().cloned())
    }
}

/// Demands the session id of the connection before anything else of a call is read.
pub(crate) fn demand_session(request: Request<()>) -> Result<Request<()>, Status> {
    let connection = connection(&request)?;
    let presented = request.metadata().get("authorization").map_or(&b""[..], |value| value.as_bytes());
    let standing = connection.standing.lock().unwrap_or_else(PoisonError::into_inner);
    match &*standing {
        Standing::Proven(check) if check.accepts(presented) => {}
        _ => return Err(Status::unauthenticated("the call has no session on this connection")),
    }
    drop(standing);
    Ok(request)
}

/// The connection that a request came on.
pub(crate) fn connection<T>(request: &Request<T>) -> Result<Arc<Connection>, Status> {
    request
        .extensions()
        .get::<Arc<Connection>>()
        .cloned()
        .ok_or_else(|| Status::internal("the connection is unknown"))
}
