//! Shows a record as fio shows its results.

mod disk;
mod distribution;
mod entry;
mod group;
mod json;
mod latency;
mod logs;
mod normal;
mod number;
mod terse;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use report::record::Record;

use super::VERSION;
use super::model::{Format, Model};
use crate::{Piece, Render};

/// Shows a record in the formats asked for.
pub(crate) struct Show {
    model: Model,
    /// Whether something went to the file of `--output` already, so that more comes after it.
    has_written: bool,
}

impl Show {
    pub(crate) fn new(model: Model) -> Self {
        Self { model, has_written: false }
    }

    fn wants(&self, formats: &[Format]) -> bool {
        self.model.output.formats.iter().any(|format| formats.contains(format))
    }

    /// The text, to where the results go.
    fn piece(&mut self, text: String) -> Piece {
        match &self.model.output.path {
            Some(path) => Piece::file(path, std::mem::replace(&mut self.has_written, true), text),
            None => Piece::stdout(text),
        }
    }
}

impl Render for Show {
    fn files(&self) -> Vec<PathBuf> {
        self.model.output.path.iter().cloned().chain(logs::paths(&self.model.jobs)).collect()
    }

    fn carries_warnings(&self) -> bool {
        self.wants(&[Format::Normal, Format::Json, Format::JsonPlus])
    }

    fn begin(&mut self, _record: &Record) -> Vec<Piece> {
        if !self.wants(&[Format::Normal]) {
            return Vec::new();
        }
        let header = normal::header(&self.model);
        vec![self.piece(header)]
    }

    /// All formats in the order of fio: terse, json, normal.
    fn end(&mut self, record: &Record) -> Vec<Piece> {
        let entries = entry::entries(&self.model, record);
        let mut text = String::new();
        if self.wants(&[Format::Terse]) {
            text += &terse::results(&entries, record, self.model.output.terse_version);
        }
        if self.wants(&[Format::Json, Format::JsonPlus]) {
            text += &json::results(&self.model, &entries, record, self.wants(&[Format::JsonPlus]));
        }
        if self.wants(&[Format::Normal]) {
            text += &normal::results(&entries, record);
        }
        drop(entries);
        let mut pieces = vec![self.piece(text)];
        let mut written = Vec::new();
        for (path, text) in logs::texts(&self.model.jobs, record) {
            pieces.push(Piece::file(path.clone(), written.contains(&path), text));
            written.push(path);
        }
        pieces
    }
}
