//! Reading small files of `/proc` and `/sys`.

use std::path::Path;
use std::str::FromStr;

/// The file's text without surrounding white space; `None` when it cannot be read or is empty.
pub(crate) fn text(path: impl AsRef<Path>) -> Option<String> {
    let text = std::fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&text);
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The file's text as a value.
pub(crate) fn value<T: FromStr>(path: impl AsRef<Path>) -> Option<T> {
    text(path)?.parse().ok()
}

/// The file's text as a switch: `0` or `1`.
pub(crate) fn switch(path: impl AsRef<Path>) -> Option<bool> {
    value::<u64>(path).map(|value| value != 0)
}

/// The choice in brackets, as in `none [mq-deadline] kyber`; the whole text where there are no brackets.
pub(crate) fn chosen(text: &str) -> &str {
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text, |(choice, _)| choice)
}

/// Names in a directory, sorted; empty when it cannot be read.
pub(crate) fn names(path: impl AsRef<Path>) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_takes_the_bracketed_word() {
        assert_eq!(chosen("none [mq-deadline] kyber bfq"), "mq-deadline");
        assert_eq!(chosen("none"), "none");
        assert_eq!(chosen("broken [half"), "broken [half");
    }
}
