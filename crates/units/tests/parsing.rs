//! Known answers, round trips and refusals of the readers and printers.

use proptest::prelude::*;
use units::{ByteSize, ParseError, Percent, Rate, Span, parse_index_list, parse_u64_in, split_list};
use units::{human_bytes_per_second, human_ns, human_rate, percent};

fn size(text: &str) -> Result<u64, ParseError> {
    text.parse().map(ByteSize::bytes)
}

fn span(text: &str) -> Result<u64, ParseError> {
    text.parse().map(Span::ns)
}

fn rate(text: &str) -> Result<f64, ParseError> {
    text.parse().map(Rate::per_second)
}

#[test]
fn sizes_known() {
    let known: &[(&str, u64)] = &[
        ("0", 0),
        ("512", 512),
        ("512b", 512),
        ("512B", 512),
        ("4k", 4096),
        ("4K", 4096),
        ("4KiB", 4096),
        ("4kib", 4096),
        ("4KB", 4000),
        ("4kB", 4000),
        ("4kb", 4000),
        ("1.5g", 3 << 29),
        ("1.5GB", 1_500_000_000),
        ("1T", 1 << 40),
        ("1m", 1 << 20),
        ("2P", 1 << 51),
        ("15E", 15 << 60),
        ("0.5k", 512),
        ("1.50000k", 1536),
        ("0001", 1),
        ("0.001kB", 1),
        ("18446744073709551615", u64::MAX),
    ];
    for (text, bytes) in known {
        assert_eq!(size(text), Ok(*bytes), "{text}");
    }
}

#[test]
fn sizes_refused() {
    let garbage = [
        "",
        " ",
        "1zz",
        "1zzm",
        "nan",
        "inf",
        "1e3",
        "-1",
        "+1",
        "-1k",
        "k",
        ".5k",
        "1.",
        "1.k",
        "1..5k",
        "4 k",
        " 4k",
        "4k ",
        "4ki",
        "4kbb",
        "4bk",
        "0x10",
        "1_000",
        "1,5k",
        "4é",
        "4K\u{212a}",
        "\u{661}k",
        "1.5",
        "1.1k",
        "16E",
        "18446744073709551616",
        "99999999999999999999999999999999999999999999999999g",
        "0.0000000000000000000001k",
    ];
    for text in garbage {
        let error = size(text).expect_err(text);
        let line = error.to_string();
        assert!(!line.contains('\n') && line.contains(" is not a size: use "), "{line}");
    }
}

#[test]
fn errors_are_one_line_that_says_what_is_accepted() {
    assert_eq!(
        size("1zz").unwrap_err().to_string(),
        "\"1zz\" is not a size: use a number with k, m, g, t (powers of 2), kB, MB (powers of 10), such as 4k, 1.5g, \
         4KB, 1MiB"
    );
    assert_eq!(size("1.5").unwrap_err().to_string(), "\"1.5\" is not a size: use a whole number of bytes");
    let long = size(&"x\n".repeat(500)).unwrap_err().to_string();
    assert!(!long.contains('\n') && long.len() < 300, "{long}");
    assert_eq!(
        parse_u64_in("depth", "0", 1..=4096).unwrap_err().to_string(),
        "\"0\" is not a value of depth: use a whole number from 1 to 4096"
    );
}

#[test]
fn sizes_printed() {
    let known: &[(u64, &str)] = &[
        (0, "0"),
        (512, "512"),
        (4096, "4KiB"),
        (4097, "4097"),
        (4000, "4000"),
        (3 << 29, "1.5GiB"),
        (1 << 40, "1TiB"),
        (1025 << 10, "1025KiB"),
        (u64::MAX, "18446744073709551615"),
    ];
    for (bytes, text) in known {
        assert_eq!(ByteSize(*bytes).to_string(), *text);
    }
    let known: &[(u64, &str)] = &[
        (0, "0 B"),
        (512, "512 B"),
        (4096, "4 KiB"),
        (1_567_663_063, "1.46 GiB"),
        (1023 << 10, "1023 KiB"),
        ((1 << 20) - 1, "1.00 MiB"),
        (10_240_000, "9.77 MiB"),
        (u64::MAX, "16 EiB"),
    ];
    for (bytes, text) in known {
        assert_eq!(ByteSize(*bytes).human(), *text);
    }
}

#[test]
fn spans() {
    let known: &[(&str, u64)] = &[
        ("0", 0),
        ("5ns", 5),
        ("100us", 100_000),
        ("500ms", 500_000_000),
        ("30s", 30_000_000_000),
        ("30", 30_000_000_000),
        ("0.5", 500_000_000),
        ("1.5s", 1_500_000_000),
        ("2m", 120_000_000_000),
        ("1h", 3_600_000_000_000),
        ("0.000000001", 1),
    ];
    for (text, ns) in known {
        assert_eq!(span(text), Ok(*ns), "{text}");
    }
    let garbage =
        ["", "s", "-1", "-1s", "1S", "1M", "1d", "1 s", "1m30s", "nan", "inf", "1e3", "1.5ns", "6000000h"];
    for text in garbage {
        let line = span(text).expect_err(text).to_string();
        assert!(line.contains(" is not a duration: use "), "{line}");
    }
    let printed: &[(u64, &str)] = &[
        (0, "0s"),
        (5, "5ns"),
        (1_500, "1.5us"),
        (500_000_000, "500ms"),
        (1_500_000_000, "1.5s"),
        (90_000_000_000, "90s"),
        (120_000_000_000, "2m"),
        (3_600_000_000_000, "1h"),
        (1_000_500_000, "1000.5ms"),
        (1_000_000_001, "1000000.001us"),
    ];
    for (ns, text) in printed {
        assert_eq!(Span(*ns).to_string(), *text);
    }
    assert_eq!(std::time::Duration::from(Span(7)), std::time::Duration::from_nanos(7));
    assert!(Span::try_from(std::time::Duration::MAX).is_err());
}

#[test]
fn rates() {
    let known: &[(&str, f64)] = &[
        ("1", 1.0),
        ("1k", 1e3),
        ("300k", 3e5),
        ("300K/s", 3e5),
        ("1M", 1e6),
        ("5m", 5e6),
        ("2.5k/s", 2500.0),
        ("2.3k", 2300.0),
        ("0.5", 0.5),
        ("1000g", 1e12),
    ];
    for (text, per_second) in known {
        assert_eq!(rate(text), Ok(*per_second), "{text}");
    }
    for text in
        ["", "0", "0k", "-1", "1ki", "1kB", "1/m", "/s", "nan", "inf", "1e3", "1001g", "1k/s/s", "1 k"]
    {
        let line = rate(text).expect_err(text).to_string();
        assert!(line.contains(" is not a rate: use "), "{line}");
    }
    let printed =
        [(300_000.0, "300k"), (2_500.0, "2.5k"), (0.5, "0.5"), (1e6, "1M"), (123_456_789.0, "123456.789k")];
    for (per_second, text) in printed {
        assert_eq!(Rate::new(per_second).unwrap().to_string(), text);
    }
    assert!(Rate::new(f64::NAN).is_err());
}

#[test]
fn percentages() {
    assert_eq!("70".parse::<Percent>().unwrap().get(), 70);
    assert_eq!("70%".parse::<Percent>().unwrap().fraction(), 0.7);
    assert_eq!("100%".parse::<Percent>().unwrap().to_string(), "100%");
    for text in ["", "%", "101", "150", "-1", "+5", "7.5", "70%%", "99999999999999999999999"] {
        let line = text.parse::<Percent>().expect_err(text).to_string();
        assert!(line.ends_with("is not a percentage: use a whole number from 0 to 100, such as 70 or 70%"));
    }
}

#[test]
fn lists() {
    assert_eq!(parse_index_list("cores", "0,2,4-7", 8), Ok(vec![0, 2, 4, 5, 6, 7]));
    assert_eq!(parse_index_list("cores", "3, 1", 8), Ok(vec![3, 1]));
    for text in
        ["", ",", "0,", "8", "7-8", "5-4", "-1", "1-", "0-", "a", "+1", "0-4294967296", "1-2-3", "0x1"]
    {
        let line = parse_index_list("cores", text, 8).expect_err(text).to_string();
        assert!(line.contains("is not a list of cores: use indexes from 0 to 7"), "{line}");
    }
    let twice = parse_index_list("cores", "0-3,2", 8).unwrap_err().to_string();
    assert_eq!(twice, "\"0-3,2\" is not a list of cores: use each index once (2 is given twice)");
    assert!(parse_index_list("cores", "0", 0).is_err());
    assert_eq!(split_list("depths", "1, 2,4"), Ok(vec!["1", "2", "4"]));
    assert!(split_list("depths", "").is_err() && split_list("depths", "1,,2").is_err());
    assert_eq!(parse_u64_in("depth", "32", 1..=64), Ok(32));
    assert_eq!(parse_u64_in("depth", "18446744073709551615", 0..=u64::MAX), Ok(u64::MAX));
    for text in ["", "65", "-1", "+1", "1.0", "0x1", "18446744073709551616"] {
        assert!(parse_u64_in("depth", text, 1..=64).is_err(), "{text}");
    }
}

#[test]
fn rounded_values() {
    let rates = [(12_345.0, "12.3k"), (1.25e6, "1.25M"), (950.0, "950"), (0.5, "0.50"), (999_999.0, "1.00M")];
    for (value, text) in rates {
        assert_eq!(human_rate(value), text);
    }
    let times = [
        (812.0, "812 ns"),
        (8.0, "8 ns"),
        (8.125, "8.12 ns"),
        (12_400.0, "12.4 us"),
        (3_214_000.0, "3.21 ms"),
        (1.2e9, "1.20 s"),
        (999_999.9, "1.00 ms"),
        (3.6e12, "3600 s"),
    ];
    for (value, text) in times {
        assert_eq!(human_ns(value), text);
    }
    assert_eq!(human_bytes_per_second(1.46 * (1u64 << 30) as f64), "1.46 GiB/s");
    assert_eq!(human_bytes_per_second(1048576.0), "1.00 MiB/s");
    let shares =
        [(0.0, "0%"), (0.0004, "0.04%"), (0.123, "12.3%"), (1.0, "100%"), (1.5, "150.0%"), (0.09, "9.00%")];
    for (value, text) in shares {
        assert_eq!(percent(value), text);
    }
    for text in
        [human_rate(f64::NAN), human_ns(f64::INFINITY), percent(f64::NAN), human_bytes_per_second(f64::NAN)]
    {
        assert_eq!(text, "n/a");
    }
}

#[test]
fn json() {
    let read = |text: &str| serde_json::from_str::<ByteSize>(text);
    assert_eq!(read("\"4k\"").unwrap(), ByteSize(4096));
    assert_eq!(read("4096").unwrap(), ByteSize(4096));
    for text in ["-1", "1.5", "true", "null", "\"1zz\""] {
        assert!(read(text).is_err(), "{text}");
    }
    assert_eq!(serde_json::to_string(&ByteSize(4096)).unwrap(), "4096");
    assert_eq!(serde_json::to_string(&Span(1_500_000_000)).unwrap(), "\"1.5s\"");
    assert_eq!(serde_json::from_str::<Span>("30").unwrap(), Span(30_000_000_000));
    assert_eq!(serde_json::from_str::<Span>("0.5").unwrap(), Span(500_000_000));
    assert_eq!(serde_json::from_str::<Rate>("2.5").unwrap().per_second(), 2.5);
    assert_eq!(serde_json::from_str::<Rate>("\"1k\"").unwrap().per_second(), 1000.0);
    assert_eq!(serde_json::from_str::<Percent>("70").unwrap().get(), 70);
    assert!(serde_json::from_str::<Percent>("170").is_err());
}

proptest! {
    #[test]
    fn sizes_round_trip(bytes: u64, shift in 0u32..64) {
        for bytes in [bytes, bytes >> shift, bytes >> shift << shift, bytes >> 53 << shift] {
            prop_assert_eq!(size(&ByteSize(bytes).to_string()), Ok(bytes));
        }
    }

    #[test]
    fn spans_round_trip(ns: u64, power in 0u32..19) {
        for ns in [ns, ns / 10u64.pow(power), ns / 10u64.pow(power) * 10u64.pow(power)] {
            prop_assert_eq!(span(&Span(ns).to_string()), Ok(ns));
            let json = serde_json::to_string(&Span(ns)).unwrap();
            prop_assert_eq!(serde_json::from_str::<Span>(&json).unwrap(), Span(ns));
        }
    }

    #[test]
    fn rates_round_trip(per_second in prop_oneof![1e-6..1e12, (1u64..1_000_000_000).prop_map(|rate| rate as f64)]) {
        prop_assert_eq!(rate(&Rate::new(per_second).unwrap().to_string()), Ok(per_second));
    }

    #[test]
    fn no_text_panics(text in prop_oneof![".*", "[0-9.]{0,45}[kKmMgGtTiIbBsuhn/%-]{0,3}"]) {
        for line in [
            size(&text).err(),
            span(&text).err(),
            rate(&text).err(),
            text.parse::<Percent>().err(),
            parse_index_list("cores", &text, 64).err(),
            parse_u64_in("depth", &text, 1..=9).err(),
            split_list("parts", &text).err(),
        ] {
            prop_assert!(line.is_none_or(|line| !line.to_string().contains('\n')));
        }
    }

    #[test]
    fn no_number_panics(value in proptest::num::f64::ANY) {
        for text in [human_rate(value), human_ns(value), percent(value), human_bytes_per_second(value)] {
            prop_assert!(!text.is_empty());
        }
    }
}
