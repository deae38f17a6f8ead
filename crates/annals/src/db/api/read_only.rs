//! Opening a database for reading only: a file, bytes in the program, or an older file with an upgrade in memory.

use std::path::Path;
use std::sync::Arc;

use annals_schema::{Relation, Schema, compare};
use annals_storage::OverlayDirectory;

use crate::db::api::embedded::Embedded;
use crate::db::follow::continuation::locate;
use crate::db::follow::options::Options;
use crate::db::past::reader::Reader;
use crate::db::write::upgrade;
use crate::db::write::upgrade::Customs;
use crate::journal::format::FRAMES_AT;
use crate::journal::{Recovery, Retention};
use crate::storage::{Directory, SystemClock};
use crate::{Error, Result};

impl Options {
    /// Opens an existing database for reading only: writes nothing. Its only locks are on the root of the image that
    /// it reads, and on each older segment that it reads. Concurrent writes are not visible.
    ///
    /// Cost: as [`Self::open`].
    ///
    /// # Errors
    /// As [`Self::open`], except that nothing is busy and nothing needs recovery.
    pub fn open_read_only(&self, path: impl AsRef<Path>) -> Result<Reader> {
        let (directory, name) = locate(path.as_ref())?;
        self.open_read_only_in(&*directory, &name)
    }

    /// Opens an existing database for reading only, in any directory.
    ///
    /// # Errors
    /// As [`Self::open_read_only`].
    pub fn open_read_only_in(&self, directory: &dyn Directory, name: &str) -> Result<Reader> {
        Reader::open_with(self, directory, name)
    }

    /// Opens an existing database for reading only, as [`Self::open_read_only`] does. Its schema is
    /// this one or a newer one that still has all tables, fields, indexes and single rows of this; or an older one,
    /// with [`Self::upgrade_in_memory`].
    ///
    /// # Errors
    /// As [`Self::open_read_only`]; `SchemaMismatch`, which names the missing item, or says that the file's schema is
    /// older.
    pub fn open_schema_read_only(&self, path: impl AsRef<Path>, schema: &Schema) -> Result<Reader> {
        self.open_schema_read_only_with(path, schema, &mut upgrade::none)
    }

    /// Opens an existing database for reading only, as [`Self::open_schema_read_only`] does. An upgrade in memory
    /// runs the custom functions of the new commands.
    ///
    /// # Errors
    /// As [`Self::open_schema_read_only`], and those of the functions.
    pub fn open_schema_read_only_with(
        &self,
        path: impl AsRef<Path>,
        schema: &Schema,
        customs: &mut Customs<'_>,
    ) -> Result<Reader> {
        let (directory, name) = locate(path.as_ref())?;
        self.schema_in(&*directory, &name, schema, customs)
    }

    /// Opens a database whose bytes the program holds, for reading only. They are read where they are.
    ///
    /// Cost: as [`Self::open_read_only`]. The state is in memory; with the bytes of an
    /// [image](Embedded::image) only the pages that are read.
    ///
    /// # Errors
    /// As [`Self::open_read_only`].
    pub fn open_bytes(&self, bytes: impl Into<Embedded>) -> Result<Reader> {
        let (directory, name) = bytes.into().into_directory();
        self.open_read_only_in(&directory, &name)
    }

    /// Opens a database whose bytes the program holds, as [`Self::open_bytes`] does, with the schema of a program, as
    /// [`Self::open_schema_read_only`] does.
    ///
    /// # Errors
    /// As [`Self::open_schema_read_only`].
    pub fn open_schema_bytes(&self, bytes: impl Into<Embedded>, schema: &Schema) -> Result<Reader> {
        self.open_schema_bytes_with(bytes, schema, &mut upgrade::none)
    }

    /// Opens a database whose bytes the program holds, as [`Self::open_bytes`] does, with the schema of a program, as
    /// [`Self::open_schema_read_only_with`] does.
    ///
    /// # Errors
    /// As [`Self::open_schema_read_only_with`].
    pub fn open_schema_bytes_with(
        &self,
        bytes: impl Into<Embedded>,
        schema: &Schema,
        customs: &mut Customs<'_>,
    ) -> Result<Reader> {
        let (directory, name) = bytes.into().into_directory();
        self.schema_in(&directory, &name, schema, customs)
    }

    /// Opens for reading only what has a schema, or is upgraded to it in memory.
    fn schema_in(
        &self,
        directory: &dyn Directory,
        name: &str,
        schema: &Schema,
        customs: &mut Customs<'_>,
    ) -> Result<Reader> {
        let shown = directory.display(name);
        let opened = match self.upgrade_in_memory {
            true => self.upgraded(directory, name, schema, customs),
            false => self.open_read_only_in(directory, name),
        };
        opened?.expect(schema).map_err(|error| error.within(shown))
    }

    /// Opens a file over which changes stay in memory, and makes the upgrade one of them if it needs one.
    fn upgraded(
        &self,
        directory: &dyn Directory,
        name: &str,
        schema: &Schema,
        customs: &mut Customs<'_>,
    ) -> Result<Reader> {
        let shown = directory.display(name);
        let io = |error| Error::io(format!("{shown}: can't read the journal"), error);
        // It is opened first as always, so that the errors are the same.
        let plain = self.open_read_only_in(directory, name)?;
        let is_older = |reader: &Reader| match compare(reader.read().schema(), schema) {
            Relation::Upgrade(plan) => !plan.adds_nothing(),
            _ => false,
        };
        if !is_older(&plain) {
            return Ok(plain);
        }
        drop(plain);
        let overlay = OverlayDirectory::new(directory.again(), name, FRAMES_AT).map_err(io)?;
        let reader = self.open_read_only_in(&overlay, name)?;
        if let Some(unapplied) = reader.unapplied() {
            return Err(unapplied.error(&shown));
        }
        overlay.cut(reader.end());
        // Others may be writing the image meanwhile: its roots are pinned, as in shared mode.
        let options = Self {
            recovery: Recovery::Checked,
            create: false,
            background: false,
            shared: true,
            retention: Retention::default(),
            ..self.clone()
        };
        let database = options.open_any(Arc::new(overlay), name, Arc::new(SystemClock))?;
        database.upgrade(schema, customs).map_err(|error| error.within(&shown))?;
        database.hard_checkpoint()?;
        drop(database);
        reader.pull()?;
        Ok(reader)
    }
}
