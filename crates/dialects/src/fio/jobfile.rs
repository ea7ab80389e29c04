//! Job files: an ini of sections, with comments and included files.

use std::rc::Rc;

use crate::World;
use crate::fio::fault::{Fault, Origin, shown};

/// Files that may include each other, one within the other.
const INCLUDES_MAX: usize = 16;
/// Lines of one job file with all that it includes.
const LINES_MAX: usize = 100_000;

/// One option as it stands there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    /// None where it stands alone.
    pub(crate) value: Option<String>,
    pub(crate) place: Origin,
}

/// A `[section]` of a file, or what follows a `--name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) name: Rc<str>,
    pub(crate) entries: Vec<Entry>,
    /// Whether it is the first job of a file after others: all jobs before it end first.
    pub(crate) waits: bool,
    /// Whether it is the first of a file after others: what was global before is not so here.
    pub(crate) begins_file: bool,
}

impl Section {
    /// fio takes every name that begins so.
    pub(crate) fn is_global(&self) -> bool {
        self.name.starts_with("global")
    }
}

/// Reads a job file.
///
/// # Errors
/// The file cannot be read, or a line is not one of a job file.
pub(crate) fn read(path: &str, world: &dyn World) -> Result<Vec<Section>, Fault> {
    let mut reader = Reader { world, sections: Vec::new(), lines: 0 };
    let text = world
        .read(path)
        .map_err(|error| Fault::new(format!("job file {}: cannot be read: {error}", shown(path))))?;
    reader.file(path, &text, 0)?;
    Ok(reader.sections)
}

struct Reader<'a> {
    world: &'a dyn World,
    sections: Vec<Section>,
    lines: usize,
}

impl Reader<'_> {
    fn file(&mut self, path: &str, text: &str, nesting: usize) -> Result<(), Fault> {
        let path: Rc<str> = path.into();
        for (index, line) in text.lines().enumerate() {
            let section = self.sections.last().map(|section| section.name.clone());
            let place = Origin::File { path: path.clone(), line: index + 1, section };
            self.lines += 1;
            if self.lines > LINES_MAX {
                return Err(Fault::new(format!("more than {LINES_MAX} lines")).at(&place));
            }
            let line = without_comment(line).trim();
            if !line.is_empty() {
                self.line(line, &place, nesting).map_err(|fault| fault.at(&place))?;
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &str, place: &Origin, nesting: usize) -> Result<(), Fault> {
        if let Some(rest) = line.strip_prefix('[') {
            if nesting > 0 {
                return Err(Fault::new("an included file can contain only options, no sections"));
            }
            let name = rest.strip_suffix(']').filter(|name| !name.is_empty());
            let name =
                name.ok_or_else(|| Fault::new(format!("\"{}\" is not a section: use [name]", shown(line))))?;
            self.sections.push(Section {
                name: name.into(),
                entries: Vec::new(),
                waits: false,
                begins_file: false,
            });
            return Ok(());
        }
        if self.sections.is_empty() {
            return Err(Fault::new(format!(
                "\"{}\" is outside of all sections: begin with [global] or [name]",
                shown(line)
            )));
        }
        if let Some(file) = line.strip_prefix("include").filter(|rest| rest.starts_with([' ', '\t'])) {
            return self.include(file.trim(), place, nesting);
        }
        let (key, value) = match line.split_once('=') {
            Some((key, value)) => (key.trim_end(), Some(value.trim_start().to_owned())),
            None => (line, None),
        };
        let entry = Entry { key: key.to_owned(), value, place: place.clone() };
        if let Some(section) = self.sections.last_mut() {
            section.entries.push(entry);
        }
        Ok(())
    }

    /// A file as named, or beside the file that includes it.
    fn include(&mut self, file: &str, place: &Origin, nesting: usize) -> Result<(), Fault> {
        if nesting >= INCLUDES_MAX {
            return Err(Fault::of("include", format!("more than {INCLUDES_MAX} nested files")));
        }
        let beside = match place {
            Origin::File { path, .. } => path.rsplit_once('/').map(|(folder, _)| format!("{folder}/{file}")),
            Origin::Line { .. } | Origin::Job(_) => None,
        };
        let (path, text) = match (self.world.read(file), beside) {
            (Ok(text), _) => (file.to_owned(), text),
            (Err(error), None) => return Err(unread(file, &error)),
            (Err(_), Some(beside)) => {
                let text = self.world.read(&beside).map_err(|error| unread(&beside, &error))?;
                (beside, text)
            }
        };
        self.file(&path, &text, nesting + 1)
    }
}

fn unread(path: &str, error: &std::io::Error) -> Fault {
    Fault::of("include", format!("{} cannot be read: {error}", shown(path)))
}

/// fio begins a comment at the first `;` or `#`, wherever it stands.
fn without_comment(line: &str) -> &str {
    line.split([';', '#']).next().unwrap_or("")
}
