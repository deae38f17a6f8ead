//! Tables as notebooks show them.

use annals::Table as Schema;
use pyo3::prelude::*;

use crate::rows::{Row, RowIterator};

/// How many rows are shown.
pub(crate) const SHOWN: usize = 20;
/// How many characters of a value are.
const WIDTH: usize = 100;

fn cell(out: &mut String, tag: &str, text: &str) {
    out.push_str(&format!("<{tag}>"));
    for (count, letter) in text.chars().enumerate() {
        match letter {
            _ if count == WIDTH => {
                out.push('…');
                break;
            }
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            letter => out.push(letter),
        }
    }
    out.push_str(&format!("</{tag}>"));
}

/// Returns rows, and how many there are in all.
pub(crate) fn table<'c>(
    columns: impl Iterator<Item = &'c str>,
    rows: impl Iterator<Item = PyResult<Vec<String>>>,
    count: u64,
) -> PyResult<String> {
    let mut out = "<table><thead><tr>".to_owned();
    columns.for_each(|column| cell(&mut out, "th", column));
    out.push_str("</tr></thead><tbody>");
    for row in rows.take(SHOWN) {
        out.push_str("<tr>");
        row?.iter().for_each(|value| cell(&mut out, "td", value));
        out.push_str("</tr>");
    }
    let rows = if count == 1 { "row" } else { "rows" };
    out.push_str(&format!("</tbody></table><p>{count} {rows}</p>"));
    Ok(out)
}

/// Returns rows of a table.
pub(crate) fn of_rows(
    py: Python<'_>,
    described: &Schema,
    rows: RowIterator,
    count: u64,
) -> PyResult<String> {
    let columns = described.fields.iter().map(|field| field.name.as_str());
    let columns = std::iter::once("id").chain(columns);
    let rows = std::iter::from_fn(|| rows.__next__(py).transpose());
    table(columns, rows.map(|row: PyResult<Row>| row?.shown(py)), count)
}
