use super::*;

/// All commands that are shown, by their names from strata down.
fn commands() -> Vec<(Vec<String>, Command)> {
    fn collect(command: &Command, names: &[String], all: &mut Vec<(Vec<String>, Command)>) {
        all.push((names.to_vec(), command.clone()));
        for inner in
            command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help")
        {
            let names: Vec<String> = names.iter().cloned().chain([inner.get_name().to_owned()]).collect();
            collect(inner, &names, all);
        }
    }
    registry::register();
    let mut all = Vec::new();
    collect(&crate::cli::command(), &[], &mut all);
    all
}

fn help(names: &[String]) -> Help {
    help_of(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn every_command_has_examples_that_the_parser_takes() {
    for (names, _) in commands() {
        let examples = help(&names).examples;
        assert!(!examples.is_empty(), "{names:?} has no example");
        for example in examples {
            let words = shlex::split(&format!("strata {}", example.words)).expect("words");
            let matches = crate::cli::command().try_get_matches_from(&words);
            let matches = matches.unwrap_or_else(|error| panic!("{}: {error}", example.words));
            let Some((command, matches)) = matches.subcommand() else { panic!("{}", example.words) };
            let layer = Layer::of_command(command).filter(|_| matches.subcommand().is_none());
            if let Some(layer) = layer {
                crate::cli::load_spec(layer, matches)
                    .unwrap_or_else(|error| panic!("{}: {error}", example.words));
            }
        }
    }
}

#[test]
fn short_help_names_options_that_there_are_and_fits_a_screen() {
    for (names, command) in commands() {
        let shown = help(&names).options;
        for name in shown {
            assert!(command.get_arguments().any(|argument| argument.get_id() == *name), "{names:?}: {name}");
        }
        let words: Vec<String> = std::iter::once("strata".to_owned())
            .chain(names.iter().cloned())
            .chain(["-h".to_owned()])
            .collect();
        let text =
            with_help(crate::cli::command(), true).try_get_matches_from(&words).unwrap_err().to_string();
        let lines = text.trim_end().lines().count();
        assert!(shown.is_empty() || lines <= 22, "{names:?}: {lines} lines\n{text}");
        assert!(text.contains("Examples:"), "{names:?}\n{text}");
    }
}

#[test]
fn a_page_of_the_manual_a_command_with_its_sections() {
    registry::register();
    let pages = pages().expect("pages");
    let names: Vec<&str> = pages.iter().map(|page| page.file.as_str()).collect();
    for name in ["strata.1", "strata-media.1", "strata-net-scan.1", "strata-pool-create.1", "strata-as.1"] {
        assert!(names.contains(&name), "{names:?}");
    }
    for page in &pages {
        let text = String::from_utf8_lossy(&page.text);
        for heading in ["NAME", "SYNOPSIS", "EXAMPLES", "EXIT STATUS", "FILES", "ENVIRONMENT"] {
            let found = text.lines().any(|line| line.trim_start_matches(".SH ").trim_matches('"') == heading);
            assert!(found, "{}: {heading}\n{text}", page.file);
        }
    }
}

#[test]
fn completions_offer_words_where_an_option_takes_them() {
    registry::register();
    let mut script = Vec::new();
    let mut command = for_completions(crate::cli::command());
    clap_complete::generate(clap_complete::Shell::Bash, &mut command, "strata", &mut script);
    let script = String::from_utf8(script).expect("text");
    for words in ["auto line full none", "randread", "io_uring", "spdk_nvme_perf", "constant poisson"] {
        assert!(script.contains(words), "{words}");
    }
}
