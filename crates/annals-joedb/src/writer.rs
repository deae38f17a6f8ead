//! Writes entries as joedb's own writer does, to the byte: repeated parts are left out.

use std::io::{self, Read, Seek, SeekFrom, Write};

use annals::RowId;

use super::format::{COMPACT_MAX, Cell, Context, Entry, HEAD, Head, Kind, Way, code};

/// Writes a file.
pub(crate) struct Writer<W> {
    output: W,
    /// Where the next byte will be in the file.
    position: u64,
    context: Context,
    /// Space for an entry.
    bytes: Vec<u8>,
}

/// Returns the number of a row; `None` if the id is too large.
pub(crate) fn row_of(id: RowId) -> Option<u64> {
    id.0.checked_add(1).filter(|&row| row <= COMPACT_MAX)
}

impl<W: Write> Writer<W> {
    /// Begins a file.
    pub(crate) fn new(mut output: W) -> io::Result<Self> {
        output.write_all(&Head::whole(HEAD).encode())?;
        Ok(Self { output, position: HEAD, context: Context::default(), bytes: Vec::new() })
    }

    /// Returns how long the file is by now, in bytes.
    pub(crate) const fn position(&self) -> u64 {
        self.position
    }

    /// Writes an entry. The values of a vector and the bytes of a blob are for the caller to write after it.
    pub(crate) fn entry(&mut self, entry: Entry<'_>) -> io::Result<()> {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        self.encode(&mut bytes, entry);
        let written = self.write(&bytes);
        self.bytes = bytes;
        written
    }

    fn encode(&mut self, out: &mut Vec<u8>, entry: Entry<'_>) {
        match entry {
            Entry::CreateTable { name } => push_text(out, code::CREATE_TABLE, &[], name),
            Entry::DropTable { table } => push(out, code::DROP_TABLE, &[table]),
            Entry::RenameTable { table, name } => {
                push_text(out, code::RENAME_TABLE, &[table], name)
            }
            Entry::AddField { table, name, kind, target } => {
                push_text(out, code::ADD_FIELD, &[table], name);
                out.push(kind.code());
                if kind == Kind::Reference {
                    push_compact(out, target);
                }
            }
            Entry::DropField { table, field } => push(out, code::DROP_FIELD, &[table, field]),
            Entry::RenameField { table, field, name } => {
                push_text(out, code::RENAME_FIELD, &[table, field], name);
            }
            Entry::Insert { table, row } => {
                let is_next = self.is_at(table, row.checked_sub(1));
                if is_next {
                    push(out, code::APPEND, &[])
                } else {
                    push(out, code::INSERT, &[table, row])
                }
                (self.context.table, self.context.row) = (table, row);
            }
            Entry::Delete { table, row } => push(out, code::DELETE, &[table, row]),
            Entry::InsertVector { table, row, count } => {
                push(out, code::INSERT_VECTOR, &[table, row, count]);
                (self.context.table, self.context.row) = (table, row);
            }
            Entry::DeleteVector { table, row, count } => {
                push(out, code::DELETE_VECTOR, &[table, row, count]);
            }
            Entry::Update { table, row, field, value } => {
                self.push_update(out, table, row, field, value.kind());
                push_value(out, value);
            }
            Entry::UpdateVector { table, row, field, kind, count } => {
                push(out, Way::Vector.code(kind), &[table, row, field, count]);
                self.context = Context { table, row, field };
            }
            Entry::Blob { size } => push(out, code::BLOB, &[size]),
            Entry::Comment(text) => push_text(out, code::COMMENT, &[], text),
            Entry::Timestamp(seconds) => {
                out.push(code::TIMESTAMP);
                out.extend(seconds.to_le_bytes());
            }
            Entry::ValidData => push(out, code::VALID_DATA, &[]),
            Entry::Custom(name) => push_text(out, code::CUSTOM, &[], name),
        }
    }

    fn push_update(&mut self, out: &mut Vec<u8>, table: u64, row: u64, field: u64, kind: Kind) {
        if self.is_at(table, Some(row)) {
            push(out, Way::Last.code(kind), &[field]);
        } else if self.is_at(table, row.checked_sub(1)) && self.context.field == field {
            push(out, Way::Next.code(kind), &[]);
        } else {
            push(out, Way::Full.code(kind), &[table, row, field]);
        }
        self.context = Context { table, row, field };
    }

    fn is_at(&self, table: u64, row: Option<u64>) -> bool {
        self.context.table == table && Some(self.context.row) == row
    }

    /// Writes a value of a vector.
    pub(crate) fn value(&mut self, value: Cell<'_>) -> io::Result<()> {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        push_value(&mut bytes, value);
        let written = self.write(&bytes);
        self.bytes = bytes;
        written
    }

    /// Writes all bytes of a reader as the bytes of a blob.
    pub(crate) fn stream(&mut self, reader: &mut dyn Read) -> io::Result<()> {
        self.position += io::copy(reader, &mut self.output)?;
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.position += bytes.len() as u64;
        self.output.write_all(bytes)
    }
}

impl<W: Write + Seek> Writer<W> {
    /// Completes the file: writes a header that marks all of it as committed. The caller must flush the file.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.output.seek(SeekFrom::Start(0))?;
        self.output.write_all(&Head::whole(self.position).encode())?;
        Ok(self.output)
    }
}

fn push(out: &mut Vec<u8>, code: u8, numbers: &[u64]) {
    out.push(code);
    numbers.iter().for_each(|&number| push_compact(out, number));
}

fn push_text(out: &mut Vec<u8>, code: u8, numbers: &[u64], text: &[u8]) {
    push(out, code, numbers);
    push_bytes(out, text);
}

fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    push_compact(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a number in as few bytes as it fits in.
fn push_compact(out: &mut Vec<u8>, number: u64) {
    debug_assert!(number <= COMPACT_MAX, "whoever writes a row or a length has checked it");
    let more = (0..7_u8).find(|more| number >> (5 + 8 * more) == 0).unwrap_or(7);
    let low = |place: u8| u8::try_from(number >> (8 * place) & 0xff).unwrap_or_default();
    out.push(more << 5 | low(more) & 0x1f);
    (0..more).rev().for_each(|place| out.push(low(place)));
}

fn push_value(out: &mut Vec<u8>, value: Cell<'_>) {
    match value {
        Cell::String(text) => push_bytes(out, text),
        Cell::Written(value) => push_bytes(out, value.to_string().as_bytes()),
        Cell::Int32(value) => out.extend(value.to_le_bytes()),
        Cell::Int64(value) => out.extend(value.to_le_bytes()),
        Cell::Reference(row) => push_compact(out, row),
        Cell::Bool(value) => out.push(value.into()),
        Cell::Float32(value) => out.extend(value.to_le_bytes()),
        Cell::Float64(value) => out.extend(value.to_le_bytes()),
        Cell::Int8(value) => out.extend(value.to_le_bytes()),
        Cell::Int16(value) => out.extend(value.to_le_bytes()),
        Cell::Blob(position, size) => {
            push_compact(out, position);
            push_compact(out, size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::Reader;

    #[test]
    fn numbers_take_as_few_bytes_as_they_fit_in_and_come_back() {
        let ends = (0..=7).map(|more| (1_u64 << (5 + 8 * more)) - 1);
        for (more, end) in ends.enumerate() {
            for (number, len) in [(end, more + 1), (end + 1, more + 2)] {
                if number > COMPACT_MAX {
                    continue;
                }
                let mut bytes = vec![code::DROP_TABLE];
                push_compact(&mut bytes, number);
                assert_eq!(bytes.len(), 1 + len, "{number}");
                let mut reader = Reader::new(bytes.as_slice(), 0, bytes.len() as u64);
                let entry = reader.next().unwrap().unwrap();
                assert!(
                    matches!(entry, Entry::DropTable { table } if table == number),
                    "{entry:?}"
                );
            }
        }
    }
}
