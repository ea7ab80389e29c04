//! Labels of targets side by side: `LABEL:TARGET`, so that tables and charts say `ext4` and not the path of a mount point.

use std::collections::BTreeSet;

use driver::Error;
use host::mounts::{Mount, mount_of, mounts};
use units::{changes, path_of, without_password};

/// A target of `--on`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Name that the user gave it.
    pub(crate) label: Option<String>,
    /// The target.
    pub(crate) target: String,
}

impl Target {
    /// Name in tables and charts.
    pub(crate) fn name(&self) -> String {
        self.label.clone().unwrap_or_else(|| without_password(&self.target))
    }

    /// It, as `--on` takes it.
    pub(crate) fn said(&self) -> String {
        match &self.label {
            Some(label) => format!("{label}:{}", self.target),
            None => self.target.clone(),
        }
    }
}

/// Reads `TARGET` or `LABEL:TARGET`. A label begins with a letter, is none of the forms of targets, and stands before an absolute path, one that begins with a dot, or another form of a target.
///
/// # Errors
/// A label that is nearly the form of a target: `vso:/a` for `vos:/a`.
pub(crate) fn parse(text: &str) -> Result<Target, Error> {
    let whole = Target { label: None, target: text.to_owned() };
    let Some((label, target)) = text.split_once(':') else { return Ok(whole) };
    if !is_label(label) || !is_target(target) {
        return Ok(whole);
    }
    if let Some(form) = forms().find(|form| is_slip(label, form)) {
        return Err(Error::usage(
            "plan",
            format!("--on: {label} is not a target form, and is too similar to {form} for a label"),
        )
        .with("target", without_password(text))
        .remedy(format!("write {form}:{target}, or use another label")));
    }
    Ok(Target { label: Some(label.to_owned()), target: target.to_owned() })
}

fn is_label(text: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ');
    text.len() <= 32
        && text.starts_with(char::is_alphabetic)
        && text.chars().all(is_part)
        && !forms().any(|form| form == text)
}

/// Whether a word is a form of targets with one letter changed, left out or added, or with its letters in another order.
fn is_slip(word: &str, form: &str) -> bool {
    let sorted = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    // A word of two letters is near to every form of two or three.
    word.len() > 2 && (changes(word, form) < 2 || sorted(word) == sorted(form))
}

/// Whether text behind a label is a target; a relative path is one where it begins with a dot.
fn is_target(text: &str) -> bool {
    let form = text.split(':').next().filter(|form| form.len() < text.len());
    ["/", "./", "../"].iter().any(|begin| text.starts_with(begin) && !text.starts_with("//"))
        || form.is_some_and(|form| forms().any(|known| known == form))
}

/// The words before the colon of the forms of targets.
fn forms() -> impl Iterator<Item = &'static str> {
    let of_layers = layer::all().into_iter().flat_map(|layer| layer.storage_targets());
    // Targets of other layers are none of an application, and no labels either.
    of_layers.filter_map(|form| form.split_once(':')).map(|(form, _)| form).chain(["mem", "rbd"])
}

/// Refuses labels that stand for two targets, and the name of a file system on a target that lies on another.
///
/// # Errors
/// Bad usage with what would be accepted.
pub(crate) fn check(targets: &[Target]) -> Result<(), Error> {
    let mut seen = BTreeSet::new();
    for name in targets.iter().map(Target::name) {
        if !seen.insert(name.clone()) {
            return Err(Error::usage("plan", format!("--on names two targets {name}"))
                .remedy("use a different label for each"));
        }
    }
    let mounts = mounts();
    targets.iter().try_for_each(|target| check_type(target, &mounts))
}

/// A label that is the type of a file system is a claim, and the kernel knows whether it holds.
fn check_type(target: &Target, mounts: &[Mount]) -> Result<(), Error> {
    let Some(label) = &target.label else { return Ok(()) };
    let Ok(path) = path_of(&target.target).canonicalize() else { return Ok(()) };
    let Some(mount) = mount_of(mounts, &path) else { return Ok(()) };
    let is_type = mounts.iter().any(|other| other.filesystem == *label);
    // NFS of version 4 has a type of its own.
    if !is_type || mount.filesystem.starts_with(label.as_str()) {
        return Ok(());
    }
    Err(Error::usage(
        "plan",
        format!("--on: {} is on {}, but its label is {label}", target.target, mount.filesystem),
    )
    .remedy(format!("use {}:{}, or a label that is not a file-system type", mount.filesystem, target.target)))
}

#[cfg(test)]
mod tests {
    use super::is_slip;

    #[test]
    fn slips_of_a_form_are_told_from_labels() {
        for word in ["vso", "voss", "vas", "das"] {
            assert!(is_slip(word, "vos") || is_slip(word, "daos"), "{word}");
        }
        for label in ["raid0", "nas", "ext4", "xfs", "ssd", "nvme", "s4", "a"] {
            let forms = ["vos", "daos", "rados", "s3", "null", "engine"];
            assert!(!forms.iter().any(|form| is_slip(label, form)), "{label}");
        }
    }
}
