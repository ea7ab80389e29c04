use proptest::prelude::*;

use super::*;

const E: Payload = Payload::EMPTY;

fn iov(size_bytes: u64) -> Payload {
    Payload { kind: PayloadKind::Iov, size_bytes }
}

fn bulk(size_bytes: u64) -> Payload {
    Payload { kind: PayloadKind::Bulk, size_bytes }
}

fn sizes(text: &str) -> Vec<(Payload, Payload)> {
    parse_message_sizes(text).unwrap_or_else(|error| panic!("{error}"))
}

fn endpoints(text: &str) -> Vec<(u32, u32)> {
    let endpoints = parse_endpoints(text).unwrap_or_else(|error| panic!("{error}"));
    endpoints.iter().map(|endpoint| (endpoint.rank, endpoint.tag)).collect()
}

#[test]
fn the_sizes_of_the_guides_are_read() {
    const MIB: u64 = 1 << 20;
    assert_eq!(sizes("(0 0) (b1048578 0) (0 b1048578)"), [(E, E), (bulk(MIB + 2), E), (E, bulk(MIB + 2))]);
    assert_eq!(
        sizes("b1048576,b1048576 0,0 b1048576,i2048,i2048 0,0 i2048"),
        [
            (bulk(MIB), bulk(MIB)),
            (bulk(MIB), E),
            (E, bulk(MIB)),
            (iov(2048), iov(2048)),
            (iov(2048), E),
            (E, iov(2048)),
        ]
    );
    assert_eq!(sizes("0 0,0 b1048578,b1048578 0"), [(E, E), (E, bulk(MIB + 2)), (bulk(MIB + 2), E)]);
    assert_eq!(sizes("(0 b1048578)"), [(E, bulk(MIB + 2))]);
}

#[test]
fn types_follow_from_letters_and_sizes() {
    assert_eq!(sizes("1048575 1048576"), [(iov(1_048_575), bulk(1 << 20))]);
    assert_eq!(sizes("2048"), [(iov(2048), iov(2048))]);
    assert_eq!(sizes("ib2048"), [(bulk(2048), bulk(2048))], "the last letter holds");
    assert_eq!(sizes("b 4096 i\t8"), [(bulk(4096), iov(8))]);
    assert_eq!(sizes("b4096i8"), [(bulk(4096), iov(8))]);
    assert_eq!(sizes("512b 4096"), [(iov(512), bulk(4096))], "a letter alone is a type, never a unit");
    assert_eq!(sizes("b0 i0"), [(E, E)]);
    assert_eq!(sizes("e0 00"), [(E, E)]);
    assert_eq!(sizes(" ,(), 5 ,"), [(iov(5), iov(5))]);
}

#[test]
fn units_are_taken_where_they_are_clear() {
    assert_eq!(sizes("i2k"), [(iov(2048), iov(2048))]);
    assert_eq!(sizes("i2KiB b1MiB"), [(iov(2048), bulk(1 << 20))]);
    assert_eq!(sizes("1.5m 4kB,1g 0"), [(bulk(3 << 19), iov(4000)), (bulk(1 << 30), E)]);
}

#[test]
fn other_sizes_are_refused_with_what_is_taken() {
    let refusal = |text: &str| parse_message_sizes(text).expect_err(text).to_string();
    for text in [
        "",
        "()",
        "( , )",
        "x",
        "b",
        "(b)",
        "5 b",
        "-1",
        "2kib1024",
        "1.5",
        "1k2",
        "1 2 3",
        "0x10",
        "5 ünf",
        "i2 kB",
        "99999999999999999999",
    ] {
        let message = refusal(text);
        assert!(message.contains(": use ") && message.lines().count() == 1, "{text}: {message}");
    }
    assert!(refusal("(0 0) (1073741825 0)").ends_with("use sizes of at most 1GiB"));
    assert!(refusal("2g").ends_with("use sizes of at most 1GiB"));
    assert!(refusal("e1000").ends_with("use e0 for an empty payload, or i1000 or b1000"));
    assert!(refusal("1 2 3").ends_with("use one size, or two separated by a blank"));
    assert!(refusal(&"0,".repeat(1001)).ends_with("use at most 1000 pairs of sizes"));
    assert_eq!(sizes(&"0,".repeat(1000)).len(), 1000);
}

#[test]
fn ranks_come_with_all_tags_before_the_next() {
    assert_eq!(endpoints("0:2"), [(0, 2)]);
    assert_eq!(endpoints("0-1:2,5"), [(0, 2), (0, 5), (1, 2), (1, 5)]);
    assert_eq!(endpoints("3-1:0"), [(1, 0), (2, 0), (3, 0)], "a range may run either way");
    assert_eq!(endpoints("2,0,2:1-0"), [(2, 0), (2, 1), (0, 0), (0, 1), (2, 0), (2, 1)], "duplicates stay");
    assert_eq!(endpoints("4294967295:0-0"), [(u32::MAX, 0)]);
}

#[test]
fn other_endpoints_are_refused() {
    for text in [
        "",
        "0",
        ":",
        "0:",
        ":0",
        "0:1:2",
        "a:0",
        "0-:1",
        "-1:0",
        "0:1,",
        "0,,1:0",
        "0 :1",
        "+1:0",
        "1-2-3:0",
        "4294967296:0",
        "0:0.5",
    ] {
        let message = parse_endpoints(text).expect_err(text).to_string();
        assert!(message.ends_with(ENDPOINTS_ACCEPTED), "{text}: {message}");
    }
    for text in ["0-65536:0", "0-4294967295:0-4294967295", "0-255:0-256", "0-4294967295,0-4294967295:0"] {
        let message = parse_endpoints(text).expect_err(text).to_string();
        assert!(message.ends_with("use at most 65536 endpoints"), "{text}: {message}");
    }
    assert_eq!(endpoints("0-255:0-255").len(), 65_536);
}

#[test]
fn masters_are_sorted_and_each_once() {
    let mut masters = Vec::new();
    add_masters(&mut masters, "2-0:1,0").expect("masters");
    add_masters(&mut masters, "1:0").expect("masters");
    let texts: Vec<_> = masters.iter().map(RankTag::to_string).collect();
    assert_eq!(texts, ["0:0", "0:1", "1:0", "1:1", "2:0", "2:1"]);
    assert!(add_masters(&mut masters, "x").is_err() && masters.len() == 6);
}

fn payload() -> impl Strategy<Value = Payload> {
    (0..3_u8, 1..=PAYLOAD_BYTES_MAX).prop_map(|(kind, size)| match kind {
        0 => E,
        1 => iov(size),
        _ => bulk(size),
    })
}

proptest! {
    #[test]
    fn sizes_print_as_they_are_read(pairs in proptest::collection::vec((payload(), payload()), 1..20)) {
        prop_assert_eq!(parse_message_sizes(&message_sizes_text(&pairs)), Ok(pairs));
    }

    #[test]
    fn any_text_is_sizes_within_bounds_or_one_line(text in "[0-9eibkKMgB(), .x-]{0,24}|.{0,24}") {
        match parse_message_sizes(&text) {
            Ok(pairs) => {
                for payload in pairs.iter().flat_map(|pair| [pair.0, pair.1]) {
                    prop_assert!(payload.size_bytes <= PAYLOAD_BYTES_MAX);
                    prop_assert_eq!(payload.kind == PayloadKind::Empty, payload.size_bytes == 0);
                }
                prop_assert_eq!(parse_message_sizes(&message_sizes_text(&pairs)), Ok(pairs));
            }
            Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1),
        }
    }

    #[test]
    fn numbers_without_units_mean_what_self_test_reads(
        letters in "[eib]{0,2}", request in 1..=PAYLOAD_BYTES_MAX, reply in 0..=PAYLOAD_BYTES_MAX,
    ) {
        let kind = match letters.chars().last() {
            Some('b') => PayloadKind::Bulk,
            Some('i') => PayloadKind::Iov,
            Some(_) => {
                let text = format!("{letters}{request} {reply}");
                prop_assert!(parse_message_sizes(&text).is_err());
                return Ok(());
            }
            None if request < 1 << 20 => PayloadKind::Iov,
            None => PayloadKind::Bulk,
        };
        let pairs = sizes(&format!("({letters}{request} {reply})"));
        prop_assert_eq!(pairs, [(Payload { kind, size_bytes: request }, Payload::of_size(reply))]);
    }

    #[test]
    fn any_text_is_endpoints_or_one_line(text in "[0-9:,-]{0,16}|.{0,16}") {
        match parse_endpoints(&text) {
            Ok(endpoints) => prop_assert!((1..=ENDPOINTS_MAX as usize).contains(&endpoints.len())),
            Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1),
        }
    }

    #[test]
    fn an_endpoint_prints_as_it_is_read(rank: u32, tag: u32) {
        let endpoint = RankTag { rank, tag };
        prop_assert_eq!(parse_endpoints(&endpoint.to_string()), Ok(vec![endpoint]));
    }
}
