//! Values of parameters, as given or by default, and what expressions, words and conditions over them say.

use driver::Error;
use units::{ParseError, parse_u64_in};
use workload::spec::choice;

use super::expression::{evaluate, number};
use super::parse::refused;
use super::{Description, Parameter, Quantity};
use crate::plan::ParameterPlan;

/// The refusal of a value.
pub(super) fn usage(error: ParseError) -> Error {
    Error::usage("description", error.to_string())
}

/// Values of parameters.
pub(super) struct Values<'a> {
    all: Vec<(&'a str, &'a Parameter, String)>,
}

impl<'a> Values<'a> {
    pub(super) fn new(description: &'a Description, settings: &[(String, String)]) -> Result<Self, Error> {
        if let Some((name, _)) = settings.iter().find(|(name, _)| !description.parameters.contains_key(name))
        {
            let known: Vec<&str> = description.parameters.keys().map(String::as_str).collect();
            let given = format!("{} has no parameter {name}", description.name);
            return Err(refused(given, &format!("one of {}", known.join(", "))));
        }
        let mut all = Vec::new();
        for (name, parameter) in &description.parameters {
            // What is given last holds.
            let given =
                settings.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.clone());
            let value = given.unwrap_or_else(|| parameter.default.text());
            check_value(name, parameter, &value)?;
            all.push((name.as_str(), parameter, value));
        }
        Ok(Self { all })
    }

    pub(super) fn word(&self, name: &str) -> Option<&str> {
        self.all.iter().find(|(known, ..)| *known == name).map(|(.., value)| value.as_str())
    }

    pub(super) fn number(&self, quantity: &Quantity) -> Result<u64, Error> {
        let lookup = |name: &str| {
            let (_, parameter, value) = self.all.iter().find(|(known, ..)| *known == name)?;
            if parameter.choices.is_empty() { number(value).ok() } else { None }
        };
        evaluate(&quantity.text(), &lookup).map_err(usage)
    }

    /// One of several words: itself, or the value of the parameter of that name.
    pub(super) fn chosen<T: Copy>(&self, what: &str, text: &str, choices: &[(&str, T)]) -> Result<T, Error> {
        let is_choice = choices.iter().any(|(name, _)| *name == text);
        let word = if is_choice { text } else { self.word(text).unwrap_or(text) };
        choice(what, word, choices).map_err(usage)
    }

    pub(super) fn plans(&self) -> Vec<ParameterPlan> {
        let plan = |name: &str, value: &String| ParameterPlan { name: name.to_owned(), value: value.clone() };
        self.all.iter().map(|(name, _, value)| plan(name, value)).collect()
    }

    pub(super) fn holds(&self, when: Option<&String>) -> Result<bool, Error> {
        let Some(text) = when else { return Ok(true) };
        let mut holds = true;
        for condition in text.split(',') {
            let (name, value) = condition.split_once('=').unwrap_or((condition, ""));
            let (name, value) = (name.trim(), value.trim());
            let values: Vec<&str> = value.split('|').map(str::trim).collect();
            let is_choice = |parameter: &Parameter| {
                values.iter().all(|value| parameter.choices.iter().any(|choice| choice == value))
            };
            let known = self.all.iter().find(|(known, ..)| *known == name);
            match known {
                Some((_, parameter, now)) if is_choice(parameter) => {
                    holds &= values.iter().any(|value| now == value);
                }
                _ => {
                    let accepted = "a parameter with choices and one or several of them, such as pattern=A or pattern=A|B";
                    return Err(refused(format!("the condition {condition:?} is not valid"), accepted));
                }
            }
        }
        Ok(holds)
    }

    pub(super) fn those<T>(
        &self,
        all: &'a [T],
        when: impl Fn(&T) -> &Option<String>,
    ) -> Result<Vec<&'a T>, Error> {
        let mut there = Vec::new();
        for one in all {
            if self.holds(when(one).as_ref())? {
                there.push(one);
            }
        }
        Ok(there)
    }
}

/// The parts of `SIZE`, `SIZE..SIZE` or `SIZE..SIZE/STEP`: a range without a step takes every size.
pub(super) struct Range<'a> {
    pub(super) low: &'a str,
    pub(super) high: &'a str,
    pub(super) step: Option<&'a str>,
}

impl<'a> Range<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let Some((low, high)) = text.split_once("..") else {
            return Self { low: text, high: text, step: None };
        };
        match high.split_once('/') {
            Some((high, step)) => Self { low, high, step: Some(step) },
            None => Self { low, high, step: None },
        }
    }
}

fn check_value(name: &str, parameter: &Parameter, value: &str) -> Result<(), Error> {
    if !parameter.choices.is_empty() {
        let choices: Vec<(&str, ())> = parameter.choices.iter().map(|word| (word.as_str(), ())).collect();
        return choice(name, value, &choices).map_err(usage);
    }
    let limit = |quantity: &Option<Quantity>, default| match quantity {
        Some(quantity) => number(&quantity.text()).map_err(usage),
        None => Ok(default),
    };
    let (min, max) = (limit(&parameter.min, 0)?, limit(&parameter.max, u64::MAX)?);
    // The ends of a range are looked at like numbers.
    let range = Range::of(value);
    let read = |text: &str| {
        number(text).map_err(|_| {
            let accepted = "a count, a size such as 1MiB, a time such as 10ms, or a range such as 20KiB..40KiB or 20KiB..40KiB/4KiB";
            refused(format!("{name}={value} is not a number"), accepted)
        })
    };
    for text in [range.low, range.high] {
        parse_u64_in(name, &read(text)?.to_string(), min..=max).map_err(usage)?;
    }
    range.step.map_or(Ok(1), read)?;
    Ok(())
}
