//! Saving a view into an image, and loading it from there.
//!
//! A view's metadata is everything besides its arrays: the commands of its schema, as in the journal, then its
//! tables, its indexes, its blobs, and the history index. Tables and indexes have a flag for each number ever used: whether it still
//! exists.
//!
//! Values that follow from the schema aren't written: numbers, the table of an index, the referrers of a table.

use std::sync::Arc;

use annals_schema::{Command, FieldNumber, IndexNumber, Schema, TableNumber};

use crate::View;
use crate::blobs::Blobs;
use crate::history::HistoryIndex;
use crate::index::tree::IndexTree;
use crate::pages::base::BaseRoot;
use crate::pages::keep::Keep;
use crate::pages::load::Loader;
use crate::pages::page::Epoch;
use crate::pages::pager::Pager;
use crate::pages::save::Saver;
use crate::pages::unique::NoWeak;
use crate::reference::{referrers, target_of};
use crate::saved::SavedView;
use crate::table::Table;
use crate::{Error, Result};
use annals_event::{Encoder, Event};

impl View {
    /// Stores the parts of a published view that aren't in the image yet. Returns the roots of its arrays and its
    /// metadata, which is all that [`View::load`] needs.
    ///
    /// Cost: a walk over the changes since the last time, and the cost of `keep` for them. The writer and readers
    /// continue meanwhile.
    ///
    /// # Errors
    /// Those of `keep`; a part of the image's directory can't be loaded. The parts stored until then are useless.
    #[doc(hidden)]
    pub fn save(&self, pager: &Arc<Pager>, keep: &mut dyn Keep) -> Result<SavedView> {
        self.save_with(&self.history, pager, keep)
    }

    /// Does what [`save`](Self::save) does, with a newer history index.
    ///
    /// # Errors
    /// As `save`.
    #[doc(hidden)]
    pub fn save_with(
        &self,
        history: &Arc<HistoryIndex>,
        pager: &Arc<Pager>,
        keep: &mut dyn Keep,
    ) -> Result<SavedView> {
        let mut out = Saver::default();
        save_schema(&self.schema, &mut out);
        let (tables, indexes) = numbers(&self.schema);
        for number in 0..tables {
            let table = self.tables.get(number as usize);
            save_table_flag(table.map(|table| &**table), &mut out);
            if let Some(table) = table {
                table.save(&mut out);
            }
        }
        for number in 0..indexes {
            match self.indexes.get(number as usize) {
                None => out.flag(false),
                Some(index) if index.unavailable().is_some() => out.flag_of(UNSORTED),
                Some(index) => {
                    out.flag(true);
                    index.save(&mut out);
                }
            }
        }
        self.blobs.save(&mut out);
        history.save(&mut out);
        Ok(SavedView { parts: out.store(pager, keep)?, history: Arc::clone(history) })
    }

    /// Begins with the output of [`View::save`]; pages are loaded when they are read.
    ///
    /// # Errors
    /// `Corrupt`: it isn't the output of a view.
    #[doc(hidden)]
    pub fn load(metadata: &[u8], roots: &[BaseRoot], pager: &Arc<Pager>) -> Result<Self> {
        let mut input = Loader::new(metadata, roots, pager);
        let mut view = Self::new();
        view.schema = Arc::new(load_schema(&mut input)?);
        let (tables, indexes) = numbers(&view.schema);
        for number in 0..tables {
            view.load_table(TableNumber(number), &mut input)?;
        }
        for number in 0..indexes {
            view.load_index(IndexNumber(number), &mut input)?;
        }
        view.blobs = NoWeak::new(Blobs::load(&mut input)?);
        view.history = Arc::new(HistoryIndex::load(&mut input)?);
        input.end()?;
        for (target, referrer) in referrers(&view.schema) {
            if let Some(table) = view.tables.get_mut(target.0 as usize) {
                table.make_mut().referrers.push(referrer);
            }
        }
        Ok(view)
    }

    fn load_table(&mut self, number: TableNumber, input: &mut Loader<'_>) -> Result<()> {
        let schema = self.schema.table(number);
        let flag = input.flag_to(ERASED)?;
        if (flag != 0) != schema.is_some() {
            return Err(unlike("of a table", number.0));
        }
        let Some(schema) = schema else {
            self.tables.skip();
            return Ok(());
        };
        let erased = match flag {
            ERASED => load_erased(input, schema)?,
            _ => Vec::new(),
        };
        let mut table = Table::load(input, schema, &erased)?;
        table.refers = schema.fields.iter().any(|field| target_of(field.ty).is_some());
        table.single = schema.single_row;
        if table.single && table.rows.len() != 1 {
            return Err(unlike("of the rows of table", number.0));
        }
        self.tables.push(table);
        Ok(())
    }

    fn load_index(&mut self, number: IndexNumber, input: &mut Loader<'_>) -> Result<()> {
        let schema = self.schema.index(number);
        let flag = input.flag_to(UNSORTED)?;
        if (flag != 0) != schema.is_some() {
            return Err(unlike("of index", number.0));
        }
        let Some(schema) = schema else {
            self.indexes.skip();
            return Ok(());
        };
        let owner = self.schema.table(schema.table).ok_or_else(|| unlike("of index", number.0))?;
        let table = self.tables.get_mut(schema.table.0 as usize);
        let table = table.ok_or_else(|| unlike("of index", number.0))?;
        let mut index = IndexTree::new(schema, owner);
        if flag != UNSORTED {
            let loaded = IndexTree::load(input, schema, owner)?;
            if loaded.entries.len() != table.rows.len() {
                return Err(unlike("of the entries of index", number.0));
            }
            if loaded.unavailable().is_none() {
                index = loaded;
            }
        } else if index.unavailable().is_none()
            && let Err((a, b)) = index.build(table, &Epoch::apart())?
        {
            return Err(unlike(&format!("of rows {} and {} in index", a.0, b.0), number.0));
        }
        if index.unavailable().is_some() {
            self.unavailable += 1;
        } else {
            table.make_mut().indexes.push(number.0 as usize);
        }
        self.indexes.push(index);
        Ok(())
    }

    /// Lets all arrays continue from their new bases.
    pub(super) fn rebase(&mut self, saved: &SavedView) {
        for number in 0..self.tables.next() {
            if let Some(table) = self.tables.get_mut(number) {
                table.make_mut().rebase(saved);
            }
        }
        for number in 0..self.indexes.next() {
            if let Some(index) = self.indexes.get_mut(number) {
                index.make_mut().rebase(saved);
            }
        }
        self.blobs.make_mut().rebase(saved);
        let mut history = HistoryIndex::clone(&saved.history);
        history.rebase(&saved.parts);
        self.history = Arc::new(history);
        self.pin.clone_from(&saved.pin);
    }
}

/// The flag of a table that has erased values.
const ERASED: u8 = 2;

/// The flag of an index whose entries aren't here, because they couldn't be sorted.
const UNSORTED: u8 = 2;

/// Writes whether there is a table, and which of its fields have erased values.
fn save_table_flag(table: Option<&Table>, out: &mut Saver) {
    let columns = table.map_or(&[][..], |table| &table.columns);
    let erased: Vec<_> = columns.iter().filter(|column| column.has_erased()).collect();
    if erased.is_empty() {
        return out.flag(table.is_some());
    }
    out.flag_of(ERASED);
    out.count(erased.len());
    erased.iter().for_each(|column| out.count(column.field().0 as usize));
}

fn load_erased(input: &mut Loader<'_>, table: &annals_schema::Table) -> Result<Vec<FieldNumber>> {
    let mut fields: Vec<FieldNumber> = Vec::new();
    for _ in 0..input.count()? {
        let number = FieldNumber(input.word()?);
        let follows = fields.last().is_none_or(|&last| last < number);
        match table.field(number) {
            Some(field) if follows && !field.nullable => fields.push(number),
            _ => return Err(unlike("of the erased values of table", table.number.0)),
        }
    }
    Ok(fields)
}

/// Writes the commands of a schema, as the journal has them.
fn save_schema(schema: &Schema, out: &mut Saver) {
    let (mut encoder, mut bytes) = (Encoder::default(), Vec::new());
    for command in schema.commands() {
        encoder.encode(schema, &Event::Schema(command), &mut bytes);
    }
    out.bytes(&bytes);
}

fn load_schema(input: &mut Loader<'_>) -> Result<Schema> {
    let mut schema = Schema::default();
    annals_event::decode(input.bytes()?, 0, &mut schema, &mut |_, event| match event {
        Event::Schema(_) => Ok(()),
        _ => Err(Error::corrupt("there is an event that is no command")),
    })
    .map_err(|error| Error::corrupt(format!("the schema in the image's catalog: {error}")))?;
    Ok(schema)
}

/// Returns how many numbers of tables and of indexes were given out.
fn numbers(schema: &Schema) -> (u32, u32) {
    let (mut tables, mut indexes) = (0, 0);
    for command in schema.commands() {
        tables += u32::from(matches!(command, Command::CreateTable { .. }));
        indexes += u32::from(matches!(command, Command::CreateIndex { .. }));
    }
    (tables, indexes)
}

#[cold]
fn unlike(what: &str, number: u32) -> Error {
    Error::corrupt(format!(
        "the image's catalog disagrees with its own schema in what it says {what} {number}"
    ))
}

#[cfg(test)]
mod tests;
