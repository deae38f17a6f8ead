//! The present state as one JSON document, or a line for each row.

use std::io::Write;

use annals::event::MAX_PIECE;
use annals::{Blob, Result, Row, Table, ValueRef};
use base64::prelude::{BASE64_STANDARD, Engine as _};

use super::VERSION;
use crate::present::Present;
use crate::progress::Rows;

/// The pieces of a blob that are encoded separately in base64: a multiple of three bytes.
const PIECE: usize = MAX_PIECE / 3 * 3;

/// Writes everything as one document.
pub(crate) fn document(present: &Present<'_>, out: &mut impl Write, rows: &mut Rows) -> Result<()> {
    let mut text = header(present, ",\n")?;
    text.push_str(",\n\"tables\":{");
    for (place, table) in present.schema().tables().iter().enumerate() {
        text.push_str(if place == 0 { "\n" } else { ",\n" });
        annals_json::push_string(&mut text, &table.name);
        text.push_str(":[");
        let mut row_writer = RowWriter::new(table);
        for (place, row) in present.table(table.number)?.rows().enumerate() {
            text.push_str(if place == 0 { "\n" } else { ",\n" });
            row_writer.write(present, &row?, &mut text, out)?;
            rows.count();
        }
        text.push(']');
    }
    text.push_str("}}\n");
    out.write_all(text.as_bytes()).map_err(cannot_write)
}

/// Writes everything as lines: the schema, then a line for each row.
pub(crate) fn lines(present: &Present<'_>, out: &mut impl Write, rows: &mut Rows) -> Result<()> {
    let mut text = header(present, ",")?;
    text.push_str("}\n");
    for table in present.schema().tables() {
        let mut row_writer = RowWriter::new(table);
        for row in present.table(table.number)?.rows() {
            text.push('{');
            annals_json::push_string(&mut text, &table.name);
            text.push(':');
            row_writer.write(present, &row?, &mut text, out)?;
            text.push_str("}\n");
            rows.count();
        }
    }
    out.write_all(text.as_bytes()).map_err(cannot_write)
}

/// Returns the beginning: schema, and how many rows there are.
fn header(present: &Present<'_>, separator: &str) -> Result<String> {
    let mut text = format!("{{\"annals\":{VERSION}{separator}\"schema\":[");
    for (place, line) in super::super::schema_lines(present.schema()).iter().enumerate() {
        text.push_str(if place == 0 { "" } else { "," });
        text.push_str(separator.trim_start_matches(','));
        annals_json::push_string(&mut text, line);
    }
    text.push_str(&format!("]{separator}\"counts\":{{"));
    for (place, table) in present.schema().tables().iter().enumerate() {
        text.push_str(if place == 0 { "" } else { "," });
        annals_json::push_string(&mut text, &table.name);
        let view = present.table(table.number)?;
        text.push_str(&format!(":{{\"rows\":{},\"next_id\":{}}}", view.len(), view.next_id()));
    }
    text.push('}');
    let mut erased = Vec::new();
    for table in present.schema().tables() {
        let fields = crate::present::erased(present, table)?;
        erased
            .extend(fields.iter().map(|field| format!("[\"{}\",\"{}\"]", table.name, field.name)));
    }
    if !erased.is_empty() {
        text.push_str(&format!("{separator}\"erased\":[{}]", erased.join(",")));
    }
    Ok(text)
}

/// Writes rows of one table.
struct RowWriter<'t> {
    table: &'t Table,
    keys: Vec<String>,
}

impl<'t> RowWriter<'t> {
    fn new(table: &'t Table) -> Self {
        let key = |field| {
            let mut text = String::from(",");
            annals_json::push_string(&mut text, &annals_json::key(table, field));
            text + ":"
        };
        Self { table, keys: table.fields.iter().map(key).collect() }
    }

    /// Writes a row after `text`, which is emptied now and then.
    fn write(
        &mut self,
        present: &Present<'_>,
        row: &Row<'_>,
        text: &mut String,
        out: &mut impl Write,
    ) -> Result<()> {
        text.push_str(&format!("{{\"id\":{}", row.id().0));
        for (field, key) in self.table.fields.iter().zip(&self.keys) {
            text.push_str(key);
            match row.value(field.number) {
                ValueRef::Bytes(bytes) => push_bytes(text, bytes),
                ValueRef::Blob(blob) => push_blob(present, blob, text, out)?,
                value => annals_json::push_value(text, value),
            }
        }
        text.push('}');
        if text.len() >= 1 << 15 {
            flush(text, out)?;
        }
        Ok(())
    }
}

fn push_bytes(text: &mut String, bytes: &[u8]) {
    text.push('"');
    BASE64_STANDARD.encode_string(bytes, text);
    text.push('"');
}

/// Writes the bytes of a blob, piece by piece: they may be more than memory holds.
fn push_blob(
    present: &Present<'_>,
    blob: Blob,
    text: &mut String,
    out: &mut impl Write,
) -> Result<()> {
    let mut reader = present.blob(blob)?;
    let rest = usize::try_from(reader.len()).unwrap_or(usize::MAX);
    let mut bytes = vec![0; PIECE.min(rest)];
    let mut offset = 0;
    text.push('"');
    while offset < reader.len() {
        let read = reader.read_at(offset, &mut bytes)?;
        BASE64_STANDARD.encode_string(bytes.get(..read).unwrap_or_default(), text);
        offset += read as u64;
        flush(text, out)?;
    }
    text.push('"');
    Ok(())
}

fn flush(text: &mut String, out: &mut impl Write) -> Result<()> {
    out.write_all(text.as_bytes()).map_err(cannot_write)?;
    text.clear();
    Ok(())
}

fn cannot_write(error: std::io::Error) -> annals::Error {
    annals::Error::io("cannot write the output", error)
}
