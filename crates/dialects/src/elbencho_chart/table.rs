//! The CSV file: its columns, its rows, its operations.

use driver::Error;

use super::{NAME, OPERATION};

/// A CSV file with a header.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// A column that a graph shows, and the operation that its rows are of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Graph {
    pub(super) column: String,
    pub(super) operation: Option<String>,
}

impl Table {
    /// Reads the text. Empty lines are passed over, and headers that stand between the rows of several runs.
    pub(super) fn read(text: &str) -> Result<Self, Error> {
        let mut reader =
            csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
        let mut rows: Vec<Vec<String>> = Vec::new();
        for record in reader.records() {
            let record =
                record.map_err(|error| Error::usage(NAME, format!("this is not a CSV file: {error}")))?;
            let row: Vec<String> = record.iter().map(|cell| cell.trim().to_owned()).collect();
            if row.iter().any(|cell| !cell.is_empty()) && rows.first() != Some(&row) {
                rows.push(row);
            }
        }
        if rows.len() < 2 {
            return Err(Error::usage(
                NAME,
                "the CSV file needs a line of column names and at least one line of results",
            )
            .remedy("write one with: elbencho --csvfile FILE (without --nocsvlabels)"));
        }
        let columns = rows.remove(0);
        if columns.len() < 2 {
            return Err(Error::usage(
                NAME,
                "the CSV file needs at least two columns: one for the x axis, one for the y axis",
            ));
        }
        Ok(Self { columns, rows })
    }

    pub(super) fn columns_listed(&self) -> String {
        let lines = self.columns.iter().enumerate();
        lines.map(|(at, column)| format!("Column {}: {column:?}\n", at + 1)).collect()
    }

    /// The operations of the rows, each once, sorted.
    pub(super) fn operations(&self) -> Result<Vec<&str>, Error> {
        let at = self.find(OPERATION)?;
        let mut operations: Vec<&str> =
            self.rows.iter().filter_map(|row| row.get(at)).map(String::as_str).collect();
        operations.sort_unstable();
        operations.dedup();
        Ok(operations)
    }

    pub(super) fn operations_listed(&self) -> Result<String, Error> {
        let lines: String = self.operations()?.iter().map(|operation| format!("{operation}\n")).collect();
        Ok(format!("Available operations in csv file:\n{lines}"))
    }

    /// Number of a column.
    pub(super) fn find(&self, column: &str) -> Result<usize, Error> {
        self.columns.iter().position(|known| known == column).ok_or_else(|| {
            let known: Vec<_> = self.columns.iter().map(|column| format!("{column:?}")).collect();
            Error::usage(NAME, format!("the CSV file has no column {column:?}"))
                .remedy(format!("available columns: {}", known.join(", ")))
        })
    }

    /// Graph of `COLUMN[:OPERATION]`: a column's name may itself hold a colon.
    pub(super) fn graph(&self, word: &str) -> Result<Graph, Error> {
        let (column, operation) = match word.rsplit_once(':') {
            Some((column, operation)) if self.find(word).is_err() => (column, Some(operation)),
            _ => (word, None),
        };
        self.find(column)?;
        if let Some(operation) = operation {
            let known = self.operations()?;
            if !known.contains(&operation) {
                return Err(Error::usage(NAME, format!("no line has the operation {operation:?}"))
                    .remedy(format!("available operations: {}", known.join(", ").escape_debug())));
            }
        }
        Ok(Graph { column: column.to_owned(), operation: operation.map(str::to_owned) })
    }

    /// The rows of a graph's operation.
    pub(super) fn rows_of(&self, graph: &Graph) -> Result<Vec<&Vec<String>>, Error> {
        let Some(operation) = &graph.operation else { return Ok(self.rows.iter().collect()) };
        let at = self.find(OPERATION)?;
        Ok(self.rows.iter().filter(|row| row.get(at) == Some(operation)).collect())
    }

    /// The numbers of a graph, one a row; what is no number is none.
    pub(super) fn numbers(&self, graph: &Graph) -> Result<Vec<Option<f64>>, Error> {
        let at = self.find(&graph.column)?;
        let number = |row: &&Vec<String>| {
            row.get(at).and_then(|cell| cell.parse().ok()).filter(|value: &f64| value.is_finite())
        };
        let numbers: Vec<Option<f64>> = self.rows_of(graph)?.iter().map(number).collect();
        if numbers.iter().all(Option::is_none) {
            let of =
                graph.operation.as_ref().map_or_else(String::new, |operation| format!(" of {operation}"));
            return Err(Error::usage(NAME, format!("column {:?} has no numbers{of}", graph.column))
                .remedy("name a column with results, such as \"MiB/s [last]\""));
        }
        Ok(numbers)
    }
}
