//! A lazy replica with the types of a schema.

use std::fmt;
use std::marker::PhantomData;
use std::path::Path;

use annals::internals::check_readable;
use annals::typed::{PlainSchema, Snapshot};
use annals::{Moment, Options, Result};

use super::{Fetching, IntoRanges, Lazy};

/// A [`Lazy`] with the types that were generated from a schema. The module of [`schema!`](crate::schema) calls it `Lazy`.
///
/// ```no_run
/// annals_replica::schema!("../annals/tutorial.schema");
///
/// # fn open() -> annals::Result<()> {
/// let tutorial = tutorial::Lazy::open("http://127.0.0.1:8080/v1/tutorial", "tutorial.annals")?;
/// let now = tutorial.read();
/// let lille = now.city().by_name().get("Lille")?; // fetches some pages
/// # drop(lille);
/// # Ok(())
/// # }
/// ```
pub struct TypedLazy<S> {
    lazy: Lazy,
    schema: PhantomData<fn() -> S>,
}

impl<S> fmt::Debug for TypedLazy<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lazy.fmt(f)
    }
}

impl<S: PlainSchema> TypedLazy<S> {
    /// Opens the lazy replica of a source: see [`Lazy::open`].
    ///
    /// # Errors
    /// As there; `SchemaMismatch`: the database lacks something that the program needs.
    pub fn open(from: impl IntoRanges, path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(from, path, &Options::new(), Fetching::default())
    }

    /// Does what [`open`](Self::open) does, with options of the database and of fetching.
    ///
    /// # Errors
    /// As there.
    pub fn open_with(
        from: impl IntoRanges,
        path: impl AsRef<Path>,
        options: &Options,
        fetching: Fetching,
    ) -> Result<Self> {
        let lazy = Lazy::open_with(from, path, options, fetching)?;
        check_readable(lazy.read().schema(), S::schema()?)?;
        Ok(Self { lazy, schema: PhantomData })
    }

    /// Returns the state of the last look.
    #[must_use]
    pub fn read(&self) -> Snapshot<S> {
        Snapshot::new(self.lazy.read())
    }

    /// Returns the state at an earlier moment.
    ///
    /// # Errors
    /// There is no such moment, or its history was forgotten; `Unreachable`.
    pub fn at(&self, moment: impl Into<Moment>) -> Result<Snapshot<S>> {
        self.lazy.reader().at(moment).map(Snapshot::new)
    }

    /// Looks what the source has by now, and returns that state: see [`Lazy::pull`].
    ///
    /// # Errors
    /// As there; `SchemaMismatch`: the schema lacks something by now that the program needs.
    pub fn pull(&self) -> Result<Snapshot<S>> {
        let snapshot = self.lazy.pull()?;
        check_readable(snapshot.schema(), S::schema()?)?;
        Ok(Snapshot::new(snapshot))
    }

    /// Returns the lazy replica without its types.
    pub const fn as_dynamic(&self) -> &Lazy {
        &self.lazy
    }
}
