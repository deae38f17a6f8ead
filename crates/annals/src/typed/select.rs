//! Some fields of rows: no others are read.

use std::fmt;
use std::iter::from_fn;
use std::marker::PhantomData;

use annals_schema::{FieldNumber, ValueRef};

use super::{Column, ColumnType, Id, Index, IndexRows, Owned, Query, Record, Rows, Table};
use crate::{Error, ErrorKind, Result};

/// What is selected of each row: a [`Column`], or a tuple of up to twelve.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be selected from rows of `{R}`",
    note = "select a column of the table, such as `city::NAME`, or a tuple of them"
)]
pub trait Selection<R> {
    /// The value of a row, or the tuple of its values.
    type Values;

    /// Returns the numbers of the fields.
    #[doc(hidden)]
    fn fields(&self) -> Vec<FieldNumber>;

    /// Takes the values in the order of the fields; `None` if one is of another type.
    #[doc(hidden)]
    fn values(values: &[ValueRef<'_>]) -> Option<Self::Values>;
}

impl<R: Record, T: ColumnType> Selection<R> for Column<R, T> {
    type Values = T::Value;

    fn fields(&self) -> Vec<FieldNumber> {
        vec![self.field()]
    }

    #[inline]
    fn values(values: &[ValueRef<'_>]) -> Option<T::Value> {
        let [value] = values else { return None };
        T::Value::from_ref(*value)
    }
}

macro_rules! tuples {
    ($($type:ident $place:tt),+) => {
        impl<R: Record, $($type: ColumnType),+> Selection<R> for ($(Column<R, $type>,)+) {
            type Values = ($($type::Value,)+);

            fn fields(&self) -> Vec<FieldNumber> {
                vec![$(self.$place.field()),+]
            }

            #[inline]
            fn values(values: &[ValueRef<'_>]) -> Option<Self::Values> {
                Some(($($type::Value::from_ref(*values.get($place)?)?,)+))
            }
        }
    };
}

tuples!(A 0);
tuples!(A 0, B 1);
tuples!(A 0, B 1, C 2);
tuples!(A 0, B 1, C 2, D 3);
tuples!(A 0, B 1, C 2, D 3, E 4);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11);

/// The selected values of rows, one by one. The first error is the last item.
#[must_use = "it reads rows only when it is stepped"]
pub struct Selected<'a, R, S> {
    rows: crate::Selected<'a>,
    kind: PhantomData<fn() -> (R, S)>,
}

impl<R: Record, S> fmt::Debug for Selected<'_, R, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Selected").field("table", &R::NAME).finish_non_exhaustive()
    }
}

impl<'a, R: Record, S: Selection<R>> Selected<'a, R, S> {
    const fn new(rows: crate::Selected<'a>) -> Self {
        Self { rows, kind: PhantomData }
    }

    /// Goes from the end to the beginning instead. It must come before the first row.
    pub fn rev(self) -> Self {
        Self { rows: self.rows.rev(), ..self }
    }

    /// Returns the id of each row with its values.
    pub fn with_ids(self) -> impl Iterator<Item = Result<(Id<R>, S::Values)>> + use<'a, R, S> {
        let mut rows = self;
        from_fn(move || rows.step(|id, values| (id, values)))
    }

    /// Begins a query over the values.
    pub fn query(self) -> Query<Self> {
        Query::over(self)
    }

    #[inline]
    fn step<T>(&mut self, make: impl FnOnce(Id<R>, S::Values) -> T) -> Option<Result<T>> {
        let take = |id: annals_schema::RowId, values: &[ValueRef<'_>]| match S::values(values) {
            Some(values) => Ok(make(id.into(), values)),
            None => Err(unfit(R::NAME, values)),
        };
        self.rows.next_with(take).map(Result::flatten)
    }
}

impl<R: Record, S: Selection<R>> Iterator for Selected<'_, R, S> {
    type Item = Result<S::Values>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.step(|_, values| values)
    }
}

#[cold]
fn unfit(table: &str, values: &[ValueRef<'_>]) -> Error {
    let shown: Vec<_> = values.iter().map(ToString::to_string).collect();
    let message = format!(
        "a row of `{table}` has ({}), of which a newer program has added a variant: use a newer program to read it",
        shown.join(", ")
    );
    Error::new(ErrorKind::SchemaMismatch, message)
}

impl<'a, R: Record> Rows<'a, R> {
    /// Returns only these columns of the rows: no others are read. As [`Index::select`].
    pub fn select<S: Selection<R>>(self, columns: S) -> Selected<'a, R, S> {
        Selected::new(self.into_dynamic().select(&columns.fields()))
    }
}

impl<'a, R: Record> IndexRows<'a, R> {
    /// Returns only these columns of the rows: no others are read. As [`Index::select`].
    pub fn select<S: Selection<R>>(self, columns: S) -> Selected<'a, R, S> {
        Selected::new(self.into_dynamic().select(&columns.fields()))
    }
}

impl<'a, R: Record> Table<'a, R> {
    /// Returns only these columns of all rows, in order of their ids: no others are read. As [`Index::select`].
    pub fn select<S: Selection<R>>(&self, columns: S) -> Selected<'a, R, S> {
        self.iter().select(columns)
    }
}

impl<'a, R: Record> Index<'a, R> {
    /// Returns only these columns of all rows, in the order of the index: no others are read. A column that the index
    /// has comes from its key, without the row. Strings and bytes are copied.
    ///
    /// ```
    /// annals::schema!("tutorial.schema");
    /// use tutorial::{city, person};
    ///
    /// # fn main() -> annals::Result<()> {
    /// # let db = tutorial::Database::in_memory()?;
    /// # db.write(|tx| {
    /// #     for (first_name, last_name) in [("Anne", "Petit"), ("Zoé", "Petit"), ("Max", "Coulom")] {
    /// #         tx.insert(person::New { first_name, last_name, home: None })?;
    /// #     }
    /// #     tx.insert(city::New { name: "Lille" })?;
    /// #     Ok(())
    /// # })?;
    /// let now = db.read();
    /// for name in now.person().by_name().select((person::LAST_NAME, person::FIRST_NAME)) {
    ///     let (last, first): (String, String) = name?;
    ///     println!("{last}, {first}");
    /// }
    /// let firsts: Vec<_> = now.person().by_name().with_last_name("Petit").select(person::FIRST_NAME).query().collect()?;
    /// assert_eq!(firsts, ["Anne", "Zoé"]);
    /// assert_eq!(now.city().select(city::NAME).query().collect::<Vec<_>>()?, ["Lille"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn select<S: Selection<R>>(&self, columns: S) -> Selected<'a, R, S> {
        self.iter().select(columns)
    }
}

impl<'a, R: Record> Query<Rows<'a, R>> {
    /// Keeps only these columns: no others are read. As [`Index::select`].
    pub fn select<S: Selection<R>>(self, columns: S) -> Query<Selected<'a, R, S>> {
        Query::over(self.into_iter().select(columns))
    }
}

impl<'a, R: Record> Query<IndexRows<'a, R>> {
    /// Keeps only these columns: no others are read. As [`Index::select`].
    pub fn select<S: Selection<R>>(self, columns: S) -> Query<Selected<'a, R, S>> {
        Query::over(self.into_iter().select(columns))
    }
}
