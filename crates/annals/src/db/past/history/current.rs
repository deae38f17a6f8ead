//! The history index up to a published state: that of the image, and what was committed since.
//!
//! What was committed since is read once, at the first question, and kept with the file: the next question, and the
//! next backfill, go on from there.

use std::sync::Arc;

use annals_schema::{RowId, Schema, TableNumber};

use crate::Result;
use crate::db::follow::segments::Since;
use crate::db::past::history::about::{About, damaged, table_key};
use crate::db::past::history::collect::Collector;
use crate::db::past::history::files::Files;
use crate::db::past::history::schema::schema_of;
use crate::db::present::image_use::Noted;
use crate::db::present::snapshot::Published;
use crate::db::progress::check_wanted;
use crate::journal::lock;
use crate::store::history::{Entry, HistoryIndex};

/// So many entries are collected before they are added: some dozens of MiB of memory.
const MOST_ENTRIES: usize = 1 << 20;

/// How much is read at once.
const STEP: u64 = 1 << 20;

/// An index, and how far it goes.
#[derive(Clone, Debug)]
pub(in crate::db) struct Current {
    pub(in crate::db) index: Arc<HistoryIndex>,
    pub(in crate::db) about: About,
}

impl Current {
    /// Takes an index that is there.
    fn of(index: &Arc<HistoryIndex>) -> Result<Option<Self>> {
        if index.is_missing() {
            return Ok(None);
        }
        Ok(Some(Self { index: Arc::clone(index), about: About::decode(index.about())? }))
    }

    /// Returns how many bytes of the present segment are after the index in the image.
    pub(in crate::db) fn lag(published: &Published) -> u64 {
        let end = published.point.position;
        let there = Self::of(published.view.history_index()).ok().flatten();
        let same = there.filter(|it| it.about.end.segment == published.file.segment);
        same.map_or(end, |it| end.saturating_sub(it.about.end.point.position))
    }

    /// True if it goes farther in the journal.
    fn is_after(&self, other: &Self) -> bool {
        let place = |since: &Since| (since.segment, since.point.position);
        place(&self.about.end) > place(&other.about.end)
    }

    /// Returns the index of the whole kept history up to the end of some files, or farther. What is added to the one
    /// there is noted for the next question.
    ///
    /// Cost: reading the journal after the index there.
    ///
    /// # Errors
    /// `Corrupt`, `Unsupported`, `Io`.
    pub(in crate::db) fn up_to(files: &Files, published: &Published) -> Result<Self> {
        let there = published.view.history_index();
        // One that was noted over another root is of no use: its nodes aren't in this one.
        let noted =
            lock(&files.file.images.index).clone().filter(|noted| noted.index.is_over(there));
        let is_instead =
            noted.as_ref().is_some_and(|noted| noted.instead_of(published.view.root()));
        let known = noted.map(|noted| Self::of(&noted.index)).transpose()?.flatten();
        let stored = if is_instead { None } else { Self::of(there)? };
        let newest = match (known, stored) {
            (Some(known), Some(stored)) if !known.is_after(&stored) => Some(stored),
            (known, stored) => known.or(stored),
        };
        let first = files.first();
        let goes_on = |it: &Self| {
            let start = it.about.parts.first().map_or(it.about.end.segment, |part| part.segment);
            start <= first.segment && it.about.end.segment >= first.segment
        };
        let mut current = match newest.filter(goes_on) {
            Some(current) => current,
            None => Self::beginning(files),
        };
        if current.is_before(files) {
            current.leave_out(published.view.schema())?;
            current.extend(files, published, None)?;
            let instead_of = is_instead.then(|| published.view.root());
            current.note(files, instead_of);
        }
        Ok(current)
    }

    fn note(&self, files: &Files, instead_of: Option<u64>) {
        let index = Arc::clone(&self.index);
        *lock(&files.file.images.index) = Some(Noted { index, instead_of });
    }

    /// True if it ends before some files end.
    fn is_before(&self, files: &Files) -> bool {
        let from = self.about.end;
        (from.segment, from.point.position) < (files.segment(), files.end.position)
    }

    /// Notes the tables that a schema leaves out, unless it has entries of them: then it is up to a backfill to make
    /// it without.
    fn leave_out(&mut self, schema: &Schema) -> Result<()> {
        for table in schema.tables().iter().filter(|table| !table.history_index) {
            let number = table.number;
            let is_out = self.about.left_out.contains(&number);
            if !is_out && !self.index.has_table(table_key(number))? {
                self.about.left_out.insert(number);
            }
        }
        Ok(())
    }

    /// True if a schema wants an index of other tables.
    pub(in crate::db) fn is_unwanted(&self, schema: &Schema) -> bool {
        self.about.is_unwanted(schema)
    }

    /// Returns how many bytes of the journal it covers.
    pub(in crate::db) fn len(&self) -> u64 {
        self.about.len()
    }

    /// Adds what follows it in some files, perhaps of one row `only`.
    pub(super) fn extend(
        &mut self,
        files: &Files,
        published: &Published,
        only: Option<(TableNumber, RowId)>,
    ) -> Result<()> {
        let end = Since { segment: files.segment(), point: files.end };
        let from = self.about.end;
        if !self.is_before(files) {
            return Ok(());
        }
        let schema = schema_of(published.view.schema(), self.about.commands)?;
        let mut collector = Collector::new(self.about.clone(), schema, only);
        let mut next = Some(from);
        while let Some(since) = next {
            // An index of all rows is for the next question, too.
            only.map_or(Ok(()), |_| check_wanted())?;
            next = files.read(since, STEP, &mut |seen| collector.frame(seen))?;
            if collector.entries.len() >= MOST_ENTRIES && collector.may_end() {
                let entries = std::mem::take(&mut collector.entries);
                self.add(entries, &collector.about)?;
            }
        }
        collector.end_mark();
        if !collector.may_end() {
            return Err(damaged());
        }
        collector.about.end = end;
        self.add(std::mem::take(&mut collector.entries), &collector.about)?;
        self.about = collector.about;
        Ok(())
    }

    fn add(&mut self, entries: Vec<Entry>, about: &About) -> Result<()> {
        Arc::make_mut(&mut self.index).add(entries, about.encode())
    }

    /// True if it ends where some files end.
    pub(in crate::db) fn is_of(&self, files: &Files) -> bool {
        self.about.end == Since { segment: files.segment(), point: files.end }
    }

    /// Returns the index of the kept history, made from the journal alone.
    ///
    /// # Errors
    /// As [`Self::up_to`].
    pub(in crate::db) fn made_of(files: &Files, published: &Published) -> Result<Self> {
        let mut made = Self::beginning(files);
        made.leave_out(published.view.schema())?;
        made.extend(files, published, None)?;
        Ok(made)
    }

    /// Returns an index of the kept history that has nothing of it yet.
    pub(super) fn beginning(files: &Files) -> Self {
        Self { index: Arc::default(), about: About::beginning(files.first()) }
    }

    /// Returns an index of one row of the kept history, made from the journal alone.
    ///
    /// # Errors
    /// As [`Self::up_to`].
    pub(super) fn of_row(
        files: &Files,
        published: &Published,
        row: (TableNumber, RowId),
    ) -> Result<Self> {
        let mut made = Self::beginning(files);
        made.extend(files, published, Some(row))?;
        Ok(made)
    }

    /// Does what [`made_of`](Self::made_of) does, and notes it instead of the one in the image.
    ///
    /// # Errors
    /// As [`Self::up_to`].
    pub(in crate::db) fn anew(files: &Files, published: &Published) -> Result<Self> {
        let made = Self::made_of(files, published)?;
        made.note(files, Some(published.view.root()));
        Ok(made)
    }

    /// Returns the index of the kept history alone, if much of it is of history that was forgotten.
    pub(in crate::db) fn without_forgotten(self, first: u64) -> Result<Self> {
        let place = self.about.parts.iter().position(|part| part.segment >= first);
        let Some(part) = place.and_then(|place| self.about.parts.get(place)) else {
            return Ok(self);
        };
        let gone = part.base;
        let all = self.about.parts.last().map_or(0, |last| last.base + last.end);
        if gone == 0 || gone < all - gone {
            return Ok(self);
        }
        let mut about = self.about;
        about.parts.retain(|part| part.segment >= first);
        let index =
            crate::db::past::history::kept::filtered(&self.index, gone / 8, about.encode())?;
        Ok(Self { index: Arc::new(index), about })
    }
}
