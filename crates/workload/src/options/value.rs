//! Values that several options take.

use std::path::PathBuf;

use units::{ByteSize, ParseError, Rate, Span, parse_u64_in, split_list};

use crate::engine::{Feature, Poll};
use crate::spec::{Ladder, LadderDimension, OPERATIONS, Warmup, choice};

/// Longest key of a load, in bytes: an operation carries its keys in place.
const KEY_BYTES_MAX: usize = 47;
/// Digits of the largest number.
const NUMBER_BYTES_MAX: usize = 20;
/// Longest label of a pool or container (DAOS has the same).
const LABEL_BYTES_MAX: usize = 127;

/// Reads the value of a switch, as job files write it.
///
/// # Errors
/// Anything but `true` and `false`.
pub fn switch(name: &str, text: &str) -> Result<bool, ParseError> {
    choice(name, text, &[("true", true), ("false", false)])
}

/// A feature of a driver: `auto`, `on` or `off`.
///
/// # Errors
/// Another word.
pub fn feature(name: &str, text: &str) -> Result<Feature, ParseError> {
    choice(name, text, &[("auto", Feature::Auto), ("on", Feature::On), ("off", Feature::Off)])
}

/// A count within bounds.
///
/// # Errors
/// No number, or one beyond the bounds.
pub fn count(name: &str, text: &str, min: u64, max: u64) -> Result<u32, ParseError> {
    parse_u64_in(name, text, min..=max).map(|value| value as u32)
}

/// A size above 0.
///
/// # Errors
/// No size, or 0.
pub fn nonzero_size(name: &str, text: &str) -> Result<ByteSize, ParseError> {
    let size: ByteSize = text.parse()?;
    if size.0 == 0 {
        Err(ParseError::new(format!("a value of {name}"), text, "a size above 0"))
    } else {
        Ok(size)
    }
}

/// A warm-up: `auto`, `none` or a duration.
///
/// # Errors
/// Anything else.
pub fn warmup(text: &str) -> Result<Warmup, ParseError> {
    match text {
        "auto" => Ok(Warmup::Auto),
        "none" => Ok(Warmup::None),
        _ => text
            .parse::<Span>()
            .map(|span| Warmup::Fixed(span.ns()))
            .map_err(|_| ParseError::new("warmup", text, "auto, none or a duration such as 2s")),
    }
}

/// A ladder; `sizes` is the option of sizes that the layer can climb, where it has one.
///
/// # Errors
/// Another form, and values that cannot be.
pub fn ladder(text: &str, sizes: Option<&'static str>) -> Result<Ladder, ParseError> {
    let mut choices = vec![
        ("depth", LadderDimension::Depth),
        ("threads", LadderDimension::Threads),
        ("rate", LadderDimension::Rate),
    ];
    choices.extend(sizes.map(|name| (name, LadderDimension::BlockSize)));
    let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
    let refuse = || {
        let accepted = format!("WHAT=N,N,... with WHAT one of {}, such as depth=1,2,4,8", names.join(", "));
        ParseError::new("a ladder", text, accepted)
    };
    let (name, list) = text.split_once('=').ok_or_else(refuse)?;
    let dimension = choice("a ladder", name, &choices).map_err(|_| refuse())?;
    let parse = |item: &str| match dimension {
        LadderDimension::Depth => parse_u64_in("ladder depth", item, 1..=65_536),
        LadderDimension::Threads => parse_u64_in("ladder threads", item, 1..=4096),
        LadderDimension::BlockSize => nonzero_size("ladder sizes", item).map(|size| size.0),
        LadderDimension::Rate => {
            let rate = item.parse::<Rate>()?.per_second();
            if rate.fract() != 0.0 {
                return Err(ParseError::new(
                    "a ladder rate",
                    item,
                    "whole operations a second, such as 300k",
                ));
            }
            Ok(rate as u64)
        }
    };
    let values = list.split(',').map(str::trim).map(parse).collect::<Result<Vec<_>, _>>()?;
    Ok(Ladder { dimension, values })
}

/// A list of operations of media.
///
/// # Errors
/// A word that is no operation.
pub fn operations(text: &str) -> Result<Vec<crate::spec::Operation>, ParseError> {
    text.split(',').map(|word| choice("op", word.trim(), OPERATIONS)).collect()
}

/// A word that goes to the system as it is.
///
/// # Errors
/// An empty one, and one with blanks.
pub fn word(name: &str, text: &str) -> Result<String, ParseError> {
    if text.is_empty() || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(ParseError::new(format!("a value of {name}"), text, "a word without blanks"));
    }
    Ok(text.to_owned())
}

/// A text that is not empty.
///
/// # Errors
/// An empty one.
pub fn some_text(name: &str, text: &str) -> Result<String, ParseError> {
    if text.is_empty() {
        return Err(ParseError::new(format!("a value of {name}"), text, "a text that is not empty"));
    }
    Ok(text.to_owned())
}

/// A path, as an option of the name gives it.
///
/// # Errors
/// An empty one.
pub fn path(name: &str, text: &str) -> Result<PathBuf, ParseError> {
    if text.is_empty() {
        return Err(ParseError::new(format!("a value of {name}"), text, "a path"));
    }
    Ok(units::path_of(text).into_owned())
}

/// A list of words parted by commas.
///
/// # Errors
/// An item that is no word.
pub fn words(name: &str, text: &str) -> Result<Vec<String>, ParseError> {
    split_list(name, text)?.into_iter().map(|item| word(name, item)).collect()
}

/// A list of names parted by commas. A backslash makes the sign behind it a part of the name, also a comma or a blank.
///
/// # Errors
/// An empty one, and one with blanks.
pub fn names(name: &str, text: &str) -> Result<Vec<String>, ParseError> {
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
            return Err(refuse("names with one comma between each two"));
        };
        let own = &part[first..=last];
        if own.iter().any(|sign| is_blank(sign) || (!sign.1 && sign.0.is_control())) {
            return Err(refuse("names without blanks, or with a backslash before each"));
        }
        Ok(own.iter().map(|(sign, _)| *sign).collect())
    });
    names.collect()
}

/// `HOST:PORT`.
///
/// # Errors
/// Anything else.
pub fn address(name: &str, text: &str) -> Result<String, ParseError> {
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && is_port(port) => word(name, text),
        _ => Err(ParseError::new(
            format!("a value of {name}"),
            text,
            "HOST:PORT such as 127.0.0.1:0, [::1]:31416 or node01:31416; port 0 is a free one",
        )),
    }
}

/// How a thread waits for messages: `spin`, `adaptive` or `block`.
///
/// # Errors
/// Another word.
pub fn poll(name: &str, text: &str) -> Result<Poll, ParseError> {
    choice(name, text, &[("spin", Poll::Spin), ("adaptive", Poll::Adaptive), ("block", Poll::Block)])
}

/// Size of a buffer of a socket: the system takes it as a signed number of 32 bits.
///
/// # Errors
/// No size, 0, or more than 1 GiB.
pub fn socket_buffer(name: &str, text: &str) -> Result<ByteSize, ParseError> {
    let size = nonzero_size(name, text)?;
    if size.0 > 1 << 30 {
        return Err(ParseError::new(format!("a value of {name}"), text, "a size of at most 1GiB"));
    }
    Ok(size)
}

/// A duration above 0; `such_as` is one, for the refusal.
///
/// # Errors
/// No duration, or 0.
pub fn above_zero(name: &str, text: &str, such_as: &str) -> Result<Span, ParseError> {
    let span: Span = text.parse()?;
    if span.ns() == 0 {
        return Err(ParseError::new(name, text, format!("a duration above 0, such as {such_as}")));
    }
    Ok(span)
}

/// An IP address, without a port.
///
/// # Errors
/// Anything else.
pub fn ip_address(name: &str, text: &str) -> Result<String, ParseError> {
    match text.parse::<core::net::IpAddr>() {
        Ok(address) => Ok(address.to_string()),
        Err(_) => {
            Err(ParseError::new(format!("a value of {name}"), text, "an address such as 10.0.0.1 or fd00::1"))
        }
    }
}

/// A number above 0.
///
/// # Errors
/// No number, or 0.
pub fn positive(name: &str, text: &str) -> Result<u64, ParseError> {
    parse_u64_in(name, text, 1..=u64::MAX)
}

/// An epoch, as stores tell it: in decimal digits, or as 0x and hexadecimal ones (DAOS).
///
/// # Errors
/// Anything else.
pub fn epoch(name: &str, text: &str) -> Result<u64, ParseError> {
    let number = match text.strip_prefix("0x") {
        Some(digits) if digits.bytes().all(|digit| digit.is_ascii_hexdigit()) => {
            u64::from_str_radix(digits, 16).ok()
        }
        Some(_) => None,
        None => parse_u64_in(name, text, 1..=u64::MAX - 1).ok(),
    };
    number.filter(|number| (1..u64::MAX).contains(number)).ok_or_else(|| {
        let accepted = "an epoch as the store tells it, such as 17 or 0x1a2b";
        ParseError::new(format!("a value of {name}"), text, accepted)
    })
}

/// Numbers of objects, dkeys, akeys and records: `O,D,A,R`.
///
/// # Errors
/// Anything else, and a number below `min`.
pub fn quadruple(name: &str, text: &str, min: u64) -> Result<[u64; 4], ParseError> {
    let numbers: Result<Vec<u64>, _> =
        text.split(',').map(|item| parse_u64_in(name, item.trim(), min..=u64::MAX)).collect();
    numbers?.try_into().map_err(|_| {
        let accepted = "numbers of objects, dkeys, akeys and records, such as 1,256,16,16";
        ParseError::new(format!("a value of {name}"), text, accepted)
    })
}

/// Prefix of keys: a number of up to 20 digits must fit behind it. How long a pattern of names may be (it has braces) is the driver's to say.
///
/// # Errors
/// A longer one.
pub fn prefix(name: &str, text: &str) -> Result<String, ParseError> {
    let room = KEY_BYTES_MAX - NUMBER_BYTES_MAX;
    if text.len() > room && !text.contains('{') {
        let accepted = format!("at most {room} bytes: with its number a key has {KEY_BYTES_MAX} at most");
        return Err(ParseError::new(format!("a value of {name}"), text, accepted));
    }
    word(name, text)
}

/// Label of a pool or a container.
///
/// # Errors
/// Anything else.
pub fn label(name: &str, text: &str) -> Result<String, ParseError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if text.is_empty() || text.len() > LABEL_BYTES_MAX || !text.chars().all(is_plain) || text.starts_with('.')
    {
        let accepted = format!("up to {LABEL_BYTES_MAX} letters, digits and . _ -, not beginning with a .");
        return Err(ParseError::new(format!("a value of {name}"), text, accepted));
    }
    Ok(text.to_owned())
}

/// URLs of S3 servers, parted by commas.
///
/// # Errors
/// A text that is no such URL.
pub fn s3_endpoints(text: &str) -> Result<Vec<String>, ParseError> {
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
            let shown = crate::object::without_password(url);
            Err(ParseError::new("an S3 endpoint", &shown, "http://HOST[:PORT] such as http://10.0.0.1:7480"))
        }
        None => Ok(urls.into_iter().map(|url| url.trim_end_matches('/').to_owned()).collect()),
    }
}
