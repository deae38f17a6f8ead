//! Answers as tables and lines for people, or in the formats for programs.

use annals::{Error, Result, Timestamp};
use annals_sql::{Answer, Render, SqlError, ValueRef};
use unicode_width::UnicodeWidthStr as _;

#[cfg(feature = "arrow")]
use super::columnar::Columnar;
use super::format::{Format, Sink};
use super::separated::Separated;
use crate::output::Output;
use crate::shell::display;

/// So many rows are measured before the first is printed; later ones may be wider.
const MEASURED: usize = 1000;
/// Longer values are cut in a table.
const WIDEST: usize = 200;

impl Sink {
    pub(crate) const fn new(format: Format, has_header: bool) -> Self {
        Self { format, has_header }
    }

    /// Checks at the end that an output has an answer, if no file of the format is without one.
    pub(crate) fn check(self, output: &Output) -> Result<()> {
        if self.format.is_binary() && output.is_empty() {
            return Err(Error::invalid("nothing was written: no statement has an answer"));
        }
        Ok(())
    }

    /// Passes a receiver of answers to `ask`, and prints what it gets.
    pub(crate) fn print(
        self,
        output: &mut Output,
        ask: impl FnOnce(&mut dyn Answer) -> Result<()>,
    ) -> Result<()> {
        let format = match self.format {
            Format::Table | Format::Line => {
                return ask(&mut Shown::new(self, output));
            }
            Format::Tabs | Format::List | Format::Markdown => {
                return ask(&mut Separated::new(self, output));
            }
            #[cfg(feature = "arrow")]
            Format::Parquet | Format::Arrow => {
                return ask(&mut Columnar::new(self.format, output));
            }
            Format::Csv => annals_sql::Format::Csv,
            Format::Json => annals_sql::Format::Json,
            Format::Ndjson => annals_sql::Format::Ndjson,
        };
        let mut leaves_out = self.format == Format::Csv && !self.has_header;
        let mut render = Render::new(format, |text: &mut String| {
            if std::mem::take(&mut leaves_out) {
                text.clear();
            }
            let written = output.write(text).map_err(SqlError::from);
            text.clear();
            written
        });
        ask(&mut render)
    }
}

/// Prints rows for people.
struct Shown<'o> {
    output: &'o mut Output,
    sink: Sink,
    names: Vec<String>,
    /// For each column, whether it has times.
    are_times: Vec<bool>,
    /// Rows that aren't printed yet, as their widths aren't known.
    rows: Vec<Vec<Cell>>,
    /// The widths of the columns that are shown.
    widths: Vec<usize>,
}

/// A value as it is shown.
struct Cell {
    text: String,
    is_number: bool,
}

impl Cell {
    fn new(value: ValueRef<'_>, is_time: bool) -> Self {
        let mut text = String::new();
        match value {
            ValueRef::Null => text.push_str("NULL"),
            ValueRef::Text(bytes) => text = harmless(&String::from_utf8_lossy(bytes)),
            ValueRef::Blob(bytes) => {
                let shown = bytes.get(..WIDEST).unwrap_or(bytes);
                annals_sql::push_plain(&mut text, ValueRef::Blob(shown));
            }
            ValueRef::Integer(time) if is_time => text = Timestamp(time).to_string(),
            number => annals_sql::push_plain(&mut text, number),
        }
        let is_number = match value {
            ValueRef::Integer(_) => !is_time,
            ValueRef::Real(_) => true,
            ValueRef::Blob(bytes) => annals_sql::read_large(bytes).is_some(),
            ValueRef::Null | ValueRef::Text(_) => false,
        };
        Self { text, is_number }
    }
}

/// Replaces characters that would break a table or steer a terminal, and cuts a long text.
fn harmless(text: &str) -> String {
    let mut shown = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == WIDEST {
            shown.push_str("..");
            break;
        }
        match c {
            c if c.is_control() => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}

impl<'o> Shown<'o> {
    const fn new(sink: Sink, output: &'o mut Output) -> Self {
        Self {
            output,
            sink,
            names: Vec::new(),
            are_times: Vec::new(),
            rows: Vec::new(),
            widths: Vec::new(),
        }
    }

    fn print_row(&mut self, cells: &[Cell]) -> Result<()> {
        if self.sink.format == Format::Line {
            let widest = self.names.iter().map(|name| name.width()).max().unwrap_or(0);
            for (name, cell) in self.names.iter().zip(cells) {
                let blanks = " ".repeat(widest - name.width());
                self.output.line(&format!("{blanks}{name} = {}", cell.text))?;
            }
            return self.output.line("");
        }
        let mut line = String::new();
        let is_fitted = self.output.width().is_some();
        for (place, (cell, &width)) in cells.iter().zip(&self.widths).enumerate() {
            let text = match is_fitted && !cell.is_number {
                true => display::cut(&cell.text, width),
                false => cell.text.clone(),
            };
            let blanks = " ".repeat(width.saturating_sub(text.width()));
            line.push_str(if place > 0 { "  " } else { "" });
            match cell.is_number {
                true => line.push_str(&(blanks + &text)),
                false => line.push_str(&(text + &blanks)),
            }
        }
        self.output.line(line.trim_end())
    }

    /// Prints the heading and the rows that were kept for it.
    fn flush(&mut self) -> Result<()> {
        let is_table = self.sink.format == Format::Table;
        if is_table && self.widths.is_empty() {
            let rows = &self.rows;
            let column = |(place, name): (usize, &String)| {
                let cells = || rows.iter().filter_map(|row| row.get(place));
                display::Column {
                    heading: name.width(),
                    cells: cells().map(|cell| cell.text.width()).max().unwrap_or(0),
                    is_elastic: !cells().any(|cell| cell.is_number),
                    width: 0,
                }
            };
            let mut columns: Vec<_> = self.names.iter().enumerate().map(column).collect();
            let shown = display::fit(&mut columns, self.output.width());
            self.widths = columns.iter().take(shown).map(|column| column.width).collect();
            if self.sink.has_header {
                let name = |name: &String| Cell { text: harmless(name), is_number: false };
                let names: Vec<_> = self.names.iter().map(name).collect();
                self.print_row(&names)?;
                let line = |&width: &usize| Cell { text: "-".repeat(width), is_number: false };
                let lines: Vec<_> = self.widths.iter().map(line).collect();
                self.print_row(&lines)?;
            }
        }
        for row in std::mem::take(&mut self.rows) {
            self.print_row(&row)?;
        }
        Ok(())
    }
}

impl Answer for Shown<'_> {
    fn begin(&mut self, columns: &[(String, Option<String>)]) -> Result<(), SqlError> {
        self.names = columns.iter().map(|(name, _)| name.clone()).collect();
        let is_time = |ty: &Option<String>| annals_sql::is_time(ty.as_deref());
        self.are_times = columns.iter().map(|(_, ty)| is_time(ty)).collect();
        self.widths.clear();
        Ok(())
    }

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        let columns = values.iter().zip(&self.are_times);
        self.rows.push(columns.map(|(&value, &is_time)| Cell::new(value, is_time)).collect());
        if self.rows.len() >= MEASURED || !self.widths.is_empty() {
            self.flush()?;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), SqlError> {
        self.flush()?;
        let hidden = match self.sink.format {
            Format::Table => self.names.get(self.widths.len()..).unwrap_or_default(),
            _ => &[],
        };
        if !hidden.is_empty() {
            let names: Vec<String> = hidden.iter().map(|name| harmless(name)).collect();
            self.output
                .line(&format!("no room for: {}; format line shows all", names.join(", ")))?;
        }
        Ok(())
    }
}
