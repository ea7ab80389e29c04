//! The grammar of `-R`: commands separated by white space, each with parameters behind `;`, such as `U;p F;p;i=3`.

use units::ParseError;

use super::numbers;

/// Most commands of one run: each is a phase.
const COMMANDS_MAX: usize = 1000;
/// Most times that a test is done.
const ITERATIONS_MAX: u64 = 1_000_000;

/// Test of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    /// `U`
    Update,
    /// `F`
    Fetch,
    /// `V`
    Verify,
    /// `O`
    Objects,
    /// `I`
    Iterate,
    /// `Q`
    Query,
    /// `P`
    Punch,
    /// `A`
    Aggregate,
    /// `D`
    Discard,
    /// `G`
    Collect,
}

/// Which tool has a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Has {
    Both,
    Vos,
    Daos,
}

/// A test: its code, its name in the output, the tool that has it, and its parameters beside those of all.
struct Entry {
    test: Test,
    code: char,
    name: &'static str,
    has: Has,
    parameters: &'static str,
}

/// Parameters of every test.
const OF_ALL: &str = "pikv";
/// Parameters of those that move values. `D` is how the tool itself spells `d=`.
const OF_VALUES: &str = "OdDanos";

const fn entry(test: Test, code: char, name: &'static str, has: Has, parameters: &'static str) -> Entry {
    Entry { test, code, name, has, parameters }
}

static TESTS: &[Entry] = &[
    entry(Test::Update, 'U', "UPDATE", Has::Both, OF_VALUES),
    entry(Test::Fetch, 'F', "FETCH", Has::Both, OF_VALUES),
    entry(Test::Verify, 'V', "VERIFY", Has::Both, OF_VALUES),
    entry(Test::Objects, 'O', "OIT", Has::Daos, ""),
    entry(Test::Iterate, 'I', "ITERATE", Has::Vos, "Vs"),
    entry(Test::Query, 'Q', "QUERY", Has::Vos, "O"),
    entry(Test::Punch, 'P', "PUNCH", Has::Both, "OdD"),
    entry(Test::Aggregate, 'A', "AGGREGATE", Has::Vos, "fm"),
    entry(Test::Discard, 'D', "DISCARD", Has::Vos, "fm"),
    entry(Test::Collect, 'G', "GARBAGE COLLECTION", Has::Vos, "fm"),
];

impl Test {
    fn entry(self) -> &'static Entry {
        TESTS.iter().find(|entry| entry.test == self).unwrap_or(&TESTS[0])
    }

    /// Its name in the output.
    pub(crate) fn name(self) -> &'static str {
        self.entry().name
    }

    /// Its letter.
    pub(crate) fn code(self) -> char {
        self.entry().code
    }

    /// Whether it moves values.
    pub(crate) fn moves_values(self) -> bool {
        matches!(self, Self::Update | Self::Fetch | Self::Verify)
    }
}

/// One command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Command {
    /// Its test.
    pub(crate) test: Test,
    /// `p`: its result is printed.
    pub(crate) prints: bool,
    /// `i=N`
    pub(crate) iterations: u64,
    /// `k`: numbers of dkeys go on from the last ones.
    pub(crate) keeps_keys: bool,
    /// `v`
    pub(crate) is_verbose: bool,
    /// `O=`: so many of the objects; `d=`, `a=` and `n=` likewise of dkeys, akeys and records.
    pub(crate) subset: [Option<u64>; 4],
    /// `o=`: where in its stride a record begins, in bytes.
    pub(crate) offset_bytes: Option<u64>,
    /// `s=`: bytes of a value.
    pub(crate) size_bytes: Option<u64>,
    /// `d`: dkeys are punched, not objects.
    pub(crate) by_dkey: bool,
}

impl Command {
    fn new(test: Test) -> Self {
        Self {
            test,
            prints: false,
            iterations: 1,
            keeps_keys: false,
            is_verbose: false,
            subset: [None; 4],
            offset_bytes: None,
            size_bytes: None,
            by_dkey: false,
        }
    }
}

fn refuse<T>(word: &str, accepted: impl Into<String>) -> Result<T, ParseError> {
    Err(ParseError::new("a command of -R", word, accepted))
}

/// Reads the value of `-R`; `is_daos` for daos_perf, else vos_perf.
///
/// # Errors
/// No command, tests and parameters that the tool does not have, values that cannot be.
pub(crate) fn parse(text: &str, is_daos: bool) -> Result<Vec<Command>, ParseError> {
    let commands: Result<Vec<Command>, ParseError> =
        text.split_whitespace().take(COMMANDS_MAX + 1).map(|word| command(word, is_daos)).collect();
    let commands = commands?;
    match commands.len() {
        0 => refuse(text, "tests such as \"U;p F;p\""),
        1..=COMMANDS_MAX => Ok(commands),
        _ => refuse("a list of more than 1000 tests", "at most 1000 of them; repeat a test with i=N"),
    }
}

fn command(word: &str, is_daos: bool) -> Result<Command, ParseError> {
    let own = if is_daos { Has::Daos } else { Has::Vos };
    let has = |entry: &&Entry| entry.has == Has::Both || entry.has == own;
    let code = word.chars().next().unwrap_or_default();
    let Some(entry) = TESTS.iter().filter(has).find(|entry| entry.code == code) else {
        let codes: Vec<String> =
            TESTS.iter().filter(has).map(|entry| format!("{} ({})", entry.code, entry.name)).collect();
        return refuse(word, format!("one of {}", codes.join(", ")));
    };
    let mut command = Command::new(entry.test);
    for parameter in word[code.len_utf8()..].split(';').filter(|part| !part.is_empty()) {
        take(&mut command, parameter, entry, word)?;
    }
    Ok(command)
}

fn take(command: &mut Command, parameter: &str, entry: &Entry, word: &str) -> Result<(), ParseError> {
    let letter = parameter.chars().next().unwrap_or_default();
    let known = |letter: char| OF_ALL.contains(letter) || entry.parameters.contains(letter);
    let value = match &parameter[letter.len_utf8()..] {
        "" => None,
        rest => match rest.strip_prefix('=') {
            Some(value) => Some(value),
            None => return refuse(word, format!("parameters separated by semicolons: \"{letter};{rest}\"")),
        },
    };
    if !known(letter) {
        return refuse(word, format!("the parameters of {}: {}", entry.name, listed(entry)));
    }
    let whole = |max: u64| match value {
        None => refuse(word, format!("{letter}=NUMBER")),
        Some(text) => numbers::parse(&format!("{letter} of -R"), text, 1, max),
    };
    match (letter, value) {
        ('p', None) => command.prints = true,
        ('k', None) => command.keeps_keys = true,
        ('v', None) => command.is_verbose = true,
        ('i', _) => command.iterations = whole(ITERATIONS_MAX)?,
        ('d', None) if entry.test == Test::Punch => command.by_dkey = true,
        ('O', _) => command.subset[0] = Some(whole(u64::MAX)?),
        ('d' | 'D', _) => command.subset[1] = Some(whole(u64::MAX)?),
        ('a', _) => command.subset[2] = Some(whole(u64::MAX)?),
        ('n', _) => command.subset[3] = Some(whole(u64::MAX)?),
        ('s', None) if entry.test == Test::Iterate => {
            return refuse(word, "I without s: it always iterates over the contents of each dkey");
        }
        ('o', Some(text)) => {
            command.offset_bytes = Some(numbers::parse("o of -R", text, 0, u64::from(u32::MAX))?);
        }
        ('s', Some(_)) if entry.test.moves_values() => command.size_bytes = Some(whole(u64::from(u32::MAX))?),
        // An engine's store has no records that cannot be seen, scans all and merges what lies side by side.
        ('V' | 'f' | 'm', None) => {}
        ('o', None) | ('s', None) => return refuse(word, format!("{letter}=BYTES")),
        _ => return refuse(word, format!("{letter} without a value")),
    }
    Ok(())
}

/// The parameters of a test, as users type them.
fn listed(entry: &Entry) -> String {
    let shown = |letter: char| match (letter, entry.test) {
        ('i', _) => "i=N".to_owned(),
        ('D', _) => "D=N".to_owned(),
        ('d', Test::Punch) => "d, d=N".to_owned(),
        ('O' | 'd' | 'a' | 'n', _) => format!("{letter}=N"),
        ('o', _) => "o=BYTES".to_owned(),
        ('s', test) if test.moves_values() => "s=BYTES".to_owned(),
        (letter, _) => letter.to_string(),
    };
    OF_ALL.chars().chain(entry.parameters.chars()).map(shown).collect::<Vec<_>>().join(", ")
}
