//! Rust text with comments and the content of strings and characters blanked out, so that braces and words can be counted; and the strings alone.

/// Same length in lines; only code is left.
pub(crate) fn mask(source: &str) -> String {
    masked(source).out
}

/// The strings of a source as they are typed, on one line each: a line that goes on is joined. Those of panics are left out, users see none.
pub(crate) fn strings(source: &str) -> Vec<String> {
    masked(source).strings
}

fn masked(source: &str) -> Masker<'_> {
    let out = String::with_capacity(source.len());
    let mut masker = Masker { rest: source, out, strings: Vec::new() };
    while let Some(first) = masker.rest.chars().next() {
        if masker.rest.starts_with("//") {
            let length = masker.rest.find('\n').unwrap_or(masker.rest.len());
            masker.blank(length);
        } else if masker.rest.starts_with("/*") {
            masker.blank(block_comment(masker.rest));
        } else if let Some(length) = raw_string(masker.rest) {
            masker.string(length);
        } else if first == '"' {
            masker.string(quoted(masker.rest, '"'));
        } else if first == '\'' && is_character(masker.rest) {
            masker.blank(quoted(masker.rest, '\''));
        } else if first.is_alphanumeric() || first == '_' {
            let end =
                masker.rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(masker.rest.len());
            masker.keep(end);
        } else {
            masker.keep(first.len_utf8());
        }
    }
    masker
}

struct Masker<'a> {
    rest: &'a str,
    out: String,
    strings: Vec<String>,
}

/// Calls whose string is for those who develop strata.
const PANICS: &[&str] = &["expect(", "unreachable!(", "panic!("];

impl Masker<'_> {
    fn keep(&mut self, length: usize) {
        self.out.push_str(&self.rest[..length]);
        self.rest = &self.rest[length..];
    }

    fn string(&mut self, length: usize) {
        let before = self.out.trim_end();
        if !PANICS.iter().any(|call| before.ends_with(call)) {
            let body = self.rest[..length].trim_start_matches(['b', 'c', 'r', '#']).trim_end_matches('#');
            let body = body.get(1..body.len() - 1).unwrap_or_default();
            let mut lines = body.split("\\\n");
            let first = lines.next().unwrap_or_default().to_owned();
            let joined = lines.fold(first, |joined, line| joined + line.trim_start());
            self.strings.push(joined.replace('\n', "\\n"));
        }
        self.blank(length);
    }

    fn blank(&mut self, length: usize) {
        self.out.extend(self.rest[..length].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        self.rest = &self.rest[length..];
    }
}

fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// Length of the raw string that `text` begins with.
fn raw_string(text: &str) -> Option<usize> {
    let after = ["br", "cr", "r"].iter().find_map(|prefix| text.strip_prefix(prefix))?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let body = after[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let start = text.len() - body.len();
    Some(body.find(&end).map_or(text.len(), |at| start + at + end.len()))
}

fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if !escaped && c == quote {
            return at + 1;
        }
        escaped = !escaped && c == '\\';
    }
    text.len()
}

/// Whether a quote begins a character and not a lifetime or label.
fn is_character(text: &str) -> bool {
    let mut chars = text.chars().skip(1);
    match (chars.next(), chars.next()) {
        (Some('\\'), _) => true,
        (Some(_), second) => second == Some('\''),
        _ => false,
    }
}

/// Words of masked text, each with its line (from 1) and what follows it.
pub(crate) fn words(masked: &str) -> impl Iterator<Item = (usize, &str, &str)> {
    masked.lines().enumerate().flat_map(|(index, line)| {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        line.split(move |c| !is_word(c)).filter(|word| !word.is_empty()).map(move |word| {
            let end = word.as_ptr() as usize - line.as_ptr() as usize + word.len();
            (index + 1, word, &line[end..])
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, masked: &str) {
        assert_eq!(mask(source).split_whitespace().collect::<Vec<_>>().join(" "), masked);
        assert_eq!(mask(source).lines().count(), source.lines().count());
    }

    #[test]
    fn comments_go() {
        check("a // { fn\nb", "a b");
        check("a /* { /* } */ fn\n */ b", "a b");
    }

    #[test]
    fn strings_and_characters_go() {
        check(r#"f("{ \" }", b"}") }"#, "f( , b ) }");
        check("r#\"a \" { \"# r\"{\" br##\"\"#{\"## }", "}");
        check("'{' '\\'' '\\u{7d}' b'}' x", "b x");
        check("\"a\nb {\" c", "c");
    }

    #[test]
    fn strings_are_collected_as_they_are_typed() {
        let source = "a(\"one \\\n    line\", r#\"two\nlines\"#); b.expect(\"never\"); // \"comment\"\nunreachable!(\"nor this\")";
        assert_eq!(strings(source), ["one line", "two\\nlines"]);
    }

    #[test]
    fn lifetimes_and_names_stay() {
        check("fn f<'a>(x: &'a str) -> &'static str", "fn f<'a>(x: &'a str) -> &'static str");
        check("r#fn for_r br", "r#fn for_r br");
    }
}
