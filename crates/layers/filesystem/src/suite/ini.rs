//! The configuration of IO500 as text: one key a line, in sections, with the comments and the hash that IO500 has.

use driver::Error;
use units::nearest;

use super::keys::{Key, Kind, SECTIONS, Section};

/// Values of a configuration, by the places of their sections and keys in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    values: Vec<Vec<Option<String>>>,
}

impl Default for Config {
    fn default() -> Self {
        let defaults =
            |section: &Section| section.keys.iter().map(|key| key.default.map(str::to_owned)).collect();
        Self { values: SECTIONS.iter().map(defaults).collect() }
    }
}

/// A line of a configuration.
#[derive(Debug, PartialEq, Eq)]
enum Line<'a> {
    Nothing,
    Section(&'a str),
    Pair(&'a str, &'a str),
}

/// Text before a comment, which begins a line or stands behind a blank; none where `#` or `;` stands in the text itself.
fn without_comment(text: &str) -> Option<&str> {
    match text.find(['#', ';']) {
        None => Some(text.trim()),
        Some(at) if text[..at].is_empty() || text[..at].ends_with(char::is_whitespace) => {
            Some(text[..at].trim())
        }
        Some(_) => None,
    }
}

fn is_name(text: &str, others: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c))
}

fn line(text: &str) -> Option<Line<'_>> {
    let text = without_comment(text)?;
    if text.is_empty() {
        return Some(Line::Nothing);
    }
    if let Some(inner) = text.strip_prefix('[') {
        let name = inner.strip_suffix(']')?.trim();
        return is_name(name, "_-").then_some(Line::Section(name));
    }
    let (key, value) = text.split_once('=')?;
    let key = key.trim();
    is_name(key, "_.-").then_some(Line::Pair(key, value.trim()))
}

fn refused(number: usize, message: String) -> Error {
    Error::usage("ini", message).with("line", number)
}

/// `one of a, b`, or the nearest of the names.
fn remedy<'a>(given: &str, names: impl Iterator<Item = &'a str> + Clone) -> String {
    match nearest(&given.to_ascii_lowercase(), names.clone()) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("use one of {}", names.collect::<Vec<_>>().join(", ")),
    }
}

impl Config {
    /// Reads a configuration; what it does not say has its default.
    ///
    /// # Errors
    /// Bad usage with the line: what is no line of a configuration, sections and keys that IO500 does not have, and values that are not of
    /// the kind of their key.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let mut config = Self::default();
        let mut section: Option<usize> = None;
        for (number, text) in (1..).zip(text.lines()) {
            match line(text) {
                None => {
                    return Err(refused(number, format!("{:?} is neither a section nor a key", text.trim()))
                        .remedy("write [section] or key = value; comments start with a blank and # or ;"));
                }
                Some(Line::Nothing) => {}
                Some(Line::Section(name)) => section = Some(section_at(number, name)?),
                Some(Line::Pair(key, value)) => {
                    let Some(at) = section else {
                        return Err(refused(number, format!("the key {key} is outside of a section"))
                            .remedy("write [global], or another section, before it"));
                    };
                    config.set(number, at, key, value)?;
                }
            }
        }
        Ok(config)
    }

    fn set(&mut self, number: usize, section: usize, key: &str, value: &str) -> Result<(), Error> {
        let Section { name, keys, .. } = &SECTIONS[section];
        let Some(at) = keys.iter().position(|known| known.name.eq_ignore_ascii_case(key)) else {
            return Err(refused(number, format!("[{name}] has no key {key:?}"))
                .remedy(remedy(key, keys.iter().map(|key| key.name))));
        };
        // A key without a value is as one that is not there.
        if value.is_empty() {
            return Ok(());
        }
        let value = keys[at].kind.normal(value).ok_or_else(|| {
            refused(number, format!("[{name}] {} = {value:?}", keys[at].name))
                .remedy(keys[at].kind.accepted())
        })?;
        self.values[section][at] = Some(value);
        Ok(())
    }

    /// Value of a key; none where it has none.
    ///
    /// # Panics
    /// For a section or a key that the table does not have.
    pub(crate) fn get(&self, section: &str, key: &str) -> Option<&str> {
        let (section, key) = place(section, key);
        self.values[section][key].as_deref()
    }

    /// Sets the value of a key.
    pub(crate) fn put(&mut self, section: &str, key: &str, value: impl Into<String>) {
        let (section, key) = place(section, key);
        self.values[section][key] = Some(value.into());
    }

    /// Whether a key that is TRUE or FALSE is TRUE.
    pub(crate) fn is_on(&self, section: &str, key: &str) -> bool {
        self.get(section, key) == Some("TRUE")
    }

    /// Number of a key; `None` where it has none.
    pub(crate) fn number(&self, section: &str, key: &str) -> Option<u64> {
        self.get(section, key)?.parse().ok()
    }

    /// The configuration as text, as IO500 writes it: all sections and keys, with what each means where that is asked for.
    pub(crate) fn text(&self, with_help: bool, is_wanted: impl Fn(&Section) -> bool) -> String {
        let mut text = String::new();
        for (section, values) in SECTIONS.iter().zip(&self.values).filter(|(section, _)| is_wanted(section)) {
            text += &format!("[{}]\n", section.name);
            for (Key { name, help, .. }, value) in section.keys.iter().zip(values) {
                if with_help {
                    text += &format!("# {help}\n");
                }
                text += format!("{name} = {}", value.as_deref().unwrap_or_default()).trim_end();
                text.push('\n');
            }
            text.push('\n');
        }
        text
    }

    /// IO500's hash of a configuration: of all keys that have a value, in any order.
    pub(crate) fn hash(&self) -> u32 {
        let keys =
            SECTIONS.iter().zip(&self.values).flat_map(|(section, values)| section.keys.iter().zip(values));
        keys.filter_map(|(key, value)| Some((key.name, value.as_deref()?)))
            .fold(0, |hash, (key, value)| hash ^ hash_of(key, value))
    }
}

/// IO500's hash of a key and its value.
pub(crate) fn hash_of(key: &str, value: &str) -> u32 {
    key.bytes()
        .chain(value.bytes())
        .fold(0u32, |hash, byte| hash.rotate_left(2).wrapping_add(u32::from(byte)))
}

fn section_at(number: usize, name: &str) -> Result<usize, Error> {
    SECTIONS.iter().position(|section| section.name.eq_ignore_ascii_case(name)).ok_or_else(|| {
        refused(number, format!("IO500 has no section [{name}]"))
            .remedy(remedy(name, SECTIONS.iter().map(|section| section.name)))
    })
}

fn place(section: &str, key: &str) -> (usize, usize) {
    let at = SECTIONS.iter().position(|known| known.name == section);
    let at = at.unwrap_or_else(|| unreachable!("the table has the section {section}"));
    let key_at = SECTIONS[at].keys.iter().position(|known| known.name == key);
    (at, key_at.unwrap_or_else(|| unreachable!("the table has the key {key} in {section}")))
}

impl Kind {
    /// A value as it is kept; none where it is not of this kind.
    fn normal(self, value: &str) -> Option<String> {
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match self {
            Self::Text => Some(value.to_owned()),
            Self::Number => (is_digits(value) && value.parse::<u64>().is_ok()).then(|| value.to_owned()),
            Self::Fraction => value
                .parse::<f64>()
                .is_ok_and(|value| value.is_finite() && value >= 0.0)
                .then(|| value.to_owned()),
            Self::Switch => match value.to_ascii_lowercase().as_str() {
                "true" | "1" => Some("TRUE".to_owned()),
                "false" | "0" => Some("FALSE".to_owned()),
                _ => None,
            },
        }
    }

    fn accepted(self) -> &'static str {
        match self {
            Self::Text => "use a non-empty text",
            Self::Number => "use a whole number, 0 or more",
            Self::Fraction => "use a number, 0 or more, such as 0.5",
            Self::Switch => "use TRUE or FALSE",
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refusal(text: &str) -> String {
        Config::parse(text).expect_err("it is refused").to_string()
    }

    #[test]
    fn lines_are_as_io500_reads_them() {
        let text = "; all of it\n[GLOBAL]\r\n  datadir=/mnt/a b  # there\n\nVERBOSITY = 2 ; more\napi =\n[ ior-easy ]\nfilePerProc = false\n";
        let config = Config::parse(text).expect("it is one");
        assert_eq!(config.get("global", "datadir"), Some("/mnt/a b"));
        assert_eq!(config.number("global", "verbosity"), Some(2));
        assert_eq!(config.get("global", "api"), Some("POSIX"), "a key without a value keeps its default");
        assert!(!config.is_on("ior-easy", "filePerProc") && config.is_on("ior-easy", "run"));
        assert_eq!(Config::parse("").ok(), Some(Config::default()));
    }

    #[test]
    fn what_io500_does_not_have_is_refused_with_the_nearest() {
        for (text, parts) in [
            ("[globl]\n", &["[globl]", "line=1", "global"][..]),
            ("[global]\n\ndata-dir = x\n", &["\"data-dir\"", "line=3", "datadir"]),
            ("[global]\nzzzzzzzz = x\n", &["use one of datadir"]),
            ("datadir = x\n", &["outside of a section"]),
            ("[global]\ndatadir = a#b\n", &["neither a section nor a key"]),
            ("[global]\nno equals sign\n", &["neither a section nor a key"]),
            ("[mdtest-easy]\nn = -1\n", &["whole number"]),
            ("[mdtest-easy]\nn = 99999999999999999999\n", &["whole number"]),
            ("[ior-easy]\nrun = maybe\n", &["TRUE or FALSE"]),
        ] {
            let refusal = refusal(text);
            parts.iter().for_each(|part| assert!(refusal.contains(part), "{text:?}: {refusal}"));
        }
    }

    #[test]
    fn hashes_are_those_of_io500() {
        // By hand: ((('a' * 4) + 'b') * 4) + '1', as u_hash_update() of io500 adds the bytes up.
        assert_eq!(hash_of("ab", "1"), (97 * 4 + 98) * 4 + 49);
        assert_eq!(hash_of("", ""), 0);
        let hash = Config::default().hash();
        let other = Config::parse("[debug]\nstonewall-time = 1\n").expect("it is one").hash();
        assert_ne!(hash, other);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_and_what_is_written_reads_the_same(text in "(?s).{0,200}") {
            if let Ok(config) = Config::parse(&text) {
                for with_help in [true, false] {
                    let again = Config::parse(&config.text(with_help, |_| true));
                    prop_assert_eq!(again.ok(), Some(config.clone()));
                }
            }
        }

        #[test]
        fn values_come_back_whatever_stands_around_them(
            value in "[ -\"$-:<-~]{0,30}", before in "[ \t]{0,3}", comment in "( [#;].{0,10})?", number in 0u64..,
        ) {
            let text = format!("[global]\n{before}datadir{before}={before}{value}{comment}\n[mdtest-hard]\nn={number}{comment}\n");
            let config = Config::parse(&text).map_err(|error| TestCaseError::fail(error.to_string()))?;
            let wanted = if value.trim().is_empty() { "./datafiles" } else { value.trim() };
            prop_assert_eq!(config.get("global", "datadir"), Some(wanted));
            prop_assert_eq!(config.number("mdtest-hard", "n"), Some(number));
        }
    }
}
