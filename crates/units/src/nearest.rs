//! The nearest of the known names to one that is not known.

/// Longer texts are no slip of a name, and the table of changes would be large.
const LENGTH_MAX: usize = 64;
/// Changes beyond which a name is another one.
const CHANGES_MAX: usize = 3;

/// The name with the fewest changes to `given`, where they are few enough for a slip: at most 3, and at most half of it.
#[must_use]
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = given.chars().count();
    if length > LENGTH_MAX {
        return None;
    }
    let near = known.into_iter().map(|name| (changes(name, given), name)).min()?;
    (near.0 <= (length / 2).min(CHANGES_MAX)).then_some(near.1)
}

/// Insertions, removals and replacements that lead from one text to the other (Levenshtein 1966).
#[must_use]
pub fn changes(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, a) in left.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (column, b) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_finds_its_name() {
        let known = ["iodepth", "ioengine", "rw", "bs"];
        assert_eq!(nearest("iodeph", known), Some("iodepth"));
        assert_eq!(nearest("ioenigne", known), Some("ioengine"));
        assert_eq!(nearest("something", known), None);
        assert_eq!(nearest("", known), None);
        assert_eq!(nearest(&"iodepth".repeat(20), known), None);
    }
}
