//! Lines of netbench and of services.

use units::Span;
use workload::spec::Share;

use super::{machine, refusal, refusal_on, run_on, spec, words};
use crate::options::asked::assert_asks;
use crate::words::machine::Machine;
use crate::{Request, Serve, Tell, Told};

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
    assert_eq!((spec.layer.name, spec.threads, spec.share), ("network", Some(4), Some(Share::Partition)));
    assert_eq!((spec.time, spec.count), (Some(Span(30_000_000_000)), Some(4 * 102_400)));
    assert_asks(spec, "message-sizes", "b1m i1");
    assert_asks(spec, "servers", "myserver01:1611,myserver02:1611");
    assert_asks(spec, "clients", "node01:1611,node02:1611,node03:1611,node04:1611");

    let world = machine().text("myservers.txt", "a # first\n\nb:99\n").text("myclients.txt", "c\nd");
    let files = "--netbench --serversfile myservers.txt --clientsfile myclients.txt -b 1 --respsize 1m -s 4k";
    let spec = &run_on(files, &world).specs[0];
    assert_asks(spec, "servers", "a:1611,b:99");
    assert_asks(spec, "message-sizes", "i1 b1m");
    assert_eq!(spec.count, Some(4096), "-s counts what is sent");
}

#[test]
fn lists_of_hosts_come_with_blanks_ranges_and_ports() {
    let mut all = words("--netbench -s 1m -t 1 --lat --port 2000");
    all.extend(["--servers".to_owned(), "172.200.5.91 172.200.5.93".to_owned()]);
    all.extend(["--clients".to_owned(), "node[1-3], ::1 [fe80::1]:7".to_owned()]);
    let Ok(Request::Run(run)) = super::super::parse(&all, &machine()) else { panic!("it runs") };
    assert_asks(&run.specs[0], "servers", "172.200.5.91:2000,172.200.5.93:2000");
    assert_asks(&run.specs[0], "clients", "node1:2000,node2:2000,node3:2000,[::1]:2000,[fe80::1]:7");
}

#[test]
fn sockets_and_limits() {
    let line = "--netbench --servers a --clients b -b 64k --respsize 8 -s 1m --sendbuf 1m --recvbuf 2m --netdevs eth0,eth1 \
                --limitwrite 640k --iodepth 4 -i 3";
    let run = run_on(line, &machine());
    assert_eq!(run.specs.len(), 3);
    let spec = &run.specs[0];
    for (name, value) in [("send-buffer", "1m"), ("receive-buffer", "2m"), ("bind-device", "eth0,eth1")] {
        assert_asks(spec, name, value);
    }
    assert_eq!(spec.rate.map(|rate| rate.per_second()), Some(10.0));
    assert_eq!(spec.depth, Some(4));
    assert_eq!(self::spec("--netbench --servers a --clients b -b 3k --infloop --timelimit 2").count, None);
}

#[test]
fn services_listen_on_loopback_unless_they_share_a_secret() {
    let served = |line: &str| match parsed(line, &machine()) {
        Request::Engine(serve) => serve,
        _ => panic!("{line}"),
    };
    let value = |serve: &Serve, option: &str| {
        let mut all = serve.options.iter();
        all.find(|(name, _)| *name == option).map(|(_, value)| value.clone())
    };
    let open = served("--service --foreground");
    assert_eq!(value(&open, "control").as_deref(), Some("127.0.0.1:1611"));
    assert_eq!(value(&open, "listen").as_deref(), Some("127.0.0.1:2611"));
    assert_eq!((value(&open, "background"), value(&open, "no-attach-info")), (None, Some("true".to_owned())));
    assert_eq!((open.token_file, open.banner.contains("Port: 1611")), (None, true));
    let guarded = served("--service --port 4000 --svcpwfile secret");
    assert_eq!(value(&guarded, "control").as_deref(), Some("0.0.0.0:4000"));
    assert!(value(&guarded, "background").is_some_and(|log| log.ends_with("_p4000.log")));
    assert_eq!(guarded.token_file.as_deref(), Some("secret".as_ref()));
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
        ("--netbench -s 1g", "no servers are given"),
        ("--netbench --servers a -s 1g", "no clients are given"),
        ("--netbench --servers a --clients a -s 1g", "both a server and a client"),
        ("--netbench --servers a,a --clients b -s 1g", "given twice"),
        ("--netbench --servers a --clients b", "no -s/--size"),
        ("--netbench --servers a --clients b -s 1g -b 0", "-b/--block 0"),
        ("--netbench --servers a --clients b -s 1g --respsize 0", "--respsize 0"),
        ("--netbench --servers a --clients b -s 1g -r", "--read cannot be combined with --netbench"),
        ("--netbench --servers a --clients b -s 1g /data/file", "does not take a path"),
        ("--netbench --servers a --clients b -s 1g --infloop", "--infloop never ends"),
        ("-r --respsize 1 /data/file", "requires --netbench"),
        ("--quit", "no host"),
        ("--service /data/file", "takes paths and phases only from the client"),
        ("--service --port 65535", "port"),
    ] {
        let refusal = refusal(line);
        assert!(refusal.contains(expected), "{line}: {refusal}");
    }
    let missing = refusal_on("--netbench --serversfile nowhere --clients b -s 1g", &machine());
    assert!(missing.contains("cannot read the list of hosts"), "{missing}");
}
