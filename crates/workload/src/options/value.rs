//! Values that several options take.

use std::path::PathBuf;

use units::{ByteSize, ParseError, Rate, Span, parse_u64_in, split_list};

use crate::engine::{Feature, Poll};
use crate::spec::{Ladder, LadderDimension, Warmup, choice};

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

/// Rate of an open loop, as `--rate` takes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AskedRate {
    /// Operations a second.
    PerSecond(Rate),
    /// Per cent of the highest rate of a climb to saturation, above 0 and up to 100.
    PercentOfSaturation(f64),
}

/// Parses a rate, or a percentage of the rate at saturation.
///
/// # Errors
/// Text that is neither.
pub fn asked_rate(text: &str) -> Result<AskedRate, ParseError> {
    let Some(number) = text.trim().strip_suffix('%') else {
        return text.parse().map(AskedRate::PerSecond);
    };
    match number.trim().parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(AskedRate::PercentOfSaturation(percent)),
        _ => Err(ParseError::new(
            "a percentage of the rate at saturation",
            text,
            "above 0% and up to 100%, such as 70%",
        )),
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

/// Names with commas between them, each of which must be one of `known`; `what` is what they name, such as `a recipe`.
///
/// # Errors
/// A name that is none of them.
pub fn names<'a>(
    what: &'static str,
    text: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Result<Vec<String>, ParseError> {
    let named = |name: &str| {
        if known.clone().any(|other| other == name) {
            return Ok(name.to_owned());
        }
        let all: Vec<&str> = known.clone().collect();
        Err(ParseError::new(what, name, format!("one of {}", all.join(", "))))
    };
    text.split(',').map(str::trim).map(named).collect()
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

/// Label of a pool or a container.
///
/// # Errors
/// Any other text, with what would be accepted.
pub fn label(name: &str, text: &str) -> Result<String, ParseError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if text.is_empty() || text.len() > LABEL_BYTES_MAX || !text.chars().all(is_plain) || text.starts_with('.')
    {
        let accepted = format!("up to {LABEL_BYTES_MAX} letters, digits and . _ -, not beginning with a .");
        return Err(ParseError::new(format!("a value of {name}"), text, accepted));
    }
    Ok(text.to_owned())
}
