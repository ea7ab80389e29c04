//! Plain text: aligned columns, wrapped fields, colour where asked for.

#[cfg(test)]
mod tests;

/// Narrowest page: below it nothing lines up.
const WIDTH_MIN: usize = 40;
/// Longest rule: wider screens need none to their end.
const RULE_WIDTH_MAX: usize = 120;
/// Width of the labels on the left of wrapped text.
const LABEL_WIDTH: usize = 10;

/// Meaning of a piece of text; its colour follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// The usual one.
    #[default]
    Plain,
    /// Text that the eye should find first.
    Strong,
    /// Text that can be skipped.
    Faint,
    /// A reason not to believe a figure.
    Doubt,
    /// Something that failed.
    Failure,
    /// A value of a heat map, from 0 to below [`HEAT_LEVELS`].
    Heat(Ramp, u8),
}

/// Colours of a heat map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ramp {
    /// Blues: more is brighter.
    More,
    /// Browns to orange: slower is brighter.
    Slower,
}

/// Levels of a heat map.
pub const HEAT_LEVELS: u8 = 8;
/// White writing on dark grounds, black on bright ones: colours of the 256 that terminals have (ISO 8613-6), which do not depend on the
/// reader's palette.
const MORE: [&str; HEAT_LEVELS as usize] = [
    "38;5;231;48;5;17",
    "38;5;231;48;5;18",
    "38;5;231;48;5;24",
    "38;5;231;48;5;25",
    "38;5;231;48;5;31",
    "38;5;16;48;5;38",
    "38;5;16;48;5;80",
    "38;5;16;48;5;159",
];
const SLOWER: [&str; HEAT_LEVELS as usize] = [
    "38;5;231;48;5;234",
    "38;5;231;48;5;236",
    "38;5;231;48;5;58",
    "38;5;231;48;5;94",
    "38;5;231;48;5;130",
    "38;5;16;48;5;172",
    "38;5;16;48;5;214",
    "38;5;16;48;5;223",
];

impl Style {
    /// The SGR parameters (ECMA-48, 8.3.117).
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Strong => "1",
            Self::Faint => "2",
            Self::Doubt => "33",
            Self::Failure => "1;31",
            Self::Heat(ramp, level) => {
                let ramp = if ramp == Ramp::More { &MORE } else { &SLOWER };
                ramp[usize::from(level.min(HEAT_LEVELS - 1))]
            }
        }
    }
}

/// A cell of a table.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    pub(crate) text: String,
    pub(crate) style: Style,
}

impl Cell {
    /// Text with a meaning.
    pub fn styled(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::styled(text, Style::Plain)
    }
}

enum Row {
    Cells(Vec<Cell>),
    /// A line over all columns.
    Heading(String),
}

/// A table: names in the first column to the left, figures to the right.
pub struct Table {
    headers: Vec<String>,
    rows: Vec<Row>,
    /// The first column holds figures too.
    figures_first: bool,
}

impl Table {
    /// An empty table with these headers.
    #[must_use]
    pub fn new(headers: &[&'static str]) -> Self {
        Self::named(headers.iter().map(|header| (*header).to_owned()).collect())
    }

    /// The same with headers that are made on the way; there is at least one.
    #[must_use]
    pub fn named(headers: Vec<String>) -> Self {
        Self { headers, rows: Vec::new(), figures_first: false }
    }

    /// The same with the first column to the right.
    pub(crate) fn of_figures(headers: &[&'static str]) -> Self {
        Self { figures_first: true, ..Self::new(headers) }
    }

    /// Adds a row: a cell for each column.
    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(Row::Cells(cells));
    }

    /// Adds a line over all columns.
    pub fn heading(&mut self, text: impl Into<String>) {
        self.rows.push(Row::Heading(text.into()));
    }

    fn widths(&self) -> Vec<usize> {
        let cell = |column: usize| {
            self.rows.iter().filter_map(move |row| match row {
                Row::Cells(cells) => cells.get(column).map(|cell| cell.text.chars().count()),
                Row::Heading(_) => None,
            })
        };
        let width = |(at, header): (usize, &String)| cell(at).max().unwrap_or(0).max(header.chars().count());
        self.headers.iter().enumerate().map(width).collect()
    }

    /// Columns side by side in each block: as many as fit, the first one repeated in every block.
    fn blocks(widths: &[usize], gap: usize, width: usize) -> Vec<Vec<usize>> {
        let mut blocks = vec![vec![0]];
        let mut used = widths[0];
        for (column, column_width) in widths.iter().enumerate().skip(1) {
            let is_first = blocks.last().is_some_and(|block| block.len() == 1);
            if used + gap + column_width > width && !is_first {
                blocks.push(vec![0]);
                used = widths[0];
            }
            used += gap + column_width;
            if let Some(block) = blocks.last_mut() {
                block.push(column);
            }
        }
        blocks
    }
}

/// Text that grows line by line. Lines keep to the width unless a single word is longer, and never end in a space.
pub struct Page {
    width: usize,
    colour: bool,
    text: String,
}

impl Page {
    pub(crate) fn new(width: usize, colour: bool) -> Self {
        Self { width: width.max(WIDTH_MIN), colour, text: String::new() }
    }

    /// Columns of the page.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }

    fn paint(&mut self, text: &str, style: Style) {
        // Spaces stay outside, so that colour never makes a line end in one.
        if self.colour && style != Style::Plain && !text.is_empty() {
            self.text.push_str(&format!("\x1b[{}m{text}\x1b[0m", style.code()));
        } else {
            self.text.push_str(text);
        }
    }

    pub(crate) fn blank(&mut self) {
        self.text.push('\n');
    }

    /// A blank line unless there is one.
    pub fn gap(&mut self) {
        if !self.text.ends_with("\n\n") {
            self.blank();
        }
    }

    pub(crate) fn rule(&mut self) {
        let rule = "─".repeat(self.width.min(RULE_WIDTH_MAX));
        self.paint(&rule, Style::Faint);
        self.blank();
    }

    /// Wrapped text from the left edge.
    pub fn line(&mut self, text: &str, style: Style) {
        for line in wrap(text, self.width) {
            self.paint(&line, style);
            self.blank();
        }
    }

    /// A label and wrapped text beside it.
    pub fn field(&mut self, label: &str, text: &str, style: Style) {
        let label_style = if style == Style::Plain { Style::Faint } else { style };
        for (at, line) in wrap(text, self.width - LABEL_WIDTH).iter().enumerate() {
            let shown = if at == 0 { label } else { "" };
            self.paint(shown, label_style);
            let pad = LABEL_WIDTH.saturating_sub(shown.chars().count()).max(1);
            self.text.push_str(&" ".repeat(pad));
            // The label carries the colour of a doubt; its text stays readable on any background.
            self.paint(line, if style == Style::Strong { Style::Strong } else { Style::Plain });
            self.blank();
        }
    }

    /// A table, in blocks side by side where it is too wide.
    pub fn table(&mut self, table: &Table) {
        let widths = table.widths();
        let total = |gap: usize| widths.iter().sum::<usize>() + gap * (widths.len() - 1);
        let gap = if total(2) <= self.width { 2 } else { 1 };
        let headers: Vec<_> =
            table.headers.iter().map(|header| Cell::styled(header.as_str(), Style::Faint)).collect();
        for (at, block) in Table::blocks(&widths, gap, self.width).iter().enumerate() {
            if at > 0 {
                self.blank();
            }
            // Column and how many spaces stand before and after an empty text in it.
            let columns: Vec<_> = block
                .iter()
                .map(|&column| match column {
                    0 if table.figures_first => (0, widths[0], 0),
                    0 => (0, 0, widths[0]),
                    _ => (column, gap + widths[column], 0),
                })
                .collect();
            self.cells(&headers, &columns);
            for row in &table.rows {
                match row {
                    Row::Cells(cells) => self.cells(cells, &columns),
                    Row::Heading(text) => self.line(text, Style::Strong),
                }
            }
        }
    }

    fn cells(&mut self, cells: &[Cell], columns: &[(usize, usize, usize)]) {
        let mut pending = 0;
        for &(column, before, after) in columns {
            let Some(cell) = cells.get(column) else { continue };
            let length = cell.text.chars().count();
            if cell.text.is_empty() {
                pending += before + after;
                continue;
            }
            self.text.push_str(&" ".repeat(pending + before.saturating_sub(length)));
            self.paint(&cell.text, cell.style);
            pending = after.saturating_sub(length);
        }
        self.blank();
    }
}

/// Units that stay on the line of their number.
const UNITS: &[&str] =
    &["ns", "us", "ms", "s", "B", "KiB", "MiB", "GiB", "TiB", "KiB/s", "MiB/s", "GiB/s", "TiB/s"];

/// Whether a line must not break between two words: `4.00 s`.
fn belongs(number: &str, unit: &str) -> bool {
    let bare = unit.trim_end_matches([',', ';', ':', '.', ')']);
    number.ends_with(|last: char| last.is_ascii_digit()) && UNITS.contains(&bare)
}

/// Breaks at spaces; a word longer than the width stays whole, and so does a number with its unit.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut last = "";
    for word in text.split_whitespace() {
        match pieces.last_mut() {
            Some(piece) if belongs(last, word) => {
                piece.push(' ');
                piece.push_str(word);
            }
            _ => pieces.push(word.to_owned()),
        }
        last = word;
    }
    let mut lines: Vec<String> = Vec::new();
    for piece in pieces {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + piece.chars().count() <= width => {
                line.push(' ');
                line.push_str(&piece);
            }
            _ => lines.push(piece),
        }
    }
    lines
}
