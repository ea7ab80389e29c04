//! Hostile clients, and the certificates and the audit log of a service: whatever comes is refused and noted, and the service goes on.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::agent::{Diary, Simulated, Task};
use super::security::{Raw, TOKEN};
use super::{OnRefusal, PATIENCE, Stand, connect, failure, plan, policy, run, secret};
use crate::limits::{CONNECTIONS_MAX, PROTOCOL_VERSION};
use crate::{Audit, Certificate, ConnectRequest, Fingerprint, Fleet, ServerOptions, Trust};

/// A service with a token, TLS and an audit log.
struct Service {
    stand: Stand,
    directory: tempfile::TempDir,
}

impl Service {
    fn start(bytes_max: u64) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let certificate = kept(directory.path()).expect("a certificate");
        let audit = Audit::file(&directory.path().join("audit"), bytes_max).expect("a log");
        let options = ServerOptions { certificate: Some(certificate), audit: Some(Arc::new(audit)) };
        let agent = Simulated { may_quit: true, ..Simulated::new(&Arc::<Diary>::default()) };
        Self { stand: Stand::with_options(agent, "127.0.0.1:0", secret(TOKEN), false, options), directory }
    }

    fn events(&self) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(self.directory.path().join("audit")).expect("a log");
        text.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect()
    }

    fn wait_for(&self, event: &str, part: &str) {
        super::agent::wait_until(&format!("{event} with {part:?}"), || {
            let found = |line: &serde_json::Value| line["event"] == event && line.to_string().contains(part);
            self.events().iter().any(found)
        });
    }

    /// The service still does what it is for.
    fn works(&self) {
        let fleet = connect(&[self.stand.address], secret(TOKEN), true);
        assert_eq!(fleet.failures().map(|(_, error)| error.to_string()).collect::<Vec<_>>(), [""; 0]);
        let begun = self.stand.diary.count("begun") + 1;
        assert_eq!(run(&fleet, &[Task::UntilBegun(begun)], OnRefusal::StopAll)[0].failure(), None);
    }
}

fn kept(directory: &Path) -> Result<Certificate, driver::Error> {
    Certificate::load_or_make(&directory.join("state/service.crt"), &directory.join("state/service.key"))
}

fn trust(pins: &[String], path: &Path) -> Result<Trust, driver::Error> {
    Trust::new(pins, 1611, Some(path.to_owned()))
}

fn connect_trusting(service: &Service, trust: Trust) -> Fleet {
    let hosts = vec![service.stand.address.into()];
    let request = ConnectRequest { hosts, secret: secret(TOKEN), tls: true, timeout: PATIENCE };
    Fleet::connect_with(request, &std::collections::HashMap::new(), Some(Arc::new(trust)))
        .expect("the fleet's thread starts")
}

#[test]
fn callers_runs_and_ends_are_noted() {
    let service = Service::start(1 << 20);
    service.works();
    service.wait_for("connected", "127.0.0.1");
    service.wait_for("began", "\"run\":\"a job\"");
    service.wait_for("ended", "\"failure\":null");
    let log = service.directory.path().join("audit");
    assert_eq!(log.metadata().expect("a log").permissions().mode() & 0o777, 0o600);
    let fleet = connect(&[service.stand.address], secret(TOKEN), true);
    let _ = fleet.quit();
    service.wait_for("quit", "caller");
}

#[test]
fn a_second_leader_is_refused_by_the_name_of_the_first_and_may_only_interrupt() {
    let service = Service::start(1 << 20);
    let (first, second) = (
        connect(&[service.stand.address], secret(TOKEN), true),
        connect(&[service.stand.address], secret(TOKEN), true),
    );
    std::thread::scope(|scope| {
        let running = scope.spawn(|| run(&first, &[Task::UntilStopped], OnRefusal::StopAll));
        service.stand.diary.wait_for("begun");
        let refused = run(&second, &[Task::UntilBegun(1)], OnRefusal::StopAll);
        let said = refused[0].failure().expect("it is refused").to_owned();
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
        assert!(said.contains("in use by") && said.contains(&format!("@{}", host.trim())), "{said}");
        assert!(said.contains("job \"a job\""), "{said}");
        assert_eq!(service.stand.diary.count("ended"), 0, "the first goes on");
        assert_eq!(second.interrupt()[0].as_ref().expect("it knows the token").as_deref(), Some("a job"));
        running.join().expect("no panic");
    });
    service.wait_for("refused", "in use by");
    service.wait_for("interrupted", "a job");
    service.works();
}

#[test]
fn wrong_tokens_and_replayed_proofs_are_refused_and_noted() {
    let service = Service::start(1 << 20);
    let said = failure(&connect(&[service.stand.address], secret("the token of none"), true));
    assert!(said.contains("the proof of the shared token is wrong"), "{said}");
    service.wait_for("refused", "the proof of the shared token is wrong");
    let first = Raw::connect(&service.stand, false);
    let token = secret(TOKEN).expect("a token");
    let recorded = first.hello(PROTOCOL_VERSION).expect("a challenge").client_proof(&token);
    first.prove(recorded.clone()).expect("it is the first's");
    let second = Raw::connect(&service.stand, false);
    second.hello(PROTOCOL_VERSION).expect("a challenge");
    assert!(second.prove(recorded).is_err(), "a proof of another connection");
    service.wait_for("connected", "mallory@nowhere");
    service.works();
}

#[test]
fn frames_that_are_none_end_their_connection_alone() {
    let service = Service::start(1 << 20);
    let preface: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let frame = |bytes: &[u8]| [preface, bytes].concat();
    let hostile = [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        vec![0; 4096],
        vec![0xff; 65536],
        // TLS: a record of the largest length, and one that is too long.
        [&[22, 3, 1, 0x40, 0][..], &[0; 16384]].concat(),
        [&[22, 3, 1, 0xff, 0xff][..], &[7; 65535]].concat(),
        // HTTP/2: a frame larger than allowed, settings of odd length, headers that no table has, a reset flood.
        frame(&[0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1]),
        frame(&[0, 0, 5, 4, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5]),
        frame(&[0, 0, 4, 1, 4, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff]),
        frame(
            &[0, 0, 0, 4, 0, 0, 0, 0, 0]
                .into_iter()
                .chain([0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 8].repeat(2000))
                .collect::<Vec<_>>(),
        ),
    ];
    for bytes in hostile {
        let mut stranger = TcpStream::connect(service.stand.address).expect("it listens");
        stranger.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        // The other end may close in the middle of it.
        let _ = stranger.write_all(&bytes).and_then(|()| stranger.shutdown(std::net::Shutdown::Write));
        let mut rest = Vec::new();
        let _ = stranger.read_to_end(&mut rest);
    }
    service.wait_for("refused", "closed");
    service.works();
}

#[test]
fn thousands_of_silent_and_dripping_connections_leave_a_place() {
    let service = Service::start(1 << 20);
    let mut strangers = Vec::new();
    for number in 0..2000 {
        let Ok(mut stranger) = TcpStream::connect_timeout(&service.stand.address, Duration::from_secs(2))
        else {
            continue;
        };
        // Some say the beginning of a TLS record, or of HTTP/2, and nothing more.
        let _ = stranger.write_all([&[22, 3][..], b"PRI ", b""][number % 3]);
        strangers.push(stranger);
        if strangers.len() > 2 * CONNECTIONS_MAX {
            strangers.remove(0);
        }
    }
    service.works();
    service.wait_for("refused", "its place is needed by others");
    drop(strangers);
    service.works();
}

#[test]
fn the_audit_log_is_put_aside_by_size_and_a_flood_does_not_fill_it() {
    let service = Service::start(2000);
    (0..40).for_each(|_| drop(connect(&[service.stand.address], secret(TOKEN), true)));
    service.wait_for("connected", "");
    let aside = |number: u32| service.directory.path().join(format!("audit.{number}"));
    super::agent::wait_until("the log is put aside", || aside(1).exists());
    assert!(!aside(5).exists());
    let size = aside(1).metadata().expect("a log").len();
    assert!(size <= 2000, "{size}");
    let flooded = Service::start(1 << 20);
    for _ in 0..300 {
        let mut stranger = TcpStream::connect(flooded.stand.address).expect("it listens");
        let _ = stranger.write_all(&[0xff; 64]);
        drop(stranger);
    }
    flooded.works();
    let refused = flooded.events().iter().filter(|line| line["event"] == "refused").count();
    assert!(refused < 200, "{refused} lines of strangers");
    flooded.wait_for("connected", "");
}

#[test]
fn a_certificate_is_made_once_and_guarded() {
    let directory = tempfile::tempdir().expect("a directory");
    let made: Vec<Fingerprint> = std::thread::scope(|scope| {
        let starts: Vec<_> = (0..4).map(|_| scope.spawn(|| kept(directory.path()))).collect();
        starts
            .into_iter()
            .map(|start| start.join().expect("no panic").expect("a certificate").fingerprint())
            .collect()
    });
    assert!(made.iter().all(|print| *print == made[0]), "services that start at once have one: {made:?}");
    let key = directory.path().join("state/service.key");
    let mode = |path: &Path| path.metadata().expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode(&key), mode(key.parent().expect("a parent"))), (0o600, 0o700));
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o640)).expect("its owner");
    let refused = kept(directory.path()).expect_err("others may read it");
    assert!(refused.to_string().contains("chmod 600") && refused.exit_code() == 2, "{refused}");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).expect("its owner");
    let other = tempfile::tempdir().expect("a directory");
    kept(other.path()).expect("a certificate");
    let mixed = Certificate::load(&other.path().join("state/service.crt"), &key).expect_err("another's key");
    assert!(mixed.to_string().contains("belongs to the certificate"), "{mixed}");
    std::fs::write(&key, "nonsense").expect("written");
    assert!(kept(directory.path()).expect_err("no key").to_string().contains("cannot be used"));
}

#[test]
fn a_service_is_known_again_and_another_in_its_place_is_refused() {
    let service = Service::start(1 << 20);
    let known = service.directory.path().join("new/known_hosts");
    assert_eq!(
        connect_trusting(&service, trust(&[], &known).expect("nobody is known")).failures().count(),
        0
    );
    let print = kept(service.directory.path()).expect("a certificate").fingerprint();
    let line = format!("{} {print}\n", service.stand.address);
    assert_eq!(std::fs::read_to_string(&known).expect("it was noted"), line);
    assert_eq!(connect_trusting(&service, trust(&[], &known).expect("a list")).failures().count(), 0);
    assert_eq!(std::fs::read_to_string(&known).expect("a list"), line, "once");

    let other = format!("sha256:{}", "ab".repeat(32));
    std::fs::write(&known, format!("# hosts\n\n{} {other}\n", service.stand.address)).expect("written");
    let said = failure(&connect_trusting(&service, trust(&[], &known).expect("a list")));
    assert!(
        said.contains("has changed") && said.contains(&other) && said.contains("remove the line"),
        "{said}"
    );
    let pin = |print: &str| vec![format!("{}={print}", service.stand.address)];
    let pinned = trust(&pin(&print.to_string()), &known).expect("a pin");
    assert_eq!(connect_trusting(&service, pinned).failures().count(), 0, "a pin goes before the list");
    let said = failure(&connect_trusting(&service, trust(&pin(&other), &known).expect("a pin")));
    assert!(said.contains("differs from the pinned one"), "{said}");

    // Who does not know the token is not noted.
    let fresh = service.directory.path().join("fresh");
    let hosts = vec![service.stand.address.into()];
    let request = ConnectRequest { hosts, secret: secret("the token of none"), tls: true, timeout: PATIENCE };
    let stranger = Fleet::connect_with(
        request,
        &std::collections::HashMap::new(),
        Some(Arc::new(trust(&[], &fresh).expect("nobody"))),
    );
    assert_eq!(stranger.expect("the fleet's thread starts").failures().count(), 1);
    assert!(!fresh.exists());
    for bad in ["node", "node=sha256:12", "node=md5:00", "=sha256:"] {
        assert_eq!(trust(&[bad.to_owned()], &fresh).expect_err("no pin").exit_code(), 2, "{bad}");
    }
    std::fs::write(&fresh, "node1\n").expect("written");
    assert!(trust(&[], &fresh).expect_err("no line").to_string().contains("line=1"));
}

#[test]
fn a_start_by_the_hosts_clock_is_common_to_all() {
    let stands = [Stand::plain(), Stand::plain(), Stand::plain()];
    let addresses: Vec<_> = stands.iter().map(|stand| stand.address).collect();
    let fleet = connect(&addresses, None, false);
    let plans = (0..3).map(|number| (number, plan(&Task::UntilBegun(1)))).collect();
    let ended = fleet.run(
        plans,
        &policy(OnRefusal::StopAll),
        &mut |_| {},
        &std::sync::atomic::AtomicBool::new(false),
    );
    for outcome in ended.expect("hosts of the fleet") {
        assert_eq!(outcome.failure(), None);
        let late_ns = outcome.start_lateness_ns.expect("it began");
        let error_ns = outcome.clock.expect("it was reached").uncertainty_ns;
        assert!(late_ns >= -error_ns.cast_signed(), "nobody begins before the start: {late_ns}");
    }
}
