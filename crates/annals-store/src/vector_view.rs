//! Reading one field of rows with consecutive ids.

use std::borrow::Cow;

use annals_schema::{FieldNumber, RowId, ValueRef};

use crate::columns::column::Column;
use crate::columns::fetched::Fetched;
use crate::columns::primitive::{Primitive, from_cells};
use crate::pages::cells::place;
use crate::view::{TableView, no_row};
use crate::{Error, ErrorKind, Result};
use annals_storage::debug::brief;

/// The values of one field in rows with consecutive ids.
#[derive(Clone, Copy)]
pub struct VectorView<'a> {
    table: TableView<'a>,
    column: &'a Column,
    first: u64,
    count: u64,
}

brief!(VectorView<'_>, "VectorView", "table": |it| it.table, "first": |it| it.first, "count": |it| it.count);

/// Ends after the first error.
fn until_error<T>(items: impl Iterator<Item = Result<T>>) -> impl Iterator<Item = Result<T>> {
    items.scan(false, |failed, item| {
        let goes_on = !std::mem::replace(failed, item.is_err());
        goes_on.then_some(item)
    })
}

impl<'a> TableView<'a> {
    /// Returns the values of a field in `count` rows from `first` on. Cost: reads a bit for each row, 64 at a time.
    ///
    /// # Errors
    /// `NotFound`: no such field, or a row of the run doesn't exist (the message names the first missing one).
    pub fn vector(&self, field: FieldNumber, first: RowId, count: u64) -> Result<VectorView<'a>> {
        if let Some(whole) = self.view.whole()? {
            return whole.table(self.number)?.vector(field, first, count);
        }
        let column = self.data.column(field).ok_or_else(|| {
            let name = &self.schema().name;
            Error::new(
                ErrorKind::NotFound,
                format!("table `{name}` has no field number {}", field.0),
            )
        })?;
        if let Some(missing) = self.data.first_missing(first.0, count)? {
            return Err(no_row(self.view, self.number, RowId(missing)));
        }
        Ok(VectorView { table: *self, column, first: first.0, count })
    }

    /// Returns the first rows from `first` on whose ids are consecutive, at most `most`, as a range of ids; `None` if
    /// there is no such row. With [`vector`](Self::vector) it reads a table by columns, whatever ids are free.
    ///
    /// Cost: logarithmic, and a bit for each row, 64 at a time.
    ///
    /// # Errors
    /// The needed pages can't be loaded.
    pub fn dense(&self, first: RowId, most: u64) -> Result<Option<std::ops::Range<u64>>> {
        if let Some(whole) = self.view.whole()? {
            return whole.table(self.number)?.dense(first, most);
        }
        let Some(row) = self.data.rows.range(first.0..u64::MAX).next() else { return Ok(None) };
        let begin = row?.0.0;
        let missing = self.data.first_missing(begin, most)?;
        Ok(Some(begin..missing.unwrap_or(begin.saturating_add(most))))
    }
}

impl<'a> VectorView<'a> {
    /// Returns the number of values.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.count
    }

    /// True if there are no values.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns all values, of whatever type, one by one; an error is the last item.
    ///
    /// # Errors
    /// A value can't be loaded.
    pub fn values(&self) -> impl Iterator<Item = Result<Fetched<'a>>> + use<'a> {
        let column = self.column;
        let mut runs = self.table.data.runs(self.first, self.count);
        let mut slots = 0..0;
        until_error(std::iter::from_fn(move || {
            if slots.is_empty() {
                match runs.next()? {
                    Ok((slot, len)) => slots = slot..slot + place(len),
                    Err(error) => return Some(Err(error)),
                }
            }
            slots.next().map(|slot| column.get(slot))
        }))
    }

    /// Passes all values to `take`, in order: faster than [`values`](Self::values), and not to be stopped but by an error.
    ///
    /// # Errors
    /// Those of `take`; a value can't be loaded.
    pub fn for_each<F>(&self, take: &mut F) -> Result<()>
    where
        F: FnMut(ValueRef<'_>) -> Result<()>,
    {
        let mut reader = self.column.reader();
        for run in self.table.data.runs(self.first, self.count) {
            let (slot, len) = run?;
            for slot in slot..slot + place(len) {
                take(reader.get(slot)?)?;
            }
        }
        Ok(())
    }

    /// Returns the values as slices: one for each page, borrowed where the machine has the order of
    /// bytes that pages have, and the view has the page in memory. An error is the last item.
    ///
    /// # Errors
    /// `Invalid`: the field is of another type, or one of the values is null. An item is an error if
    /// its page can't be loaded.
    pub fn chunks<T: Primitive>(
        &self,
    ) -> Result<impl Iterator<Item = Result<Cow<'a, [T]>>> + use<'a, T>> {
        if !T::fits(self.column.ty()) {
            return Err(self.unfit(std::any::type_name::<T>()));
        }
        self.check_no_null()?;
        self.chunks_with_nulls::<T>()
    }

    /// Returns the same as [`chunks`](Self::chunks), also where values are null: there is any value in the place of
    /// one. [`nulls`](Self::nulls) has the places.
    ///
    /// # Errors
    /// `Invalid`: the field is of another type. An item is an error if its page can't be loaded.
    pub fn chunks_with_nulls<T: Primitive>(
        &self,
    ) -> Result<impl Iterator<Item = Result<Cow<'a, [T]>>> + use<'a, T>> {
        let column = self.column;
        if !T::fits(column.ty()) {
            return Err(self.unfit(std::any::type_name::<T>()));
        }
        let mut runs = self.table.data.runs(self.first, self.count);
        let mut run = (0, 0);
        let mut next = move || -> Result<Option<Cow<'a, [T]>>> {
            if run.1 == 0 {
                let Some((slot, len)) = runs.next().transpose()? else { return Ok(None) };
                run = (slot, place(len));
            }
            let cells = column.run(run.0, run.1)?;
            let len = cells.len() / size_of::<T>();
            run = (run.0 + len, run.1 - len);
            column.fetch(run.0);
            Ok(Some(match cells {
                Cow::Borrowed(cells) => from_cells(cells),
                Cow::Owned(cells) => Cow::Owned(from_cells(&cells).into_owned()),
            }))
        };
        Ok(until_error(std::iter::from_fn(move || next().transpose())))
    }

    /// Returns the places of the values that are null, from 0 on, in order; an error is the last item. Cost: a bit for
    /// each row, 64 at a time, if the field may be null.
    ///
    /// # Errors
    /// They can't be loaded.
    pub fn nulls(&self) -> impl Iterator<Item = Result<u64>> + use<'a> {
        let column = self.column;
        let may_be_null = column.is_nullable();
        let mut runs = self.table.data.runs(self.first, if may_be_null { self.count } else { 0 });
        // The run that is being read, and the number of values before it.
        let (mut slots, mut before, mut begin) = (0..0, 0_u64, 0);
        let mut next = move || -> Result<Option<u64>> {
            loop {
                if let Some(found) = column.next_null(slots.clone())? {
                    slots.start = found + 1;
                    return Ok(Some(before + (found - begin) as u64));
                }
                before += (slots.end - begin) as u64;
                let Some((slot, len)) = runs.next().transpose()? else { return Ok(None) };
                (begin, slots) = (slot, slot..slot + place(len));
            }
        };
        until_error(std::iter::from_fn(move || next().transpose()))
    }

    /// Copies the values to a slice.
    ///
    /// # Errors
    /// As [`chunks`](Self::chunks); `Invalid` if the slice is of another length.
    pub fn copy_to<T: Primitive>(&self, out: &mut [T]) -> Result<()> {
        if out.len() as u64 != self.count {
            let (given, count) = (out.len(), self.count);
            return Err(Error::invalid(format!("{count} values were read into {given} places")));
        }
        let mut rest = out;
        for chunk in self.chunks::<T>()? {
            let chunk = chunk?;
            let (here, behind) = rest.split_at_mut(chunk.len());
            here.copy_from_slice(&chunk);
            rest = behind;
        }
        Ok(())
    }

    /// Copies the values to a new vector.
    ///
    /// # Errors
    /// As [`chunks`](Self::chunks).
    pub fn to_vec<T: Primitive>(&self) -> Result<Vec<T>> {
        let mut values = Vec::with_capacity(place(self.count));
        for chunk in self.chunks::<T>()? {
            values.extend_from_slice(&chunk?);
        }
        Ok(values)
    }

    /// Returns strings: borrowed, if the view has them in memory. An error is the last item.
    ///
    /// # Errors
    /// `Invalid`: the field is of another type, or one of the values is null. An item is an error if
    /// it can't be loaded.
    pub fn strings(&self) -> Result<impl Iterator<Item = Result<Cow<'a, str>>> + use<'a>> {
        if self.column.ty() != annals_schema::Type::String {
            return Err(self.unfit("strings"));
        }
        self.check_no_null()?;
        Ok(self.values().map(|value| Ok(value?.into_text().unwrap_or_default())))
    }

    fn check_no_null(&self) -> Result<()> {
        let column = self.column;
        // An erased value is read as zero.
        if !column.takes_null() {
            return Ok(());
        }
        for run in self.table.data.runs(self.first, self.count) {
            let (slot, len) = run?;
            if column.has_null(slot, place(len))? {
                return Err(self.unfit("values without null"));
            }
        }
        Ok(())
    }

    /// Returns the error that the field can't be read as the requested type.
    #[doc(hidden)]
    #[cold]
    pub fn unfit(&self, asked: &str) -> Error {
        let table = self.table.schema();
        let field = table.field(self.column.field());
        let (name, ty) = field.map_or(("?", None), |field| (&*field.name, Some(field.ty)));
        let null = if self.column.takes_null() { " and may be null" } else { "" };
        let ty = ty.map_or_else(String::new, |ty| format!("{ty:?}"));
        Error::invalid(format!(
            "table `{}`, field `{name}` is {ty}{null}: it can't be read as {asked}",
            table.name
        ))
    }
}

#[cfg(test)]
mod tests;
