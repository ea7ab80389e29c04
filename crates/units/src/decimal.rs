//! Exact reading and writing of decimal numbers.

/// A decimal number as it was written: `digits / 10^fraction_digits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    digits: u128,
    fraction_digits: u32,
}

/// Why a number times a unit is not a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inexact {
    /// The product is above `u64::MAX`.
    TooLarge,
    /// The product has a fraction.
    NotWhole,
}

impl Decimal {
    /// The exact product with `unit`, which must be a whole number of at most 64 bits.
    pub(crate) fn times(self, unit: u64) -> Result<u64, Inexact> {
        let product = self.digits.checked_mul(u128::from(unit)).ok_or(Inexact::TooLarge)?;
        // More fraction digits than 10^38 holds cannot come out whole: trailing zeros were dropped on reading.
        let divisor = 10u128.checked_pow(self.fraction_digits).ok_or(Inexact::NotWhole)?;
        if !product.is_multiple_of(divisor) {
            return Err(Inexact::NotWhole);
        }
        u64::try_from(product / divisor).map_err(|_| Inexact::TooLarge)
    }
}

/// Splits `1.5g` into the number and what follows it. `None` unless it starts with digits, optionally followed by a
/// point and more digits; no sign and no exponent. A number of more than 38 digits is `Some(Err(TooLarge))`.
pub(crate) fn split_number(text: &str) -> Option<(Result<Decimal, Inexact>, &str)> {
    let whole_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (whole, rest) = text.split_at(whole_end);
    if whole.is_empty() {
        return None;
    }
    let (fraction, rest) = match rest.strip_prefix('.') {
        None => ("", rest),
        Some(after) => {
            let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
            if end == 0 {
                return None;
            }
            (after[..end].trim_end_matches('0'), &after[end..])
        }
    };
    Some((read_digits(whole, fraction), rest))
}

fn read_digits(whole: &str, fraction: &str) -> Result<Decimal, Inexact> {
    let mut digits = 0u128;
    for digit in whole.bytes().chain(fraction.bytes()) {
        let shifted = digits.checked_mul(10).and_then(|tens| tens.checked_add(u128::from(digit - b'0')));
        digits = shifted.ok_or(Inexact::TooLarge)?;
    }
    let fraction_digits = u32::try_from(fraction.len()).map_err(|_| Inexact::TooLarge)?;
    Ok(Decimal { digits, fraction_digits })
}

/// `value / unit` written exactly with at most three decimals, or `None` where that takes more.
pub(crate) fn in_unit(value: u64, unit: u64) -> Option<String> {
    let (whole, rest) = (value / unit, value % unit);
    let thousandths = u128::from(rest) * 1000;
    if !thousandths.is_multiple_of(u128::from(unit)) {
        return None;
    }
    if rest == 0 {
        return Some(whole.to_string());
    }
    let fraction = format!("{:03}", thousandths / u128::from(unit));
    Some(format!("{whole}.{}", fraction.trim_end_matches('0')))
}
