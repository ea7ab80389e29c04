//! Lists of hosts as users write them: addresses, ranges, files, and processes on this machine.

use std::collections::HashSet;

use driver::Error;

use crate::address::HostAddress;

/// Most hosts of a list.
const HOSTS_MAX: usize = 100_000;
/// Files that lists in files may name, one in the other.
const NESTED_MAX: usize = 8;

/// A host of a list.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ListedHost {
    /// A process that serves at an address.
    At(HostAddress),
    /// A process of this machine that is yet to be started: its number among those of the list.
    Local(u32),
}

/// Hosts of lists, in their order: `HOST[:PORT]`, ranges `node[01-16,20]`, `local:N`, and `@FILE` with such lists, parted by commas, blanks and line
/// ends; `#` begins a comment. `read` reads a file.
///
/// # Errors
/// Bad usage: what is no host, a host that stands there twice, no host at all, files that cannot be read.
pub fn listed_hosts(
    lists: &[String],
    port_default: u16,
    read: &dyn Fn(&str) -> std::io::Result<String>,
) -> Result<Vec<ListedHost>, Error> {
    let mut list = Listing { hosts: Vec::new(), seen: HashSet::new(), locals: 0, port_default, read };
    lists.iter().try_for_each(|text| list.add(text, 0))?;
    if list.hosts.is_empty() {
        return Err(Error::usage("hosts", "the list of hosts is empty"));
    }
    Ok(list.hosts)
}

struct Listing<'a> {
    hosts: Vec<ListedHost>,
    seen: HashSet<HostAddress>,
    locals: u32,
    port_default: u16,
    read: &'a dyn Fn(&str) -> std::io::Result<String>,
}

impl Listing<'_> {
    fn add(&mut self, text: &str, depth: usize) -> Result<(), Error> {
        for line in text.lines() {
            let line = line.split_once('#').map_or(line, |(before, _)| before);
            for word in words(line) {
                self.word(word, depth)?;
            }
        }
        Ok(())
    }

    fn word(&mut self, word: &str, depth: usize) -> Result<(), Error> {
        if let Some(path) = word.strip_prefix('@') {
            if depth == NESTED_MAX {
                return Err(Error::usage("hosts", "the files with hosts refer to each other endlessly")
                    .with("file", path));
            }
            let text = (self.read)(path).map_err(|error| {
                Error::usage("hosts", format!("cannot read the file with hosts: {error}")).with("file", path)
            })?;
            return self.add(&text, depth + 1);
        }
        if let Some(count) = word.strip_prefix("local:") {
            let count = count.parse().ok().filter(|count| (1..=4096).contains(count));
            let count: u32 = count.ok_or_else(|| {
                Error::usage("hosts", format!("'{}' is not a number of processes", word.escape_debug()))
                    .remedy("accepted: local:N with N from 1 to 4096")
            })?;
            self.hosts.extend((self.locals..self.locals + count).map(ListedHost::Local));
            self.locals += count;
            return self.check_count();
        }
        for name in expanded(word)? {
            let host = HostAddress::parse(&name, self.port_default)?;
            if !self.seen.insert(host.clone()) {
                return Err(Error::usage("hosts", format!("{host} is listed twice"))
                    .remedy("list each host and port once"));
            }
            self.hosts.push(ListedHost::At(host));
            self.check_count()?;
        }
        Ok(())
    }

    fn check_count(&self) -> Result<(), Error> {
        if self.hosts.len() > HOSTS_MAX {
            return Err(Error::usage("hosts", format!("more than {HOSTS_MAX} hosts")));
        }
        Ok(())
    }
}

/// Words of a line, parted by blanks and by commas that stand in no bracket.
fn words(line: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    let is_end = |character: char| {
        match character {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        (character == ',' && depth == 0) || character.is_whitespace()
    };
    line.split(is_end).filter(|word| !word.is_empty()).collect()
}

/// `node[01-03,7]b` as `node01b`, `node02b`, `node03b`, `node7b`; a bracket that begins the word is that of an IPv6 address.
fn expanded(word: &str) -> Result<Vec<String>, Error> {
    let Some((before, rest)) = word.split_once('[').filter(|(before, _)| !before.is_empty()) else {
        return Ok(vec![word.to_owned()]);
    };
    let bad = |why: &str| {
        Error::usage("hosts", format!("'{}' is not a range of hosts: {why}", word.escape_debug()))
            .remedy("accepted: node[01-16], node[1-4,7], rack[1-2]node[1-8]")
    };
    let (inside, after) = rest.split_once(']').ok_or_else(|| bad("the bracket is not closed"))?;
    let mut numbers = Vec::new();
    for part in inside.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| {
            let is_number = (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| text.parse::<u32>().ok()).flatten()
        };
        let (Some(from), Some(to)) = (number(first), number(last)) else {
            return Err(bad("its ends are not numbers"));
        };
        if from > to || (to - from) as usize >= HOSTS_MAX {
            return Err(bad("the first number must be the smaller one, with at most 100000 hosts"));
        }
        // Leading zeros say how wide the numbers are.
        let width = if first.starts_with('0') { first.len() } else { 0 };
        numbers.extend((from..=to).map(|number| format!("{number:0width$}")));
    }
    let tails = if after.contains('[') {
        // Something must stand before the bracket, or it would be that of an address.
        expanded(&format!("x{after}"))?.into_iter().map(|tail| tail[1..].to_owned()).collect()
    } else {
        vec![after.to_owned()]
    };
    if numbers.len().saturating_mul(tails.len()) > HOSTS_MAX {
        return Err(bad("100000 hosts at most"));
    }
    let all =
        numbers.iter().flat_map(|number| tails.iter().map(move |tail| format!("{before}{number}{tail}")));
    Ok(all.collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(path: &str) -> std::io::Result<String> {
        match path {
            "hosts" => Ok("a # the first\nb:7, c\n\n@more".to_owned()),
            "more" => Ok("d".to_owned()),
            "loop" => Ok("@loop".to_owned()),
            _ => Err(std::io::ErrorKind::NotFound.into()),
        }
    }

    fn names(lists: &[&str]) -> Result<Vec<String>, String> {
        let lists: Vec<String> = lists.iter().map(|list| (*list).to_owned()).collect();
        let found = listed_hosts(&lists, 1611, &read).map_err(|error| error.to_string())?;
        Ok(found
            .into_iter()
            .map(|host| match host {
                ListedHost::At(address) => address.to_string().trim_end_matches(":1611").to_owned(),
                ListedHost::Local(number) => format!("local {number}"),
            })
            .collect())
    }

    #[test]
    fn ranges_files_and_local_processes_add_up() {
        assert_eq!(names(&["node[08-10,3]:5"]).unwrap(), ["node08:5", "node09:5", "node10:5", "node3:5"]);
        assert_eq!(names(&["r[1-2]n[1-2]x"]).unwrap(), ["r1n1x", "r1n2x", "r2n1x", "r2n2x"]);
        assert_eq!(names(&["@hosts", "e,[::1]:9"]).unwrap(), ["a", "b:7", "c", "d", "e", "[::1]:9"]);
        assert_eq!(names(&["local:2", "x,local:1"]).unwrap(), ["local 0", "local 1", "x", "local 2"]);
    }

    #[test]
    fn bad_lists_are_refused_in_one_line() {
        for (list, why) in [
            ("", "empty"),
            ("# none", "empty"),
            ("a,b,A", "a:1611 is listed twice"),
            ("node[1-", "not closed"),
            ("node[2-1]", "must be the smaller one"),
            ("node[a-b]", "not numbers"),
            ("node[1-999999999]", "100000"),
            ("n[1-9999]m[1-9999]", "100000"),
            ("local:0", "local:N"),
            ("local:x", "local:N"),
            ("@none", "cannot read"),
            ("@loop", "endlessly"),
            ("a:0", "port"),
            ("a b/c", "not a host"),
        ] {
            let refused = names(&[list]).expect_err(list);
            assert!(refused.contains(why) && !refused.contains('\n'), "{list}: {refused}");
        }
    }

    proptest! {
        #[test]
        fn no_list_panics(text in "[a-c0-9\\[\\],:@# -]{0,24}") {
            let _ = names(&[&text]);
        }

        #[test]
        fn a_range_has_each_host_once(first in 0_u32..500, count in 1_u32..300) {
            let found = names(&[&format!("n[{first}-{}]", first + count - 1)]).unwrap();
            prop_assert_eq!(found.len(), count as usize);
        }
    }
}
