//! Bytes of requests: escaped names, decimal and hexadecimal numbers, dates. Nothing here allocates but where a buffer grows.

const HEX_UPPER: &[u8; 16] = b"0123456789ABCDEF";
const HEX_LOWER: &[u8; 16] = b"0123456789abcdef";

/// Characters that an escaped name keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Unreserved characters and slashes: paths.
    Slashes,
    /// Unreserved characters alone: values of a query.
    Unreserved,
}

/// Appends `name` as signatures want it (RFC 3986 unreserved characters stay, all others become `%XX` in capitals).
pub fn escape(out: &mut Vec<u8>, name: &[u8], keep: Keep) {
    for &byte in name {
        let stays = byte.is_ascii_alphanumeric()
            || matches!(byte, b'-' | b'_' | b'.' | b'~')
            || (byte == b'/' && keep == Keep::Slashes);
        if stays {
            out.push(byte);
        } else {
            out.extend_from_slice(&[
                b'%',
                HEX_UPPER[usize::from(byte >> 4)],
                HEX_UPPER[usize::from(byte & 15)],
            ]);
        }
    }
}

/// The bytes of an escaped name; `+` is a space, as lists with `encoding-type=url` have it. What is no escape stays.
#[must_use]
pub fn unescape(escaped: &[u8]) -> Vec<u8> {
    let digit = |byte: Option<&u8>| byte.and_then(|&byte| (byte as char).to_digit(16));
    let mut out = Vec::with_capacity(escaped.len());
    let mut at = 0;
    while let Some(&byte) = escaped.get(at) {
        let pair = (digit(escaped.get(at + 1)), digit(escaped.get(at + 2)));
        match (byte, pair) {
            (b'%', (Some(high), Some(low))) => {
                out.push((high * 16 + low) as u8);
                at += 3;
                continue;
            }
            (b'+', _) => out.push(b' '),
            _ => out.push(byte),
        }
        at += 1;
    }
    out
}

/// Appends a decimal number.
pub(crate) fn decimal(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// 32 bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> [u8; 64] {
    let mut text = [0; 64];
    for (pair, byte) in text.chunks_exact_mut(2).zip(bytes) {
        pair[0] = HEX_LOWER[usize::from(byte >> 4)];
        pair[1] = HEX_LOWER[usize::from(byte & 15)];
    }
    text
}

/// Seconds since 1970 as `20130524T000000Z`.
pub(crate) fn stamp(unix_seconds: u64) -> [u8; 16] {
    let (days, second) = (unix_seconds / 86_400, unix_seconds % 86_400);
    // Days from 0000-03-01, so that leap days end their years.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let mut text = *b"00000000T000000Z";
    let mut put = |from: usize, digits: usize, number: u64| {
        let mut rest = number;
        for place in (from..from + digits).rev() {
            text[place] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
    };
    put(0, 4, year);
    put(4, 2, month);
    put(6, 2, day);
    put(9, 2, second / 3600);
    put(11, 2, second / 60 % 60);
    put(13, 2, second % 60);
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let known = [
            (0, b"19700101T000000Z"),
            (951_782_400, b"20000229T000000Z"),
            (951_868_800, b"20000301T000000Z"),
            (1_369_353_600, b"20130524T000000Z"),
            (1_735_689_599, b"20241231T235959Z"),
            (4_102_444_800, b"21000101T000000Z"),
            (4_107_542_400, b"21000301T000000Z"),
        ];
        for (seconds, text) in known {
            assert_eq!(&stamp(seconds), text, "{seconds}");
        }
    }

    #[test]
    fn reserved_characters_are_escaped_in_capitals() {
        let mut path = Vec::new();
        escape(&mut path, "test$file a/ü+~".as_bytes(), Keep::Slashes);
        assert_eq!(path, b"test%24file%20a/%C3%BC%2B~");
        let mut value = Vec::new();
        escape(&mut value, b"a/b=", Keep::Unreserved);
        assert_eq!(value, b"a%2Fb%3D");
        assert_eq!(unescape(b"a+b%2"), b"a b%2");
    }

    proptest! {
        #[test]
        fn escaped_names_come_back(name: Vec<u8>, slashes: bool) {
            let mut escaped = Vec::new();
            escape(&mut escaped, &name, if slashes { Keep::Slashes } else { Keep::Unreserved });
            prop_assert!(escaped.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'+'));
            prop_assert_eq!(unescape(&escaped), name);
        }

        #[test]
        fn decimals_are_those_of_the_library(number: u64) {
            let mut text = Vec::new();
            decimal(&mut text, number);
            prop_assert_eq!(String::from_utf8(text).expect("digits"), number.to_string());
        }
    }
}
