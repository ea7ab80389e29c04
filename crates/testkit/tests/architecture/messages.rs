//! Every sentence that strata prints, in a file for each crate: a change of wording is seen where it is reviewed, beside its neighbours.
//!
//! The files are made from the sources (`UPDATE_MESSAGES=1 cargo test -p testkit --test architecture`), and none may have words that are not the trade's.

use std::collections::{BTreeMap, BTreeSet};

use crate::masked::strings;
use crate::repository::Text;
use crate::sources::is_test;

/// A string with fewer words of two letters or more is a label or a name, not a sentence.
const WORDS_MIN: usize = 3;

/// Words and phrases that readers of the field stumble over, and what to write.
const UNCLEAR: &[(&str, &str)] = &[
    ("in doubt", "unreliable"),
    ("casts doubt", "makes unreliable"),
    ("the figures", "the results"),
    ("holds back", "is the bottleneck"),
    ("cannot be had", "is not available"),
    ("could not be had", "is not available"),
    ("is worth", "equals"),
    ("there is none", "no X exists"),
    ("that there is", "(leave it out)"),
    ("what is", "a noun"),
    ("what was", "a noun"),
    ("goes on", "continues"),
    ("as it stands", "unchanged"),
    ("nobody", "no user, no process"),
    ("processor", "CPU"),
    ("the nearest", "the closest"),
    ("there is no such", "unknown"),
    ("none seen", "no difference detected"),
    ("with 95%", "95 % CI"),
    ("but for", "except for"),
    ("such as it is", "unchanged"),
    ("knows nothing", "does not support"),
    ("are told", "are reported"),
    ("is told", "is reported"),
];

/// Crates whose strings no user sees.
const UNSEEN: &[&str] = &["testkit"];

/// Sentences of a crate.
pub(crate) type Sentences = BTreeSet<String>;

/// Sentences of all sources, by crate.
pub(crate) fn messages(sources: &[Text]) -> BTreeMap<String, Sentences> {
    let mut found = BTreeMap::<_, Sentences>::new();
    for (path, text) in sources {
        let Some((of, file)) = path.strip_prefix("crates/").and_then(|rest| rest.split_once("/src/")) else {
            continue;
        };
        let name = of.strip_prefix("layers/").unwrap_or(of);
        if is_test(file) || UNSEEN.contains(&name) {
            continue;
        }
        let shown = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        found
            .entry(name.to_owned())
            .or_default()
            .extend(strings(shown).into_iter().filter(|text| is_sentence(text)));
    }
    found.retain(|_, messages| !messages.is_empty());
    found
}

fn is_sentence(text: &str) -> bool {
    let is_word = |word: &&str| word.chars().filter(|c| c.is_alphabetic()).count() > 1;
    text.split_whitespace().filter(is_word).count() >= WORDS_MIN
}

/// The file of a crate's messages: one a line, in the order of the alphabet.
pub(crate) fn page(messages: &Sentences) -> String {
    messages.iter().map(|message| format!("{message}\n")).collect()
}

/// Messages with words that are not the trade's.
pub(crate) fn unclear(messages: &BTreeMap<String, Sentences>) -> Vec<String> {
    let each =
        messages.iter().flat_map(|(name, messages)| messages.iter().map(move |message| (name, message)));
    let wrong = |(name, message): (&String, &String)| {
        let small = message.to_lowercase();
        let (words, better) = UNCLEAR.iter().find(|(words, _)| small.contains(words))?;
        Some(format!("{name}: \"{words}\" ({better}): {message}"))
    };
    each.filter_map(wrong).collect()
}

/// Phrases of messages that the dialects replace by those of their tools, and that nothing prints: the replacement would silently do nothing.
pub(crate) fn unprinted(sources: &[Text], messages: &BTreeMap<String, Sentences>) -> Vec<String> {
    let others = messages.iter().filter(|(name, _)| *name != "dialects").flat_map(|(_, messages)| messages);
    let printed: Vec<&String> = others.collect();
    let tables = sources.iter().filter(|(path, _)| path.starts_with("crates/dialects/src/refusals"));
    // The name of the operation is put in where the sentence is printed.
    let fixed = |phrase: &str| phrase.trim_end_matches("discard").trim_end_matches("rand").to_owned();
    let all = tables.flat_map(|(_, text)| replaced(text));
    all.filter(|phrase| !printed.iter().any(|message| message.contains(&fixed(phrase)))).collect()
}

/// Left sides of the tables of phrases in a source.
fn replaced(text: &str) -> Vec<String> {
    let tables = text.split("_PHRASES: Phrases = &[").skip(1).filter_map(|rest| rest.split("\n];").next());
    tables.flat_map(|table| strings(table).into_iter().step_by(2)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        messages(&[(path.to_owned(), text.to_owned())]).into_values().flatten().collect()
    }

    #[test]
    fn sentences_are_found_and_names_are_not() {
        let text = "f(\"the disk is full: {free} left\"); g(\"two words\"); // \"not in a comment at all\"\n\
                    h(\"runs on \\\n        here to its end\\n\");\n#[cfg(test)]\nmod tests { \"not in a test of it\" }";
        let all = ["runs on here to its end\\n", "the disk is full: {free} left"];
        assert_eq!(found("crates/layers/media/src/a.rs", text), all);
        assert!(found("crates/testkit/src/a.rs", text).is_empty());
        assert!(found("crates/media/tests/a.rs", text).is_empty());
        assert!(found("crates/media/src/tests/a.rs", text).is_empty());
    }

    #[test]
    fn phrases_that_nothing_prints_are_found() {
        let table = "const FIO_PHRASES: Phrases = &[\n    (\"use more of them\", \"a\"),\n    (\"nobody says this\", \"b\"),\n];\n";
        let sources = [
            ("crates/dialects/src/refusals.rs".to_owned(), table.to_owned()),
            ("crates/media/src/a.rs".to_owned(), "f(\"please use more of them now\")".to_owned()),
        ];
        assert_eq!(unprinted(&sources, &messages(&sources)), ["nobody says this"]);
    }

    #[test]
    fn words_that_are_not_the_trades_are_found() {
        let all = messages(&[("crates/a/src/b.rs".to_owned(), "\"The figures are in doubt\"".to_owned())]);
        assert_eq!(unclear(&all).len(), 1);
    }
}
