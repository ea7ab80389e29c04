//! Keys of a user of S3.

use driver::Error;

use super::super::table::{TABLE, TOOL};
use crate::World;
use crate::words::{Words, quoted};

/// Access key and secret key.
type Key = (String, String);

/// The keys of the command line, or of its files; none leaves them to the environment.
pub(super) fn key(words: &Words, world: &dyn World) -> Result<Option<Key>, Error> {
    let list = match (words.value("s3credfile"), words.value("s3credlist")) {
        (Some(_), Some(_)) => {
            return TABLE.refuse("--s3credfile and --s3credlist both contain keys", "give one of them");
        }
        (Some(path), None) => Some(world.read(path).map_err(|error| {
            Error::system(TOOL, "cannot read the file with keys", error).with("path", quoted(path))
        })?),
        (None, list) => list.map(|list| list.replace(',', "\n")),
    };
    let pair = (words.value("s3key"), words.value("s3secret"));
    match (list, pair) {
        (None, (None, None)) => Ok(None),
        (None, (Some(access), Some(secret))) => Ok(Some((access.to_owned(), secret.to_owned()))),
        (None, _) => {
            let of_world = |given: Option<&str>, name: &str| {
                given.map(str::to_owned).or_else(|| world.variable(name)).filter(|key| !key.is_empty())
            };
            let (access, secret) =
                (of_world(pair.0, "AWS_ACCESS_KEY_ID"), of_world(pair.1, "AWS_SECRET_ACCESS_KEY"));
            match access.zip(secret) {
                Some(key) => Ok(Some(key)),
                None => TABLE.refuse("one of --s3key and --s3secret is missing", "give both"),
            }
        }
        (Some(_), (Some(_), _) | (_, Some(_))) => {
            TABLE.refuse("keys are given twice", "give --s3key and --s3secret, or one list of keys")
        }
        (Some(list), (None, None)) => one_key(&list),
    }
}

fn one_key(list: &str) -> Result<Option<Key>, Error> {
    let lines: Vec<&str> =
        list.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let pair = match lines[..] {
        [line] => line.split_once(':').filter(|(access, secret)| !access.is_empty() && !secret.is_empty()),
        _ => None,
    };
    match pair {
        Some((access, secret)) => Ok(Some((access.to_owned(), secret.to_owned()))),
        None => TABLE.refuse(
            format!("{} keys are given, but only one user is supported", lines.len()),
            "give one pair, ACCESS:SECRET",
        ),
    }
}

/// Words that stand in no output.
pub(crate) fn secrets(words: &Words) -> Vec<String> {
    let options = ["s3key", "s3secret", "s3credlist"];
    options.iter().filter_map(|option| words.value(option)).map(str::to_owned).collect()
}
