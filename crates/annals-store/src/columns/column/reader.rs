//! Reading many values of a column: the pages that were read last are kept in hand.

use annals_event::from_cell;
use annals_schema::ValueRef;

use super::{Column, Data};
use crate::Result;
use crate::columns::raw::ValueKind;
use crate::columns::strings::reader::StringReader;
use crate::pages::cells::{BitReader, CellReader};

/// Reads the values of a column.
#[derive(Debug)]
pub(crate) struct ColumnReader<'a> {
    column: &'a Column,
    nulls: Option<BitReader<'a>>,
    data: DataReader<'a>,
}

#[derive(Debug)]
enum DataReader<'a> {
    Bits(BitReader<'a>),
    One(CellReader<'a, 1>),
    Two(CellReader<'a, 2>),
    Four(CellReader<'a, 4>),
    Eight(CellReader<'a, 8>),
    Sixteen(CellReader<'a, 16>),
    Variable(Box<StringReader<'a>>),
}

impl Column {
    /// Begins to read.
    pub(crate) fn reader(&self) -> ColumnReader<'_> {
        let data = match &self.data {
            Data::Bits(bits) => DataReader::Bits(bits.reader()),
            Data::One(cells) => DataReader::One(cells.reader()),
            Data::Two(cells) => DataReader::Two(cells.reader()),
            Data::Four(cells) => DataReader::Four(cells.reader()),
            Data::Eight(cells) => DataReader::Eight(cells.reader()),
            Data::Sixteen(cells) => DataReader::Sixteen(cells.reader()),
            Data::Variable(strings) => DataReader::Variable(Box::new(strings.reader())),
        };
        ColumnReader { column: self, nulls: self.nulls.as_ref().map(|nulls| nulls.reader()), data }
    }
}

impl<'a> ColumnReader<'a> {
    /// Returns the column.
    pub(crate) const fn column(&self) -> &'a Column {
        self.column
    }

    /// Returns the value of a slot.
    ///
    /// # Errors
    /// It can't be loaded, or the image's bytes there are no value.
    #[inline]
    pub(crate) fn get(&mut self, slot: usize) -> Result<ValueRef<'_>> {
        if let Some(nulls) = &mut self.nulls
            && nulls.get(slot)?
        {
            return Ok(ValueRef::Null);
        }
        let ty = self.column.ty;
        Ok(match &mut self.data {
            DataReader::Bits(bits) => ValueRef::Bool(bits.get(slot)?),
            DataReader::One(cells) => from_cell(ty, &cells.get(slot)?),
            DataReader::Two(cells) => from_cell(ty, &cells.get(slot)?),
            DataReader::Four(cells) => from_cell(ty, &cells.get(slot)?),
            DataReader::Eight(cells) => from_cell(ty, &cells.get(slot)?),
            DataReader::Sixteen(cells) => from_cell(ty, &cells.get(slot)?),
            DataReader::Variable(strings) => match self.column.kind {
                ValueKind::String => ValueRef::String(strings.get_str(slot)?),
                _ => ValueRef::Bytes(strings.get(slot)?),
            },
        })
    }
}
