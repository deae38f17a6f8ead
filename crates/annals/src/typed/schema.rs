//! The schema that generated code was made from, as a type and as text.

use std::marker::PhantomData;
use std::sync::OnceLock;

use annals_schema::Schema;

use super::AnyChange;
use crate::{Custom, Error, Result, Snapshot, Transaction, View};

/// A schema as a type. A [`Database`](super::Database), and each handle made from it, is generic
/// over one. Generated code implements it for its type `Schema`.
pub trait TypedSchema: Sized + 'static {
    /// The change of a row of any table.
    type Change: AnyChange;
    /// The tables of a view: a method for each.
    type Viewing<'a>;
    /// The tables of a snapshot.
    type Reading: Clone + Send + Sync;
    /// The tables of a transaction.
    type Writing<'db>;

    /// Returns the schema; parses it the first time.
    ///
    /// # Errors
    /// The text in the program is no schema, which the generator rules out.
    fn schema() -> Result<&'static Schema>;

    /// Adds the methods of the schema to a view.
    fn viewing(view: &View) -> Self::Viewing<'_>;

    /// Adds the methods of the schema to a snapshot.
    fn reading(snapshot: Snapshot) -> Self::Reading;

    /// Returns the snapshot without the methods of the schema.
    fn snapshot(tables: &Self::Reading) -> &Snapshot;

    /// Adds the methods of the schema to a transaction.
    fn writing(transaction: Transaction<'_>) -> Self::Writing<'_>;

    /// Returns the transaction without the methods of the schema.
    fn transaction<'t, 'db>(tables: &'t Self::Writing<'db>) -> &'t Transaction<'db>;

    /// Returns the transaction, for writing, without the methods of the schema.
    fn transaction_mut<'t, 'db>(tables: &'t mut Self::Writing<'db>) -> &'t mut Transaction<'db>;

    /// Takes the methods of the schema from a transaction.
    fn into_transaction(tables: Self::Writing<'_>) -> Transaction<'_>;
}

/// What has a state to be read: a snapshot, a transaction, or a view itself.
pub trait Viewed {
    /// Returns that state.
    fn view(&self) -> &View;
}

impl Viewed for &View {
    #[inline]
    fn view(&self) -> &View {
        self
    }
}

impl Viewed for Snapshot {
    #[inline]
    fn view(&self) -> &View {
        self
    }
}

impl Viewed for Transaction<'_> {
    #[inline]
    fn view(&self) -> &View {
        self.view()
    }
}

/// A schema without `custom` commands: its database is opened with a path only.
pub trait PlainSchema: TypedSchema {}

/// A schema with `custom` commands: its database is opened with the program's functions.
pub trait CustomSchema: TypedSchema {
    /// The functions that the program passes when it opens a database, one for each `custom`.
    type Customs<'f>;

    /// Runs the function of one `custom` in the transaction of the upgrade.
    ///
    /// # Errors
    /// The function failed, or there is none with this number.
    fn run(
        customs: &mut Self::Customs<'_>,
        custom: Custom<'_>,
        transaction: &mut Transaction<'_>,
    ) -> Result<()>;
}

/// Marks a schema with `custom` commands, whose `open` takes one more parameter.
#[derive(Debug)]
pub struct WithCustoms<S>(PhantomData<fn() -> S>);

impl<S: CustomSchema> TypedSchema for WithCustoms<S> {
    type Change = S::Change;
    type Viewing<'a> = S::Viewing<'a>;
    type Reading = S::Reading;
    type Writing<'db> = S::Writing<'db>;

    fn schema() -> Result<&'static Schema> {
        S::schema()
    }

    fn viewing(view: &View) -> S::Viewing<'_> {
        S::viewing(view)
    }

    fn reading(snapshot: Snapshot) -> S::Reading {
        S::reading(snapshot)
    }

    fn snapshot(tables: &S::Reading) -> &Snapshot {
        S::snapshot(tables)
    }

    fn writing(transaction: Transaction<'_>) -> S::Writing<'_> {
        S::writing(transaction)
    }

    fn transaction<'t, 'db>(tables: &'t S::Writing<'db>) -> &'t Transaction<'db> {
        S::transaction(tables)
    }

    fn transaction_mut<'t, 'db>(tables: &'t mut S::Writing<'db>) -> &'t mut Transaction<'db> {
        S::transaction_mut(tables)
    }

    fn into_transaction(tables: S::Writing<'_>) -> Transaction<'_> {
        S::into_transaction(tables)
    }
}

/// A schema as text in the program, parsed when it is first needed.
#[derive(Debug)]
pub struct CompiledSchema {
    text: &'static str,
    parsed: OnceLock<Schema>,
}

impl CompiledSchema {
    /// Takes the canonical text of a schema.
    #[must_use]
    pub const fn new(text: &'static str) -> Self {
        Self { text, parsed: OnceLock::new() }
    }

    /// Returns the schema; parses it the first time.
    ///
    /// # Errors
    /// The text is no schema, which the generator rules out.
    pub fn get(&self) -> Result<&Schema> {
        if let Some(schema) = self.parsed.get() {
            return Ok(schema);
        }
        let file = annals_schema::parse(self.text).map_err(|mistakes| {
            Error::invalid(annals_schema::render_all(&mistakes, "the program's schema"))
        })?;
        Ok(self.parsed.get_or_init(|| file.schema))
    }
}

/// Refuses a `custom` that generated code has no function for, which the generator rules out.
///
/// # Errors
/// Always.
pub fn unknown_custom(custom: Custom<'_>) -> Result<()> {
    let Custom { name, number } = custom;
    Err(Error::invalid(format!("the program has no function for `custom {name}`, number {number}")))
}
