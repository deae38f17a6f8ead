//! The distinct values of an index's first fields, and how many rows have each.

use super::{IndexRows, IndexView, id_in};
use crate::index::key;
use crate::row::Row;
use crate::{Error, Result};

/// One row of each group of rows that have the same values in an index's first fields.
#[derive(Debug)]
pub struct Groups<'a> {
    rows: IndexRows<'a>,
    fields: usize,
    ended: bool,
}

impl<'a> IndexView<'a> {
    /// Returns the first row of each group of rows with the same values in the first `fields` fields of the index,
    /// with the number of its rows. Nulls are one group. The idea is known as a loose index scan.
    ///
    /// A step reads one row and seeks past the others of its group: it takes logarithmic time, whatever their number.
    #[must_use]
    pub fn groups(&self, fields: usize) -> Groups<'a> {
        Groups { rows: self.rows(), fields, ended: false }
    }
}

impl<'a> Groups<'a> {
    fn step(&mut self) -> Result<Option<(Row<'a>, u64)>> {
        if let Some(error) = self.rows.error.take() {
            return Err(error);
        }
        let Some(id) = self.rows.entries.clone().next_with(id_in)? else { return Ok(None) };
        let index = self.rows.index;
        let row = index.table.get(id)?;
        let high = key::successor(self.key_of(&row)?);
        let number = self.rows.entries.take_before(high.as_deref())?.left()?;
        Ok(Some((row, number)))
    }

    /// Makes the key that all rows of a row's group begin with.
    fn key_of(&self, row: &Row<'a>) -> Result<Vec<u8>> {
        let index = self.rows.index;
        let schema = index.table.view.schema.index(index.data.number);
        let all = schema.map_or(&[][..], |index| &index.fields);
        let fields = all.get(..self.fields).ok_or_else(|| {
            let (name, has, asked) = (&index.table.schema().name, all.len(), self.fields);
            Error::invalid(format!(
                "groups by {asked} fields were asked of an index of table `{name}` that has {has}"
            ))
        })?;
        index.encode(&fields.iter().map(|&field| row.value(field)).collect::<Vec<_>>())
    }
}

impl<'a> Iterator for Groups<'a> {
    type Item = Result<(Row<'a>, u64)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let group = self.step();
        self.ended = !matches!(group, Ok(Some(_)));
        group.transpose()
    }
}
