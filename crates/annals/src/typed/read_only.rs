//! Opening for reading only: a file, bytes of the program, or an older file that is upgraded in memory.

use std::path::Path;

use super::{CustomSchema, Database, Reader, TypedSchema, WithCustoms};
use crate::{Embedded, Options, Result};

impl<S: TypedSchema> Database<S> {
    /// Opens a file for reading only, as it is now: takes no lock, waits for no writer, and writes
    /// nothing. The schema of the file may be newer than this one.
    ///
    /// # Errors
    /// The file is no database, is damaged, or has another schema, or an older one; I/O error.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Reader<S>> {
        Self::open_read_only_with(path, &Options::new())
    }

    /// Opens a file as [`open_read_only`](Self::open_read_only) does, with options such as
    /// [`hard_only`](Options::hard_only).
    ///
    /// # Errors
    /// Those of [`open_read_only`](Self::open_read_only).
    pub fn open_read_only_with(path: impl AsRef<Path>, options: &Options) -> Result<Reader<S>> {
        options.open_schema_read_only(path, S::schema()?).map(Reader::new)
    }

    /// Opens a database whose bytes the program holds, for reading only: the journal, as `include_bytes!` gives it, or
    /// an [`Embedded`] with its image. They are read where they are.
    ///
    /// ```
    /// annals::schema!("tutorial.schema");
    /// use tutorial::city;
    ///
    /// # fn main() -> annals::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("tutorial.annals");
    /// # let db = tutorial::Database::open(&path)?;
    /// # db.write(|tx| Ok(tx.insert(city::New { name: "Lille" })?))?;
    /// # db.close()?;
    /// # let bytes = std::fs::read(&path).unwrap();
    /// // in a program: include_bytes!("tutorial.annals")
    /// let reader = tutorial::Database::from_bytes(bytes)?;
    /// assert!(reader.read().city().by_name().get("Lille")?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The bytes are no database, are damaged, or have another schema, or an older one.
    pub fn from_bytes(bytes: impl Into<Embedded>) -> Result<Reader<S>> {
        Self::from_bytes_with(bytes, &Options::new())
    }

    /// Opens bytes as [`from_bytes`](Self::from_bytes) does, with options such as
    /// [`upgrade_in_memory`](Options::upgrade_in_memory).
    ///
    /// # Errors
    /// Those of [`from_bytes`](Self::from_bytes).
    pub fn from_bytes_with(bytes: impl Into<Embedded>, options: &Options) -> Result<Reader<S>> {
        options.open_schema_bytes(bytes, S::schema()?).map(Reader::new)
    }
}

impl<S: CustomSchema> Database<WithCustoms<S>> {
    /// Opens a file for reading only, as [`open_read_only_with`](Self::open_read_only_with) does. One with an older
    /// schema is upgraded in memory, with the help of `customs`: see
    /// [`Options::upgrade_in_memory`].
    ///
    /// # Errors
    /// Those of [`open_read_only`](Self::open_read_only), but that of an older schema; a function failed.
    pub fn open_read_only_upgraded(
        path: impl AsRef<Path>,
        options: &Options,
        mut customs: S::Customs<'_>,
    ) -> Result<Reader<WithCustoms<S>>> {
        let run: &mut crate::Customs<'_> = &mut |custom, tx| S::run(&mut customs, custom, tx);
        let options = options.clone().upgrade_in_memory(true);
        options.open_schema_read_only_with(path, S::schema()?, run).map(Reader::new)
    }

    /// Opens bytes of the program, as [`from_bytes_with`](Self::from_bytes_with) does, and upgrades them in memory, as
    /// [`open_read_only_upgraded`](Self::open_read_only_upgraded) does.
    ///
    /// # Errors
    /// As there.
    pub fn from_bytes_upgraded(
        bytes: impl Into<Embedded>,
        options: &Options,
        mut customs: S::Customs<'_>,
    ) -> Result<Reader<WithCustoms<S>>> {
        let run: &mut crate::Customs<'_> = &mut |custom, tx| S::run(&mut customs, custom, tx);
        let options = options.clone().upgrade_in_memory(true);
        options.open_schema_bytes_with(bytes, S::schema()?, run).map(Reader::new)
    }
}
