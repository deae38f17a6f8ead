//! `table T [MAX_COLUMN_WIDTH] [START] [COUNT]`: rows below each other.

use annals::{Field, Result, Row, Table, TableView, Type, ValueRef};

use super::cell::{cell, cut, width};
use super::layout::{Column, GAP, fit};
use crate::output::count;
use crate::present::Present;
use crate::shell::screen::{Screen, Style};
use crate::shell::words::{self, Words};

/// Which rows are shown, and how.
struct Part {
    /// How wide a text may be.
    widest: Option<usize>,
    /// How many rows are left out at the beginning.
    start: u64,
    /// How many are shown at most.
    count: u64,
}

/// Shows rows as a table.
pub(crate) fn table(present: &Present<'_>, words: &Words<'_>, screen: &mut Screen) -> Result<()> {
    let Some((name, numbers)) = words.arguments().split_first() else {
        return Err(words.misused());
    };
    let part = part(words, numbers, screen)?;
    let schema = present.schema();
    let table = words::table(schema, name)?;
    let rows = present.table(table.number)?;
    // Nothing wider than the screen needs to be measured.
    let limit = part.widest.into_iter().chain(screen.width).min();
    let mut columns = measure(table, &rows, &part, limit)?;
    let shown = fit(&mut columns, screen.width);
    let grid = Grid { table, columns: columns.get(..shown).unwrap_or_default() };
    grid.print_heading(screen)?;
    for row in part.rows(&rows) {
        grid.print_row(&row?, screen)?;
    }
    tell_rest(table, &rows, &part, screen)?;
    tell_hidden(table, shown, screen)
}

fn part(words: &Words<'_>, numbers: &[annals_schema::Token<'_>], screen: &Screen) -> Result<Part> {
    let mut part = Part { widest: None, start: 0, count: screen.rows.unwrap_or(u64::MAX) };
    let [widest, start, count] = [numbers.first(), numbers.get(1), numbers.get(2)];
    if numbers.len() > 3 {
        return Err(words.misused());
    }
    if let Some(widest) = widest {
        let widest = words::number("MAX_COLUMN_WIDTH", widest)?;
        part.widest = usize::try_from(widest).ok().filter(|&widest| widest > 0);
    }
    if let Some(start) = start {
        part.start = words::number("START", start)?;
    }
    if let Some(count) = count {
        part.count = words::number("COUNT", count)?;
    }
    Ok(part)
}

impl Part {
    fn rows<'a>(&self, rows: &TableView<'a>) -> impl Iterator<Item = Result<Row<'a>>> + use<'a> {
        let whole = |number| usize::try_from(number).unwrap_or(usize::MAX);
        rows.rows().skip(whole(self.start)).take(whole(self.count))
    }
}

/// True if a field's values are aligned to the right.
const fn is_number(field: &Field) -> bool {
    let is_left = matches!(field.ty, Type::Bool | Type::Timestamp | Type::Date | Type::Uuid);
    !is_left && !field.ty.is_variable()
}

/// Returns the columns, the id's first, each as wide as its contents.
fn measure(
    table: &Table,
    rows: &TableView<'_>,
    part: &Part,
    limit: Option<usize>,
) -> Result<Vec<Column>> {
    let column = |heading: &str, is_elastic| Column {
        heading: width(heading),
        cells: 0,
        is_elastic,
        width: 0,
    };
    let mut columns = vec![column("id", false)];
    columns.extend(table.fields.iter().map(|field| column(&field.name, field.ty.is_variable())));
    for row in part.rows(rows) {
        let row = row?;
        let ids = [row.id().0.to_string()].into_iter();
        let cells = table.fields.iter().map(|field| cell(row.value(field.number), limit));
        for (column, cell) in columns.iter_mut().zip(ids.chain(cells)) {
            column.cells = column.cells.max(width(&cell));
        }
    }
    if let Some(widest) = part.widest {
        for column in &mut columns {
            column.heading = column.heading.min(widest);
        }
    }
    Ok(columns)
}

/// A table and its shown columns.
struct Grid<'s> {
    table: &'s Table,
    columns: &'s [Column],
}

impl Grid<'_> {
    fn print_heading(&self, screen: &mut Screen) -> Result<()> {
        let names = self.table.fields.iter().map(|field| field.name.as_str());
        let numbers = [true].into_iter().chain(self.table.fields.iter().map(is_number));
        let mut line = String::new();
        for ((name, column), right) in
            ["id"].into_iter().chain(names).zip(self.columns).zip(numbers)
        {
            push(&mut line, &cut(name, column.width), column.width, right);
        }
        let line = screen.paint(Style::Heading, line.trim_end()).into_owned();
        screen.output.line(&line)?;
        let rules: Vec<String> =
            self.columns.iter().map(|column| "-".repeat(column.width)).collect();
        let rule = screen.paint(Style::Aside, &rules.join("  ")).into_owned();
        screen.output.line(&rule)
    }

    fn print_row(&self, row: &Row<'_>, screen: &mut Screen) -> Result<()> {
        let mut line = String::new();
        let mut columns = self.columns.iter();
        if let Some(id) = columns.next() {
            push(&mut line, &row.id().0.to_string(), id.width, true);
        }
        for (field, column) in self.table.fields.iter().zip(columns) {
            let value = row.value(field.number);
            let shown = cell(value, Some(column.width));
            let begin = line.len();
            push(&mut line, &shown, column.width, is_number(field));
            if matches!(value, ValueRef::Null) {
                // Only the word is coloured, so that the columns stay where they are.
                let place = line.get(begin..).and_then(|end| end.find(&shown)).unwrap_or(0) + begin;
                let painted = screen.paint(Style::Aside, &shown);
                line.replace_range(place..place + shown.len(), &painted);
            }
        }
        screen.output.line(line.trim_end())
    }
}

/// Puts a cell after a line.
fn push(line: &mut String, cell: &str, column: usize, right: bool) {
    let blanks = column.saturating_sub(width(cell));
    let gap = if line.is_empty() { 0 } else { GAP };
    let (before, behind) = if right { (gap + blanks, 0) } else { (gap, blanks) };
    line.push_str(&" ".repeat(before));
    line.push_str(cell);
    line.push_str(&" ".repeat(behind));
}

/// Prints the number of rows, and how to show the rest.
fn tell_rest(table: &Table, rows: &TableView<'_>, part: &Part, screen: &mut Screen) -> Result<()> {
    let all = rows.len();
    let start = part.start.min(all);
    let shown = part.count.min(all - start);
    let behind = all - start - shown;
    let mut line = if shown == all {
        count(all, "row")
    } else {
        format!("{shown} of {}, {} not shown", count(all, "row"), all - shown)
    };
    if behind > 0 && shown > 0 {
        let widest = part.widest.unwrap_or(0);
        line += &format!("; the next: table {} {widest} {} {shown}", table.name, start + shown);
    }
    let line = screen.paint(Style::Aside, &line).into_owned();
    screen.output.line(&line)
}

/// Names the columns that found no room.
fn tell_hidden(table: &Table, shown: usize, screen: &mut Screen) -> Result<()> {
    // The id is the first of them.
    let hidden = table.fields.get(shown.saturating_sub(1)..).unwrap_or_default();
    if hidden.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = hidden.iter().map(|field| field.name.as_str()).collect();
    let line = format!("no room for: {}; record {} ID shows all", names.join(", "), table.name);
    let line = screen.paint(Style::Aside, &line).into_owned();
    screen.output.line(&line)
}
