use std::net::IpAddr;

use proptest::prelude::*;

use super::super::fabric::parse_rate;
use super::super::*;

const DEV: &str = "Inter-|   Receive                            |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:     100       2    0    0    0     0          0         0      101       3    0    0    0     0       0          0
  eth0: 4000 50 6 7 1 1 1 1 8000 90 10 11 1 1 1 1
  cut0: 1 2 3
";
const SNMP: &str = "Ip: Forwarding DefaultTTL
Ip: 1 64
Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs OutSegs RetransSegs InErrs OutRsts
Tcp: 1 200 120000 -1 23 2 5 7 0 5223 1000 20 3 13
";
const NETSTAT: &str = "TcpExt: ListenOverflows ListenDrops TCPTimeouts
TcpExt: 8 9 4
IpExt: InNoRoutes
IpExt: 0
";

#[test]
fn dev_known_answers() {
    let counters = parse_dev(DEV);
    assert_eq!(counters.keys().collect::<Vec<_>>(), ["eth0", "lo"]);
    let expected = InterfaceCounters {
        received_bytes: 4000,
        received_packets: 50,
        receive_errors: 6,
        receive_drops: 7,
        sent_bytes: 8000,
        sent_packets: 90,
        send_errors: 10,
        send_drops: 11,
    };
    assert_eq!(counters["eth0"], expected);
    assert_eq!(expected.since(&expected), InterfaceCounters::default());
    assert_eq!(expected.since(&InterfaceCounters::default()), expected);
}

#[test]
fn tcp_known_answers() {
    let now = parse_tcp(SNMP, NETSTAT);
    assert_eq!((now.received_segments, now.sent_segments), (Some(5223), Some(1000)));
    assert_eq!((now.retransmitted_segments, now.receive_errors), (Some(20), Some(3)));
    assert_eq!((now.failed_attempts, now.established_resets), (Some(5), Some(7)));
    assert_eq!((now.listen_overflows, now.listen_drops, now.timeouts), (Some(8), Some(9), Some(4)));
    assert_eq!((now.syn_retransmits, now.backlog_drops), (None, None));
    assert_eq!(now.retransmitted_share(), Some(0.02));
    let step = now.since(&TcpCounters { sent_segments: Some(400), ..now });
    assert_eq!(
        (step.sent_segments, step.received_segments, step.syn_retransmits),
        (Some(600), Some(0), None)
    );
    assert_eq!(parse_tcp("", ""), TcpCounters::default());
    assert!(TcpCounters::read().is_some_and(|counters| counters.sent_segments.is_some()));
}

#[test]
fn rates_known_answers() {
    assert_eq!(parse_rate("100 Gb/sec (4X EDR)"), Some(100_000_000_000));
    assert_eq!(parse_rate("2.5 Gb/sec (1X SDR)"), Some(2_500_000_000));
    for bad in ["", "100", "100 Mb/sec", "-1 Gb/sec", "nan Gb/sec", "inf Gb/sec"] {
        assert_eq!(parse_rate(bad), None, "{bad}");
    }
}

#[test]
fn networks_hold_their_addresses() {
    let on_link = |address: &str, prefix_bits, other: &str| {
        let address: IpAddr = address.parse().unwrap();
        InterfaceAddress { address, prefix_bits }.is_on_link(other.parse().unwrap())
    };
    assert!(on_link("10.0.0.1", 24, "10.0.0.200") && !on_link("10.0.0.1", 24, "10.0.1.1"));
    assert!(on_link("10.0.0.1", 0, "192.168.0.1") && !on_link("10.0.0.1", 32, "10.0.0.2"));
    assert!(on_link("fd00::1", 64, "fd00::2:3") && !on_link("fd00::1", 64, "fd00:0:0:1::1"));
    assert!(on_link("fd00::1", 0, "::1") && !on_link("fd00::1", 0, "10.0.0.1"));
    assert!(!on_link("10.0.0.1", 99, "10.0.0.2"), "no more bits than there are");
}

proptest! {
    #[test]
    fn any_text_is_survived(text in "\\PC{0,200}", lines in "(Tcp: ?[A-Za-z0-9 -]{0,40}\n){0,4}", dev in "[a-z:0-9 \n]{0,200}") {
        let _ = parse_tcp(&text, &text);
        let _ = parse_tcp(&lines, &lines);
        let _ = parse_dev(&text);
        let _ = parse_dev(&dev);
        let _ = parse_rate(&text);
    }

    #[test]
    fn an_address_is_in_its_own_network(bits in any::<u128>(), prefix_bits in 0u8..=128) {
        for address in [IpAddr::from(bits.to_be_bytes()), IpAddr::from((bits as u32).to_be_bytes())] {
            let own = InterfaceAddress { address, prefix_bits };
            prop_assert!(own.is_on_link(address));
        }
    }
}
