use std::ops::RangeInclusive;

use crate::ParseError;

/// Reads a whole number of `name` within `range`: digits only, no sign.
///
/// # Errors
/// Refuses other text and numbers outside, naming the range.
pub fn parse_u64_in(name: &str, text: &str, range: RangeInclusive<u64>) -> Result<u64, ParseError> {
    let number = digits(text).filter(|number| range.contains(number));
    number.ok_or_else(|| {
        let accepted = format!("a whole number from {} to {}", range.start(), range.end());
        ParseError::new(format!("a value of {name}"), text, accepted)
    })
}

/// Splits `a,b,c` at the commas and drops blanks around each part.
///
/// # Errors
/// Refuses a list with an empty part, which includes the empty list.
pub fn split_list<'a>(name: &str, text: &'a str) -> Result<Vec<&'a str>, ParseError> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    if parts.iter().any(|part| part.is_empty()) {
        let accepted = "values with one comma between each two";
        return Err(ParseError::new(format!("a list of {name}"), text, accepted));
    }
    Ok(parts)
}

/// Reads indexes such as `0,2,4-7` into `[0, 2, 4, 5, 6, 7]`, in the order given; each must be below `limit`.
///
/// # Errors
/// Refuses other text, a range that runs backward, an index at or above `limit` and an index given twice.
pub fn parse_index_list(name: &str, text: &str, limit: u32) -> Result<Vec<u32>, ParseError> {
    let what = format!("a list of {name}");
    let refused = |accepted: String| ParseError::new(what.clone(), text, accepted);
    let Some(last) = limit.checked_sub(1) else {
        return Err(refused("no list, because there is nothing to choose from".to_owned()));
    };
    let accepted = || refused(format!("indexes from 0 to {last} and ranges of them, such as 0 or 0,2,4-7"));
    let mut seen = vec![false; limit as usize];
    let mut indexes = Vec::new();
    for part in split_list(name, text).map_err(|_| accepted())? {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let bound = |text| digits(text).filter(|&index| index <= u64::from(last));
        let (from, to) = bound(from).zip(bound(to)).filter(|(from, to)| from <= to).ok_or_else(accepted)?;
        for index in from as u32..=to as u32 {
            if std::mem::replace(&mut seen[index as usize], true) {
                return Err(refused(format!("each index once ({index} is given twice)")));
            }
            indexes.push(index);
        }
    }
    Ok(indexes)
}

/// The standard reader accepts a leading plus sign; this one does not.
fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}
