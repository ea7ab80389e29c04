use proptest::prelude::*;

use super::*;
use crate::fio::options::OPTIONS;

fn keys() -> impl Strategy<Value = &'static str> {
    (0..OPTIONS.len()).prop_map(|place| OPTIONS[place].name)
}

fn values() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9]{1,20}[kmgtp%]?i?b?",
        "[0-9,:/.-]{0,12}",
        "[(0-9+*/^%)]{0,12}",
        "(rand)?(read|write|rw|trim)(:-?[0-9]{1,4}k?)?",
        "(zipf|zoned|normal|pareto|random):[0-9./:]{0,10}",
        "[ -~]{0,16}",
        "\\PC{0,8}",
    ]
}

fn is_one_line(fault: &Fault) -> bool {
    fault.to_string().lines().count() == 1
}

proptest! {
    #[test]
    fn any_words_are_read_or_refused(words in proptest::collection::vec("(--?[a-z_-]{0,12}=?)?\\PC{0,12}", 0..6)) {
        if let Err(fault) = crate::fio::request(&words, &Machine::default()) {
            prop_assert!(is_one_line(&fault), "{fault}");
        }
    }

    #[test]
    fn any_options_are_read_or_refused(options in proptest::collection::vec((keys(), values()), 0..5)) {
        let base = ["--name=x", "--size=1g", "--filename=f"].map(str::to_owned);
        let words: Vec<String> =
            base.into_iter().chain(options.iter().map(|(key, value)| format!("--{key}={value}"))).collect();
        if let Err(fault) = crate::fio::request(&words, &Machine::default()) {
            prop_assert!(is_one_line(&fault), "{fault}");
        }
    }

    #[test]
    fn any_job_is_read_or_refused(text in "(\\[[a-z]{0,8}\\]?\n|include [a.]{1,6}\n|[a-z_]{1,10} ?=? ?\\PC{0,10}\n|[;#]\\PC{0,5}\n){0,12}") {
        if let Err(fault) = crate::fio::request(&words("a.fio"), &Machine::with_job(&text)) {
            prop_assert!(is_one_line(&fault), "{fault}");
        }
    }
}
