//! Which service answers a call.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::server::NamedService;
use tonic::service::interceptor::InterceptedService;
use tower::Service;

use super::handshake::HandshakeService;
use super::service::ControlService;
use crate::wire::control_server::ControlServer;
use crate::wire::handshake_server::HandshakeServer;

/// The calls of a stranger, and all others, which require a session; those that nobody knows are among them.
#[derive(Clone)]
pub(super) struct Calls {
    pub(super) handshake: HandshakeServer<HandshakeService>,
    pub(super) control: InterceptedService<ControlServer<ControlService>, Demand>,
}

/// Refuses calls without a session.
pub(super) type Demand = fn(tonic::Request<()>) -> Result<tonic::Request<()>, Status>;

impl Service<Request<Body>> for Calls {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    // Both are always ready.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let service = request.uri().path().split('/').nth(1);
        if service == Some(HandshakeServer::<HandshakeService>::NAME) {
            return self.handshake.call(request);
        }
        let answer = self.control.call(request);
        Box::pin(async move { Ok(answer.await?.map(Body::new)) })
    }
}
