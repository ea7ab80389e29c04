//! The full size of an application, and shares of it: `--scale`.

use std::fmt;
use std::str::FromStr;

use driver::Error;
use units::{ParseError, clean};

use super::expression::number;
use super::parse::refused;
use super::values::{Values, usage};
use super::{Description, Parameter};

/// Largest scale.
const SCALE_MAX: u64 = 1000;
const ACCEPTED: &str = "a number above 0 up to 1000 such as 0.001, or a fraction such as 1/1000";

/// Share of the full size, in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    numerator: u64,
    denominator: u64,
}

impl FromStr for Scale {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refused = || ParseError::new("a scale", text, ACCEPTED);
        let whole = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
            if is_number { text.parse::<u64>().map_err(|_| refused()) } else { Err(refused()) }
        };
        let (numerator, denominator) = match (text.split_once('/'), text.split_once('.')) {
            (Some((above, below)), _) => (whole(above)?, whole(below)?),
            (None, None) => (whole(text)?, 1),
            (None, Some((before, behind))) => {
                let behind = behind.trim_end_matches('0');
                let below = 10u64.checked_pow(behind.len() as u32).ok_or_else(refused)?;
                let rest = if behind.is_empty() { 0 } else { whole(behind)? };
                let above = whole(before)?.checked_mul(below).and_then(|above| above.checked_add(rest));
                (above.ok_or_else(refused)?, below)
            }
        };
        if numerator == 0 || denominator == 0 || numerator.div_ceil(denominator) > SCALE_MAX {
            return Err(refused());
        }
        let divisor = divisor(numerator, denominator);
        Ok(Self { numerator: numerator / divisor, denominator: denominator / divisor })
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.denominator {
            1 => write!(formatter, "{}", self.numerator),
            denominator => write!(formatter, "{}/{denominator}", self.numerator),
        }
    }
}

/// The greatest number that divides both.
fn divisor(mut one: u64, mut other: u64) -> u64 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

impl Scale {
    /// The part of an amount that one of so many has, rounded; none where it is 2^64 or more.
    fn of(self, full: u64, among: u64) -> Option<u64> {
        let below = u128::from(self.denominator).checked_mul(u128::from(among))?;
        let above = u128::from(full).checked_mul(u128::from(self.numerator))?;
        u64::try_from((above.checked_add(below / 2)?) / below).ok()
    }
}

/// Checks what a description says of its full size.
pub(super) fn check(description: &Description) -> Result<(), Error> {
    for (name, parameter) in &description.parameters {
        let has = parameter.scales.is_some() || parameter.among.is_some();
        let Some(full) = &parameter.full else {
            if has {
                return Err(refused(format!("{name} has scales or among but no full"), "full = ... too"));
            }
            continue;
        };
        if name == "scale" || description.parameters.contains_key("scale") {
            return Err(refused(
                "the description has a full size and a parameter named scale".to_owned(),
                "another name",
            ));
        }
        let is_fixed = parameter.scales == Some(false);
        if !parameter.choices.is_empty() || (is_fixed && parameter.among.is_some()) {
            let given = format!("the full value of {name} is a word, or its among has no scale");
            return Err(refused(given, "full only for numbers, and among only if the value scales"));
        }
        if !is_fixed {
            number(&full.text()).map_err(usage)?;
        }
    }
    Ok(())
}

/// Values of parameters at a scale of the full size: those that were given, and those that follow from the scale.
///
/// # Errors
/// A description without a full size; a value that is given and follows from the scale, too.
pub(crate) fn scaled(
    description: &Description,
    settings: &[(String, String)],
    scale: Scale,
) -> Result<Vec<(String, String)>, Error> {
    let is_given = |name: &str| settings.iter().any(|(given, _)| given == name);
    let sized =
        || description.parameters.iter().filter_map(|(name, own)| Some((name, own, own.full.as_ref()?)));
    if sized().next().is_none() {
        let names: Vec<&str> = description.parameters.keys().map(String::as_str).collect();
        let has = if names.is_empty() { "its parameters".to_owned() } else { names.join(", ") };
        return Err(Error::usage(
            "plan",
            format!("{} does not support --scale: it defines no full size", clean(&description.name)),
        )
        .remedy(format!("omit --scale, and set its size with --set ({has})")));
    }
    let mut all = settings.to_vec();
    // Values that stay the same come first: others may be shared out among them.
    let is_fixed = |own: &Parameter| own.scales == Some(false);
    let fixed = sized().filter(|(name, own, _)| is_fixed(own) && !is_given(name));
    all.extend(fixed.map(|(name, _, full)| (name.clone(), full.text())));
    let values = Values::new(description, &all)?;
    let mut found = Vec::new();
    for (name, own, full) in sized().filter(|(_, own, _)| !is_fixed(own)) {
        if is_given(name) {
            let what = format!("--scale {scale} sets {name}, which is also set explicitly");
            return Err(Error::usage("plan", what).remedy(format!("omit --scale, or {name}")));
        }
        let among = own.among.as_ref().map_or(Ok(1), |among| values.number(among))?;
        let value = scale.of(number(&full.text()).map_err(usage)?, among.max(1));
        let value = value
            .ok_or_else(|| refused(format!("{name} is too large at scale {scale}"), "a smaller scale"))?;
        let min = own.min.as_ref().map_or(Ok(0), |min| number(&min.text()).map_err(usage))?;
        found.push((name.clone(), value.max(min).to_string()));
    }
    all.extend(found);
    Ok(all)
}

/// The full value of a parameter in words, with a blank before; nothing where it has none.
pub(crate) fn full_words(parameter: &Parameter) -> String {
    let Some(full) = &parameter.full else { return String::new() };
    let full = clean(&full.text()).into_owned();
    match (&parameter.among, parameter.scales) {
        (Some(among), _) => format!(" [--scale 1: {full} among {}]", clean(&among.text())),
        (None, Some(false)) => format!(" [any --scale: {full}]"),
        (None, _) => format!(" [--scale 1: {full}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::{parse, resolve};

    #[test]
    fn scales_are_fractions_in_lowest_terms() {
        for (text, told) in [
            ("1", "1"),
            ("1/1000", "1/1000"),
            ("0.001", "1/1000"),
            ("0.50", "1/2"),
            ("2.", "2"),
            ("4/6", "2/3"),
            ("1000", "1000"),
            ("0.000000000000000001", "1/1000000000000000000"),
        ] {
            assert_eq!(text.parse::<Scale>().map(|scale| scale.to_string()).as_deref(), Ok(told), "{text}");
        }
        for text in [
            "",
            "0",
            "0.0",
            "0/5",
            "1/0",
            "-1",
            "-0.1",
            "NaN",
            "nan",
            "inf",
            "half",
            "1/2/3",
            "1e-3",
            "1001",
            "1/",
            "/2",
            ".",
            ".5.",
            "1 / 2",
            "+1",
            "0.0000000000000000000001",
            "99999999999999999999",
        ] {
            let error = text.parse::<Scale>().expect_err(text).to_string();
            assert!(error.contains("1/1000"), "{text}: {error}");
        }
    }

    #[test]
    fn values_are_rounded_shares_of_the_full_ones() {
        let of = |text: &str, full, among| text.parse::<Scale>().unwrap().of(full, among);
        assert_eq!(
            (of("1", 937_500_000, 2), of("1/1000", 937_500_000, 2)),
            (Some(468_750_000), Some(468_750))
        );
        assert_eq!((of("0.5", 3, 1), of("1/3", 10, 3)), (Some(2), Some(1)));
        assert_eq!((of("1000", u64::MAX, 1), of("1/10", 1, 1)), (None, Some(0)));
    }

    const SIZED: &str = "format = 1\nname = 'a'\nversion = '1'\nsummary = 'b'\n[parameters]\n\
        ranks = { default = 2, min = 1, help = 'p' }\n\
        steps = { default = 4, full = 16, scales = false, help = 's' }\n\
        count = { default = 3, min = 2, full = 1000, among = 'ranks * 2', help = 'c' }\n\
        [[set]]\nname = 'd'\nkind = 'array'\nlayout = 'item'\nsize = 8\n\
        [[group]]\nname = 'g'\nstage = 's'\nprocesses = 'ranks'\niterations = 'steps'\n\
        [[group.step]]\nname = 'x'\nitems = 'count'\neach = ['create d', 'write d', 'close d']\n";

    fn values(settings: &[(&str, &str)], scale: &str) -> Result<Vec<String>, String> {
        let own: Vec<_> =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let description = parse(SIZED).map_err(|error| error.to_string())?;
        let all = scaled(&description, &own, scale.parse().unwrap()).map_err(|error| error.to_string())?;
        let application = resolve(&description, &all).map_err(|error| error.to_string())?;
        Ok(application.parameters.iter().map(|one| format!("{}={}", one.name, one.value)).collect())
    }

    #[test]
    fn parameters_follow_from_the_scale() {
        assert_eq!(values(&[], "1").unwrap(), ["count=250", "ranks=2", "steps=16"]);
        assert_eq!(values(&[("ranks", "5")], "1/2").unwrap(), ["count=50", "ranks=5", "steps=16"]);
        assert_eq!(values(&[("steps", "3")], "1/1000").unwrap(), ["count=2", "ranks=2", "steps=3"]);
        assert!(values(&[("count", "3")], "1").unwrap_err().contains("omit --scale, or count"));
        assert!(values(&[("colour", "3")], "1").unwrap_err().contains("no parameter colour"));
    }

    #[test]
    fn full_sizes_that_cannot_be_are_refused() {
        for (from, to, said) in [
            ("full = 1000, ", "", "but no full"),
            ("full = 1000", "full = 'many'", "a number"),
            ("scales = false", "scales = false, among = 'ranks'", "among only if the value scales"),
            (
                "ranks = { default",
                "scale = { default = 1, help = 's' }\nranks = { default",
                "parameter named scale",
            ),
        ] {
            assert!(SIZED.contains(from), "{from}");
            let error = parse(&SIZED.replacen(from, to, 1)).expect_err(said).to_string();
            assert!(error.contains(said) && !error.contains('\n'), "{said}: {error}");
        }
    }
}
