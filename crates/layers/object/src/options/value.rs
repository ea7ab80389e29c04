//! Values that options of object stores take.

use units::{ParseError, parse_u64_in};
use vos::model::KEY_BYTES_MAX;
use workload::options::value::{word, words};

/// Digits of the largest number.
const NUMBER_BYTES_MAX: usize = 20;

/// A list of names parted by commas. A backslash makes the sign behind it a part of the name, also a comma or a blank.
pub(super) fn names(name: &str, text: &str) -> Result<Vec<String>, ParseError> {
    let refuse = |accepted: &str| ParseError::new(format!("a value of {name}"), text, accepted);
    let mut typed = text.chars();
    // Each sign, and whether a backslash was before it.
    let mut signs = Vec::new();
    while let Some(sign) = typed.next() {
        signs.push(if sign == '\\' { (typed.next().unwrap_or(sign), true) } else { (sign, false) });
    }
    let is_blank = |&(sign, is_literal): &(char, bool)| !is_literal && sign.is_whitespace();
    let names = signs.split(|sign| *sign == (',', false)).map(|part| {
        let first = part.iter().position(|sign| !is_blank(sign));
        let last = part.iter().rposition(|sign| !is_blank(sign));
        let (Some(first), Some(last)) = (first, last) else {
            return Err(refuse("names separated by single commas"));
        };
        let own = &part[first..=last];
        if own.iter().any(|sign| is_blank(sign) || (!sign.1 && sign.0.is_control())) {
            return Err(refuse("names without blanks, or with a backslash before each"));
        }
        Ok(own.iter().map(|(sign, _)| *sign).collect())
    });
    names.collect()
}

/// A number above 0.
pub(super) fn positive(name: &str, text: &str) -> Result<u64, ParseError> {
    parse_u64_in(name, text, 1..=u64::MAX)
}

/// An epoch, as stores tell it: in decimal digits, or as 0x and hexadecimal ones (DAOS).
pub(super) fn epoch(name: &str, text: &str) -> Result<u64, ParseError> {
    let number = match text.strip_prefix("0x") {
        Some(digits) if digits.bytes().all(|digit| digit.is_ascii_hexdigit()) => {
            u64::from_str_radix(digits, 16).ok()
        }
        Some(_) => None,
        None => parse_u64_in(name, text, 1..=u64::MAX - 1).ok(),
    };
    number.filter(|number| (1..u64::MAX).contains(number)).ok_or_else(|| {
        let accepted = "an epoch as reported by the store, such as 17 or 0x1a2b";
        ParseError::new(format!("a value of {name}"), text, accepted)
    })
}

/// Numbers of objects, dkeys, akeys and records: `O,D,A,R`.
pub(super) fn quadruple(name: &str, text: &str, min: u64) -> Result<[u64; 4], ParseError> {
    let numbers: Result<Vec<u64>, _> =
        text.split(',').map(|item| parse_u64_in(name, item.trim(), min..=u64::MAX)).collect();
    numbers?.try_into().map_err(|_| {
        let accepted = "numbers of objects, dkeys, akeys and records, such as 1,256,16,16";
        ParseError::new(format!("a value of {name}"), text, accepted)
    })
}

/// Prefix of keys: a number of up to 20 digits must fit behind it. How long a pattern of names may be (it has braces) is the driver's to say.
pub(super) fn prefix(name: &str, text: &str) -> Result<String, ParseError> {
    let room = KEY_BYTES_MAX - NUMBER_BYTES_MAX;
    if text.len() > room && !text.contains('{') {
        let accepted =
            format!("at most {room} bytes: a key including its number has at most {KEY_BYTES_MAX}");
        return Err(ParseError::new(format!("a value of {name}"), text, accepted));
    }
    word(name, text)
}

/// URLs of S3 servers, parted by commas.
pub(super) fn s3_endpoints(text: &str) -> Result<Vec<String>, ParseError> {
    let urls = words("s3-endpoint", text)?;
    let is_url = |url: &String| {
        let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
        rest.map(|rest| rest.strip_suffix('/').unwrap_or(rest)).is_some_and(|host| {
            let port = host.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'));
            let is_port = port.is_none_or(|(_, port)| port.parse::<u16>().is_ok_and(|port| port > 0));
            !host.is_empty() && !host.starts_with(':') && !host.contains(['/', '@', '?', '#']) && is_port
        })
    };
    match urls.iter().find(|url| !is_url(url)) {
        Some(url) => {
            // What may be a password is shown to nobody.
            let shown = units::without_password(url);
            Err(ParseError::new("an S3 endpoint", &shown, "http://HOST[:PORT] such as http://10.0.0.1:7480"))
        }
        None => Ok(urls.into_iter().map(|url| url.trim_end_matches('/').to_owned()).collect()),
    }
}
