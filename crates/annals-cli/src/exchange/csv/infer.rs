//! CSV files without a schema: the first pass reads all cells.

use std::path::PathBuf;

use annals::{Command, Error, Result, RowId, Schema, TableNumber};
use indicatif::ProgressBar;

use super::numbers;
use super::records::Record;
use super::source::{self, Column, Manner, Source};
use crate::exchange::naming::Naming;
use crate::exchange::scalar::Scalar;
use crate::notes::note;

/// Returns a schema that holds all cells, and the files to be read with it.
///
/// A column of `true` and `false` is one of booleans, one of integers or numbers one of those, if they are written
/// again as they are, and any other one of texts; empty cells without quotes are null. `id` is the id of the row if all
/// are ids and ascend.
pub(crate) fn infer(
    files: &[(String, PathBuf)],
    manner: Manner<'_>,
    bar: &ProgressBar,
) -> Result<(Schema, Vec<Source>)> {
    let (mut schema, mut names, mut sources) = (Schema::default(), Naming::default(), Vec::new());
    for (table, (name, path)) in (0..).map(TableNumber).zip(files) {
        let within = |error: Error| error.within(path.display());
        let mut records = source::open(path, manner, bar)?;
        let mut heading = Record::default();
        records.read(&mut heading)?;
        let mut columns: Vec<_> = heading.cells().map(|_| numbers::Column::new()).collect();
        let id = heading.cells().position(|(text, _)| text == "id");
        let (mut record, mut last, mut ascends) = (Record::default(), None, id.is_some());
        while records.read(&mut record)? {
            if record.len() != heading.len() {
                let (cells, wanted, line) = (record.len(), heading.len(), record.line);
                let message = format!("line {line}: {cells} cells, where the header has {wanted}");
                return Err(within(Error::invalid(message)));
            }
            for (column, (text, quoted)) in columns.iter_mut().zip(record.cells()) {
                match manner.is_null(text, quoted) {
                    true => column.seen.see(Scalar::Null),
                    false => column.see(text, record.line),
                }
            }
            let found = id.and_then(|place| record.cells().nth(place)).map(|(text, _)| text);
            let found =
                found.and_then(|text| text.parse().ok().filter(|id: &u64| id.to_string() == text));
            let found = found.map(RowId);
            ascends = ascends && found > last && found <= Some(RowId::MAX);
            last = found;
        }
        let mut add = |command| {
            schema.apply(command).map_err(|error| within(Error::invalid(error.to_string())))
        };
        add(Command::CreateTable { name: names.take(name) })?;
        let (mut fields, mut places) = (Naming::default(), Vec::new());
        for (place, ((text, _), column)) in heading.cells().zip(&columns).enumerate() {
            if ascends && id == Some(place) {
                places.push(Column::Id);
                continue;
            }
            let name = fields.take(text);
            if name != text {
                note(&format!("{}: column {text:?} becomes {name}", path.display()));
            }
            let ty = column.ty(&format!("{}: column {text:?}", path.display()));
            let nullable = column.seen.nulls;
            add(Command::AddField { table, name, ty, nullable, default: None })?;
            places.push(Column::Field(places.iter().filter(|place| **place != Column::Id).count()));
        }
        let manner = Manner { separator: Some(records.separator), ..manner };
        let again = source::open(path, manner, bar)?;
        sources.push(Source::known(table, path, places, again)?);
    }
    Ok((schema, sources))
}
