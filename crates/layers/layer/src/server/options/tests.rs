use std::collections::HashSet;

use super::*;

/// An option, texts that it takes, and texts that it refuses.
type Case = (&'static str, &'static [&'static str], &'static [&'static str]);

const OF_ENGINES: &[Case] = &[
    ("rank", &["0", "4294967294"], &["", "-1", "4294967295"]),
    ("group", &["g"], &[""]),
    ("path", &["/tmp"], &[""]),
    ("dir", &["/dev/shm/pool"], &[""]),
    ("pool", &["pool-1"], &["", "a b", ".", "a/b"]),
    ("scm", &["2g"], &["", "0"]),
    ("nvme", &["0", "100g"], &["", "-1"]),
    ("threshold", &["64k"], &["", "0"]),
    ("durability", &["none", "sync"], &["", "full"]),
    ("allocate", &["ahead", "whole", "needed"], &["", "all"]),
    ("flush", &["cpu"], &["", "clwb"]),
    ("targets", &["0", "16", "4096"], &["", "-1", "4097"]),
    ("helpers", &["0", "4"], &["", "4097"]),
    (
        "listen",
        &["127.0.0.1:0", "[::1]:31416", "node01:65535"],
        &["", "node01", ":0", "a:65536", "a:+1", "a b:1"],
    ),
    ("control", &["0.0.0.0:1611"], &["", "1611"]),
    ("provider", &["tcp"], &[""]),
    ("interface", &["lo"], &[""]),
    ("domain", &["lo"], &[""]),
    ("poll", &["block"], &["", "never"]),
    ("send-buffer", &["1m"], &["0", "2g"]),
    ("receive-buffer", &["1m"], &["0", "2g"]),
    ("message-size-max", &["1m"], &["", "0"]),
    ("bulk-size-max", &["1g"], &["", "0"]),
    ("connections-max", &["1", "1048576"], &["0", "1048577"]),
    ("memory-max", &["4g"], &["", "0"]),
    ("cores", &["0-3"], &["", "3-0"]),
    ("token-file", &["token"], &[""]),
    ("background", &["engine.log"], &[""]),
];

fn is_one_line(key: &str, message: &str) {
    assert!(message.contains(" is not ") && message.contains(": use "), "{key}: {message}");
    assert!(!message.contains('\n') && message.len() < 400, "{key}: {message}");
}

#[test]
fn names_are_unique_and_plain() {
    let names: HashSet<_> = ENGINE.iter().map(|option| option.name).collect();
    assert_eq!(names.len(), ENGINE.len());
    for (name, help) in ENGINE.iter().map(|option| (option.name, option.help)) {
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{name}");
        assert!(!help.is_empty() && !help.contains('\n'), "{name}");
    }
}

#[test]
fn each_option_takes_what_it_documents_and_refuses_the_rest() {
    let covered: HashSet<_> = OF_ENGINES.iter().map(|case| case.0).collect();
    for option in ENGINE {
        assert_eq!(covered.contains(option.name), !option.is_switch(), "{}", option.name);
        if option.is_switch() {
            let mut spec = EngineSpec::default();
            (option.apply)(&mut spec, "true").expect("a switch");
            assert_ne!(spec, EngineSpec::default(), "{}", option.name);
        }
    }
    for (key, taken, refused) in OF_ENGINES {
        let option = ENGINE.iter().find(|option| option.name == *key).expect("an option");
        for text in *taken {
            let mut spec = EngineSpec::default();
            (option.apply)(&mut spec, text).unwrap_or_else(|error| panic!("{key}={text}: {error}"));
            assert_ne!(spec, EngineSpec::default(), "{key}={text} changed nothing");
        }
        for text in *refused {
            let mut spec = EngineSpec::default();
            let refusal = (option.apply)(&mut spec, text).err();
            let message = refusal.unwrap_or_else(|| panic!("{key}={text} was taken")).to_string();
            assert_eq!(spec, EngineSpec::default(), "{key}={text} was refused and left a trace");
            is_one_line(key, &message);
        }
    }
}

#[test]
fn choices_take_each_of_their_words() {
    let is_word = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    for option in ENGINE.iter().filter(|option| option.value.contains('|')) {
        for word in option.value.split('|').filter(is_word) {
            (option.apply)(&mut EngineSpec::default(), word).expect("a choice");
        }
    }
}
