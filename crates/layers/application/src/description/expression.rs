//! Expressions of descriptions: whole numbers with units, parameters by name, `+ - * /` and parentheses.

use units::{ByteSize, ParseError, Span};

const ACCEPTED: &str =
    "whole numbers (4, 1MiB, 10ms), names of parameters, + - * / and parentheses, such as levels * params";
/// Deepest parentheses.
const DEPTH_MAX: u32 = 32;

/// Value of a parameter by its name; none where there is no such parameter or it is no number.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<u64>;

/// Value of an expression.
///
/// # Errors
/// What is no expression, a name that is none of a parameter, a result that is no whole number from 0 to 2^64-1.
pub fn evaluate(text: &str, lookup: Lookup<'_>) -> Result<u64, ParseError> {
    let mut parser = Parser { text, at: 0, depth: 0, lookup };
    let value = parser.sum()?;
    parser.skip_blanks();
    if parser.at < text.len() {
        return Err(parser.refused(ACCEPTED));
    }
    Ok(value)
}

/// A number with its unit: bytes (`1MiB`), time (`10ms`, in nanoseconds), or none.
///
/// # Errors
/// A text that is neither.
pub fn number(text: &str) -> Result<u64, ParseError> {
    let unit = text.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    if matches!(unit, "ns" | "us" | "ms" | "s" | "min") {
        return text.parse::<Span>().map(Span::ns);
    }
    text.parse::<ByteSize>().map(|size| size.0).map_err(|_| {
        ParseError::new("a number", text, "a count, a size such as 1MiB, or a time such as 10ms")
    })
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
    lookup: Lookup<'a>,
}

impl<'a> Parser<'a> {
    fn refused(&self, accepted: &str) -> ParseError {
        ParseError::new("an expression", self.text, accepted)
    }

    fn skip_blanks(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start_matches([' ', '\t']).len();
    }

    fn peek(&mut self) -> Option<u8> {
        self.skip_blanks();
        self.text.as_bytes().get(self.at).copied()
    }

    fn sum(&mut self) -> Result<u64, ParseError> {
        let mut value = self.product()?;
        while let Some(sign @ (b'+' | b'-')) = self.peek() {
            self.at += 1;
            let other = self.product()?;
            let result = if sign == b'+' { value.checked_add(other) } else { value.checked_sub(other) };
            value = result.ok_or_else(|| self.refused("a result from 0 to 2^64-1"))?;
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<u64, ParseError> {
        let mut value = self.term()?;
        while let Some(sign @ (b'*' | b'/')) = self.peek() {
            self.at += 1;
            let other = self.term()?;
            value = match sign {
                b'*' => value.checked_mul(other).ok_or_else(|| self.refused("a result below 2^64"))?,
                _ if other == 0 => return Err(self.refused("no division by 0")),
                _ if value % other != 0 => {
                    return Err(self.refused(&format!(
                        "divisions without a remainder: {value} is not a multiple of {other}"
                    )));
                }
                _ => value / other,
            };
        }
        Ok(value)
    }

    fn term(&mut self) -> Result<u64, ParseError> {
        match self.peek() {
            Some(b'(') => {
                self.at += 1;
                self.depth += 1;
                if self.depth > DEPTH_MAX {
                    return Err(self.refused("fewer nested parentheses"));
                }
                let value = self.sum()?;
                if self.peek() != Some(b')') {
                    return Err(self.refused("a ) for each ("));
                }
                self.at += 1;
                self.depth -= 1;
                Ok(value)
            }
            Some(first) if first.is_ascii_digit() => {
                let word = self.word(|letter| letter.is_ascii_alphanumeric() || letter == b'.');
                number(word)
            }
            Some(first) if first.is_ascii_lowercase() => {
                let at = self.at;
                let word = self.word(|letter| letter.is_ascii_alphanumeric() || letter == b'_');
                (self.lookup)(word).ok_or_else(|| {
                    ParseError::new("an expression", &self.text[at..], "names of parameters that are numbers")
                })
            }
            _ => Err(self.refused(ACCEPTED)),
        }
    }

    fn word(&mut self, is_part: impl Fn(u8) -> bool) -> &'a str {
        let from = self.at;
        let text = self.text;
        while text.as_bytes().get(self.at).is_some_and(|&letter| is_part(letter)) {
            self.at += 1;
        }
        &text[from..self.at]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value(text: &str) -> Result<u64, String> {
        let lookup = |name: &str| match name {
            "steps" => Some(10),
            "levels" => Some(3),
            _ => None,
        };
        evaluate(text, &lookup).map_err(|error| error.to_string())
    }

    #[test]
    fn values() {
        for (text, expected) in [
            ("7", 7),
            ("steps * levels + 2", 32),
            ("steps*(levels+2)", 50),
            ("12/4/3", 1),
            ("1MiB / 4k", 256),
            ("10ms", 10_000_000),
            ("2s + 1us", 2_000_001_000),
            ("steps - 10", 0),
        ] {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn refusals() {
        for text in
            ["", "+", "1 +", "(1", "1)", "1 2", "other", "levels - steps", "7/0", "7/2", "1 % 2", "1Mix", "é"]
        {
            assert!(value(text).is_err(), "{text}");
        }
        let deep = "(".repeat(1000);
        assert!(value(&deep).unwrap_err().contains("fewer nested parentheses"));
        assert!(value("7/2").unwrap_err().contains("7 is not a multiple of 2"));
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in "[a-z0-9+*/() .-]{0,40}") {
            let _ = value(&text);
        }

        #[test]
        fn sums_and_products_are_those_of_numbers(a in 0u64..1000, b in 0u64..1000, c in 0u64..1000) {
            prop_assert_eq!(value(&format!("{a} + {b}*{c}")), Ok(a + b * c));
            prop_assert_eq!(value(&format!("({a} + {b})*{c}")), Ok((a + b) * c));
        }
    }
}
