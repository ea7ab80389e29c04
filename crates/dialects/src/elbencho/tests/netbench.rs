//! Lines of netbench and of services.

use units::{ByteSize, Span};
use workload::network::{Payload, PayloadKind};
use workload::spec::{Layer, Share};

use super::{machine, refusal, refusal_on, run_on, spec, words};
use crate::words::machine::Machine;
use crate::{Request, Tell, Told};

fn payload(kind: PayloadKind, size_bytes: u64) -> Payload {
    Payload { kind, size_bytes }
}

fn parsed(line: &str, world: &Machine) -> Request {
    super::super::parse(&words(line), world).unwrap_or_else(|error| panic!("{line}: {error}"))
}

#[test]
fn the_lines_of_the_talk_are_read_as_written() {
    let line = "--netbench --servers myserver01,myserver02 --clients node01,node02,node03,node04 -b 1m --respsize 1 -t 4 \
                -s 100g -timelimit 30";
    let run = run_on(line, &machine());
    assert_eq!(run.warnings, ["-timelimit is taken as --timelimit"]);
    let spec = &run.specs[0];
    assert_eq!((spec.layer, spec.threads, spec.share), (Layer::NETWORK, Some(4), Some(Share::Partition)));
    assert_eq!((spec.time, spec.count), (Some(Span(30_000_000_000)), Some(4 * 102_400)));
    let network = &spec.network;
    assert_eq!(network.message_sizes, [(payload(PayloadKind::Bulk, 1 << 20), payload(PayloadKind::Iov, 1))]);
    assert_eq!(network.servers, ["myserver01:1611", "myserver02:1611"]);
    assert_eq!(network.clients.len(), 4);

    let world = machine().text("myservers.txt", "a # first\n\nb:99\n").text("myclients.txt", "c\nd");
    let files = "--netbench --serversfile myservers.txt --clientsfile myclients.txt -b 1 --respsize 1m -s 4k";
    let spec = &run_on(files, &world).specs[0];
    assert_eq!(spec.network.servers, ["a:1611", "b:99"]);
    assert_eq!(
        spec.network.message_sizes,
        [(payload(PayloadKind::Iov, 1), payload(PayloadKind::Bulk, 1 << 20))]
    );
    assert_eq!(spec.count, Some(4096), "-s counts what is sent");
}

#[test]
fn lists_of_hosts_come_with_blanks_ranges_and_ports() {
    let mut all = words("--netbench -s 1m -t 1 --lat --port 2000");
    all.extend(["--servers".to_owned(), "172.200.5.91 172.200.5.93".to_owned()]);
    all.extend(["--clients".to_owned(), "node[1-3], ::1 [fe80::1]:7".to_owned()]);
    let Ok(Request::Run(run)) = super::super::parse(&all, &machine()) else { panic!("it runs") };
    assert_eq!(run.specs[0].network.servers, ["172.200.5.91:2000", "172.200.5.93:2000"]);
    assert_eq!(
        run.specs[0].network.clients,
        ["node1:2000", "node2:2000", "node3:2000", "[::1]:2000", "[fe80::1]:7"]
    );
}

#[test]
fn sockets_and_limits() {
    let line = "--netbench --servers a --clients b -b 64k --respsize 8 -s 1m --sendbuf 1m --recvbuf 2m --netdevs eth0,eth1 \
                --limitwrite 640k --iodepth 4 -i 3";
    let run = run_on(line, &machine());
    assert_eq!(run.specs.len(), 3);
    let spec = &run.specs[0];
    assert_eq!(spec.network.send_buffer, Some(ByteSize(1 << 20)));
    assert_eq!(spec.network.receive_buffer, Some(ByteSize(2 << 20)));
    assert_eq!(spec.network.bind_device.as_deref(), Some("eth0,eth1"));
    assert_eq!(spec.rate.map(|rate| rate.per_second()), Some(10.0));
    assert_eq!(spec.depth, Some(4));
    assert_eq!(self::spec("--netbench --servers a --clients b -b 3k --infloop --timelimit 2").count, None);
}

#[test]
fn services_listen_on_loopback_unless_they_share_a_secret() {
    let Request::Engine(engine) = parsed("--service --foreground", &machine()) else { panic!("a service") };
    assert_eq!(engine.control.as_deref(), Some("127.0.0.1:1611"));
    assert_eq!(engine.listen.as_deref(), Some("127.0.0.1:2611"));
    assert!(engine.background.is_none() && engine.no_attach_info);
    let Request::Engine(engine) = parsed("--service --port 4000 --svcpwfile secret", &machine()) else {
        panic!("a service")
    };
    assert_eq!(engine.control.as_deref(), Some("0.0.0.0:4000"));
    assert!(engine.background.is_some());
    let told = |line: &str| match parsed(line, &machine()) {
        Request::Tell(Tell { hosts, what, .. }) => (hosts, what),
        _ => panic!("{line}"),
    };
    assert_eq!(told("--hosts a,b --quit"), (vec!["a:1611".to_owned(), "b:1611".to_owned()], Told::Quit));
    assert_eq!(told("--hosts a --interrupt").1, Told::Interrupt);
    assert_eq!(told("--hosts a --svcping").1, Told::Ping);
}

#[test]
fn what_cannot_be_is_refused() {
    for (line, expected) in [
        ("--netbench -s 1g", "no host that is one of the servers"),
        ("--netbench --servers a -s 1g", "no host that is one of the clients"),
        ("--netbench --servers a --clients a -s 1g", "a server and a client"),
        ("--netbench --servers a,a --clients b -s 1g", "given twice"),
        ("--netbench --servers a --clients b", "no -s/--size"),
        ("--netbench --servers a --clients b -s 1g -b 0", "-b/--block 0"),
        ("--netbench --servers a --clients b -s 1g --respsize 0", "--respsize 0"),
        ("--netbench --servers a --clients b -s 1g -r", "--read does not go with --netbench"),
        ("--netbench --servers a --clients b -s 1g /data/file", "takes no path"),
        ("--netbench --servers a --clients b -s 1g --infloop", "--infloop never ends"),
        ("-r --respsize 1 /data/file", "goes with --netbench"),
        ("-r --hosts a /data/file", "one host"),
        ("--quit", "no host"),
        ("--service /data/file", "takes its work"),
        ("--service --port 65535", "port"),
    ] {
        let refusal = refusal(line);
        assert!(refusal.contains(expected), "{line}: {refusal}");
    }
    let missing = refusal_on("--netbench --serversfile nowhere --clients b -s 1g", &machine());
    assert!(missing.contains("cannot read the list of hosts"), "{missing}");
}
