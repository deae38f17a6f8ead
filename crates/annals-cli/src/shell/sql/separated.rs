//! Answers whose values stand between separators: tabs, `|`, and tables of Markdown.

use annals::Timestamp;
use annals_sql::{Answer, SqlError, ValueRef};

use super::format::{Format, Sink};
use crate::output::Output;

/// Prints rows between separators. Null is nothing.
pub(super) struct Separated<'o> {
    output: &'o mut Output,
    sink: Sink,
    /// For each column, whether it has times that people read.
    are_times: Vec<bool>,
}

impl<'o> Separated<'o> {
    pub(super) const fn new(sink: Sink, output: &'o mut Output) -> Self {
        Self { output, sink, are_times: Vec::new() }
    }

    fn print(&mut self, values: &[String]) -> Result<(), SqlError> {
        let line = match self.sink.format {
            Format::Tabs => values.join("\t"),
            Format::Markdown => {
                let cells: Vec<_> = values.iter().map(|value| escaped(value)).collect();
                format!("| {} |", cells.join(" | "))
            }
            _ => values.join("|"),
        };
        self.output.line(&line).map_err(SqlError::from)
    }
}

/// Returns a text that stays in its cell of Markdown.
fn escaped(text: &str) -> String {
    let mut cell = String::new();
    for c in text.chars() {
        match c {
            '|' => cell.push_str("\\|"),
            '\n' => cell.push_str("<br>"),
            c if c.is_control() => cell.extend(c.escape_default()),
            c => cell.push(c),
        }
    }
    cell
}

impl Answer for Separated<'_> {
    fn begin(&mut self, columns: &[(String, Option<String>)]) -> Result<(), SqlError> {
        let is_for_people = self.sink.format == Format::Markdown;
        let is_time = |ty: &Option<String>| is_for_people && annals_sql::is_time(ty.as_deref());
        self.are_times = columns.iter().map(|(_, ty)| is_time(ty)).collect();
        // Without the line of names it is no table of Markdown.
        if self.sink.has_header || self.sink.format == Format::Markdown {
            let names: Vec<_> = columns.iter().map(|(name, _)| name.clone()).collect();
            self.print(&names)?;
        }
        if self.sink.format == Format::Markdown {
            self.print(&vec!["---".to_owned(); columns.len()])?;
        }
        Ok(())
    }

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        let columns = values.iter().zip(&self.are_times);
        let texts = columns.map(|(&value, &is_time)| match value {
            ValueRef::Integer(time) if is_time => Timestamp(time).to_string(),
            value => {
                let mut text = String::new();
                annals_sql::push_plain(&mut text, value);
                text
            }
        });
        let texts: Vec<_> = texts.collect();
        self.print(&texts)
    }
}
