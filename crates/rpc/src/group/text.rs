//! The text of an attach-info file. Pure.

use std::collections::BTreeMap;
use std::fmt::Write;

use driver::Error;

use super::Rank;
use crate::address::Address;

/// Contents of an attach-info file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupFile {
    /// Name of the group; none when the file does not say.
    pub name: Option<String>,
    /// Its ranks.
    pub ranks: BTreeMap<u32, Rank>,
}

const ACCEPTED: &str = "accepted: name GROUP, size N, all, self, and RANK URI [key=value ...] with a URI such as tcp://HOST:PORT";

/// Reads a file, ours or CaRT's. Blank lines and lines that begin with `#` are passed over; keys that are not known are kept.
///
/// # Errors
/// With the number of the first line that is none.
pub fn parse(text: &str) -> Result<GroupFile, Error> {
    let mut file = GroupFile::default();
    let mut places: BTreeMap<u32, usize> = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let malformed = |what: &str| {
            Error::usage("group", format!("line {number} of the attach info: {what}")).remedy(ACCEPTED)
        };
        let mut words = line.split_ascii_whitespace();
        let Some(first) = words.next().filter(|first| !first.starts_with('#')) else { continue };
        match first {
            "all" | "self" => {}
            "name" => {
                let name = words.next().ok_or_else(|| malformed("the name is missing"))?;
                file.name = Some(name.to_owned());
            }
            "size" => {
                let size = words.next().and_then(number_of);
                size.ok_or_else(|| malformed("the size is not a number"))?;
            }
            _ => {
                let rank = number_of(first).filter(|&rank| rank != u32::MAX);
                let rank = rank.ok_or_else(|| malformed(&format!("{:?} is not a rank", short(first))))?;
                let entry = parse_rank(words).map_err(|what| malformed(&what))?;
                if let Some(before) = places.insert(rank, number) {
                    return Err(malformed(&format!("rank {rank} is already in line {before}")));
                }
                file.ranks.insert(rank, entry);
            }
        }
    }
    Ok(file)
}

fn parse_rank<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<Rank, String> {
    let uri = words.next().ok_or("the URI is missing")?;
    if uri.chars().any(char::is_control) || Address::parse(uri).is_err() {
        return Err(format!("{:?} is not a URI of an engine", short(uri)));
    }
    let mut entry = Rank { uri: uri.to_owned(), ..Rank::default() };
    for word in words {
        let (key, value) = word
            .split_once('=')
            .filter(|(key, _)| !key.is_empty() && !word.chars().any(char::is_control))
            .ok_or_else(|| format!("{:?} is not key=value", short(word)))?;
        let number =
            || number_of(value).map(Some).ok_or_else(|| format!("{key} is not a number: {:?}", short(value)));
        match key {
            "control" => entry.control = Some(value.to_owned()),
            "provider" => entry.provider = Some(value.to_owned()),
            "tags" => entry.tags = number()?,
            "targets" => entry.targets = number()?,
            "helpers" => entry.helpers = number()?,
            "pid" => entry.pid = number()?,
            _ => entry.others.push((key.to_owned(), value.to_owned())),
        }
    }
    Ok(entry)
}

/// As much of a word as tells which one it is.
fn short(word: &str) -> &str {
    &word[..word.floor_char_boundary(64)]
}

/// Digits alone: no sign.
fn number_of(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Writes a file.
#[must_use]
pub fn print(file: &GroupFile) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    if let Some(name) = &file.name {
        let _ = writeln!(text, "name {name}");
    }
    let _ = writeln!(text, "size {}\nall", file.ranks.len());
    for (rank, entry) in &file.ranks {
        let _ = write!(text, "{rank} {}", entry.uri);
        let numbers = [
            ("tags", entry.tags),
            ("targets", entry.targets),
            ("helpers", entry.helpers),
            ("pid", entry.pid),
        ];
        if let Some(control) = &entry.control {
            let _ = write!(text, " control={control}");
        }
        for (key, number) in numbers.iter().filter_map(|&(key, number)| Some((key, number?))) {
            let _ = write!(text, " {key}={number}");
        }
        if let Some(provider) = &entry.provider {
            let _ = write!(text, " provider={provider}");
        }
        for (key, value) in &entry.others {
            let _ = write!(text, " {key}={value}");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OURS: &str = "name daos_server\nsize 2\nall\n\
        0 tcp://127.0.0.1:31416 control=127.0.0.1:31417 tags=22 targets=16 helpers=4 pid=4711 provider=tcp\n\
        7 tcp://[::1]:31418 control=[::1]:1 tags=3 targets=1 helpers=0 pid=1 provider=tcp epoch=5\n";

    #[test]
    fn our_file_is_read_and_written_to_the_byte() {
        let file = parse(OURS).expect("a file");
        assert_eq!(file.name.as_deref(), Some("daos_server"));
        assert_eq!(file.ranks.keys().copied().collect::<Vec<_>>(), [0, 7]);
        let zero = &file.ranks[&0];
        assert_eq!(
            (zero.tags, zero.targets, zero.helpers, zero.pid),
            (Some(22), Some(16), Some(4), Some(4711))
        );
        assert_eq!(zero.control.as_deref(), Some("127.0.0.1:31417"));
        assert_eq!(file.ranks[&7].others, [("epoch".to_owned(), "5".to_owned())]);
        assert_eq!(print(&file), OURS);
    }

    #[test]
    fn carts_own_files_are_read() {
        let text = "name daos_server\nsize 2\nall\n0 ofi+tcp;ofi_rxm://10.0.0.1:31416\n1 ofi+verbs://10.0.0.2:31416\n";
        let file = parse(text).expect("a file");
        assert_eq!(file.ranks[&1].uri, "ofi+verbs://10.0.0.2:31416");
        assert_eq!(file.ranks[&1].tags, None);
        assert!(parse("name g\nsize 1\nself\n3 ofi+tcp://10.0.0.1:1\n").is_ok());
        assert!(parse("# a comment\n\n").expect("nothing").ranks.is_empty());
    }

    #[test]
    fn a_malformed_line_is_named() {
        let cases = [
            ("name", "line 1 of the attach info: the name is missing"),
            ("name g\nsize x", "line 2 of the attach info: the size is not a number"),
            ("0", "the URI is missing"),
            ("name g\n\n-1 tcp://a:1", "line 3 of the attach info: \"-1\" is not a rank"),
            ("4294967295 tcp://a:1", "is not a rank"),
            ("0 udp://a:1", "\"udp://a:1\" is not a URI of an engine"),
            ("0 tcp://a:1 tags=many", "tags is not a number: \"many\""),
            ("0 tcp://a:1 tags", "\"tags\" is not key=value"),
            (
                "0 tcp://a:1\n1 tcp://a:2\n0 tcp://a:3",
                "line 3 of the attach info: rank 0 is already in line 1",
            ),
        ];
        for (text, expected) in cases {
            let error = parse(text).expect_err(text).to_string();
            assert!(error.contains(expected) && error.contains("accepted: "), "{error}");
            assert_eq!(error.lines().count(), 1);
        }
    }

    prop_compose! {
        fn rank()(
            host in "[a-z][a-z0-9-]{0,8}", port in 1u16.., control in prop::option::of("[a-z0-9.:]{1,12}"),
            numbers: [Option<u32>; 4], provider in prop::option::of("[a-z+]{1,8}"),
            others in prop::collection::vec(("x[a-z]{0,4}", "[a-z0-9=]{0,4}"), 0..3),
        ) -> Rank {
            let [tags, targets, helpers, pid] = numbers;
            Rank { uri: format!("tcp://{host}:{port}"), control, tags, targets, helpers, pid, provider, others }
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            name in prop::option::of("[a-z]{1,8}"), ranks in prop::collection::btree_map(0..u32::MAX, rank(), 0..8),
        ) {
            let file = GroupFile { name, ranks };
            prop_assert_eq!(parse(&print(&file)).expect("it was written"), file);
        }

        #[test]
        fn any_text_is_read_or_refused_in_one_line(text in "([0-9]{1,3}|name|size|all|#|)( [a-z0-9:/=.+]{0,12}){0,4}(\n[ -~]{0,30}){0,3}") {
            match parse(&text) {
                Ok(file) => prop_assert_eq!(parse(&print(&file)).expect("it was written").ranks, file.ranks),
                Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1),
            }
        }
    }
}
