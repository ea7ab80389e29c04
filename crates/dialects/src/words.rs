//! Command lines in the manner of getopt_long(3), by one table a tool: the table splits the words, refuses what is not taken,
//! and makes the page of the docs.

#[cfg(test)]
pub(crate) mod machine;
#[cfg(test)]
pub(crate) mod tests;

use driver::Error;

/// Treatment of an option.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate {
    /// It does what it does in the tool; the text says how.
    Honoured(&'static str),
    /// It is taken and changes nothing; the text says why.
    Accepted(&'static str),
    /// It is refused: why, and the nearest thing that there is.
    Refused(&'static str, &'static str),
}

/// One option of a tool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flag {
    /// Long name without dashes.
    pub(crate) long: &'static str,
    /// Short letter.
    pub(crate) short: Option<char>,
    /// Placeholder of its value in the docs; empty for a switch.
    pub(crate) value: &'static str,
    /// Its treatment.
    pub(crate) fate: Fate,
    /// Its value may be left out; where it is given, it is attached (`-AR`, `--array=R`).
    pub(crate) is_optional: bool,
    /// The switch that its letter is where no value follows.
    pub(crate) bare: Option<&'static str>,
}

impl Flag {
    const fn new(long: &'static str, value: &'static str, fate: Fate) -> Self {
        Self { long, short: None, value, fate, is_optional: false, bare: None }
    }

    /// An option that is honoured.
    pub(crate) const fn honoured(long: &'static str, value: &'static str, how: &'static str) -> Self {
        Self::new(long, value, Fate::Honoured(how))
    }

    /// An option that is taken and changes nothing.
    pub(crate) const fn accepted(long: &'static str, value: &'static str, why: &'static str) -> Self {
        Self::new(long, value, Fate::Accepted(why))
    }

    /// An option that is refused.
    pub(crate) const fn refused(
        long: &'static str,
        value: &'static str,
        why: &'static str,
        nearest: &'static str,
    ) -> Self {
        Self::new(long, value, Fate::Refused(why, nearest))
    }

    /// The same with a short letter.
    pub(crate) const fn short(self, letter: char) -> Self {
        Self { short: Some(letter), ..self }
    }

    /// The same with a value that may be left out.
    pub(crate) const fn optional(self) -> Self {
        Self { is_optional: true, ..self }
    }

    /// The same, its letter being the switch `long` where no value follows.
    pub(crate) const fn or_bare(self, long: &'static str) -> Self {
        Self { bare: Some(long), ..self }
    }

    /// Text after its name in help and docs.
    fn value_text(&self) -> String {
        match (self.value, self.is_optional) {
            ("", _) => String::new(),
            (value, true) => format!("[={value}]"),
            (value, false) => format!(" {value}"),
        }
    }

    /// As users type it.
    pub(crate) fn typed(&self) -> String {
        match self.short {
            Some(letter) => format!("-{letter}/--{}", self.long),
            None => format!("--{}", self.long),
        }
    }
}

/// A tool's options, and how it reads words.
pub(crate) struct Table {
    /// The tool.
    pub(crate) tool: &'static str,
    /// Its options, in the order of the docs.
    pub(crate) flags: &'static [Flag],
    /// Whether `--switch=false` and its like turn a switch off.
    pub(crate) switch_values: bool,
    /// Whether a long name behind a single dash is read as meant, with a warning.
    pub(crate) single_dash: bool,
}

/// An option as it was given.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    /// Which.
    pub(crate) flag: &'static Flag,
    /// Its value; none for a switch.
    pub(crate) value: Option<String>,
}

/// A command line, split.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    /// Options in the order given.
    pub(crate) given: Vec<Given>,
    /// Names of switches that were turned off.
    pub(crate) turned_off: Vec<&'static str>,
    /// Words that are no options.
    pub(crate) paths: Vec<String>,
    /// Words that were read otherwise than written.
    pub(crate) warnings: Vec<String>,
}

impl Words {
    /// Whether a switch was given.
    pub(crate) fn has(&self, long: &str) -> bool {
        self.given.iter().any(|given| given.flag.long == long)
    }

    /// How often a switch was given.
    pub(crate) fn count(&self, long: &str) -> usize {
        self.given.iter().filter(|given| given.flag.long == long).count()
    }

    /// The value of an option; the last where it was given more than once.
    pub(crate) fn value(&self, long: &str) -> Option<&str> {
        self.given.iter().rev().find(|given| given.flag.long == long).and_then(|given| given.value.as_deref())
    }

    /// All values of an option.
    pub(crate) fn values<'a>(&'a self, long: &'a str) -> impl Iterator<Item = &'a str> {
        let of_flag = self.given.iter().filter(move |given| given.flag.long == long);
        of_flag.filter_map(|given| given.value.as_deref())
    }
}

/// A word as an error repeats it: on one line, cut where it is long.
pub(crate) fn quoted(text: &str) -> String {
    let head: String = text.chars().take(60).flat_map(char::escape_debug).collect();
    format!("\"{head}{}\"", if text.chars().count() > 60 { "..." } else { "" })
}

/// Words with `***` in place of those that are secrets, alone or behind their option.
pub(crate) fn without(words: &[String], secrets: &[String]) -> Vec<String> {
    let hide = |word: &String| {
        let head = secrets.iter().filter(|secret| !secret.is_empty()).find_map(|secret| {
            let head = word.strip_suffix(secret.as_str())?;
            (head.is_empty() || head.ends_with('=')).then_some(head)
        });
        head.map_or_else(|| word.clone(), |head| format!("{head}***"))
    };
    words.iter().map(hide).collect()
}

/// The words that follow the one being read.
struct Rest<'a> {
    words: std::slice::Iter<'a, String>,
}

/// Whether what follows an option's letter is no value of it: other letters, no word, or a word that begins with a dash.
fn has_no_value(tail: &str, rest: &Rest<'_>) -> bool {
    match tail {
        "" => rest.words.as_slice().first().is_none_or(|next| next.starts_with('-')),
        tail => !tail.contains(['/', '.']),
    }
}

impl Table {
    /// Splits a command line: `-t 4`, `-t4`, `-wr`, `--name value`, `--name=value`, unambiguous beginnings of long names, and
    /// `--` before words that begin with a dash.
    ///
    /// # Errors
    /// An option that is not there or is refused, a value that is missing or not wanted.
    pub(crate) fn split(&self, words: &[String]) -> Result<Words, Error> {
        let mut split = Words::default();
        let mut rest = Rest { words: words.iter() };
        while let Some(word) = rest.words.next() {
            if word == "--" {
                split.paths.extend(rest.words.as_slice().iter().cloned());
                break;
            }
            if let Some(body) = word.strip_prefix("--") {
                self.long(body, &mut rest, &mut split)?;
            } else if word.len() > 1 && word.starts_with('-') {
                self.shorts(&word[1..], &mut rest, &mut split)?;
            } else {
                split.paths.push(word.clone());
            }
        }
        Ok(split)
    }

    /// Refuses in one line.
    pub(crate) fn refuse<T>(
        &self,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Result<T, Error> {
        Err(self.error(message, remedy))
    }

    /// A refusal in one line.
    pub(crate) fn error(&self, message: impl Into<String>, remedy: impl Into<String>) -> Error {
        Error::usage(self.tool, message).remedy(remedy)
    }

    /// The option of a long name, or of its unambiguous beginning.
    pub(crate) fn find_long(&self, name: &str) -> Result<&'static Flag, Error> {
        if let Some(flag) = self.flags.iter().find(|flag| flag.long == name) {
            return Ok(flag);
        }
        let begun: Vec<&Flag> = self.flags.iter().filter(|flag| flag.long.starts_with(name)).collect();
        match begun[..] {
            [] => Err(self.unknown(&format!("--{name}"))),
            _ if name.is_empty() => Err(self.unknown("--")),
            [one] => Ok(self.flags.iter().find(|flag| flag.long == one.long).unwrap_or(&self.flags[0])),
            [..] => {
                let names: Vec<String> =
                    begun.iter().take(4).map(|flag| format!("--{}", flag.long)).collect();
                self.refuse(
                    format!("{} is ambiguous", quoted(&format!("--{name}"))),
                    format!("use one of {}", names.join(", ")),
                )
            }
        }
    }

    fn unknown(&self, word: &str) -> Error {
        let name = word.trim_start_matches('-');
        let remedy = match units::nearest(name, self.flags.iter().map(|flag| flag.long)) {
            Some(long) => format!("the closest match is --{long}"),
            None => format!("see `strata as {} --help` for the list of options", self.tool),
        };
        self.error(format!("{} is not an option", quoted(word)), remedy)
    }

    fn long(&self, body: &str, rest: &mut Rest<'_>, split: &mut Words) -> Result<(), Error> {
        let (name, value) = match body.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (body, None),
        };
        let flag = self.find_long(name)?;
        match (flag.value.is_empty(), value) {
            (true, None) => self.give(flag, None, split),
            (true, Some(value)) => self.give_switch(flag, value, split),
            (false, Some(value)) => self.give(flag, Some(value.to_owned()), split),
            (false, None) if flag.is_optional => self.give(flag, None, split),
            (false, None) => self.give_next(flag, rest, split),
        }
    }

    fn shorts(&self, body: &str, rest: &mut Rest<'_>, split: &mut Words) -> Result<(), Error> {
        let name = body.split_once('=').map_or(body, |(name, _)| name);
        if self.single_dash && name.len() > 1 && self.flags.iter().any(|flag| flag.long == name) {
            split.warnings.push(format!("-{name} is taken as --{name}"));
            return self.long(body, rest, split);
        }
        for (at, letter) in body.char_indices() {
            let Some(flag) = self.flags.iter().find(|flag| flag.short == Some(letter)) else {
                return Err(self.unknown(&format!("-{}", if at == 0 { body } else { &body[at..] })));
            };
            let tail = &body[at + letter.len_utf8()..];
            if let Some(switch) = flag.bare.filter(|_| has_no_value(tail, rest)) {
                self.give(self.find_long(switch)?, None, split)?;
                continue;
            }
            if !flag.value.is_empty() {
                return match tail {
                    "" if flag.is_optional => self.give(flag, None, split),
                    "" => self.give_next(flag, rest, split),
                    value => self.give(flag, Some(value.to_owned()), split),
                };
            }
            if let Some(value) = tail.strip_prefix('=') {
                return self.give_switch(flag, value, split);
            }
            self.give(flag, None, split)?;
        }
        Ok(())
    }

    fn give_next(&self, flag: &'static Flag, rest: &mut Rest<'_>, split: &mut Words) -> Result<(), Error> {
        self.check(flag)?;
        match rest.words.next() {
            Some(value) => self.give(flag, Some(value.clone()), split),
            None => self.refuse(format!("{} requires a value", flag.typed()), format!("give {}", flag.value)),
        }
    }

    fn give_switch(&self, flag: &'static Flag, value: &str, split: &mut Words) -> Result<(), Error> {
        self.check(flag)?;
        let is_on = match value {
            "1" | "true" | "yes" | "on" if self.switch_values => true,
            "0" | "false" | "no" | "off" if self.switch_values => false,
            _ => {
                return self.refuse(
                    format!("{} is a switch and does not take the value {}", flag.typed(), quoted(value)),
                    format!("give --{} without a value", flag.long),
                );
            }
        };
        if is_on {
            return self.give(flag, None, split);
        }
        split.turned_off.push(flag.long);
        Ok(())
    }

    /// Refuses an option that is not taken.
    pub(crate) fn check(&self, flag: &'static Flag) -> Result<(), Error> {
        match flag.fate {
            Fate::Refused(why, nearest) => self.refuse(format!("{}: {why}", flag.typed()), nearest),
            Fate::Honoured(_) | Fate::Accepted(_) => Ok(()),
        }
    }

    fn give(&self, flag: &'static Flag, value: Option<String>, split: &mut Words) -> Result<(), Error> {
        self.check(flag)?;
        split.given.push(Given { flag, value });
        Ok(())
    }

    /// The options as a table of the docs.
    #[cfg(test)]
    pub(crate) fn markdown(&self) -> String {
        let mut page = String::from("| option | | behaviour |\n|---|---|---|\n");
        for flag in self.flags {
            let short = flag.short.map(|letter| format!("`-{letter}`, ")).unwrap_or_default();
            let value = flag.value_text();
            let (word, text) = match flag.fate {
                Fate::Honoured(how) => ("supported", how.to_owned()),
                Fate::Accepted(why) => ("ignored", why.to_owned()),
                Fate::Refused(why, nearest) => ("rejected", format!("{why}; {nearest}")),
            };
            let text = text.replace('|', "\\|");
            let value = value.replace('|', "\\|");
            page.push_str(&format!("| {short}`--{}{value}` | {word} | {text} |\n", flag.long));
        }
        page
    }

    /// The options that are taken, as help shows them.
    pub(crate) fn help(&self) -> String {
        let mut text = String::new();
        for flag in self.flags {
            let how = match flag.fate {
                Fate::Honoured(how) => how.to_owned(),
                Fate::Accepted(why) => format!("ignored: {why}"),
                Fate::Refused(..) => continue,
            };
            let value = flag.value_text();
            let name = match flag.short {
                Some(letter) => format!("-{letter}, --{}{value}", flag.long),
                None => format!("    --{}{value}", flag.long),
            };
            text.push_str(&format!("  {:<32} {how}\n", name.trim_end()));
        }
        text
    }
}
