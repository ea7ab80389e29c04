//! Shows a record as fio shows its results.

mod clients;
mod debug;
mod disk;
mod distribution;
mod entry;
mod group;
mod json;
mod latency;
mod logs;
mod normal;
mod number;
mod objects;
mod states;
mod terse;
#[cfg(test)]
mod tests;

use std::io::{self, Read, Write};
use std::path::PathBuf;

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use report::record::Record;

use super::VERSION;
use super::model::{ClientModel, Format, Model};
use crate::{Destination, Pace, Piece, Render};

/// Shows a record in the formats asked for.
pub(crate) struct Show {
    model: Model,
    /// The hosts of `--client`, whose jobs those of the model are; none without.
    clients: Vec<ClientModel>,
    /// Whether something went to the file of `--output` already, so that more comes after it.
    has_written: bool,
}

impl Show {
    pub(crate) fn new(model: Model) -> Self {
        Self::of_clients(model, Vec::new())
    }

    /// Of a run that clients carry out: `model` has the jobs of all of them.
    pub(crate) fn of_clients(model: Model, clients: Vec<ClientModel>) -> Self {
        Self { model, clients, has_written: false }
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
        let states = self.model.jobs.iter().flat_map(|job| job.states.iter().cloned());
        self.model.output.path.iter().cloned().chain(logs::paths(&self.model)).chain(states).collect()
    }

    fn carries_warnings(&self) -> bool {
        self.wants(&[Format::Normal, Format::Json, Format::JsonPlus])
    }

    fn begin(&mut self, record: &Record) -> Vec<Piece> {
        let mut text = debug::lines(&self.model, record);
        if self.wants(&[Format::Normal]) {
            text += &if self.clients.is_empty() {
                normal::header(&self.model)
            } else {
                clients::header(&self.model, &self.clients, record)
            };
        }
        if text.is_empty() { Vec::new() } else { vec![self.piece(text)] }
    }

    fn pace(&self) -> Pace {
        self.model.output.pace
    }

    fn status(&mut self, record: &Record) -> Vec<Piece> {
        let text = self.results(record);
        vec![self.piece(text)]
    }

    fn end(&mut self, record: &Record) -> Vec<Piece> {
        let text = debug::traced(&self.model, record) + &self.results(record);
        // A line of terse figures has no place for it.
        let bounds = if self.carries_warnings() {
            String::new()
        } else {
            normal::lower_bounds(&entry::entries(&self.model, record))
        };
        let mut pieces = vec![self.piece(text)];
        if !bounds.is_empty() {
            pieces.push(Piece { place: Destination::Stderr, content: bounds.into_bytes() });
        }
        let mut written = Vec::new();
        for (path, text) in logs::texts(&self.model, record) {
            let is_packed = path.extension().is_some_and(|ending| ending == "fz");
            let content = if is_packed { packed(&text) } else { text.into_bytes() };
            // Gzip files one after the other are one gzip file.
            let append = written.contains(&path);
            pieces.push(Piece { place: Destination::File { path: path.clone(), append }, content });
            written.push(path);
        }
        pieces.extend(self.model.jobs.iter().flat_map(|job| states::pieces(job, record)));
        pieces
    }
}

/// A text as a gzip file.
fn packed(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory cannot fail.
    let _ = encoder.write_all(text.as_bytes());
    encoder.finish().unwrap_or_default()
}

/// Contents of a gzip file.
///
/// # Errors
/// Where it is none.
pub(super) fn unpacked(packed: &[u8]) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    MultiGzDecoder::new(packed).read_to_end(&mut text)?;
    Ok(text)
}

impl Show {
    /// All formats in the order of fio: terse, json, normal.
    fn results(&self, record: &Record) -> String {
        if !self.clients.is_empty() {
            return clients::results(&self.model, &self.clients, record);
        }
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
            if let Some(percent) = debug::idle_percent(record).filter(|_| self.model.output.idle) {
                text += &format!("\nCPU idleness:\n  system: {percent:3.2}%\n");
            }
        }
        text
    }
}
