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

/// The values from another view.
type Rest<'a, T> = Box<dyn Iterator<Item = Result<T>> + 'a>;

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
        let missing = match self.data.first_missing(first.0, count) {
            Err(error) => return self.instead(error)?.vector(field, first, count),
            Ok(missing) => missing,
        };
        if let Some(missing) = missing {
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
        let found = match self.data.rows.range(first.0..u64::MAX).next() {
            None => return Ok(None),
            Some(row) => row.and_then(|(id, _)| Ok((id.0, self.data.first_missing(id.0, most)?))),
        };
        match found {
            Ok((begin, missing)) => Ok(Some(begin..missing.unwrap_or(begin.saturating_add(most)))),
            Err(error) => self.instead(error)?.dense(first, most),
        }
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
        let (column, vector) = (self.column, *self);
        let mut runs = self.table.data.runs(self.first, self.count);
        let mut slots = 0..0;
        let mut next = move || {
            if slots.is_empty() {
                match runs.next()? {
                    Ok((slot, len)) => slots = slot..slot + place(len),
                    Err(error) => return Some(Err(error)),
                }
            }
            slots.next().map(|slot| column.get(slot))
        };
        let (mut given, mut other) = (0, None::<Rest<'a, Fetched<'a>>>);
        until_error(std::iter::from_fn(move || {
            if let Some(other) = &mut other {
                return other.next();
            }
            match next() {
                Some(Err(error)) => match vector.rest(given, error) {
                    Ok(rest) => other.insert(Box::new(rest.values())).next(),
                    Err(error) => Some(Err(error)),
                },
                value => {
                    given += 1;
                    value
                }
            }
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
        let mut given = 0;
        let error = 'lost: {
            for run in self.table.data.runs(self.first, self.count) {
                let (slot, len) = match run {
                    Ok(run) => run,
                    Err(error) => break 'lost error,
                };
                for slot in slot..slot + place(len) {
                    if let Some(text) = self.column.text_here(slot) {
                        take(ValueRef::String(text))?;
                    } else {
                        match self.column.get(slot) {
                            Ok(value) => take(value.as_ref())?,
                            Err(error) => break 'lost error,
                        }
                    }
                    given += 1;
                }
            }
            return Ok(());
        };
        self.rest(given, error)?.for_each(take)
    }

    /// Returns the values after the first `given` rows from another view, if a page of this one is lost.
    #[cold]
    fn rest(&self, given: u64, error: Error) -> Result<Self> {
        let (field, first) = (self.column.field(), RowId(self.first + given));
        self.table.instead(error)?.vector(field, first, self.count - given)
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
        self.without_null()?.chunks_with_nulls::<T>()
    }

    /// Returns the same as [`chunks`](Self::chunks), also where values are null: there is any value in the place of
    /// one. [`nulls`](Self::nulls) has the places.
    ///
    /// # Errors
    /// `Invalid`: the field is of another type. An item is an error if its page can't be loaded.
    pub fn chunks_with_nulls<T: Primitive>(
        &self,
    ) -> Result<impl Iterator<Item = Result<Cow<'a, [T]>>> + use<'a, T>> {
        let vector = *self;
        let column = vector.column;
        if !T::fits(column.ty()) {
            return Err(self.unfit(std::any::type_name::<T>()));
        }
        let mut runs = vector.table.data.runs(vector.first, vector.count);
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
        let (mut given, mut other) = (0, None::<Rest<'a, Cow<'a, [T]>>>);
        Ok(until_error(std::iter::from_fn(move || {
            if let Some(other) = &mut other {
                return other.next();
            }
            match next() {
                Err(error) => match vector.rest(given, error).and_then(Self::all_chunks) {
                    Ok(rest) => other.insert(rest).next(),
                    Err(error) => Some(Err(error)),
                },
                Ok(chunk) => {
                    given += chunk.as_ref().map_or(0, |chunk| chunk.len() as u64);
                    chunk.map(Ok)
                }
            }
        })))
    }

    fn all_chunks<T: Primitive>(self) -> Result<Rest<'a, Cow<'a, [T]>>> {
        Ok(Box::new(self.chunks_with_nulls::<T>()?))
    }

    /// Returns the places of the values that are null, from 0 on, in order; an error is the last item. Cost: a bit for
    /// each row, 64 at a time, if the field may be null.
    ///
    /// # Errors
    /// They can't be loaded.
    pub fn nulls(&self) -> impl Iterator<Item = Result<u64>> + use<'a> {
        let (vector, column) = (*self, self.column);
        let may_be_null = column.is_nullable();
        let mut runs =
            vector.table.data.runs(vector.first, if may_be_null { vector.count } else { 0 });
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
        let (mut from, mut other) = (0, None::<Rest<'a, u64>>);
        until_error(std::iter::from_fn(move || {
            if let Some(other) = &mut other {
                return other.next();
            }
            match next() {
                Err(error) => match vector.rest(from, error) {
                    Ok(rest) => {
                        let moved = from;
                        other.insert(Box::new(rest.nulls().map(move |at| Ok(at? + moved)))).next()
                    }
                    Err(error) => Some(Err(error)),
                },
                Ok(found) => {
                    from = found.map_or(from, |at| at + 1);
                    found.map(Ok)
                }
            }
        }))
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
        Ok(self.without_null()?.values().map(|value| Ok(value?.into_text().unwrap_or_default())))
    }

    /// Returns the vector, maybe in another view, if it has no null.
    fn without_null(&self) -> Result<Self> {
        match self.check_no_null() {
            Err(error) if error.kind() == ErrorKind::PageLost => {
                self.rest(0, error)?.without_null()
            }
            checked => checked.map(|()| *self),
        }
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
