//! `strata app list` and `strata app show`, and the list of all commands of the layer.

use std::fmt::Write;

use clap::{Arg, ArgMatches};
use driver::Error;
use layer::{Command, CommandKind, Console, Measures};
use units::clean;

use crate::builtin;
use crate::description::{Description, full_words, resolve};
use crate::help;
use crate::operation::AppClass;
use crate::plan::StepPlan;

/// All of them.
pub(crate) fn all() -> Vec<Command> {
    let command = |name, help, define, run| Command {
        name,
        kind: CommandKind::OfLayer,
        help,
        define,
        measures: Measures::Nothing,
        run,
        document: |_| {},
    };
    vec![
        command("list", help::LIST, list_command, list),
        command("show", help::SHOW, show_command, show),
        crate::wal::command(),
    ]
}

fn list_command() -> clap::Command {
    clap::Command::new("list").about("List the applications that come with strata")
}

fn list(_matches: &ArgMatches, console: &dyn Console) -> Result<u8, Error> {
    let width = builtin::names().map(str::len).max().unwrap_or(0);
    let mut text = String::new();
    for name in builtin::names() {
        let (description, _) = builtin::load(name, &[])?;
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:width$}  {}", description.summary);
    }
    console.print(&text).map(|()| 0)
}

fn show_command() -> clap::Command {
    clap::Command::new("show")
        .about(
            "Show the parameters and steps of an application, or its description, as a template for your own",
        )
        .arg(
            Arg::new("name")
                .value_name("NAME")
                .required(true)
                .help("A name from strata app list, or the path of a description"),
        )
        .arg(
            Arg::new("toml")
                .long("toml")
                .action(clap::ArgAction::SetTrue)
                .help("Print the description itself (TOML)"),
        )
}

fn show(matches: &ArgMatches, console: &dyn Console) -> Result<u8, Error> {
    let name = matches.get_one::<String>("name").map_or("", String::as_str);
    if matches.get_flag("toml") {
        return console.print(&builtin::text_of(name)?).map(|()| 0);
    }
    console.print(&words(&builtin::load(name, &[])?.0)?).map(|()| 0)
}

/// Parameters and steps of a description.
fn words(description: &Description) -> Result<String, Error> {
    let mut text = format!(
        "{} {}: {}\n\nparameters\n",
        description.name,
        clean(&description.version),
        clean(&description.summary)
    );
    let width = description.parameters.keys().map(String::len).max().unwrap_or(0);
    for (name, parameter) in &description.parameters {
        let choices = match parameter.choices.as_slice() {
            [] => String::new(),
            choices => format!(" ({})", choices.join(", ")),
        };
        let _ = writeln!(
            text,
            "  {name:width$}  {} [default: {}]{choices}{}",
            clean(&parameter.help),
            clean(&parameter.default.text()),
            full_words(parameter)
        );
    }
    let application = resolve(description, &[])?;
    for (stage, groups) in &application.stages {
        let _ = writeln!(text, "\nstage {stage}");
        for group in groups {
            let _ = writeln!(
                text,
                "  {} {} x {} iterations ({})",
                group.processes, group.name, group.iterations, group.iteration
            );
            for step in &group.steps {
                let _ = writeln!(text, "    {}: {}", step.name, step_words(step, &application.sets));
            }
        }
    }
    Ok(text)
}

fn step_words(step: &StepPlan, sets: &[crate::plan::SetPlan]) -> String {
    let call = |call: &crate::plan::CallPlan| {
        let set = if call.class.has_set() {
            format!(" {}", sets[usize::from(call.set)].name)
        } else {
            String::new()
        };
        let every = if call.every > 1 { format!(" every {}", call.every) } else { String::new() };
        match call.class {
            AppClass::Compute => format!("compute {}", units::human::human_ns(step.compute_ns as f64)),
            class => format!("{}{set}{every}", class.name()),
        }
    };
    let list = |calls: &[crate::plan::CallPlan]| calls.iter().map(call).collect::<Vec<_>>().join(", ");
    let parts = [("once", &step.once), ("begin", &step.begin), ("each item", &step.each), ("end", &step.end)];
    let parts = parts.iter().filter(|(_, calls)| !calls.is_empty());
    let mut words: Vec<String> = parts.map(|(name, calls)| format!("{name}: {}", list(calls))).collect();
    if !step.after.is_empty() {
        words.insert(0, "waits for other steps".to_owned());
    }
    words.join("; ")
}
