//! A folder of CSV files, and the schema beside them.

use std::io::Write;
use std::path::Path;
use std::{fs, io};

use annals::event::MAX_PIECE;
use annals::storage::Permissions;
use annals::{Blob, Result, Table, ValueRef};

use crate::exchange::{naming, schema_lines};
use crate::files::cannot;
use crate::new_file::NewFile;
use crate::present::Present;
use crate::progress::Rows;
use crate::{cell, output};

/// The schema, the next ids that don't follow from the rows, and the fields with erased values.
pub(crate) const SCHEMA_FILE: &str = "schema.annals";

/// The format of the tables' files.
pub(crate) struct Format {
    /// How their names end.
    pub(crate) ending: &'static str,
    /// Writes the rows of a table to its file.
    pub(crate) write: fn(&Present<'_>, &Table, &mut NewFile, &mut Rows) -> Result<()>,
}

/// CSV.
pub(crate) const FORMAT: Format = Format { ending: "csv", write: write_table };

/// Writes a file for each table into a directory, and the schema, with these permissions. They appear when all are
/// complete; if the directory was new and something fails, it is removed again.
pub(crate) fn write_folder(
    present: &Present<'_>,
    dir: &Path,
    permissions: Option<Permissions>,
    how: &Format,
) -> Result<()> {
    let is_new = match fs::create_dir(dir) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) => return Err(cannot("create the directory", dir, error)),
    };
    write_files(present, dir, permissions, how).inspect_err(|_| {
        if is_new {
            // It is kept if another program has put files there.
            let _ = fs::remove_dir(dir);
        }
    })
}

fn write_files(
    present: &Present<'_>,
    dir: &Path,
    permissions: Option<Permissions>,
    how: &Format,
) -> Result<()> {
    let mut total = 0;
    let schema_path = dir.join(SCHEMA_FILE);
    let mut schema_file = NewFile::like(permissions, &schema_path, None)?;
    let failed = |error| cannot("write", &schema_path, error);
    for line in schema_lines(present.schema()) {
        writeln!(schema_file, "{line}").map_err(failed)?;
    }
    for table in present.schema().tables() {
        let view = present.table(table.number)?;
        total += view.len();
        let last = view.range(..).next_back().transpose()?;
        if view.next_id() != last.map_or(0, |row| row.id().0 + 1) {
            writeln!(schema_file, "# next_id {} {}", table.name, view.next_id()).map_err(failed)?;
        }
        for field in crate::present::erased(present, table)? {
            writeln!(schema_file, "# erased {} {}", table.name, field.name).map_err(failed)?;
        }
    }
    let mut rows = Rows::new("writing", total);
    let mut files = vec![schema_file];
    let names = naming::file_names(present.schema());
    for (table, name) in present.schema().tables().iter().zip(names) {
        let path = dir.join(format!("{name}.{}", how.ending));
        let mut file = NewFile::like(permissions, &path, None)?;
        (how.write)(present, table, &mut file, &mut rows)?;
        files.push(file);
    }
    files.iter_mut().try_for_each(NewFile::complete)?;
    files.into_iter().try_for_each(NewFile::finish)
}

fn write_table(
    present: &Present<'_>,
    table: &Table,
    file: &mut NewFile,
    rows: &mut Rows,
) -> Result<()> {
    let path = file.target().to_owned();
    let failed = |error| cannot("write", &path, error);
    let mut line = String::from("id");
    for field in &table.fields {
        line.push(',');
        line.push_str(&cell::heading(table, field));
    }
    let mut text = String::new();
    for row in present.table(table.number)?.rows() {
        let row = row?;
        line.push('\n');
        file.write_all(line.as_bytes()).map_err(failed)?;
        line.clear();
        line.push_str(&row.id().0.to_string());
        for field in &table.fields {
            line.push(',');
            match row.value(field.number) {
                ValueRef::Null => {}
                ValueRef::Blob(blob) => {
                    file.write_all(line.as_bytes()).map_err(failed)?;
                    line.clear();
                    write_blob(present, blob, |bytes| file.write_all(bytes).map_err(failed))?;
                }
                value => {
                    text.clear();
                    cell::write(value, &mut text);
                    push_cell(&mut line, &text);
                }
            }
        }
        rows.count();
    }
    line.push('\n');
    file.write_all(line.as_bytes()).map_err(failed)
}

/// Appends a cell that isn't null.
fn push_cell(line: &mut String, text: &str) {
    if !text.is_empty() && !text.contains(['"', ',', '\n', '\r']) {
        return line.push_str(text);
    }
    line.push('"');
    line.push_str(&text.replace('"', "\"\""));
    line.push('"');
}

/// Writes the bytes of a blob, piece by piece: they may be more than memory holds.
fn write_blob(
    present: &Present<'_>,
    blob: Blob,
    mut write: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut reader = present.blob(blob)?;
    let mut bytes = vec![0; MAX_PIECE];
    let mut offset = 0;
    write(b"0x")?;
    while offset < reader.len() {
        let read = reader.read_at(offset, &mut bytes)?;
        write(output::hex(bytes.get(..read).unwrap_or_default()).as_bytes())?;
        offset += read as u64;
    }
    Ok(())
}
