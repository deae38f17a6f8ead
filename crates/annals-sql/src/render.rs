//! Answers as text for programs: CSV, JSON, and JSON line by line.

use std::fmt::Write as _;

use annals_json::{push_csv, push_string};
use rusqlite::types::ValueRef;

use crate::connection::Answer;
use crate::error::SqlError;
use crate::forms::read_large;

/// A format of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A line with the names of the columns, then one for each row. Null is nothing, an empty text `""`.
    Csv,
    /// A list of objects.
    Json,
    /// An object a line.
    Ndjson,
}

/// Writes answers as text into a string, which the receiver may empty at any time.
#[derive(Debug)]
pub struct Render<F> {
    format: Format,
    text: String,
    keys: Vec<String>,
    is_first: bool,
    /// Gets the text after each row.
    taken: F,
}

impl<F: FnMut(&mut String) -> Result<(), SqlError>> Render<F> {
    /// Begins without rows; `taken` is called after each row, and may take the text.
    pub const fn new(format: Format, taken: F) -> Self {
        Self { format, text: String::new(), keys: Vec::new(), is_first: true, taken }
    }
}

/// Returns the names as keys of objects: a name that was there gets a number.
pub(crate) fn keys(columns: &[(String, Option<String>)]) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for (name, _) in columns {
        let (mut key, mut number) = (name.clone(), 1);
        while keys.contains(&key) {
            number += 1;
            key = format!("{name}:{number}");
        }
        keys.push(key);
    }
    keys
}

impl<F: FnMut(&mut String) -> Result<(), SqlError>> Answer for Render<F> {
    fn begin(&mut self, columns: &[(String, Option<String>)]) -> Result<(), SqlError> {
        self.is_first = true;
        match self.format {
            Format::Csv => {
                for (place, (name, _)) in columns.iter().enumerate() {
                    self.text.push_str(if place > 0 { "," } else { "" });
                    push_csv(&mut self.text, name);
                }
                self.text.push('\n');
            }
            Format::Json => {
                self.keys = keys(columns);
                self.text.push('[');
            }
            Format::Ndjson => self.keys = keys(columns),
        }
        (self.taken)(&mut self.text)
    }

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        let text = &mut self.text;
        let is_first = std::mem::take(&mut self.is_first);
        if self.format == Format::Json && !is_first {
            text.push_str(",\n");
        }
        for (place, &value) in values.iter().enumerate() {
            match self.format {
                Format::Csv => {
                    text.push_str(if place > 0 { "," } else { "" });
                    push_csv_value(text, value);
                }
                Format::Json | Format::Ndjson => {
                    text.push(if place > 0 { ',' } else { '{' });
                    push_string(text, self.keys.get(place).map_or("", String::as_str));
                    text.push(':');
                    push_json(text, value);
                }
            }
        }
        match self.format {
            Format::Csv => text.push('\n'),
            Format::Json => text.push('}'),
            Format::Ndjson => text.push_str("}\n"),
        }
        (self.taken)(text)
    }

    fn end(&mut self) -> Result<(), SqlError> {
        if self.format == Format::Json {
            self.text.push_str("]\n");
        }
        (self.taken)(&mut self.text)
    }
}

/// True of the type of a column of times, which SQLite has in microseconds.
#[must_use]
pub fn is_time(ty: Option<&str>) -> bool {
    ty == Some("TIMESTAMP_MICROSECONDS")
}

/// Appends a value as people and programs read it; null is nothing.
pub fn push_plain(text: &mut String, value: ValueRef<'_>) {
    // Writing to a string doesn't fail.
    let _ = match value {
        ValueRef::Null => Ok(()),
        ValueRef::Integer(value) => write!(text, "{value}"),
        ValueRef::Real(value) => write!(text, "{value:?}"),
        ValueRef::Text(bytes) => text.write_str(&String::from_utf8_lossy(bytes)),
        ValueRef::Blob(bytes) => match read_large(bytes) {
            Some(number) => write!(text, "{number}"),
            None => {
                text.push_str("0x");
                bytes.iter().try_for_each(|byte| write!(text, "{byte:02x}"))
            }
        },
    };
}

fn push_csv_value(text: &mut String, value: ValueRef<'_>) {
    match value {
        ValueRef::Text(bytes) => push_csv(text, &String::from_utf8_lossy(bytes)),
        value => push_plain(text, value),
    }
}

fn push_json(text: &mut String, value: ValueRef<'_>) {
    match value {
        ValueRef::Null => text.push_str("null"),
        ValueRef::Text(bytes) => push_string(text, &String::from_utf8_lossy(bytes)),
        ValueRef::Real(value) => annals_json::push_value(text, annals::ValueRef::Float64(value)),
        ValueRef::Blob(bytes) if read_large(bytes).is_none() => {
            annals_json::push_value(text, annals::ValueRef::Bytes(bytes));
        }
        value => push_plain(text, value),
    }
}
