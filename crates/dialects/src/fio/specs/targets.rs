//! Which files.

use workload::spec::Share;

use super::Site;
use crate::PathFacts;
use crate::fio::fault::{Fault, shown};

/// Files that one spec may have.
const FILES_MAX: usize = 65_535;

/// The files of the clones of one spec.
pub(super) struct Files {
    /// Of one clone.
    pub(super) each: Vec<String>,
    /// Whether all clones of the job have the same files.
    pub(super) shared: bool,
    pub(super) is_null: bool,
}

impl Site<'_> {
    pub(super) fn targets(&mut self) -> Result<Files, Fault> {
        let files = self.files_of_job()?;
        self.check_files(&files)?;
        let clones = self.clones;
        self.spec.targets = if files.shared {
            files.each.clone()
        } else {
            let mut all = Vec::new();
            for clone in clones.first..clones.first + clones.count {
                if all.len() + files.each.len() > FILES_MAX {
                    return Err(Fault::of(
                        "nrfiles",
                        format!("a job can have at most {FILES_MAX} files, those of all clones included"),
                    ));
                }
                all.extend(self.generated(clone, files.each.len()));
            }
            all
        };
        if clones.count > 1 {
            self.spec.share = Some(if files.shared { Share::Whole } else { Share::Partition });
        }
        self.service(files.each.len())?;
        Ok(files)
    }

    pub(super) fn files_of_job(&self) -> Result<Files, Fault> {
        if ["null", "cpu", "exec"].contains(&self.engine.ours) {
            return Ok(Files { each: vec!["null:".to_owned()], shared: true, is_null: true });
        }
        if self.engine.ours == "rbd" {
            return Ok(Files { each: vec![self.image()?], shared: true, is_null: false });
        }
        let count = self.draft.nrfiles.unwrap_or(1) as usize;
        if count > FILES_MAX {
            return Err(Fault::of("nrfiles", format!("a job can have at most {FILES_MAX} files")));
        }
        if let Some(list) = &self.draft.filename {
            let names = split_colons(list);
            if names.is_empty() || names.iter().any(|name| name == "-") {
                return Err(Fault::of(
                    "filename",
                    "standard input and output cannot be measured: give a path",
                ));
            }
            if self.draft.nrfiles.is_some() && count != names.len() {
                return Err(Fault::of(
                    "nrfiles",
                    format!("is {count}, but filename lists {}: leave nrfiles out", names.len()),
                ));
            }
            let each = names.iter().map(|name| self.in_directory(0, name)).collect();
            return Ok(Files { each, shared: true, is_null: false });
        }
        let section = self.clones.job.section.as_ref();
        let is_device = |facts| matches!(facts, PathFacts::BlockDevice { .. } | PathFacts::CharacterDevice);
        if count == 1 && is_device(self.clones.world.look(section)) {
            return Ok(Files { each: vec![section.to_owned()], shared: true, is_null: false });
        }
        let format =
            self.draft.filename_format.as_deref().unwrap_or("$jobname.$jobnum.$filenum").to_ascii_lowercase();
        if count > 1 && !format.contains("$filenum") {
            return Err(Fault::of(
                "filename_format",
                "without $filenum all files of the job have the same name: add it, or leave nrfiles out",
            ));
        }
        let shared = !format.contains("$jobnum") && self.directories().len() < 2;
        Ok(Files { each: self.generated(self.clones.first, count), shared, is_null: false })
    }

    /// The image of a job with ioengine=rbd.
    fn image(&self) -> Result<String, Fault> {
        let draft = self.draft;
        let named = |key: &str, value: &Option<String>| match value {
            Some(name) if !name.is_empty() && !name.contains([':', '/', '@']) => Ok(name.clone()),
            Some(name) => Err(Fault::of(
                key,
                format!("{} is not supported: it contains a separator of image names", shown(name)),
            )),
            None => Err(Fault::of(key, "engine rbd requires it")),
        };
        let (pool, image) = (named("pool", &draft.pool)?, named("rbdname", &draft.rbdname)?);
        if let Some(count) = draft.nrfiles.filter(|&count| count > 1) {
            return Err(Fault::of(
                "nrfiles",
                format!("is {count}, but a job of engine rbd has one image: use one job per image"),
            ));
        }
        let mut name = format!("rbd:{pool}/{image}");
        for (key, word, value) in [("clientname", "id", &draft.clientname), ("conf", "conf", &draft.conf)] {
            match value {
                Some(value) if value.contains(':') => {
                    return Err(Fault::of(
                        key,
                        format!("{} is not supported: it contains a colon", shown(value)),
                    ));
                }
                Some(value) if !value.is_empty() => name += &format!(":{word}={value}"),
                _ => {}
            }
        }
        self.clones.world.image_bytes(&name).map_err(|why| Fault::of("rbdname", why))?;
        Ok(name)
    }

    /// The files that fio makes names for.
    fn generated(&self, clone: u32, count: usize) -> Vec<String> {
        let format = self.draft.filename_format.as_deref().unwrap_or("$jobname.$jobnum.$filenum");
        let jobnum = clone.to_string();
        let name = |file: usize| {
            let filenum = file.to_string();
            let words = [
                ("$jobname", self.clones.job.section.as_ref()),
                ("$clientuid", self.clones.job.client.as_deref().unwrap_or_default()),
                ("$jobnum", jobnum.as_str()),
                ("$filenum", filenum.as_str()),
            ];
            self.in_directory(clone as usize, &replace_words(format, &words))
        };
        (0..count).map(name).collect()
    }

    fn directories(&self) -> Vec<String> {
        self.draft.directory.as_deref().map(split_colons).unwrap_or_default()
    }

    fn in_directory(&self, clone: usize, bare: &str) -> String {
        let directories = self.directories();
        // As in fio, so that hosts may share the directory.
        let client = self.clones.job.client.as_ref().filter(|_| self.draft.unique_filename.unwrap_or(true));
        let name = client.map_or_else(|| bare.to_owned(), |client| format!("{client}.{bare}"));
        match directories.len() {
            0 => bare.to_owned(),
            count => format!("{}/{name}", directories[clone % count].trim_end_matches('/')),
        }
    }

    fn check_files(&self, files: &Files) -> Result<(), Fault> {
        let draft = self.draft;
        if draft.allow_file_create == Some(false) && !files.is_null {
            let missing = files.each.iter().find(|path| self.clones.world.look(path) == PathFacts::Missing);
            if let Some(path) = missing {
                return Err(Fault::of(
                    "allow_file_create",
                    format!("{} does not exist, and 0 forbids its creation", shown(path)),
                ));
            }
        }
        let clones = draft.numjobs.unwrap_or(1);
        let apart = draft.offset_increment.is_some();
        if draft.verifies() && clones > 1 && files.shared && self.writes() && !apart && !files.is_null {
            return Err(Fault::of(
                "verify",
                "clones that write the same file overwrite each other's blocks: give each clone its own file (leave filename out), or use offset_increment",
            ));
        }
        Ok(())
    }

    /// Which of a job's files comes next.
    fn service(&mut self, files: usize) -> Result<(), Fault> {
        if let Some(open) = self.draft.openfiles.filter(|&open| (open as usize) < files) {
            self.warn(format!(
                "openfiles={open} is ignored: all {files} files stay open; fio would close a file before it opens another"
            ));
        }
        let given = self.draft.file_service_type.clone();
        let (word, count) = match given.as_deref().unwrap_or("").split_once(':') {
            Some((word, count)) => (word.to_owned(), Some(count.to_owned())),
            None => (given.unwrap_or_default(), None),
        };
        let refuse = |why: &str| {
            Err(Fault::of("file_service_type", format!("{} is not supported: {why}", shown(&word))))
        };
        let turn = count.map_or_else(String::new, |count| format!(":{count}"));
        let visit = match (word.as_str(), self.operation.is_random()) {
            // All of their blocks are one range to draw from.
            ("", true) => None,
            ("" | "roundrobin", _) => Some(format!("roundrobin{turn}")),
            ("random", _) => Some(format!("random{turn}")),
            ("sequential", false) => None,
            ("sequential", true) => {
                return if files < 2 {
                    Ok(())
                } else {
                    refuse(
                        "random positions never reach the end of a file; alternative: roundrobin:N with N the blocks of a file",
                    )
                };
            }
            ("zipf" | "pareto" | "normal" | "gauss", _) if files < 2 => None,
            ("zipf" | "pareto" | "normal" | "gauss", _) => {
                return refuse("strata selects files uniformly; alternative: random");
            }
            _ => return refuse("use roundrobin, sequential or random"),
        };
        match visit {
            Some(visit) if files > 1 => self.set("file_service_type", "visit", &visit),
            _ => Ok(()),
        }
    }
}

/// Paths between colons; `\:` is a colon of a path.
fn split_colons(list: &str) -> Vec<String> {
    let mut paths = vec![String::new()];
    let mut characters = list.chars().peekable();
    while let Some(c) = characters.next() {
        match (c, paths.last_mut()) {
            ('\\', Some(path)) if characters.peek() == Some(&':') => {
                characters.next();
                path.push(':');
            }
            (':', _) => paths.push(String::new()),
            (c, Some(path)) => path.push(c),
            (_, None) => {}
        }
    }
    paths.iter().map(|path| path.trim().to_owned()).filter(|path| !path.is_empty()).collect()
}

/// Puts values for words, in upper or lower case.
fn replace_words(text: &str, words: &[(&str, &str)]) -> String {
    let mut made = String::new();
    let mut rest = text;
    'next: while let Some(first) = rest.chars().next() {
        for (word, value) in words {
            if rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word)) {
                made.push_str(value);
                rest = &rest[word.len()..];
                continue 'next;
            }
        }
        made.push(first);
        rest = &rest[first.len_utf8()..];
    }
    made
}
