//! The distinct values of an index's first fields, and how many rows have each.

use annals_schema::ValueRef;

use super::IndexView;
use super::cursor::IndexCursor;
use crate::row::Row;
use crate::{Error, Result};

/// One row of each group of rows that have the same values in an index's first fields.
///
/// A step takes logarithmic time, whatever the number of rows in the group: it seeks past them.
#[derive(Clone, Debug)]
pub struct Groups<'a> {
    cursor: IndexCursor<'a>,
    fields: usize,
    ended: bool,
}

impl<'a> IndexView<'a> {
    /// Returns the first row of each group of rows with the same values in the first `fields` fields of the index,
    /// with the number of its rows. Nulls are one group.
    ///
    /// The idea is known as a loose index scan. A step costs two seeks and the reading of one row.
    #[must_use]
    pub fn groups(&self, fields: usize) -> Groups<'a> {
        Groups { cursor: self.cursor(), fields, ended: false }
    }
}

impl<'a> Groups<'a> {
    fn step(&mut self) -> Result<Option<(Row<'a>, u64)>> {
        let Some(row) = self.cursor.peek_next().transpose()? else { return Ok(None) };
        let index = self.cursor.index();
        let schema = index.table.view.schema.index(index.data.number);
        let (table, fields) = (index.table, schema.map_or(&[][..], |index| &index.fields));
        let Some(asked) = fields.get(..self.fields) else {
            let (name, has) = (&table.schema().name, fields.len());
            let asked = self.fields;
            return Err(Error::invalid(format!(
                "groups by {asked} fields were asked of an index of table `{name}` that has {has}"
            )));
        };
        let values: Vec<ValueRef<'_>> = asked.iter().map(|&field| row.value(field)).collect();
        let before = self.cursor.rank()?;
        self.cursor.seek_behind(&values)?;
        drop(values);
        Ok(Some((row, self.cursor.rank()? - before)))
    }
}

impl<'a> Iterator for Groups<'a> {
    type Item = Result<(Row<'a>, u64)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let step = self.step().transpose();
        self.ended = !matches!(step, Some(Ok(_)));
        step
    }
}
