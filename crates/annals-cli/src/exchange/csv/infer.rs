//! CSV files without a schema: the first pass reads all cells.

use std::path::PathBuf;

use annals::{Command, Error, Result, RowId, Schema, TableNumber};
use indicatif::ProgressBar;

use super::records::Record;
use super::source::{self, Column, Source};
use crate::exchange::naming::Naming;
use crate::exchange::scalar::{Scalar, Seen};
use crate::notes::note;

/// Returns a schema that holds all cells, and the files to be read with it.
///
/// A column of `true` and `false` is one of booleans, one of integers or numbers one of those, and any other
/// one of texts; empty cells without quotes are null. `id` is the id of the row if all are ids and ascend.
pub(crate) fn infer(
    files: &[(String, PathBuf)],
    null: Option<&str>,
    bar: &ProgressBar,
) -> Result<(Schema, Vec<Source>)> {
    let (mut schema, mut names, mut sources) = (Schema::default(), Naming::default(), Vec::new());
    for (table, (name, path)) in (0..).map(TableNumber).zip(files) {
        let within = |error: Error| error.within(path.display());
        let mut records = source::open(path, bar)?;
        let mut heading = Record::default();
        records.read(&mut heading)?;
        let mut columns = vec![Seen::default(); heading.len()];
        let id = heading.cells().position(|(text, _)| text == "id");
        let (mut record, mut last, mut ascends) = (Record::default(), None, id.is_some());
        while records.read(&mut record)? {
            if record.len() != heading.len() {
                let (cells, wanted, line) = (record.len(), heading.len(), record.line);
                let message = format!("line {line}: {cells} cells, where the header has {wanted}");
                return Err(within(Error::invalid(message)));
            }
            for (seen, (text, quoted)) in columns.iter_mut().zip(record.cells()) {
                seen.see(scalar(text, quoted, null));
            }
            let found = id.and_then(|place| record.cells().nth(place)).map(|(text, _)| text);
            let found = found.and_then(|text| text.parse().ok()).map(RowId);
            ascends = ascends && found > last && found <= Some(RowId::MAX);
            last = found;
        }
        let mut add = |command| {
            schema.apply(command).map_err(|error| within(Error::invalid(error.to_string())))
        };
        add(Command::CreateTable { name: names.take(name) })?;
        let (mut fields, mut places) = (Naming::default(), Vec::new());
        for ((text, _), seen) in heading.cells().zip(&columns) {
            if ascends && text == "id" {
                places.push(Column::Id);
                continue;
            }
            let name = fields.take(text);
            if name != text {
                note(&format!("{}: column {text:?} becomes {name}", path.display()));
            }
            // Numbers beside texts stay as they are written.
            let ty = if seen.is_mixed() { annals::Type::String } else { seen.natural(false) };
            add(Command::AddField { table, name, ty, nullable: seen.nulls, default: None })?;
            places.push(Column::Field(places.iter().filter(|place| **place != Column::Id).count()));
        }
        sources.push(Source::known(table, path, places, bar)?);
    }
    Ok((schema, sources))
}

/// Returns the types of a cell from which a program would write the same text.
fn scalar<'a>(text: &'a str, quoted: bool, null: Option<&str>) -> Scalar<'a> {
    if null == Some(text) || (text.is_empty() && !quoted && null.is_none()) {
        return Scalar::Null;
    }
    if let Ok(value) = text.parse::<bool>() {
        return Scalar::Bool(value);
    }
    if let Some(value) = text.parse::<i128>().ok().filter(|value| value.to_string() == text) {
        return Scalar::Int(value);
    }
    let is_number = text.contains(|c: char| c.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte))
        && text.contains(['.', 'e', 'E'])
        && !text.trim_start_matches('-').starts_with("00");
    let value = text.parse::<f64>().ok().filter(|value| is_number && value.is_finite());
    value.map_or(Scalar::Text(text), Scalar::Real)
}
