//! Arithmetic in values: `(4 * 1m)`, and `$ncpus*2` once the variable has its number.

/// Levels of parentheses that are read.
const NESTING_MAX: usize = 32;

/// Reads one number with its unit off the front: its value, and what follows.
pub(super) type ReadNumber<'a> = &'a dyn Fn(&str) -> Result<u64, String>;

/// The value of an expression of `+ - * / % ^`, parentheses and numbers with units. Whole numbers; a division drops the rest.
///
/// # Errors
/// A description of the fault in the expression.
pub(super) fn evaluate(text: &str, number: ReadNumber<'_>) -> Result<u64, String> {
    let mut reader = Reader { rest: text.trim_start(), number, nesting: 0 };
    let value = reader.sum()?;
    if !reader.rest.is_empty() {
        return Err(wrong());
    }
    u64::try_from(value).map_err(|_| "the result is negative or too large".to_owned())
}

/// Whether a text is arithmetic and nothing else: what is left of `$ncpus*2`, and not a path with a number in it.
pub(super) fn is_arithmetic(text: &str) -> bool {
    let text = text.trim();
    text.starts_with(|c: char| c.is_ascii_digit() || c == '(')
        && text.contains(['+', '-', '*', '/', '%', '^'])
        && text.chars().all(|c| c.is_ascii_digit() || " +-*/%^()".contains(c))
}

fn wrong() -> String {
    "is not a valid expression: use numbers, + - * / % ^ and parentheses, such as (4 * 1m)".to_owned()
}

struct Reader<'a> {
    rest: &'a str,
    number: ReadNumber<'a>,
    nesting: usize,
}

impl Reader<'_> {
    fn take(&mut self, accepted: &[char]) -> Option<char> {
        let first = self.rest.chars().next().filter(|c| accepted.contains(c))?;
        self.rest = self.rest[1..].trim_start();
        Some(first)
    }

    fn sum(&mut self) -> Result<i128, String> {
        let mut value = self.product()?;
        while let Some(sign) = self.take(&['+', '-']) {
            let other = self.product()?;
            value = checked(if sign == '+' { value.checked_add(other) } else { value.checked_sub(other) })?;
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<i128, String> {
        let mut value = self.power()?;
        while let Some(sign) = self.take(&['*', '/', '%']) {
            let other = self.power()?;
            value = match sign {
                '*' => checked(value.checked_mul(other))?,
                _ if other == 0 => return Err("divides by 0".to_owned()),
                '/' => checked(value.checked_div(other))?,
                _ => checked(value.checked_rem(other))?,
            };
        }
        Ok(value)
    }

    fn power(&mut self) -> Result<i128, String> {
        let mut value = self.atom()?;
        while self.take(&['^']).is_some() {
            let exponent = u32::try_from(self.atom()?).map_err(|_| wrong())?;
            value = checked(value.checked_pow(exponent))?;
        }
        Ok(value)
    }

    fn atom(&mut self) -> Result<i128, String> {
        if self.take(&['(']).is_some() {
            self.nesting += 1;
            if self.nesting > NESTING_MAX {
                return Err(format!("has more than {NESTING_MAX} levels of parentheses"));
            }
            let value = self.sum()?;
            self.nesting -= 1;
            return self.take(&[')']).map(|_| value).ok_or_else(wrong);
        }
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        if word.is_empty() {
            return Err(wrong());
        }
        (self.number)(word).map(i128::from)
    }
}

fn checked(value: Option<i128>) -> Result<i128, String> {
    value.ok_or_else(|| "is too large".to_owned())
}
