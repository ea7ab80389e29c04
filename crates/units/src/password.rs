//! Words of command lines without the passwords that stand in them.

/// A word of a command line, or a URL, with `***` in place of a user and a password that stand in a URL of it (`http://user:pass@host`).
#[must_use]
pub fn without_password(word: &str) -> String {
    let mut shown = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(at) = rest.find("://") {
        let (head, tail) = rest.split_at(at + 3);
        shown += head;
        let end = tail.find(['/', '?', '#', ',', ' ']).unwrap_or(tail.len());
        // A password may hold what ends a host's name, as long as an @ follows: it is better shown too little than too much.
        let end =
            tail[end..].find('@').filter(|_| !tail[..end].contains('@')).map_or(end, |more| end + more + 1);
        match tail[..end].rfind('@') {
            Some(at) => {
                shown += "***";
                rest = &tail[at..];
            }
            None => rest = tail,
        }
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_in_urls_are_not_shown() {
        for (word, shown) in [
            ("http://h:1", "http://h:1"),
            ("--s3-endpoint=http://u:p@h:1/,https://a:b@i", "--s3-endpoint=http://***@h:1/,https://***@i"),
            ("https://u:p/w@h", "https://***@h"),
            ("https://u:p@w@h", "https://***@h"),
            ("s3://bucket/prefix", "s3://bucket/prefix"),
            ("me@home", "me@home"),
        ] {
            assert_eq!(without_password(word), shown, "{word}");
        }
    }
}
