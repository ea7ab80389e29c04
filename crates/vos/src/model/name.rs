//! Names of keys by number: a prefix and the number, or a pattern with several numbers in it.

use units::ParseError;

use super::Key;

const ACCEPTED: &str = "text with {D%M*S} for the key's number divided by D, modulo M, times S; each part is optional, as in r{12}/d{4%3}/f{%4} and at-{*4096}; {-} if there is only one key";
/// Braces that no number stands in.
pub const NO_NUMBER: &str = "-";

/// One number of a name, and the text behind it.
#[derive(Clone, Copy, Debug)]
struct Part {
    divisor: u64,
    /// 0: none.
    modulus: u64,
    factor: u64,
    /// Whether the number is written.
    is_shown: bool,
    tail: Key,
}

/// How keys are named.
#[derive(Clone, Debug)]
pub struct Names {
    head: Key,
    parts: Vec<Part>,
}

impl Names {
    /// Names of keys with numbers up to `last`. Text without braces has the number behind it.
    ///
    /// # Errors
    /// Braces that hold no numbers, and names that are too long for a key.
    pub fn new(text: &str, last: u64) -> Result<Self, ParseError> {
        let refuse = || ParseError::new("a pattern of key names", text, ACCEPTED);
        let key = |text: &str| Key::new(text.as_bytes()).ok_or_else(|| too_long(text));
        let mut pieces = text.split('{');
        let mut names = Self { head: key(pieces.next().unwrap_or_default())?, parts: Vec::new() };
        for piece in pieces {
            let (number, tail) = piece.split_once('}').ok_or_else(refuse)?;
            let is_shown = number != NO_NUMBER;
            let number = if is_shown { number } else { "" };
            let (number, factor) = number.split_once('*').unwrap_or((number, ""));
            let (divisor, modulus) = number.split_once('%').unwrap_or((number, ""));
            let count = |text: &str, default: u64| match text {
                "" => Ok(default),
                text => text.parse().ok().filter(|&count| count > 0).ok_or_else(refuse),
            };
            names.parts.push(Part {
                divisor: count(divisor, 1)?,
                modulus: count(modulus, 0)?,
                factor: count(factor, 1)?,
                is_shown,
                tail: key(tail)?,
            });
        }
        if names.parts.is_empty() {
            names.parts.push(Part { divisor: 1, modulus: 0, factor: 1, is_shown: true, tail: Key::EMPTY });
        }
        if last > 0 && !names.parts.iter().any(|part| part.is_shown) {
            return Err(refuse());
        }
        let longest = names.parts.iter().try_fold(names.head, |key, part| {
            let largest = (last / part.divisor).min(part.modulus.checked_sub(1).unwrap_or(u64::MAX));
            part.after(key, largest.checked_mul(part.factor)?)
        });
        longest.map(|_| names).ok_or_else(|| too_long(text))
    }

    /// The name of a number that is not larger than the last one.
    #[inline]
    #[must_use]
    pub fn of(&self, number: u64) -> Key {
        let mut key = self.head;
        for part in &self.parts {
            if part.is_shown {
                key = key.followed_by(part.number(number));
            }
            key = key.then(&part.tail).unwrap_or(key);
        }
        key
    }
}

fn too_long(text: &str) -> ParseError {
    ParseError::new("a pattern of key names that fit", text, "one whose names have at most 47 bytes")
}

impl Part {
    #[inline]
    fn number(&self, number: u64) -> u64 {
        let number = number / self.divisor;
        (if self.modulus == 0 { number } else { number % self.modulus }) * self.factor
    }

    /// A key with this part behind it, where it fits.
    fn after(&self, key: Key, number: u64) -> Option<Key> {
        let key = if self.is_shown { key.checked_followed_by(number)? } else { key };
        key.then(&self.tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str, number: u64) -> String {
        Names::new(text, number.max(1000)).expect(text).of(number).to_string()
    }

    #[test]
    fn numbers_stand_behind_or_within() {
        assert_eq!(name("blade-", 17), "blade-17");
        assert_eq!(name("", 0), "0");
        // Two workers, three directories, four files: the 19th is file 3 of directory 1 of the second worker.
        let path = "r{12}/d{4%3}/r{12}-f{%4}";
        assert_eq!(
            [name(path, 0), name(path, 5), name(path, 19)],
            ["r0/d0/r0-f0", "r0/d1/r0-f1", "r1/d1/r1-f3"]
        );
        assert_eq!(name("{100}x", 1234), "12x");
        assert_eq!(name("at-{*4096}_4096", 3), "at-12288_4096");
        assert_eq!(name("{10%3*5}", 71), "5");
        assert_eq!(Names::new("one{-}", 0).expect("one name").of(0).to_string(), "one");
    }

    #[test]
    fn names_differ_where_numbers_do() {
        let names = Names::new("r{12}/d{4%3}/r{12}-f{%4}", 10_000).expect("a pattern");
        let all: std::collections::BTreeSet<String> = (0..10_000).map(|n| names.of(n).to_string()).collect();
        assert_eq!(all.len(), 10_000);
    }

    #[test]
    fn what_is_no_pattern_or_does_not_fit_is_refused() {
        for text in ["{", "a{x}", "a{0}", "a{1%0}", "a{1%}}{", "a{-1}", "a{*0}", "one{-}"] {
            let error = Names::new(text, 1).expect_err(text).to_string();
            assert!(error.contains("r{12}/d{4%3}/f{%4}"), "{error}");
        }
        let long = "x".repeat(27);
        assert!(Names::new(&long, u64::MAX).is_ok());
        assert!(
            Names::new(&format!("{long}x"), u64::MAX).expect_err("long").to_string().contains("47 bytes")
        );
        assert!(Names::new(&format!("{long}x"), 9).is_ok());
        assert!(Names::new(&"x".repeat(60), 9).is_err());
    }
}
