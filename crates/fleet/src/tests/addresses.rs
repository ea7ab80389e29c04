//! Addresses and lists of hosts.

use proptest::prelude::*;

use crate::{HostAddress, parse_hosts};

fn parsed(text: &str) -> String {
    HostAddress::parse(text, 1611).map_or_else(|error| error.to_string(), |address| address.to_string())
}

#[test]
fn every_form_is_read() {
    for (text, expected) in [
        ("node7", "node7:1611"),
        ("Node7.Example.org:80", "node7.example.org:80"),
        ("192.0.2.1", "192.0.2.1:1611"),
        ("192.0.2.1:65535", "192.0.2.1:65535"),
        ("[2001:DB8:0::1]:99", "[2001:db8::1]:99"),
        ("[::1]", "[::1]:1611"),
        ("[fe80::1%eth0]:5", "[fe80::1%eth0]:5"),
        (" padded ", "padded:1611"),
    ] {
        assert_eq!(parsed(text), expected);
    }
}

#[test]
fn what_is_no_address_is_refused_with_what_is() {
    for text in [
        "",
        ":80",
        "node:",
        "node:0",
        "node:65536",
        "node:+8",
        "node:8o",
        "::1",
        "fe80::1:80",
        "[::1",
        "[::1]80",
        "[::1]:",
        "[192.0.2.1]",
        "[fe80::1%]",
        "300.1.1.1",
        "1.2.3",
        "a..b",
        "-a",
        "a-",
        "no de",
        "a/b",
        "ä",
    ] {
        let said = parsed(text);
        assert!(
            said.contains("is not a host") && said.contains("accepted: name, name:port"),
            "{text:?}: {said}"
        );
    }
    let long = format!("{}.x", "a".repeat(64));
    assert!(parsed(&long).contains("at most 63"));
}

#[test]
fn a_list_has_commas_lines_and_comments_and_each_host_once() {
    let hosts = parse_hosts("a, b:7\n# the rest\n[::1] ,c # here\n\n", 9).expect("a list");
    let texts: Vec<_> = hosts.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["a:9", "b:7", "[::1]:9", "c:9"]);
    let twice = parse_hosts("a,b,A:9", 9).expect_err("a stands there twice").to_string();
    assert!(twice.contains("a:9 is listed twice"), "{twice}");
    assert!(parse_hosts("a,a:8", 9).is_ok(), "two agents of one host differ in their ports");
    assert!(parse_hosts(" \n#\n", 9).is_err());
}

proptest! {
    #[test]
    fn any_text_is_refused_or_reads_the_same_again(text in "\\PC{0,24}", port in 1_u16..) {
        if let Ok(address) = HostAddress::parse(&text, port) {
            prop_assert_eq!(HostAddress::parse(&address.to_string(), 1).expect("its own text"), address);
        }
    }

    #[test]
    fn what_looks_like_an_address_is_refused_or_reads_the_same_again(text in "[\\[\\]a-f0-9:.%-]{0,20}") {
        if let Ok(address) = HostAddress::parse(&text, 3) {
            prop_assert_eq!(HostAddress::parse(&address.to_string(), 1).expect("its own text"), address);
        }
    }

    #[test]
    fn a_list_is_its_hosts_in_order(
        names in prop::collection::btree_set("[a-z][a-z0-9]{0,8}(:[1-9][0-9]{0,3})?", 1..20),
        separators in prop::collection::vec(prop::sample::select(vec![",", "\n", ", ", "\r\n", " # x, y\n", ",,\n"]), 20),
    ) {
        let mut text = String::new();
        for (name, separator) in names.iter().zip(&separators) {
            text.push_str(name);
            text.push_str(separator);
        }
        let expected: Vec<_> =
            names.iter().map(|name| HostAddress::parse(name, 50_000).expect("a name")).collect();
        prop_assert_eq!(parse_hosts(&text, 50_000).expect("all differ"), expected);
    }
}
