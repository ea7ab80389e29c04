//! Servers looked at while they serve.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rpc::engine::{Engine, EngineRequest};
use rpc::watch::{ServerReading, ServerWatch, WatchRequest, WatchedServer};
use rpc::{EndpointPlan, Role, SocketPlan};

use crate::common::{Lines, WAIT, endpoint, enter, eventually, ping, request, secret, tags};

fn server(label: &str, endpoints: Vec<EndpointPlan>) -> WatchedServer {
    WatchedServer { label: label.to_owned(), endpoints }
}

fn quick(servers: Vec<WatchedServer>, timeout: Duration) -> WatchRequest {
    let interval = Duration::from_millis(10);
    WatchRequest { interval, timeout, ..WatchRequest::new(servers, SocketPlan::default(), None) }
}

fn client(engine: &Engine, tag: u32) -> TcpStream {
    enter(&endpoint(engine, tag), Role::Messages, None).expect("let in").stream
}

/// Waits until the reading of a server is as wanted.
fn wait_for(
    watch: &ServerWatch,
    label: &str,
    what: &str,
    is_so: impl Fn(&ServerReading) -> bool,
) -> ServerReading {
    let mut found = None;
    eventually(what, || {
        found = watch.latest().into_iter().find(|reading| reading.label == label && is_so(reading));
        found.is_some()
    });
    found.expect("what was waited for")
}

#[test]
fn endpoints_of_a_server_add_up_from_the_beginning_of_the_phase() {
    let engine =
        Engine::start(EngineRequest { tags: tags(2, 0), ..request(&Lines::default()) }).expect("an engine");
    let (mut one, mut other) = (client(&engine, 2), client(&engine, 3));
    ping(&mut one, 2).expect("an answer");
    let watched = server("node01:1611", vec![endpoint(&engine, 2), endpoint(&engine, 3)]);
    let watch = ServerWatch::start(quick(vec![watched], WAIT)).expect("a watch");
    let first = wait_for(&watch, "node01:1611", "both endpoints answer", |reading| reading.connections == 2);
    assert_eq!((first.rpcs, first.failure), (0, None), "what was before nobody looked does not count");
    for _ in 0..10 {
        ping(&mut one, 2).expect("an answer");
    }
    for _ in 0..5 {
        ping(&mut other, 3).expect("an answer");
    }
    let later = wait_for(&watch, "node01:1611", "fifteen RPCs", |reading| reading.rpcs == 15);
    assert_eq!((later.errors, later.connections), (0, 2));
    assert!(later.cpus_used.is_some_and(|cpus| (0.0..=2.5).contains(&cpus)), "{later:?}");
    watch.begin_phase();
    assert_eq!(watch.latest()[0].rpcs, 0);
    ping(&mut one, 2).expect("an answer");
    wait_for(&watch, "node01:1611", "one RPC of the phase", |reading| reading.rpcs == 1);
    eventually("a rate", || {
        ping(&mut one, 2).expect("an answer");
        watch.latest()[0].rpcs_per_second > 0.0
    });
    wait_for(&watch, "node01:1611", "no rate in silence", |reading| reading.rpcs_per_second == 0.0);
    drop(other);
    wait_for(&watch, "node01:1611", "one connection less", |reading| reading.connections == 1);
    watch.stop();
    eventually("the connections of the watch are closed", || {
        engine.counters(3).expect("counters").connections.load(std::sync::atomic::Ordering::Relaxed) == 0
    });
}

#[test]
fn a_server_that_dies_fails_alone_and_comes_back() {
    let engine = Engine::start(request(&Lines::default())).expect("an engine");
    let sound = Engine::start(request(&Lines::default())).expect("an engine");
    let plan = endpoint(&engine, 2);
    let at: SocketAddr = plan.uri.strip_prefix("tcp://").expect("tcp").parse().expect("an address");
    let servers = vec![server("dying", vec![plan]), server("sound", vec![endpoint(&sound, 2)])];
    let watch = ServerWatch::start(quick(servers, Duration::from_millis(200))).expect("a watch");
    wait_for(&watch, "dying", "it answers", |reading| reading.failure.is_none());
    engine.stop();
    let dead = wait_for(&watch, "dying", "its death is seen", |reading| reading.failure.is_some());
    assert_eq!((dead.rpcs_per_second, dead.connections, dead.cpus_used), (0.0, 0, None));
    let words = dead.failure.expect("a failure");
    assert!(words.starts_with("Connection re") && !words.contains("os error"), "{words}");
    let mut client_of_sound = client(&sound, 2);
    ping(&mut client_of_sound, 2).expect("an answer");
    wait_for(&watch, "sound", "the other goes on", |reading| reading.rpcs == 1 && reading.failure.is_none());
    let order: Vec<String> = watch.latest().into_iter().map(|reading| reading.label).collect();
    assert_eq!(order, ["dying", "sound"]);
    let again =
        Engine::start(EngineRequest { listen: vec![at], ..request(&Lines::default()) }).expect("again");
    wait_for(&watch, "dying", "it is found again", |reading| reading.failure.is_none());
    drop(again);
}

#[test]
fn a_silent_server_holds_up_nobody() {
    // Takes connections, and never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let uri = format!("tcp://{}", silent.local_addr().expect("its address"));
    let plan = |tag| EndpointPlan { rank: 7, tag, uri: uri.clone(), label: format!("7:{tag}") };
    let sound = Engine::start(request(&Lines::default())).expect("an engine");
    let servers = vec![server("silent", vec![plan(2), plan(3)]), server("sound", vec![endpoint(&sound, 2)])];
    let watch = ServerWatch::start(quick(servers.clone(), WAIT)).expect("a watch");
    let mut client = client(&sound, 2);
    wait_for(&watch, "sound", "the other answers", |reading| reading.connections == 1);
    ping(&mut client, 2).expect("an answer");
    wait_for(&watch, "sound", "the other is seen at work", |reading| reading.rpcs == 1);
    assert_eq!(watch.latest().len(), 1, "nothing is known of the silent one yet");
    let start = Instant::now();
    watch.stop();
    assert!(start.elapsed() < WAIT / 2, "the attempt is given up");
    let watch = ServerWatch::start(quick(servers, Duration::from_millis(50))).expect("a watch");
    let failed = wait_for(&watch, "silent", "it counts as failed", |reading| {
        reading.failure.as_deref() == Some("Connection timed out")
    });
    assert_eq!(failed.rpcs, 0);
}

#[test]
fn a_wrong_token_is_told() {
    let engine = Engine::start(EngineRequest { secret: Some(secret(b'a')), ..request(&Lines::default()) })
        .expect("an engine");
    let servers = vec![server("guarded", vec![endpoint(&engine, 2), endpoint(&engine, 9)])];
    let watch = |secret| {
        let request = quick(servers.clone(), Duration::from_millis(200));
        ServerWatch::start(WatchRequest { secret, ..request }).expect("a watch")
    };
    let stranger = watch(Some(secret(b'b')));
    wait_for(&stranger, "guarded", "it is put out", |reading| {
        reading.failure.as_deref() == Some("Permission denied")
    });
    let friend = watch(Some(secret(b'a')));
    wait_for(&friend, "guarded", "the tag that there is answers", |reading| {
        reading.failure.as_deref() == Some("1 of 2 endpoints: No such device or address")
    });
}

#[test]
fn an_interval_of_nothing_is_refused() {
    let request = WatchRequest { interval: Duration::ZERO, ..quick(Vec::new(), WAIT) };
    assert!(ServerWatch::start(request).is_err());
    assert_eq!(ServerWatch::start(quick(Vec::new(), WAIT)).expect("nobody to watch").latest(), []);
}
