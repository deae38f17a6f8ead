//! Reads entries in sequence, in memory that doesn't grow with the file.
//!
//! Every length is compared with the rest of the file before it is used. So no file causes the use of more memory
//! than its length.

use std::io::{self, BufRead, Read, Take};

use annals::{Error, ErrorKind, Result};

use super::format::{Cell, Context, Entry, Kind, Way, code};

/// Reads the bytes between two positions.
pub(crate) struct Reader<R> {
    input: R,
    /// Where the next byte is in the file.
    position: u64,
    end: u64,
    context: Context,
    /// The text, or the cells, that were read last.
    bytes: Vec<u8>,
}

impl<R: BufRead> Reader<R> {
    /// Begins with the first entry at a position, which is where the input is.
    pub(crate) fn new(input: R, position: u64, end: u64) -> Self {
        Self { input, position, end, context: Context::default(), bytes: Vec::new() }
    }

    /// Returns where the next byte is in the file.
    pub(crate) const fn position(&self) -> u64 {
        self.position
    }

    /// True if the next entry is a comment, a timestamp or a valid-data mark.
    pub(crate) fn is_at_mark(&mut self) -> Result<bool> {
        const MARKS: [u8; 3] = [code::COMMENT, code::TIMESTAMP, code::VALID_DATA];
        if self.position >= self.end {
            return Ok(false);
        }
        let next = self.input.fill_buf().map_err(unreadable)?.first();
        Ok(next.is_some_and(|next| MARKS.contains(next)))
    }

    /// Reads an entry; `None` at the end.
    ///
    /// # Errors
    /// `Corrupt`: it isn't one, or isn't whole; `Unsupported`: joedb doesn't read such entries any more.
    pub(crate) fn next(&mut self) -> Result<Option<Entry<'_>>> {
        if self.position >= self.end {
            return Ok(None);
        }
        let first = self.byte()?;
        if let Some((way, kind)) = Way::of_code(first) {
            return self.update(way, kind).map(Some);
        }
        Ok(Some(match first {
            code::CREATE_TABLE => Entry::CreateTable { name: self.text()? },
            code::DROP_TABLE => Entry::DropTable { table: self.compact()? },
            code::RENAME_TABLE => Entry::RenameTable { table: self.compact()?, name: self.text()? },
            code::ADD_FIELD => self.add_field()?,
            code::DROP_FIELD => Entry::DropField { table: self.compact()?, field: self.compact()? },
            code::RENAME_FIELD => Entry::RenameField {
                table: self.compact()?,
                field: self.compact()?,
                name: self.text()?,
            },
            code::INSERT => {
                let (table, row) = self.place()?;
                Entry::Insert { table, row }
            }
            code::APPEND => {
                self.step();
                Entry::Insert { table: self.context.table, row: self.context.row }
            }
            code::DELETE => Entry::Delete { table: self.compact()?, row: self.compact()? },
            code::INSERT_VECTOR => {
                let (table, row) = self.place()?;
                Entry::InsertVector { table, row, count: self.compact()? }
            }
            code::DELETE_VECTOR => {
                let (table, row) = (self.compact()?, self.compact()?);
                Entry::DeleteVector { table, row, count: self.compact()? }
            }
            code::BLOB => Entry::Blob { size: self.length("a blob", 1)? },
            code::COMMENT => Entry::Comment(self.text()?),
            code::TIMESTAMP => Entry::Timestamp(i64::from_le_bytes(self.array()?)),
            code::VALID_DATA => Entry::ValidData,
            code::CUSTOM => Entry::Custom(self.text()?),
            retired if code::RETIRED.contains(&retired) => {
                let message = format!(
                    "an entry of kind {first:#04x}, which joedb doesn't read any more: rewrite the file with an older \
                     joedb"
                );
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
            _ => return Err(Error::corrupt(format!("no entry begins with the byte {first:#04x}"))),
        }))
    }

    fn add_field(&mut self) -> Result<Entry<'_>> {
        let table = self.compact()?;
        let len = self.length("a name", 1)?;
        self.fill(len)?;
        let number = self.byte()?;
        let kind = Kind::of_code(number)
            .ok_or_else(|| Error::corrupt(format!("there is no type number {number}")))?;
        let target = if kind == Kind::Reference { self.compact()? } else { 0 };
        Ok(Entry::AddField { table, name: &self.bytes, kind, target })
    }

    fn update(&mut self, way: Way, kind: Kind) -> Result<Entry<'_>> {
        match way {
            Way::Full | Way::Vector => {
                self.place()?;
                self.context.field = self.compact()?;
            }
            Way::Last => self.context.field = self.compact()?,
            Way::Next => self.step(),
        }
        let Context { table, row, field } = self.context;
        if way == Way::Vector {
            let least = kind.width().unwrap_or(if kind == Kind::Blob { 2 } else { 1 });
            let count = self.length("a vector", least as u64)?;
            return Ok(Entry::UpdateVector { table, row, field, kind, count });
        }
        Ok(Entry::Update { table, row, field, value: self.value(kind)? })
    }

    /// Reads a value.
    pub(crate) fn value(&mut self, kind: Kind) -> Result<Cell<'_>> {
        Ok(match kind {
            Kind::String => Cell::String(self.text()?),
            Kind::Int32 => Cell::Int32(i32::from_le_bytes(self.array()?)),
            Kind::Int64 => Cell::Int64(i64::from_le_bytes(self.array()?)),
            Kind::Reference => Cell::Reference(self.compact()?),
            Kind::Bool => match self.byte()? {
                0 => Cell::Bool(false),
                1 => Cell::Bool(true),
                other => {
                    return Err(Error::corrupt(format!("the byte {other:#04x} is no boolean")));
                }
            },
            Kind::Float32 => Cell::Float32(f32::from_le_bytes(self.array()?)),
            Kind::Float64 => Cell::Float64(f64::from_le_bytes(self.array()?)),
            Kind::Int8 => Cell::Int8(i8::from_le_bytes(self.array()?)),
            Kind::Int16 => Cell::Int16(i16::from_le_bytes(self.array()?)),
            Kind::Blob => Cell::Blob(self.compact()?, self.compact()?),
        })
    }

    /// Reads `len` bytes of the values of a vector.
    pub(crate) fn cells(&mut self, len: u64) -> Result<&[u8]> {
        self.fill(len)?;
        Ok(&self.bytes)
    }

    /// Provides a reader of exactly `len` bytes.
    pub(crate) fn stream<T>(
        &mut self,
        len: u64,
        take: impl FnOnce(&mut Take<&mut R>) -> Result<T>,
    ) -> Result<T> {
        self.check_left(len)?;
        let mut part = Read::take(&mut self.input, len);
        let taken = take(&mut part)?;
        let left = part.limit();
        self.position += len - left;
        if left > 0 { Err(self.cut()) } else { Ok(taken) }
    }

    /// Skips `len` bytes.
    pub(crate) fn skip(&mut self, len: u64) -> Result<()> {
        self.stream(len, |part| io::copy(part, &mut io::sink()).map(drop).map_err(unreadable))
    }

    /// Reads table and row, and remembers them.
    fn place(&mut self) -> Result<(u64, u64)> {
        self.context.table = self.compact()?;
        self.context.row = self.compact()?;
        Ok((self.context.table, self.context.row))
    }

    /// Moves to the next row.
    fn step(&mut self) {
        self.context.row = self.context.row.saturating_add(1);
    }

    fn text(&mut self) -> Result<&[u8]> {
        let len = self.length("a text", 1)?;
        self.cells(len)
    }

    /// Reads a count of items, each of at least `least` bytes.
    fn length(&mut self, what: &str, least: u64) -> Result<u64> {
        let count = self.compact()?;
        let left = self.end - self.position;
        if count.checked_mul(least).is_some_and(|bytes| bytes <= left) {
            return Ok(count);
        }
        Err(Error::corrupt(format!("{what} of length {count}, where only {left} bytes are left")))
    }

    fn compact(&mut self) -> Result<u64> {
        let first = self.byte()?;
        let mut number = u64::from(first & 0x1f);
        for _ in 0..first >> 5 {
            number = number << 8 | u64::from(self.byte()?);
        }
        Ok(number)
    }

    fn byte(&mut self) -> Result<u8> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.check_left(N as u64)?;
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes).map_err(unreadable)?;
        self.position += N as u64;
        Ok(bytes)
    }

    fn fill(&mut self, len: u64) -> Result<()> {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        let filled = self.stream(len, |part| part.read_to_end(&mut bytes).map_err(unreadable));
        self.bytes = bytes;
        filled.map(drop)
    }

    fn check_left(&self, len: u64) -> Result<()> {
        if len <= self.end - self.position { Ok(()) } else { Err(self.cut()) }
    }

    #[cold]
    fn cut(&self) -> Error {
        Error::corrupt(format!("it goes on behind the end, at position {}", self.end))
    }
}

#[cold]
fn unreadable(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            Error::corrupt("the file became shorter while it was read: try again")
        }
        _ => Error::io("can't be read", error),
    }
}
