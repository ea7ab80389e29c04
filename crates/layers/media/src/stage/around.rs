//! Actions that the user wants around the phases of a stage: commands, and the I/O scheduler of the devices.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::plan::MediaPlan;
use driver::{Error, ErrorKind};
use host::block;
use layer::Tell;

/// Runs the commands of all plans that stand before, or after, the phase.
///
/// # Errors
/// A command that cannot be run or that fails.
pub(super) fn run(plans: &[&MediaPlan], is_before: bool) -> Result<(), Error> {
    for plan in plans {
        let control = &plan.load.control;
        let (command, ending) =
            if is_before { (&control.run_before, "prerun") } else { (&control.run_after, "postrun") };
        let Some(command) = command else { continue };
        let output = format!("{}.{ending}.txt", plan.name);
        let failed = |message: String| {
            let operation = if is_before { "run-before" } else { "run-after" };
            Error::new(ErrorKind::Run, operation, message).with("command", command).with("output", &output)
        };
        let open = || File::create(&output).and_then(|file| Ok((file.try_clone()?, file)));
        let (out, err) = open().map_err(|error| failed(format!("cannot write its output: {error}")))?;
        let status = Command::new("/bin/sh")
            .args(["-c", command])
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .status();
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => return Err(failed(format!("the command failed ({status})"))),
            Err(error) => return Err(failed(format!("cannot run the shell: {error}"))),
        }
    }
    Ok(())
}

/// Schedulers that were chosen for a stage. Dropping it brings back those that were there.
pub(super) struct Schedulers {
    before: Vec<(PathBuf, String)>,
    tell: Tell,
}

impl Schedulers {
    /// Chooses the schedulers that plans ask for, on the devices at the top of their targets.
    ///
    /// # Errors
    /// Bad usage: a target without a device that has one, or a name that the device does not have. The system's, without the right.
    pub(super) fn set(plans: &[&MediaPlan], tell: Tell) -> Result<Self, Error> {
        let mut chosen = Self { before: Vec::new(), tell };
        let mut seen = BTreeSet::new();
        for plan in plans {
            let Some(name) = &plan.load.control.scheduler else { continue };
            for target in &plan.targets {
                let files = files_of(Path::new(&target.path));
                if files.is_empty() {
                    return Err(Error::usage(
                        "scheduler",
                        "the target has no block device with an I/O scheduler",
                    )
                    .with("target", &target.path)
                    .remedy("leave out --scheduler"));
                }
                for file in files {
                    if seen.insert(file.clone()) {
                        chosen.choose(file, name)?;
                    }
                }
            }
        }
        Ok(chosen)
    }

    fn choose(&mut self, file: PathBuf, name: &str) -> Result<(), Error> {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let names: Vec<&str> = text.split_whitespace().map(|word| word.trim_matches(['[', ']'])).collect();
        let chosen = text.split(['[', ']']).nth(1).unwrap_or("none").to_owned();
        if !names.contains(&name) {
            return Err(Error::usage("scheduler", format!("{name:?} is not an I/O scheduler of the device"))
                .with("file", file.display())
                .remedy(format!("use one of {}", names.join(", "))));
        }
        if chosen != name {
            fs::write(&file, name).map_err(|error| {
                Error::system("scheduler", "cannot set the I/O scheduler", error).with("file", file.display())
            })?;
            self.before.push((file, chosen));
        }
        Ok(())
    }
}

impl Drop for Schedulers {
    fn drop(&mut self) {
        for (file, name) in &self.before {
            if let Err(error) = fs::write(file, name) {
                let file = file.display();
                (self.tell)(format_args!("strata: scheduler: cannot restore {name} in {file}: {error}"));
            }
        }
    }
}

/// Where the schedulers of the devices of a target are chosen.
fn files_of(path: &Path) -> Vec<PathBuf> {
    let numbers = block::DeviceNumber::of_block_file(path)
        .map_or_else(|| block::numbers_of(path), |number| vec![number]);
    let file = |number| {
        let name = block::BlockDevice::read(number)?.name;
        let file = PathBuf::from("/sys/block").join(name).join("queue/scheduler");
        file.exists().then_some(file)
    };
    numbers.into_iter().filter_map(file).collect()
}
