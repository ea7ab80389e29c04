//! Strangers, liars and men in the middle.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use driver::Secret;
use tokio::runtime::Runtime;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::agent::{Simulated, Task};
use super::proxy::Proxy;
use super::{SCHEMA, Stand, connect, failure, run, secret};
use crate::client::connect::{Calls, Session, Terms, channel, open};
use crate::limits::{PLAN_BYTES_MAX, PROTOCOL_VERSION};
use crate::proof::{Challenge, random_bytes};
use crate::stream::Identity;
use crate::wire::control_client::ControlClient;
use crate::wire::handshake_client::HandshakeClient;
use crate::{ControlRequest, ControlServer, OnRefusal, wire};

pub(super) const TOKEN: &str = "the token of all";

/// One connection, and calls on it that the client of this crate would not make.
pub(super) struct Raw {
    runtime: Runtime,
    channel: Channel,
    binding: Vec<u8>,
}

impl Raw {
    pub(super) fn connect(stand: &Stand, tls: bool) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let terms = Terms { secret: secret(TOKEN), tls, trust: None };
        let (stream, binding) = runtime.block_on(open(&stand.address.into(), &terms)).expect("a connection");
        let channel = runtime.block_on(channel(stream)).expect("a channel");
        Self { runtime, channel, binding }
    }

    pub(super) fn hello(&self, protocol_version: u32) -> Result<Challenge, Status> {
        let client_nonce = random_bytes().expect("random bytes");
        let hello = wire::HelloRequest {
            protocol_version,
            strata_version: "9.9".to_owned(),
            nonce: client_nonce.clone(),
            caller: "mallory@nowhere".to_owned(),
        };
        let mut client = HandshakeClient::new(self.channel.clone());
        let reply = self.runtime.block_on(client.hello(hello))?.into_inner();
        Ok(Challenge { client_nonce, server_nonce: reply.nonce, binding: self.binding.clone() })
    }

    pub(super) fn prove(&self, proof: Vec<u8>) -> Result<wire::ProveReply, Status> {
        let mut client = HandshakeClient::new(self.channel.clone());
        Ok(self.runtime.block_on(client.prove(wire::ProveRequest { proof }))?.into_inner())
    }

    pub(super) fn session(&self, secret: &Secret) -> String {
        let challenge = self.hello(PROTOCOL_VERSION).expect("a challenge");
        self.prove(challenge.client_proof(secret)).expect("the proof is right").session
    }

    fn calls(&self, session: &str) -> Calls {
        let value = MetadataValue::try_from(session).expect("a value");
        ControlClient::with_interceptor(self.channel.clone(), Session(value))
    }

    pub(super) fn ping(&self, session: &str) -> Result<(), Status> {
        self.runtime.block_on(self.calls(session).ping(wire::PingRequest {})).map(drop)
    }

    /// Answer of the agent to a plan.
    fn plan(&self, session: &str, plan: wire::Plan) -> Result<wire::from_agent::Message, Status> {
        let (tell, told) = tokio::sync::mpsc::channel(1);
        let message = Some(wire::from_coordinator::Message::Plan(plan));
        tell.try_send(wire::FromCoordinator { message }).expect("there is room");
        let mut calls = self.calls(session);
        self.runtime.block_on(async {
            let mut said = calls.run(ReceiverStream::new(told)).await?.into_inner();
            Ok(said.message().await?.and_then(|said| said.message).expect("an answer"))
        })
    }
}

fn start(listen: &str, secret: Option<Secret>, tls: bool) -> Result<ControlServer, driver::Error> {
    let agent = Arc::new(Simulated::new(&Arc::default()));
    ControlServer::start(ControlRequest {
        listen: listen.to_owned(),
        secret,
        tls,
        agent,
        log: Arc::new(|_| {}),
    })
}

#[test]
fn beyond_loopback_a_token_is_needed() {
    for listen in ["0.0.0.0:0", "[::]:0"] {
        let refused = start(listen, None, false).err().expect("it is refused");
        assert_eq!(refused.exit_code(), 2);
        assert!(refused.to_string().contains("listen on 127.0.0.1"), "{refused}");
    }
    assert_eq!(start("127.0.0.1:0", None, true).err().expect("TLS proves nobody").exit_code(), 2);
    assert!(start("127.8.9.10:0", None, false).expect("it is loopback").address().ip().is_loopback());
    assert!(start("0.0.0.0:0", secret(TOKEN), false).is_ok());
    assert!(start("no-port", None, false).is_err());
}

#[test]
fn a_token_lets_in_with_and_without_tls() {
    for (server_tls, client_tls) in [(false, false), (false, true), (true, true)] {
        let stand = Stand::new(secret(TOKEN), server_tls, &Arc::default());
        let fleet = connect(&[stand.address], secret(TOKEN), client_tls);
        assert_eq!(fleet.failures().count(), 0);
        assert_eq!(run(&fleet, &[Task::UntilBegun(1)], OnRefusal::StopAll)[0].failure(), None);
    }
    let stand = Stand::new(secret(TOKEN), true, &Arc::default());
    assert_eq!(connect(&[stand.address], secret(TOKEN), false).failures().count(), 1);
    stand.wait_for_line("it does not use TLS");
}

/// The address of this machine that packets to others leave from, if it has one. Nothing is sent.
fn outer_address() -> Option<std::net::IpAddr> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|address| !address.is_loopback())
}

#[test]
fn beyond_loopback_tls_is_on_without_being_asked_for() {
    let Some(address) = outer_address() else {
        eprintln!("skipped: this machine has no address but loopback");
        return;
    };
    let stand = Stand::with(Simulated::new(&Arc::default()), &format!("{address}:0"), secret(TOKEN), false);
    let fleet = connect(&[stand.address], secret(TOKEN), false);
    assert_eq!(run(&fleet, &[Task::UntilBegun(1)], OnRefusal::StopAll)[0].failure(), None);
    let said = failure(&connect(&[stand.address], None, false));
    assert!(said.contains("requires the shared token"), "{said}");
    let raw = std::net::TcpStream::connect(stand.address).expect("it listens");
    std::io::Write::write_all(&mut &raw, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").expect("it listens");
    stand.wait_for_line("it does not use TLS");
}

#[test]
fn who_has_no_or_another_token_is_refused() {
    for tls in [false, true] {
        let stand = Stand::new(secret(TOKEN), tls, &Arc::default());
        let said = failure(&connect(&[stand.address], secret("the token of none"), tls));
        assert!(said.contains("the proof of the shared token is wrong"), "{said}");
        stand.wait_for_line("the proof of the shared token is wrong");
        let said = failure(&connect(&[stand.address], None, false));
        assert!(tls || said.contains("the agent requires the shared token"), "{said}");
        let fleet = connect(&[stand.address], secret(TOKEN), tls);
        assert_eq!(fleet.failures().count(), 0, "the others are not shut out");
    }
}

#[test]
fn an_agent_without_the_token_is_not_trusted() {
    let stand = Stand::plain();
    let said = failure(&connect(&[stand.address], secret(TOKEN), false));
    assert!(said.contains("cannot prove its identity"), "{said}");
}

#[test]
fn a_man_in_the_middle_with_another_certificate_gets_nothing_through() {
    let stand = Stand::new(secret(TOKEN), true, &Arc::default());
    let identity = Identity::generate().expect("a certificate");
    let proxy = Proxy::start(stand.address, Some(identity));
    let said = failure(&connect(&[proxy.address], secret(TOKEN), true));
    assert!(said.contains("the proof of the shared token is wrong"), "{said}");
    assert_eq!(proxy.in_between.load(Ordering::Relaxed), 1, "TLS alone did not keep him out");
    stand.wait_for_line("the proof of the shared token is wrong");
    let honest = Proxy::start(stand.address, None);
    assert_eq!(connect(&[honest.address], secret(TOKEN), true).failures().count(), 0, "who only relays may");
}

#[test]
fn a_certificate_without_its_key_is_worth_nothing() {
    let stand = Stand::new(secret(TOKEN), true, &Arc::default());
    let proxy = Proxy::start(stand.address, Some(Identity::stolen().expect("a certificate")));
    let said = failure(&connect(&[proxy.address], secret(TOKEN), true));
    assert!(said.contains("cannot set up TLS with the agent"), "{said}");
    assert_eq!(proxy.in_between.load(Ordering::Relaxed), 0);
}

#[test]
fn a_proof_is_good_once_and_on_its_connection() {
    let secret = secret(TOKEN).expect("a token");
    let stand = Stand::new(Some(secret.clone()), false, &Arc::default());
    for tls in [false, true] {
        let (first, second) = (Raw::connect(&stand, tls), Raw::connect(&stand, tls));
        let proof = first.hello(PROTOCOL_VERSION).expect("a challenge").client_proof(&secret);
        second.hello(PROTOCOL_VERSION).expect("a challenge");
        assert_eq!(second.prove(proof.clone()).expect_err("it is another's").code(), Code::Unauthenticated);
        let session = first.prove(proof.clone()).expect("it is the first's").session;
        assert_eq!(first.prove(proof.clone()).expect_err("once").code(), Code::FailedPrecondition);
        assert!(first.ping(&session).is_ok(), "a second proof does not end the session");
        assert_eq!(second.prove(proof).expect_err("one attempt").code(), Code::Unauthenticated);
        assert_eq!(second.hello(PROTOCOL_VERSION).expect_err("one attempt").code(), Code::FailedPrecondition);
        assert_eq!(second.ping(&session).expect_err("another's session").code(), Code::Unauthenticated);
    }
}

#[test]
fn nothing_goes_without_a_session() {
    let stand = Stand::plain();
    let raw = Raw::connect(&stand, false);
    assert_eq!(raw.ping("").expect_err("a stranger").code(), Code::Unauthenticated);
    assert_eq!(raw.prove(Vec::new()).expect_err("no challenge").code(), Code::Unauthenticated);
    let raw = Raw::connect(&stand, false);
    raw.hello(PROTOCOL_VERSION).expect("a challenge");
    let session = raw.prove(Vec::new()).expect("no secret, no proof").session;
    for wrong in ["", "x", &session[1..]] {
        assert_eq!(raw.ping(wrong).expect_err("no session").code(), Code::Unauthenticated);
    }
    assert!(raw.ping(&session).is_ok());
}

#[test]
fn another_protocol_is_refused_with_both_versions() {
    let secret = secret(TOKEN).expect("a token");
    let stand = Stand::new(Some(secret.clone()), false, &Arc::default());
    let raw = Raw::connect(&stand, false);
    let refused = raw.hello(PROTOCOL_VERSION + 1).expect_err("another protocol");
    let (own, other) = (PROTOCOL_VERSION, PROTOCOL_VERSION + 1);
    assert!(refused.message().contains(&format!("protocol {own} (strata")), "{refused}");
    assert!(refused.message().contains(&format!("coordinator {other} (strata 9.9)")), "{refused}");
    let session = raw.session(&secret);
    let plan = wire::Plan { protocol_version: other, schema_version: SCHEMA, ..wire::Plan::default() };
    let said = raw.plan(&session, plan).expect("an answer");
    let wire::from_agent::Message::Refused(refused) = said else { panic!("{said:?}") };
    assert_eq!(refused.kind(), wire::refused::Kind::Version);
    let named = [format!("protocol {own}"), format!("the plan {other}")];
    assert!(named.iter().all(|part| refused.line.contains(part)), "{}", refused.line);
}

#[test]
fn messages_that_are_too_large_are_refused_and_harm_nobody() {
    let secret = secret(TOKEN).expect("a token");
    let stand = Stand::new(Some(secret.clone()), false, &Arc::default());
    let raw = Raw::connect(&stand, false);
    assert_eq!(raw.prove(vec![0; 1 << 20]).expect_err("too large").code(), Code::OutOfRange);
    let session = raw.session(&secret);
    let plan = |bytes| wire::Plan {
        protocol_version: PROTOCOL_VERSION,
        schema_version: SCHEMA,
        plan: vec![b' '; bytes],
        progress_interval_ns: 500_000_000,
        ..wire::Plan::default()
    };
    let said = raw.plan(&session, plan(PLAN_BYTES_MAX + 1)).expect("it fits the envelope");
    let wire::from_agent::Message::Refused(refused) = said else { panic!("{said:?}") };
    assert_eq!(refused.kind(), wire::refused::Kind::Size);
    let said = raw.plan(&session, plan(2 * PLAN_BYTES_MAX)).expect_err("it does not");
    assert_eq!(said.code(), Code::OutOfRange, "{said}");
    assert!(raw.ping(&session).is_ok(), "the connection lives on");
}

#[test]
fn silent_and_talkative_strangers_hinder_nobody() {
    let stand = Stand::new(secret(TOKEN), false, &Arc::default());
    let _silent: Vec<_> =
        (0..8).map(|_| std::net::TcpStream::connect(stand.address).expect("it listens")).collect();
    let talkative = std::net::TcpStream::connect(stand.address).expect("it listens");
    std::io::Write::write_all(&mut &talkative, &[22; 4096]).expect("it listens");
    stand.wait_for_line("closed");
    assert_eq!(connect(&[stand.address], secret(TOKEN), false).failures().count(), 0);
}

#[test]
fn a_stranger_who_stays_one_is_put_out() {
    let stand = Stand::new(secret(TOKEN), false, &Arc::default());
    let raw = Raw::connect(&stand, false);
    raw.hello(PROTOCOL_VERSION).expect("a challenge");
    // It keeps the connection alive, and may not.
    super::agent::wait_until("the end of the connection", || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        raw.ping("").expect_err("a stranger").code() != Code::Unauthenticated
    });
}
